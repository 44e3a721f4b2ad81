"""What the authors of JIC-HD say of it, and what a user has to know besides, made falsifiable.

The full text of the paper is not available to us; its abstract and the authors' simulation code are. Rivals are tuned in two
ways: by the information criterion of the authors' protocol, and by cross-validation, which is what a careful user would do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from upheld.claims import (
    All,
    AtLeast,
    AtMost,
    Claim,
    Difference,
    Equivalent,
    Experiment,
    Mean,
    Measurement,
    NeverViolated,
    NotRun,
    Rate,
    Reported,
    Scale,
    Share,
    Slope,
    Superior,
    Trial,
    grid,
)
from upheld.hubs.data import HubNetworks, load_khan, make_hub_networks
from upheld.hubs.detector import JointHubs
from upheld.hubs.eigenspaces import joint_eigenspace
from upheld.hubs.enrichment import enrichment, read_gmt
from upheld.hubs.files import load_table
from upheld.hubs.metrics import hub_recovery, ranking_auc
from upheld.hubs.rivals import race
from upheld.hubs.uncertainty import permuted, rotated

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

P_COMMON, P_INDIVIDUAL = (0.4, 0.7), (0.5, 0.8)
GRAPHICAL_LASSOS = ("graphical-lasso", "group-lasso", "fused-lasso", "hub-weighted-lasso", "hub-lasso")
INVERSE_COMPONENTS = ("ipc-sqrt", "ipc-frac")
FLOORS = ("average-ipc", "pooled-ipc", "marginal", "random")


def networks_of(trial: Trial, **design: int) -> HubNetworks:
    """The paper's generator under a trial's condition: p variables, n samples a group, r1 common and r2 individual hubs."""
    condition = {"r1": 4, "r2": 4, **trial.condition}
    return make_hub_networks(
        int(condition["p"]),
        int(condition["n"]),
        n_common=int(condition["r1"]),
        n_individual=int(condition["r2"]),
        p_common=P_COMMON,
        p_individual=P_INDIVIDUAL,
        random_state=trial.rng("networks"),
        **design,  # type: ignore[arg-type]
    )


def near_common_of(trial: Trial) -> HubNetworks:
    """Some hubs are hubs of all groups but the last: what a mere average cannot tell from common ones."""
    return networks_of(trial, n_groups=int(trial.condition["K"]), n_near_common=int(trial.condition["r_near"]))


def recovered(method: str, selected: BoolArray, hubs: BoolArray) -> Iterator[Measurement]:
    found = hub_recovery(selected, hubs)
    yield Measurement(method, "F", found.f_score)
    yield Measurement(method, "TPR", found.tpr)
    yield Measurement(method, "FPR", found.fpr)
    if selected.any():
        yield Measurement(method, "precision", found.precision)


def fit_jic(networks: HubNetworks, **parameters: object) -> tuple[JointHubs, float]:
    """The method, and the seconds of one fit; what is loaded at the first is paid for on a few variables, as with the rivals."""
    JointHubs().fit_many([X[:, :6] for X in networks.Xs])
    start = time.perf_counter()
    fitted = JointHubs(**parameters).fit_many(networks.Xs)  # type: ignore[arg-type]
    return fitted, time.perf_counter() - start


def measure_jic(networks: HubNetworks) -> Iterator[Measurement]:
    fitted, seconds = fit_jic(networks)
    yield from recovered("jic", fitted.get_support(), networks.is_common)
    yield Measurement("jic", "AUC", ranking_auc(fitted.influence_, networks.is_common))
    yield Measurement("jic", "seconds, one fit", seconds)
    yield Measurement("jic", "seconds, tuned", seconds)
    yield Measurement("jic", "certified", float(fitted.relative_gap_ <= 1e-3))


def measure_rivals(networks: HubNetworks, rivals: Sequence[str], trial: Trial) -> Iterator[Measurement]:
    """Every rival, tuned every way, under both selection rules: ``fused-lasso, cv, score``."""
    hubs = networks.is_common
    for call in race(networks.Xs, rivals=rivals, tunings=("ic", "cv", "oracle"), hubs=hubs, rng=trial.rng("folds")):
        tuned = call.detector if call.tuning == "none" else f"{call.detector}, {call.tuning}"
        for rule, selected in call.selected.items():
            yield from recovered(f"{tuned}, {rule}", selected, hubs)
        yield Measurement(tuned, "AUC", ranking_auc(call.score, hubs))
        yield Measurement(tuned, "seconds, tuned", call.seconds)
        yield Measurement(tuned, "grid edges hit", float(call.at_edge))
        if call.tuning in ("ic", "none"):
            yield Measurement(call.detector, "seconds, one fit", call.seconds_one_fit)


# -- H1, H1b, H1c, H4: the race


def measure_race(trial: Trial) -> Iterator[Measurement]:
    """One draw of three networks; the method, every rival, every tuning."""
    networks = networks_of(trial)
    yield from measure_jic(networks)
    rivals: tuple[str, ...] = INVERSE_COMPONENTS + GRAPHICAL_LASSOS + FLOORS
    if trial.scale in (Scale.STANDARD, Scale.FULL):
        rivals += ("nodewise-lasso",)
    yield from measure_rivals(networks, rivals, trial)


RACE = Experiment(
    "hubs.race",
    measure_race,
    conditions={
        Scale.SMOKE: grid(p=[24], n=[24], r1=[2], r2=[2]),
        Scale.QUICK: grid(p=[60], n=[30, 60], r1=[4], r2=[4]),
        Scale.STANDARD: [
            {"p": p, "n": int(share * p), "r1": 5, "r2": 5} for p in (100, 200) for share in (0.5, 0.75, 1.0, 1.25)
        ],
        Scale.FULL: [
            {"p": p, "n": int(share * p), "r1": r1, "r2": 5}
            for p in (100, 200, 400)
            for share in (0.5, 0.75, 1.0, 1.25)
            for r1 in (5, 10, 15)
        ],
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 8, Scale.STANDARD: 100, Scale.FULL: 100},
    timeout_s={Scale.SMOKE: 300, Scale.QUICK: 180, Scale.STANDARD: 1800, Scale.FULL: 7200},
)

DESIGN = ("p", "n", "r1")
AUTHORS_PROTOCOL = tuple(f"{name}, intersection" for name in INVERSE_COMPONENTS) + tuple(
    f"{name}, ic, intersection" for name in GRAPHICAL_LASSOS
)
# The better of the two selection rules: to beat both is to beat the better one.
CAREFUL_USER = tuple(f"{name}, {rule}" for name in INVERSE_COMPONENTS for rule in ("intersection", "score")) + tuple(
    f"{name}, cv, {rule}" for name in GRAPHICAL_LASSOS for rule in ("intersection", "score")
)
RANKINGS = INVERSE_COMPONENTS + tuple(f"{name}, cv" for name in GRAPHICAL_LASSOS)

# -- H2, H2b: where common hubs are hardest to tell


def measure_coexistence(trial: Trial) -> Iterator[Measurement]:
    """As the race, with more and more individual hubs beside the common ones."""
    networks = networks_of(trial)
    yield from measure_jic(networks)
    yield from measure_rivals(networks, ("fused-lasso", *INVERSE_COMPONENTS), trial)


def measure_near_common(trial: Trial) -> Iterator[Measurement]:
    """As the race, with hubs that miss one group only."""
    networks = near_common_of(trial)
    yield from measure_jic(networks)
    yield from measure_rivals(networks, ("fused-lasso", "average-ipc", *INVERSE_COMPONENTS), trial)


COEXISTENCE = Experiment(
    "hubs.coexistence",
    measure_coexistence,
    conditions={
        Scale.SMOKE: grid(p=[24], n=[24], r1=[2], r2=[0, 2]),
        Scale.QUICK: grid(p=[60], n=[60], r1=[4], r2=[0, 4, 8]),
        Scale.STANDARD: grid(p=[100], n=[100], r1=[5], r2=[0, 5, 10, 15]),
        Scale.FULL: grid(p=[200], n=[200], r1=[5], r2=[0, 5, 10, 15]),
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 8, Scale.STANDARD: 50, Scale.FULL: 200},
    timeout_s={Scale.SMOKE: 300, Scale.QUICK: 180, Scale.STANDARD: 1800, Scale.FULL: 7200},
)

NEAR_COMMON = Experiment(
    "hubs.near-common",
    measure_near_common,
    conditions={
        Scale.SMOKE: grid(p=[24], n=[48], K=[4], r1=[2], r2=[0], r_near=[2]),
        Scale.QUICK: grid(p=[60], n=[120], K=[5], r1=[4], r2=[0], r_near=[6]),
        Scale.STANDARD: grid(p=[100], n=[200], K=[3, 5, 8], r1=[5], r2=[0], r_near=[8]),
        Scale.FULL: grid(p=[200], n=[400], K=[3, 5, 8], r1=[5], r2=[0], r_near=[8]),
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 8, Scale.STANDARD: 50, Scale.FULL: 200},
    timeout_s={Scale.SMOKE: 300, Scale.QUICK: 180, Scale.STANDARD: 1800, Scale.FULL: 7200},
)

# -- H3: minimax against the mere average


def measure_average(trial: Trial) -> Iterator[Measurement]:
    """The method and the average matrix, in the paper's design and in the near-common one."""
    networks = near_common_of(trial) if trial.condition["design"] == "near-common" else networks_of(trial)
    yield from measure_jic(networks)
    yield from measure_rivals(networks, ("average-ipc",), trial)


AVERAGE = Experiment(
    "hubs.average",
    measure_average,
    conditions={
        Scale.SMOKE: grid(design=["balanced"], p=[24], n=[24], K=[3], r1=[2], r2=[2], r_near=[0]),
        **{
            scale: grid(design=["balanced"], p=[p], n=[p // 2, p], K=[3], r1=[5], r2=[5], r_near=[0])
            + grid(design=["near-common"], p=[p], n=[2 * p], K=[5, 8], r1=[5], r2=[0], r_near=[8])
            for scale, p in ((Scale.QUICK, 100), (Scale.STANDARD, 100), (Scale.FULL, 200))
        },
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 40, Scale.STANDARD: 200, Scale.FULL: 1000},
    timeout_s={Scale.SMOKE: 30, Scale.QUICK: 30, Scale.STANDARD: 60, Scale.FULL: 600},
)

# -- H5: what the population eigenspace carries


def measure_population(trial: Trial) -> Iterator[Measurement]:
    """Influence by class of variable at the population correlations, s a multiple of the number of common hubs."""
    networks = networks_of(trial)
    s = int(trial.condition["multiple"]) * len(networks.common)
    w = joint_eigenspace(networks.correlations(), s).influence
    margin = w[networks.is_common].min() - w[~networks.is_common].max()
    yield Measurement("jic", "influence margin", float(margin))
    yield Measurement("jic", "separated", float(margin > 0))


POPULATION = Experiment(
    "hubs.population",
    measure_population,
    conditions={
        Scale.SMOKE: grid(p=[24], n=[0], r1=[2], r2=[2], multiple=[1]),
        Scale.QUICK: grid(p=[60], n=[0], r1=[3], r2=[3], multiple=[1, 2, 3]),
        Scale.STANDARD: grid(p=[100], n=[0], r1=[5], r2=[5], multiple=[1, 2, 3]),
        Scale.FULL: grid(p=[200], n=[0], r1=[5], r2=[5], multiple=[1, 2, 3]),
    },
    # 72 successes of 72 are the fewest that put a share's interval above 95 %.
    repeats={Scale.SMOKE: 1, Scale.QUICK: 100, Scale.STANDARD: 400, Scale.FULL: 1000},
    timeout_s={Scale.SMOKE: 30, Scale.QUICK: 30, Scale.STANDARD: 60, Scale.FULL: 600},
)

# -- H6, H7: consistency, and the bound behind it


PRECISE = 1e-8  # at 32,000 samples the default tolerance would show in the influences


def measure_consistency(trial: Trial) -> Iterator[Measurement]:
    """Three fixed networks, more and more samples; s is the number of common hubs, where the population has a real eigengap."""
    fixed = Trial(trial.experiment, {**trial.condition, "n": 0}, seed=0, scale=trial.scale)
    networks = networks_of(fixed)
    s = len(networks.common)
    population = joint_eigenspace(networks.correlations(), s, tol=PRECISE)
    Xs = networks.sample(int(trial.condition["n"]), trial.rng("samples"))
    fitted = JointHubs(s, tol=PRECISE).fit_many(Xs)
    S = [np.corrcoef(X, rowvar=False) for X in Xs]
    noise = max(np.linalg.norm(S_k - Sigma_k, 2) for S_k, Sigma_k in zip(S, networks.correlations(), strict=True))
    yield Measurement("jic", "largest error of influence", float(abs(fitted.influence_ - population.influence).max()))
    yield Measurement("jic", "TPR", hub_recovery(fitted.get_support(), networks.is_common).tpr)
    deviation = abs(fitted.lower_bound_ - population.lower)
    yield Measurement("jic", "deviation over bound", float(deviation / (s * noise)))


CONSISTENCY = Experiment(
    "hubs.consistency",
    measure_consistency,
    conditions={
        Scale.SMOKE: grid(p=[24], n=[500, 1000], r1=[2], r2=[2]),
        Scale.QUICK: grid(p=[60], n=[500, 2000, 8000, 32000], r1=[3], r2=[3]),
        Scale.STANDARD: grid(p=[100], n=[500, 1000, 2000, 4000, 8000, 32000], r1=[5], r2=[5]),
        Scale.FULL: grid(p=[100], n=[250, 500, 1000, 2000, 4000, 8000, 16000, 32000], r1=[5], r2=[5]),
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 10, Scale.STANDARD: 30, Scale.FULL: 100},
    timeout_s={Scale.SMOKE: 30, Scale.QUICK: 60, Scale.STANDARD: 120, Scale.FULL: 600},
)

# -- H8: too large a dimension


def measure_dimension(trial: Trial) -> Iterator[Measurement]:
    """The method with s half, once and one and a half times sqrt(p)."""
    networks = networks_of(trial)
    for factor in (0.5, 1.0, 1.5):
        fitted = JointHubs(int(factor * np.sqrt(networks.n_variables))).fit_many(networks.Xs)
        yield from recovered(f"jic, s = {factor:g} sqrt(p)", fitted.get_support(), networks.is_common)


DIMENSION = Experiment(
    "hubs.dimension",
    measure_dimension,
    conditions={
        Scale.SMOKE: grid(p=[36], n=[36], r1=[2], r2=[2]),
        **{
            scale: grid(p=[100], n=[100], r1=[5, 10, 15], r2=[5]) for scale in (Scale.QUICK, Scale.STANDARD, Scale.FULL)
        },
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 12, Scale.STANDARD: 50, Scale.FULL: 100},
    timeout_s={Scale.SMOKE: 30, Scale.QUICK: 30, Scale.STANDARD: 60, Scale.FULL: 60},
)

# -- H9: real tumours


def measure_tumours(trial: Trial) -> Iterator[Measurement]:
    """One random split of the Khan tumours and one draw of either null.

    The 30 genes of largest within-class variance are split in halves, s = 5; the 60 of largest variance are fitted whole, s = 7.
    """
    rng = trial.rng()
    genes, small = _khan(30)
    for source, Xs in (("tumours", small), ("permuted", permuted(small, rng)), ("rotated", rotated(small, rng))):
        halves = _random_halves(Xs, rng)
        first, second = (JointHubs(5, selection=10).fit_many(half) for half in halves)
        a, b = set(first.hubs_), set(second.hubs_)
        yield Measurement(source, "Jaccard of top 10", len(a & b) / len(a | b))
        if source == "tumours":
            chosen = JointHubs(5).fit_many(halves[0]).get_support()
            yield from (
                Measurement("jic", "chosen in half", float(here), gene)
                for gene, here in zip(genes, chosen, strict=True)
            )
    _, whole = _khan(60)
    strongest = JointHubs(7).fit_many(whole).influence_.max()
    for null, surrogate in (("permuted", permuted(whole, rng)), ("rotated", rotated(whole, rng))):
        reached = JointHubs(7).fit_many(surrogate).influence_.max() >= strongest
        yield Measurement(null, "reaches the strongest gene", float(reached))


@cache
def _khan(top: int) -> tuple[list[str], list[FloatArray]]:
    table, subtype = load_khan(top)
    return list(table.columns), [part.to_numpy() for _, part in table.groupby(subtype)]


def _random_halves(Xs: Sequence[FloatArray], rng: np.random.Generator) -> tuple[list[FloatArray], list[FloatArray]]:
    """Two disjoint halves of every group; of an odd group one sample is left out."""
    orders = [rng.permutation(len(X)) for X in Xs]
    halves = [
        (X[order[: len(X) // 2]], X[order[len(X) // 2 : 2 * (len(X) // 2)]])
        for X, order in zip(Xs, orders, strict=True)
    ]
    return [a for a, _ in halves], [b for _, b in halves]


TUMOURS = Experiment(
    "hubs.tumours",
    measure_tumours,
    conditions={scale: [{}] for scale in Scale},
    repeats={Scale.SMOKE: 2, Scale.QUICK: 200, Scale.STANDARD: 500, Scale.FULL: 1000},
    timeout_s={Scale.SMOKE: 300, Scale.QUICK: 60, Scale.STANDARD: 60, Scale.FULL: 60},
)


USERS_DATA = ("UPHELD_HUBS_DATA", "UPHELD_HUBS_GROUPS", "UPHELD_HUBS_GMT")


def measure_biology(trial: Trial) -> Iterator[Measurement]:
    """Gene sets in which the hubs of the user's own expression data, named by the environment, are over-represented."""
    data, groups, gmt = (os.environ.get(name, "") for name in USERS_DATA)
    if not (data and groups and gmt):
        raise NotRun(
            "needs expression data with gene symbols and a gene-set file: set UPHELD_HUBS_DATA, UPHELD_HUBS_GROUPS (its group "
            "column) and UPHELD_HUBS_GMT"
        )
    table, labels = load_table(data, groups=groups)
    detector = JointHubs(screen="auto").fit(table, groups=labels)
    symbols = table.columns.astype(str).to_numpy()
    # The universe is what could have been selected: variables that screening left out could not.
    found = enrichment(symbols[detector.get_support()], symbols[~detector.screened_out_], read_gmt(Path(gmt)))
    yield Measurement("jic", "enriched gene sets", float((found["fdr"] < 0.05).sum()))


BIOLOGY = Experiment(
    "hubs.biology",
    measure_biology,
    conditions={scale: [{}] for scale in Scale},
    repeats=dict.fromkeys(Scale, 1),
    timeout_s=dict.fromkeys(Scale, 600),
)

# -- H10: the certificate


def measure_certificate(trial: Trial) -> Iterator[Measurement]:
    """The certified optimum beside the authors' optimiser at its paper settings: 10 starts, 500 steps."""
    networks = networks_of(trial)
    S = [np.corrcoef(X, rowvar=False) for X in networks.Xs]
    s = int(np.sqrt(networks.n_variables))
    theirs = joint_eigenspace(S, s, solver="stiefel", random_state=trial.rng("starts"))
    ours = joint_eigenspace(S, s)
    yield Measurement("jic", "certified", float(ours.relative_gap <= 1e-3))
    yield Measurement("jic", "objective over bound", ours.upper / ours.lower)
    yield Measurement("stiefel", "objective over bound", theirs.upper / ours.lower)


CERTIFICATE = Experiment(
    "hubs.certificate",
    measure_certificate,
    conditions={
        Scale.SMOKE: grid(p=[24], n=[24], r1=[2], r2=[2]),
        Scale.QUICK: grid(p=[60], n=[60], r1=[4], r2=[4]),
        Scale.STANDARD: grid(p=[100], n=[50, 100], r1=[5], r2=[5]),
        Scale.FULL: grid(p=[100, 200], n=[100], r1=[5], r2=[5]),
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 6, Scale.STANDARD: 50, Scale.FULL: 100},
    timeout_s={Scale.SMOKE: 300, Scale.QUICK: 120, Scale.STANDARD: 300, Scale.FULL: 600},
)

CLAIMS = [
    Claim(
        "hubs.beats-existing",
        "it finds the common hubs better than existing methods do under the authors' protocol: penalties by information "
        "criterion, hubs of every group intersected",
        reported="F 0.73 at K = 3, p = 100, n = 50 (second-hand)",
        experiment=RACE,
        rule=Superior("F", ours="jic", rivals=AUTHORS_PROTOCOL, per=DESIGN),
        note="A first quick run with six draws instead of eight had been seen, and was inconclusive; the standard scale decides.",
    ),
    Claim(
        "hubs.beats-tuned",
        "it also does when the rivals are tuned by cross-validation and take the better of two selection rules",
        reported=None,
        experiment=RACE,
        rule=Superior("F", ours="jic", rivals=CAREFUL_USER, per=DESIGN),
        ours=True,
        note="The authors' protocol leaves the lassos with empty networks at n <= p; this is the race without that handicap.",
    ),
    Claim(
        "hubs.ranks-better",
        "it also ranks the common hubs higher, whatever the threshold",
        reported=None,
        experiment=RACE,
        rule=Superior("AUC", ours="jic", rivals=RANKINGS, per=DESIGN),
        ours=True,
    ),
    Claim(
        "hubs.coexistence",
        "its advantage grows with the number of individual hubs, and is there when they are many",
        reported="largest where common and individual hubs coexist",
        experiment=COEXISTENCE,
        rule=All(
            (
                AtLeast(
                    Difference(
                        Slope("F", "jic", x="r2", log_x=False, log_y=False),
                        Slope("F", "fused-lasso, cv, score", x="r2", log_x=False, log_y=False),
                    ),
                    0.0,
                ),
                Superior(
                    "F",
                    ours="jic",
                    rivals=tuple(name for name in CAREFUL_USER if name.startswith(("ipc", "fused"))),
                    where={"r2": [8, 15]},
                ),
            )
        ),
        note="The fused joint graphical lasso is the rival to beat: the simulated groups share their edge weights, which is its prior.",
    ),
    Claim(
        "hubs.almost-all-groups",
        "it also beats tuned rivals when other hubs are common to all groups but one",
        reported=None,
        experiment=NEAR_COMMON,
        rule=Superior(
            "F",
            ours="jic",
            rivals=tuple(name for name in CAREFUL_USER if name.startswith(("ipc", "fused"))),
            per=("K",),
        ),
        ours=True,
    ),
    Claim(
        "hubs.average-suffices",
        "in the authors' balanced design the plain average of the matrices does as well",
        reported=None,
        experiment=AVERAGE,
        rule=Equivalent("F", "jic", "average-ipc, score", 0.05, where={"design": "balanced"}, per=("n",)),
        ours=True,
        note="A control: where it holds, an advantage over other rivals owes nothing to the minimax.",
    ),
    Claim(
        "hubs.minimax-needed",
        "when other hubs are common to all groups but one, the minimax beats the plain average",
        reported=None,
        experiment=AVERAGE,
        rule=Superior("F", ours="jic", rivals=("average-ipc, score",), where={"design": "near-common"}, per=("K",)),
        ours=True,
    ),
    Claim(
        "hubs.no-networks-needed",
        "one fit takes less time than one fit of any rival that estimates the networks, at a single penalty, compilation excluded",
        reported="recovers hubs without estimating all networks",
        experiment=RACE,
        rule=Superior(
            "seconds, one fit", ours="jic", rivals=GRAPHICAL_LASSOS, relative=True, lower_is_better=True, per=DESIGN
        ),
        timed=True,
    ),
    Claim(
        "hubs.eigenspace",
        "the joint minimax eigenspace of the population has every common hub above every other variable in at least 95 % of draws",
        reported=None,
        experiment=POPULATION,
        rule=AtLeast(Share("separated", "jic", {"multiple": 1}), 0.95),
        note="With s equal to the number of common hubs; the table shows two and three times as many.",
    ),
    Claim(
        "hubs.consistent",
        "the largest error of an influence falls like n^(-1/2), and all common hubs are found in the end",
        reported="a theorem on the true positive rate",
        experiment=CONSISTENCY,
        rule=All(
            (
                Rate("largest error of influence", "jic", x="n", high=-0.4),
                AtLeast(Mean("TPR", "jic", {"n": 32000}), 0.99),
            )
        ),
    ),
    Claim(
        "hubs.bound",
        "the optimum never moves by more than s times the largest spectral error of a matrix",
        reported=None,
        experiment=CONSISTENCY,
        rule=NeverViolated("deviation over bound", "jic", at_most=1.0),
        ours=True,
    ),
    Claim(
        "hubs.dimension",
        "over-estimating the dimension by half costs less than 0.1 of the true positive rate",
        reported="a sensitivity figure",
        experiment=DIMENSION,
        rule=Superior("TPR", ours="jic, s = 1.5 sqrt(p)", rivals=("jic, s = 1 sqrt(p)",), margin=-0.1, per=("r1",)),
    ),
    Claim(
        "hubs.tumours",
        "on real tumours the hubs are more stable than chance, and at least one stands out from both nulls",
        reported="meaningful hubs in cancer subtypes",
        experiment=TUMOURS,
        rule=All(
            (
                Superior("Jaccard of top 10", ours="tumours", rivals=("permuted", "rotated")),
                AtMost(Share("reaches the strongest gene", "permuted"), 0.05),
                AtMost(Share("reaches the strongest gene", "rotated"), 0.05),
            )
        ),
        note="The resamples are splits of the same 83 tumours: the intervals speak of these tumours, not of others like them. A gene "
        "stands out if the interval of its family-wise p-value lies below 0.05, which asks more than the p-value itself.",
    ),
    Claim(
        "hubs.biology",
        "the hubs of the user's expression data are over-represented in a known gene set",
        reported="biologically meaningful hubs",
        experiment=BIOLOGY,
        rule=NeverViolated("enriched gene sets", "jic", at_least=1),
        note="The embedded table has no gene symbols, and inventing them would be fraud.",
    ),
    Claim(
        "hubs.certified",
        "every optimum is certified to 0.1 %, and how far the authors' optimiser stays above it",
        reported=None,
        experiment=CERTIFICATE,
        rule=Reported(
            (Share("certified", "jic"), Mean("objective over bound", "jic"), Mean("objective over bound", "stiefel"))
        ),
        ours=True,
    ),
]
