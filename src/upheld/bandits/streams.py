"""Counter-based randomness: a number is a function of (seed, run, arm, pull), so nothing has to be stored.

Two policies in the same run see the same table of rewards (arm i's j-th reward is the same number for both), which
makes their comparison exactly paired, whatever order they play in. The generator is SplitMix64 (Steele, Lea & Flood
2014): the j-th output of the stream with key k is mix(k + j * GOLDEN). Keys of runs, arms and rounds are outputs of
their parent's stream. Normal deviates are quantiles (Wichura 1988, algorithm AS 241), so each takes one number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from upheld.bandits.elementwise import branch, choose, elementwise, finished, ln

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
SHIFT_12, SHIFT_27, SHIFT_30, SHIFT_31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)
ONE = np.uint64(1)
STEP_52 = 2.0**-52

REWARDS, DECISIONS = 0, 1  # the two streams of a seed
TIE, COIN, ARMS = np.uint64(0), np.uint64(1), np.uint64(2)  # what a round's stream is used for; ARMS + i is arm i's
GAMMA_TRIES = 16  # a proposal is refused with probability < 0.05, so the last one is in effect never taken unasked

CENTRE_NUM = (
    3.3871328727963666080e0,
    1.3314166789178437745e2,
    1.9715909503065514427e3,
    1.3731693765509461125e4,
    4.5921953931549871457e4,
    6.7265770927008700853e4,
    3.3430575583588128105e4,
    2.5090809287301226727e3,
)
CENTRE_DEN = (
    1.0,
    4.2313330701600911252e1,
    6.8718700749205790830e2,
    5.3941960214247511077e3,
    2.1213794301586595867e4,
    3.9307895800092710610e4,
    2.8729085735721942674e4,
    5.2264952788528545610e3,
)
TAIL_NUM = (
    1.42343711074968357734e0,
    4.63033784615654529590e0,
    5.76949722146069140550e0,
    3.64784832476320460504e0,
    1.27045825245236838258e0,
    2.41780725177450611770e-1,
    2.27238449892691845833e-2,
    7.74545014278341407640e-4,
)
TAIL_DEN = (
    1.0,
    2.05319162663775882187e0,
    1.67638483018380384940e0,
    6.89767334985100004550e-1,
    1.48103976427480074590e-1,
    1.51986665636164571966e-2,
    5.47593808499534494600e-4,
    1.05075007164441684324e-9,
)
FAR_NUM = (
    6.65790464350110377720e0,
    5.46378491116411436990e0,
    1.78482653991729133580e0,
    2.96560571828504891230e-1,
    2.65321895265761230930e-2,
    1.24266094738807843860e-3,
    2.71155556874348757815e-5,
    2.01033439929228813265e-7,
)
FAR_DEN = (
    1.0,
    5.99832206555887937690e-1,
    1.36929880922735805310e-1,
    1.48753612908506148525e-2,
    7.86869131145613259100e-4,
    1.84631831751005468180e-5,
    1.42151175831644588870e-7,
    2.04426310338993978564e-15,
)


@elementwise
def mix(z: Any) -> Any:
    """SplitMix64's finaliser: a bijection of 64-bit words that spreads every input bit."""
    z = (z ^ (z >> SHIFT_30)) * MIX_1
    z = (z ^ (z >> SHIFT_27)) * MIX_2
    return z ^ (z >> SHIFT_31)


@elementwise
def child(key: Any, counter: Any) -> Any:
    """Output number `counter` (unsigned 64-bit) of the stream `key`; serves as a key in turn."""
    return mix(key + (counter + ONE) * GOLDEN)


@elementwise
def uniform(key: Any, counter: Any) -> Any:
    """Uniform number strictly between 0 and 1, on the middle of one of 2^52 equal cells."""
    return (np.float64(child(key, counter) >> SHIFT_12) + 0.5) * STEP_52


@elementwise
def polynomial(c: Any, x: Any) -> Any:
    return ((((((c[7] * x + c[6]) * x + c[5]) * x + c[4]) * x + c[3]) * x + c[2]) * x + c[1]) * x + c[0]


@elementwise
def quantile_centre(u: Any) -> Any:
    q = u - 0.5
    r = 0.180625 - q * q
    return q * polynomial(CENTRE_NUM, r) / polynomial(CENTRE_DEN, r)


@elementwise
def quantile_tail(u: Any) -> Any:
    r = np.sqrt(-ln(choose(u < 0.5, u, 1.0 - u)))
    near = polynomial(TAIL_NUM, r - 1.6) / polynomial(TAIL_DEN, r - 1.6)
    far = polynomial(FAR_NUM, r - 5.0) / polynomial(FAR_DEN, r - 5.0)
    size = choose(r <= 5.0, near, far)
    return choose(u < 0.5, -size, size)


@elementwise
def normal_quantile(u: Any) -> Any:
    """Standard normal quantile of `u` in (0, 1), relative error about 1e-16."""
    return branch(np.abs(u - 0.5) <= 0.425, quantile_centre, quantile_tail, u)


@elementwise
def normal(key: Any, counter: Any) -> Any:
    return normal_quantile(uniform(key, counter))


@elementwise
def gamma(key: Any, shape: Any) -> Any:
    """Gamma deviate with `shape` >= 1 and scale 1 (Marsaglia & Tsang 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    value = d
    done = d < 0.0
    for attempt in range(GAMMA_TRIES):
        x = normal(key, np.uint64(2 * attempt))
        root = 1.0 + c * x
        cube = root * root * root
        positive = cube > 0.0
        cube = choose(positive, cube, 1.0)
        accepted = ln(uniform(key, np.uint64(2 * attempt + 1))) < 0.5 * x * x + d - d * cube + d * ln(cube)
        value = choose(done, value, d * cube)
        done = done | (positive & accepted)
        if finished(done):
            break
    return value


@elementwise
def beta(key: Any, a: Any, b: Any) -> Any:
    """Beta deviate with both shapes >= 1, as a ratio of gamma deviates."""
    x = gamma(child(key, TIE), a)
    y = gamma(child(key, COIN), b)
    return x / (x + y)


def root_key(seed: int, stream: int) -> np.uint64:
    """Key of one of the two streams (`REWARDS`, `DECISIONS`) of `seed`.

    Raises
    ------
    ValueError
        If `seed` does not fit an unsigned 64-bit word.
    """
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must lie in 0 ... 2^64 - 1, got {seed}; take the seed modulo 2^64")
    with np.errstate(over="ignore"):  # 64-bit words are meant to wrap
        return np.uint64(child(mix(np.array([seed], dtype=np.uint64)), np.uint64(stream))[0])


def run_keys(seed: int, stream: int, runs: np.ndarray) -> np.ndarray:
    """(R,) keys of the numbered `runs` in a stream of `seed`."""
    return np.asarray(child(np.full(len(runs), root_key(seed, stream)), np.asarray(runs, dtype=np.uint64)))


def arm_keys(keys: np.ndarray, n_arms: int) -> np.ndarray:
    """(R, K) keys of the arms of each run."""
    return np.asarray(child(keys[:, None], np.arange(n_arms, dtype=np.uint64)[None, :]))
