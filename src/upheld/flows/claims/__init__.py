"""What "TFTF: Training-Free Targeted Flow for Conditional Sampling" claims, made falsifiable.

The published experiments need checkpoints of MNIST, CIFAR-10 and CelebA-HQ, which only a user has. What is measured here stands on
data that can be made: closed-form mixtures, whose posterior and evidence are known; handwritten digits of 8 x 8 pixels with a guide and
a judge of different families that share no row; captioned pictures in 3,072 dimensions with an exact parser. Stand-ins have claims of
their own and say so.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from upheld.claims import (
    All,
    Claim,
    Difference,
    Experiment,
    Mean,
    Measurement,
    NeverViolated,
    Rate,
    Reported,
    Scale,
    Superior,
    Trial,
    Within,
    grid,
)
from upheld.claims.preparation import Recipe
from upheld.diffusion.networks import SmallUNet, TimeMLP
from upheld.diffusion.paths import linear
from upheld.diffusion.samplers import integrate, marginal_preserving_sde
from upheld.diffusion.schedules import uniform_times
from upheld.flows import rivals, shapes
from upheld.flows.claims import race
from upheld.flows.claims.cifar import measure_cifar
from upheld.flows.claims.models import DIGITS, SCORER, SHAPES, caption_scorer, digit_models, shapes_network
from upheld.flows.claims.pictures import measure_pictures, prepare_pictures
from upheld.flows.data import digits
from upheld.flows.likelihoods import ClassifierLikelihood
from upheld.flows.lookahead import CalibratedLookAhead
from upheld.flows.memory import Held
from upheld.flows.metrics import mean_pairwise_distance, sliced_wasserstein, wasserstein_of_normals
from upheld.flows.mixture import GaussianMixtureFlow, MixtureProblem, mixture_benchmark
from upheld.flows.sampler import TargetedFlow
from upheld.flows.smc import normalised
from upheld.flows.velocity import FlowField, flow_field

WINDOW = (3 / 16, 14 / 16)


def problem(trial: Trial, d: int, **options: Any) -> MixtureProblem:
    """The trial's mixture with its measurement: a new one each seed."""
    torch.set_num_threads(1)
    return mixture_benchmark(d, trial.torch_generator("problem"), **options)


def targeted(of: MixtureProblem, **options: Any) -> TargetedFlow:
    """TFTF on a mixture problem, calibrated with the data's true variance unless said otherwise."""
    look = CalibratedLookAhead(of.flow.mean_variance)
    return TargetedFlow(of.flow, of.likelihood, **{"lookahead": look, "window": WINDOW, **options})


def group_means(particles: Tensor, log_weights: Tensor) -> Tensor:
    """(groups, d): the weighted mean of every group."""
    return (normalised(log_weights)[..., None] * particles).sum(1)


def error(means: Tensor, of: MixtureProblem) -> float:
    """Mean over groups of the distance to the posterior's mean."""
    return float((means - of.posterior.mean).norm(dim=1).mean())


# -- F1: nothing is trained


def measure_frozen(trial: Trial) -> Iterator[Measurement]:
    """A network and a classifier before and after sampling: every bit of them, and gradients left behind."""
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(trial.seed)
        velocity, classifier = TimeMLP(16, width=64), nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 3))
    nets = nn.ModuleList([velocity, classifier])
    before = _hash(nets)
    flow = TargetedFlow(
        flow_field(velocity), ClassifierLikelihood(classifier, 1), n_steps=int(trial.condition["steps"])
    )
    flow.velocity.parametrization = "velocity"  # untrained, it would be taken for something else
    flow.sample(8, shape=(16,), generator=trial.torch_generator())
    yield Measurement("TFTF", "parameters changed", float(_hash(nets) != before))
    yield Measurement("TFTF", "gradients left", float(sum(p.grad is not None for p in nets.parameters())))


def _hash(nets: nn.Module) -> str:
    parts = [p.detach().numpy().tobytes() for p in nets.state_dict().values()]
    return hashlib.sha256(b"".join(parts)).hexdigest()


FROZEN = Experiment(
    "flows.frozen", measure_frozen,
    conditions={Scale.SMOKE: grid(steps=[8]), Scale.QUICK: grid(steps=[64]), Scale.STANDARD: grid(steps=[128]),
                Scale.FULL: grid(steps=[800])},
    repeats={Scale.SMOKE: 1, Scale.QUICK: 2, Scale.STANDARD: 5, Scale.FULL: 10},
    timeout_s={Scale.SMOKE: 30, Scale.QUICK: 60, Scale.STANDARD: 60, Scale.FULL: 1200},
)  # fmt: skip


# -- F2: importance sampling at the end degenerates with the dimension


def measure_degeneracy(trial: Trial) -> Iterator[Measurement]:
    """Effective sample size over K of terminal importance sampling."""
    of = problem(trial, int(trial.condition["d"]))
    flow = targeted(of, window=None, n_steps=64, n_particles=int(trial.condition["K"]))
    found = flow.sample(4, shape=(of.flow.d,), generator=trial.torch_generator())
    yield Measurement("importance sampling", "ESS share", float(found.ess_trace[-1].mean()) / flow.decided().count)


DEGENERACY = Experiment(
    "flows.degeneracy", measure_degeneracy,
    conditions={Scale.SMOKE: grid(d=[2, 8], K=[32]), Scale.QUICK: grid(d=[2, 8, 32, 128], K=[1024]),
                Scale.STANDARD: grid(d=[2, 8, 32, 128], K=[1024]),
                Scale.FULL: grid(d=[2, 8, 32, 128, 512], K=[4096])},
    repeats={Scale.SMOKE: 2, Scale.QUICK: 10, Scale.STANDARD: 100, Scale.FULL: 200},
    timeout_s={Scale.SMOKE: 30, Scale.QUICK: 60, Scale.STANDARD: 60, Scale.FULL: 1200},
)  # fmt: skip


# -- F3: resampling inside the flow reduces it


def measure_resampling(trial: Trial) -> Iterator[Measurement]:
    """Error of the posterior mean at the same K and N, and that of samplers for linear measurements beside it."""
    of, groups = problem(trial, int(trial.condition["d"])), int(trial.condition["groups"])
    d, run = of.flow.d, {"n_steps": 128, "n_particles": 16}
    variants: dict[str, dict[str, Any]] = {
        "TFTF": {},
        "TFTF, point look-ahead": {"lookahead": "point"},
        "TFTF without resampling": {"resampling": None},
        "bootstrap": {"guidance": 0.0},
        "importance sampling": {"window": None},
    }
    for name, options in variants.items():
        found = targeted(of, **run, **options).sample(groups, shape=(d,), generator=trial.torch_generator("noise"))
        yield Measurement(name, "mean error", error(group_means(found.particles, found.particle_log_weights), of))
        yield Measurement(name, "log-evidence error", float(found.group_log_evidence.mean()) - of.log_evidence)
    others: dict[str, rivals.Rival] = {
        "OT-ODE": rivals.OTODE(of.flow, of.likelihood, 128),
        "PnP-Flow": rivals.PnPFlow(of.flow, of.likelihood, n_steps=128),
    }
    for name, rival in others.items():
        x = rival.sample(16 * groups, (d,), trial.torch_generator("noise")).reshape(groups, 16, d)
        yield Measurement(name, "mean error", error(x.mean(1), of))


RESAMPLING = Experiment(
    "flows.resampling", measure_resampling,
    conditions={Scale.SMOKE: grid(d=[8], groups=[2]), Scale.QUICK: grid(d=[32], groups=[4]),
                Scale.STANDARD: grid(d=[32, 128, 256], groups=[4]),
                Scale.FULL: grid(d=[32, 128, 256, 1024], groups=[4])},
    repeats={Scale.SMOKE: 2, Scale.QUICK: 20, Scale.STANDARD: 100, Scale.FULL: 200},
    timeout_s={Scale.SMOKE: 60, Scale.QUICK: 60, Scale.STANDARD: 300, Scale.FULL: 6000},
)  # fmt: skip


# -- F4: noise makes copies diverge


def measure_noise(trial: Trial) -> Iterator[Measurement]:
    """Share of end points that differ, and how far apart they are against exact posterior draws, by strength of the noise."""
    of, groups = problem(trial, int(trial.condition["d"])), int(trial.condition["groups"])
    exact = mean_pairwise_distance(of.posterior.sample(2000, trial.torch_generator("exact")))
    for noise in (0.0, 0.5, 1.0):
        flow = targeted(of, n_steps=128, n_particles=16, noise=noise)
        found = flow.sample(groups, shape=(of.flow.d,), generator=trial.torch_generator("noise"))
        unique = [len(group.unique(dim=0)) / 16 for group in found.particles]
        apart = [mean_pairwise_distance(group) / exact for group in found.particles]
        yield Measurement(f"noise {noise:g}", "unique end points", sum(unique) / groups)
        yield Measurement(f"noise {noise:g}", "spread against the posterior's", sum(apart) / groups)


NOISE = Experiment(
    "flows.noise", measure_noise,
    conditions={Scale.SMOKE: grid(d=[8], groups=[2]), Scale.QUICK: grid(d=[32], groups=[4]), Scale.STANDARD: grid(d=[32], groups=[16]),
                Scale.FULL: grid(d=[32, 128], groups=[16])},
    repeats={Scale.SMOKE: 2, Scale.QUICK: 20, Scale.STANDARD: 100, Scale.FULL: 200},
    timeout_s={Scale.SMOKE: 60, Scale.QUICK: 60, Scale.STANDARD: 120, Scale.FULL: 2400},
)  # fmt: skip


# -- F5: the stochastic flow keeps the marginals


def measure_recursion(trial: Trial) -> Iterator[Measurement]:
    """Data N(1, 4): the chain is linear, so its law at the end is known without a draw; W2 to the data by the number of steps."""
    noise, counts = float(trial.condition["noise"]), [64, 128, 256, 512, 1024]
    distances = [wasserstein_of_normals(*_end_of_chain(n, noise), 1.0, 4.0) for n in counts]
    weights = torch.tensor([math.log(n) for n in counts])
    slope = torch.linalg.lstsq(torch.stack([weights, torch.ones(5)], 1), torch.tensor(distances).log()[:, None])
    yield Measurement("stochastic flow", "slope of log W2 in log N", float(slope.solution[0]))
    yield Measurement("stochastic flow", "W2 at N = 256", distances[2])


def _end_of_chain(n: int, noise: float) -> tuple[float, float]:
    """Mean and variance after n steps of the sampler on data N(1, 4): every step is x -> a x + b + c xi."""
    path, mean, variance = linear(), 0.0, 1.0
    flow = GaussianMixtureFlow(torch.ones(1, 1, dtype=torch.float64), 4.0)
    points, times = torch.tensor([[0.0], [1.0]], dtype=torch.float64), uniform_times(n)
    for k in range(n):
        t, dt = max(float(times[k]), 1e-4), 1 / n
        eta2 = noise**2 * float(path.memoryless_variance(t)) if WINDOW[0] * n <= k < WINDOW[1] * n else 0.0
        v = flow(points, t)
        after = points + dt * (v + eta2 / 2 * path.score(points, v, t))
        a, b = float(after[1] - after[0]), float(after[0])
        mean, variance = a * mean + b, a**2 * variance + eta2 * dt
    return mean, variance


RECURSION = Experiment(
    "flows.recursion", measure_recursion,
    conditions={scale: grid(noise=[0.0, 0.5, 1.0, 2.0]) for scale in Scale},
    repeats=dict.fromkeys(Scale, 1), timeout_s=dict.fromkeys(Scale, 60),
)  # fmt: skip


def measure_marginals(trial: Trial) -> Iterator[Measurement]:
    """Sliced W1 of the chain's end points to an exact sample, over the largest among pairs of exact samples."""
    d, points = int(trial.condition["d"]), int(trial.condition["points"])
    flow, exact = problem(trial, d).flow, trial.torch_generator("exact")
    scale = max(sliced_wasserstein(flow.sample(points, exact), flow.sample(points, exact)) for _ in range(20))
    times, first, last = uniform_times(256), round(256 * WINDOW[0]), round(256 * WINDOW[1])
    start = torch.randn(points, d, generator=trial.torch_generator("start"), dtype=torch.float64)
    start = integrate(flow, start, times[: first + 1])
    for noise in (0.0, 0.5, 1.0, 2.0):
        x = marginal_preserving_sde(
            flow, linear(), start, times[first : last + 1], _strength(noise), trial.torch_generator("noise")
        )
        x = integrate(flow, x, times[last:])
        yield Measurement(
            f"noise {noise:g}", "W1 over exact pairs'", sliced_wasserstein(x, flow.sample(points, exact)) / scale
        )


def _strength(noise: float) -> Any:
    return lambda t: noise**2 * float(linear().memoryless_variance(t))


MARGINALS = Experiment(
    "flows.marginals", measure_marginals,
    conditions={Scale.SMOKE: grid(d=[1], points=[500]), Scale.QUICK: grid(d=[1, 8], points=[10_000]),
                Scale.STANDARD: grid(d=[1, 8], points=[200_000]),
                Scale.FULL: grid(d=[1, 8], points=[1_000_000])},
    repeats={Scale.SMOKE: 1, Scale.QUICK: 5, Scale.STANDARD: 5, Scale.FULL: 10},
    timeout_s={Scale.SMOKE: 60, Scale.QUICK: 120, Scale.STANDARD: 900, Scale.FULL: 18000},
)  # fmt: skip


# -- F6: exact as K grows


def measure_consistency(trial: Trial) -> Iterator[Measurement]:
    """Error of the weighted mean against 2 x 8,192 particles of the same discretisation, and the slope of its logarithm in log K."""
    of, groups, top = (
        problem(trial, 8, spread=0.7, R=0.25, m=2),
        int(trial.condition["groups"]),
        int(trial.condition["top"]),
    )
    counts = [int(trial.condition["K"]) * 4**power for power in range(int(trial.condition["sizes"]))]
    x = torch.tensor([math.log(count) for count in counts])
    looks: dict[str, dict[str, Any]] = {"calibrated": {}, "point": {"lookahead": "point"}}
    limits = {steps: _mean(of, trial, steps, top, 2, "calibrated", {})[1] for steps in (16, 64)}
    reference = limits[64]
    for name, options in looks.items():
        errors = []
        for count in counts:
            gaps = _mean(of, trial, 64, count, groups, name, options)[0] - reference
            errors.append(float(gaps.square().sum(1).mean().sqrt()))
        y = torch.tensor(errors).log()
        slope = ((x - x.mean()) * y).sum() / (x - x.mean()).square().sum()
        yield Measurement(name, "slope of log error in log K", float(slope))
        yield Measurement(name, "error at the largest K", errors[-1])
    for steps, mean in limits.items():
        yield Measurement(f"{steps} steps", "error against the closed form", float((mean - of.posterior.mean).norm()))


def _mean(
    of: MixtureProblem, trial: Trial, steps: int, count: int, groups: int, name: str, options: dict[str, Any]
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Every group's weighted mean, and that of all."""
    flow = targeted(of, n_steps=steps, n_particles=count, **options)
    generator = trial.torch_generator(f"{name} {steps} {count} {groups}")
    found = flow.sample(groups * count, shape=(8,), generator=generator, mode="pooled")
    return group_means(found.particles, found.particle_log_weights), found.expectation(lambda x: x)[0]


CONSISTENCY = Experiment(
    "flows.consistency", measure_consistency,
    conditions={Scale.SMOKE: grid(K=[8], sizes=[2], groups=[4], top=[256]), Scale.QUICK: grid(K=[16], sizes=[4], groups=[24], top=[8192]),
                Scale.STANDARD: grid(K=[16], sizes=[6], groups=[24], top=[65_536]),
                Scale.FULL: grid(K=[16], sizes=[8], groups=[24], top=[262_144])},
    repeats={Scale.SMOKE: 1, Scale.QUICK: 5, Scale.STANDARD: 20, Scale.FULL: 40},
    timeout_s={Scale.SMOKE: 60, Scale.QUICK: 120, Scale.STANDARD: 1800, Scale.FULL: 36000},
)  # fmt: skip


# -- F7 and F9: against existing samplers on digits


def prepare_race(trial: Trial) -> Iterable[Recipe]:
    steps = int(trial.condition["model_steps"])
    return [DIGITS(seed=0, steps=steps), race.TUNING(**tuning(trial))]


def tuning(trial: Trial) -> dict[str, Any]:
    """How the settings were chosen."""
    names = {"model_steps": "model_steps", "tune_each": "each", "tune_runs": "runs", "settings": "settings"}
    return {short: trial.condition[name] for name, short in names.items()}


def measure_race(trial: Trial) -> Iterator[Measurement]:
    """All classes, every method at TFTF's number of evaluations: distance to held-out digits, accuracy for guide and judge."""
    torch.set_num_threads(1)
    models, held_out = digit_models(int(trial.condition["model_steps"])), digits().held_out
    likelihood, chosen = race.all_classes(models, int(trial.condition["each"])), race.settings(**tuning(trial))
    allowed, n = race.budget(models.flow, likelihood), len(likelihood.wanted)
    for name in race.METHODS:
        method, begin = race.built(name, models.flow, likelihood, chosen[name], allowed), time.process_time()
        x = method.sample(n, (64,), trial.torch_generator(name))
        yield Measurement(name, "seconds", time.process_time() - begin)
        yield from _judged(name, x, likelihood.wanted, models, held_out)
    for step in (0.01, 0.02, 0.05):
        x = rivals.FlowChef(models.flow, likelihood, step, race.STEPS).sample(
            n, (64,), trial.torch_generator(f"curve {step}")
        )
        yield from _judged(f"FlowChef, step {step:g}, one start", x, likelihood.wanted, models, held_out)


def _judged(
    name: str, x: Tensor, wanted: Tensor, models: Any, held_out: tuple[Tensor, Tensor]
) -> Iterator[Measurement]:
    with torch.no_grad():
        guide = float((models.guide(x).argmax(1) == wanted).double().mean())
    judge = float((models.judged(x) == wanted.numpy()).mean())
    yield Measurement(name, "energy distance", race.distance(x, wanted, held_out))
    yield Measurement(name, "judge accuracy", judge)
    yield Measurement(name, "guide accuracy", guide)
    yield Measurement(name, "guide above judge", guide - judge)


RACE = Experiment(
    "flows.race", measure_race, prepare=prepare_race,
    conditions={Scale.SMOKE: grid(model_steps=[50], each=[2], tune_each=[2], tune_runs=[1], settings=[1]),
                Scale.QUICK: grid(model_steps=[2500], each=[8], tune_each=[4], tune_runs=[1], settings=[4]),
                Scale.STANDARD: grid(model_steps=[2500], each=[32], tune_each=[16], tune_runs=[4], settings=[8]),
                Scale.FULL: grid(model_steps=[2500], each=[64], tune_each=[16], tune_runs=[4], settings=[8])},
    repeats={Scale.SMOKE: 1, Scale.QUICK: 5, Scale.STANDARD: 30, Scale.FULL: 60},
    timeout_s={Scale.SMOKE: 120, Scale.QUICK: 120, Scale.STANDARD: 900, Scale.FULL: 18000},
)  # fmt: skip


CIFAR = Experiment(
    "flows.cifar", measure_cifar,
    conditions={scale: grid(data=["CIFAR-10"]) for scale in Scale},
    repeats=dict.fromkeys(Scale, 1) | {Scale.FULL: 10}, timeout_s=dict.fromkeys(Scale, 10) | {Scale.FULL: 24 * 3600},
)  # fmt: skip


# -- F10: text to image in 3,072 dimensions


def measure_captions(trial: Trial) -> Iterator[Measurement]:
    """Share of captions whose every attribute the exact parser finds again, each caption one sample."""
    torch.set_num_threads(1)
    scorer, count = caption_scorer(int(trial.condition["model_steps"])), int(trial.condition["captions"])
    trained = {name: int(trial.condition[name]) for name in ("flow_steps", "width") if name in trial.condition}
    flow: Any = shapes_network(**trained) if trained else shapes.shapes_flow()
    wanted = torch.randperm(len(shapes.SCENES), generator=trial.torch_generator("captions"))[:count]
    likelihood = race.PerGroup(lambda x: torch.log_softmax(scorer.logits(x), 1), wanted)
    allowed = race.budget(flow, likelihood)
    methods: dict[str, Any] = {
        "TFTF": race.tftf(flow, likelihood),
        "importance sampling": rivals.at_cost(race.tftf(flow, likelihood, window=None), allowed),
        "unconditional": rivals.BestOf(flow, likelihood, race.STEPS, 1),
        "FlowChef, step 0.05": rivals.FlowChef(flow, likelihood, 0.05, race.STEPS),
        "FlowChef, step 0.2": rivals.FlowChef(flow, likelihood, 0.2, race.STEPS),
    }
    for name, method in methods.items():
        x = method.sample(count, shapes.SHAPE, trial.torch_generator(name))
        read = (shapes.parsed(x, moved=bool(trained)) == wanted).tolist()
        score = likelihood.log_prob(x).exp().tolist()
        for item, (right, fit) in enumerate(zip(read, score, strict=True)):
            yield Measurement(name, "caption found again", float(right), item=str(item))
            yield Measurement(name, "scorer's probability", fit, item=str(item))


def prepare_captions(trial: Trial) -> Iterable[Recipe]:
    yield SCORER(seed=0, steps=int(trial.condition["model_steps"]))
    if "flow_steps" in trial.condition:
        yield SHAPES(seed=0, steps=int(trial.condition["flow_steps"]), width=int(trial.condition["width"]))


CAPTIONS = Experiment(
    "flows.captions", measure_captions, units="seed/item", prepare=prepare_captions,
    conditions={Scale.SMOKE: grid(captions=[2], model_steps=[10]), Scale.QUICK: grid(captions=[24], model_steps=[400]),
                Scale.STANDARD: grid(captions=[40], model_steps=[400]),
                Scale.FULL: grid(captions=[80], model_steps=[400])},
    repeats={Scale.SMOKE: 1, Scale.QUICK: 3, Scale.STANDARD: 10, Scale.FULL: 20},
    timeout_s={Scale.SMOKE: 120, Scale.QUICK: 180, Scale.STANDARD: 600, Scale.FULL: 12000},
)  # fmt: skip


TRAINED = Experiment(
    "flows.captions-trained", measure_captions, units="seed/item", prepare=prepare_captions,
    conditions={Scale.STANDARD: grid(captions=[40], model_steps=[400], flow_steps=[20_000], width=[32]),
                Scale.FULL: grid(captions=[80], model_steps=[400], flow_steps=[20_000], width=[32])},
    repeats={Scale.STANDARD: 10, Scale.FULL: 20}, timeout_s={Scale.STANDARD: 4 * 3600, Scale.FULL: 2 * 4 * 3600},
)  # fmt: skip


# -- F11: cost


def measure_cost(trial: Trial) -> Iterator[Measurement]:
    """Processor seconds of a run by the number of particles, the smaller of two runs."""
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(trial.seed)
        net, classifier = TimeMLP(64, width=512), nn.Linear(64, 10)
    field = replace(flow_field(net), parametrization="velocity")
    flow = TargetedFlow(field, ClassifierLikelihood(classifier, 0), n_steps=32, n_particles=int(trial.condition["K"]))
    taken = []
    for _ in range(2):
        begin = time.process_time()
        flow.sample(int(trial.condition["groups"]), shape=(64,), generator=trial.torch_generator())
        taken.append(time.process_time() - begin)
    yield Measurement("TFTF", "seconds", min(taken))


COST = Experiment(
    "flows.cost", measure_cost, alone=True,
    conditions={Scale.SMOKE: grid(K=[4, 16], groups=[4]), Scale.QUICK: grid(K=[4, 16, 64], groups=[32]),
                Scale.STANDARD: grid(K=[4, 16, 64, 256], groups=[64]),
                Scale.FULL: grid(K=[4, 16, 64, 256, 1024], groups=[64])},
    repeats={Scale.SMOKE: 1, Scale.QUICK: 5, Scale.STANDARD: 20, Scale.FULL: 40},
    timeout_s={Scale.SMOKE: 60, Scale.QUICK: 60, Scale.STANDARD: 300, Scale.FULL: 6000},
)  # fmt: skip


def measure_memory(trial: Trial) -> Iterator[Measurement]:
    """Most bytes of tensors alive in a run beyond the particles' own (eight arrays of all of them: place, velocity and slope before and
    after a step, the noise and what it moves), over the most that one chunk's way forth and back takes."""
    torch.set_num_threads(1)
    count, groups, chunk = int(trial.condition["K"]), 2, 8
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(trial.seed)
        net, classifier = SmallUNet(1, widths=(16, 32)), nn.Sequential(nn.Flatten(), nn.Linear(256, 10))
    net.requires_grad_(False)
    x = torch.randn(chunk, 1, 16, 16, generator=trial.torch_generator("chunk"))
    with Held() as one:
        at = x.clone().requires_grad_()
        torch.autograd.grad(classifier(at + net(at, torch.tensor(0.5))).sum(), at)
    flow = TargetedFlow(
        FlowField(net, parametrization="velocity"), ClassifierLikelihood(classifier, 0), n_steps=int(trial.condition["steps"]),
        n_particles=count, particles_per_chunk=chunk,
    )  # fmt: skip
    with Held() as whole:
        flow.sample(groups, shape=(1, 16, 16), generator=trial.torch_generator())
    own = 8 * groups * count * x[0].nbytes
    yield Measurement("TFTF", "peak bytes", float(whole.most))
    yield Measurement("TFTF", "peak beyond the particles, over a chunk's", (whole.most - own) / one.most)


MEMORY = Experiment(
    "flows.memory", measure_memory,
    conditions={Scale.SMOKE: grid(K=[4], steps=[8]), Scale.QUICK: grid(K=[4, 16, 64], steps=[8]) + grid(K=[16], steps=[24]),
                Scale.STANDARD: grid(K=[4, 16, 64, 256], steps=[8]) + grid(K=[16], steps=[24, 96]),
                Scale.FULL: grid(K=[4, 16, 64, 256, 1024], steps=[8]) + grid(K=[16], steps=[24, 96, 384])},
    repeats={Scale.SMOKE: 1, Scale.QUICK: 1, Scale.STANDARD: 1, Scale.FULL: 1},
    timeout_s={Scale.SMOKE: 60, Scale.QUICK: 60, Scale.STANDARD: 900, Scale.FULL: 18000},
)  # fmt: skip


FASHION = Experiment(
    "flows.pictures", measure_pictures, prepare=prepare_pictures,
    conditions={Scale.STANDARD: grid(epochs=[20.0], width=[32], each=[4], tune_each=[2], settings=[4]),
                Scale.FULL: grid(epochs=[20.0], width=[32], each=[32], tune_each=[16], settings=[8])},
    repeats={Scale.STANDARD: 5, Scale.FULL: 20},
    timeout_s={Scale.STANDARD: 4 * 3600, Scale.FULL: 24 * 3600},
)  # fmt: skip


PAPER_MNIST = "significantly better than existing samplers"
STAND_IN = (
    "A stand-in: digits of 8 x 8 pixels, not MNIST; every method at the same evaluations, tuned without the judge. A prototype had been "
    "run before the rules were written; the split of the digits and the grids that rivals are tuned over were drawn up with it in view. "
    "At the quick scale 5 seeds, for time."
)

PICTURES_NOTE = (
    "From the standard scale on: the flow, a U-Net, is trained once, for hours. Pictures from the Debian package dataset-fashion-mnist or "
    "from the folder (Fashion-MNIST's or MNIST's IDX files) that UPHELD_PICTURES names."
)

CLAIMS = [
    Claim("flows.training-free", "no parameter of the flow or the classifier changes, and no gradient is left in them",
          reported="no training", experiment=FROZEN,
          rule=All((NeverViolated("parameters changed", "TFTF", at_most=0.0), NeverViolated("gradients left", "TFTF", at_most=0.0)))),
    Claim("flows.importance-degenerates", "terminal importance sampling degenerates with the dimension: its ESS over K falls",
          reported="stated", experiment=DEGENERACY, rule=Rate("ESS share", "importance sampling", x="d", high=0.0)),
    Claim("flows.resampling-helps", "at the same K and N its posterior mean is nearer the truth than that of terminal importance sampling",
          reported="stated", experiment=RESAMPLING,
          rule=Superior("mean error", ours="TFTF", rivals=("importance sampling",), relative=True, lower_is_better=True, per=("d",))),
    Claim("flows.resampling-beside", "error of the posterior mean without resampling, without guidance, with the published look-ahead, "
          "and of two samplers for linear measurements with their papers' settings", reported=None, experiment=RESAMPLING, ours=True,
          rule=Reported(tuple(Mean("mean error", name) for name in
                              ("TFTF", "TFTF without resampling", "bootstrap", "TFTF, point look-ahead", "OT-ODE", "PnP-Flow")))),
    Claim("flows.calibrated", "the calibrated look-ahead brings the posterior mean nearer the truth than the published point look-ahead",
          reported=None, experiment=RESAMPLING, ours=True,
          rule=Superior("mean error", ours="TFTF", rivals=("TFTF, point look-ahead",), relative=True, lower_is_better=True, per=("d",))),
    Claim("flows.noise-parts-copies", "copies made by resampling stay copies under a deterministic flow, and noise parts them",
          reported="stated", experiment=NOISE,
          rule=All((Superior("unique end points", ours="noise 1", rivals=("noise 0",)),
                    Superior("spread against the posterior's", ours="noise 1", rivals=("noise 0",)))),
          note="Two earlier runs have been seen, before noise was drawn in another order for speed: upheld in one (.27 [.07, .51]) and "
          "inconclusive in the other (.13 [-.08, .34]). The rule and the number of seeds stayed."),
    Claim("flows.marginals-rate", "on Gaussian data the stochastic flow's end tends to the data as 1/N for every strength of noise",
          reported="proposition 3.2", experiment=RECURSION,
          rule=NeverViolated("slope of log W2 in log N", "stochastic flow", at_least=-1.2, at_most=-0.8)),
    Claim("flows.marginals", "on mixtures the stochastic flow's end points are as near an exact sample as exact samples are (within twice)",
          reported="proposition 3.2", experiment=MARGINALS,
          rule=All(tuple(NeverViolated("W1 over exact pairs'", f"noise {noise}", at_most=2.0) for noise in ("0", "0.5", "1", "2")))),
    Claim("flows.consistent", "its posterior mean tends to that of the discretised sampler as K^(-1/2), and that to the truth as N grows",
          reported="proposition 3.3", experiment=CONSISTENCY,
          rule=All((Within(Mean("slope of log error in log K", "calibrated"), -0.65, -0.35),
                    Superior("error against the closed form", ours="64 steps", rivals=("16 steps",), lower_is_better=True))),
          note="Calibrated look-ahead on a mild problem (means 0.7 apart). On the benchmark's own (2 apart) the constant is so large "
               "that the rate is not reached by K = 1,024. At the quick scale 5 problems, for time."),
    Claim("flows.consistent-point", "the same slope with the published point look-ahead", reported="proposition 3.3",
          experiment=CONSISTENCY, rule=Reported((Mean("slope of log error in log K", "point"), Mean("error at the largest K", "point"),
                                                 Mean("error at the largest K", "calibrated")))),
    Claim("flows.beats-rivals", "on digits its samples are nearer to held-out digits of the class than those of every other sampler",
          reported=PAPER_MNIST, experiment=RACE,
          rule=Superior("energy distance", ours="TFTF", rivals=race.RIVALS, lower_is_better=True), note=STAND_IN),
    Claim("flows.judge-accuracy", "accuracy on digits under the independent judge, and under the guide", reported=None, experiment=RACE,
          ours=True, rule=Reported(tuple(Mean(metric, name) for metric in ("judge accuracy", "guide accuracy") for name in race.METHODS)),
          note=STAND_IN),
    Claim("flows.cifar", "on CIFAR-10 the judge accepts more of its samples than of FlowChef's", reported="92.82 % against 50.13 %",
          experiment=CIFAR, rule=Superior("judge accuracy", ours="TFTF", rivals=("FlowChef",)),
          note="Needs CIFAR-10 and a flow checkpoint of the user's; nothing stands in for them."),
    Claim("flows.guide-not-fooled", "the guide overrates its samples less than those of tuned FlowChef, as the independent judge sees them",
          reported="47.9 points against -0.3 (CIFAR-10)", experiment=RACE,
          rule=Superior("guide above judge", ours="TFTF", rivals=("FlowChef",), lower_is_better=True), note=STAND_IN),
    Claim("flows.guide-fooled-by-step", "how much the guide overrates FlowChef's samples, by its step (one start)", reported=None,
          experiment=RACE, ours=True,
          rule=Reported(tuple(Mean("guide above judge", f"FlowChef, step {step}, one start") for step in ("0.01", "0.02", "0.05")))),
    Claim("flows.text-to-image", "in 3,072 dimensions more captions are found again in its pictures than in those of terminal importance "
          "sampling and of the flow alone", reported="CLIP score 0.295 against 0.305 and 0.307, with better pictures (CelebA-HQ)",
          experiment=CAPTIONS, rule=Superior("caption found again", ours="TFTF", rivals=("importance sampling", "unconditional")),
          note="A stand-in: captioned shapes with an exact parser, not CelebA-HQ."),
    Claim("flows.text-to-image-chef", "the same against FlowChef at a thirty-eighth of the evaluations", reported=None, experiment=CAPTIONS,
          ours=True,
          rule=Reported(tuple(Difference(Mean("caption found again", "TFTF"), Mean("caption found again", name))
                              for name in ("FlowChef, step 0.05", "FlowChef, step 0.2")))),
    Claim("flows.linear-cost", "its time is linear in the number of particles", reported="46 s (RTX 3090, CIFAR-10, N = 800, K = 16)",
          experiment=COST, rule=Rate("seconds", "TFTF", x="K", low=0.8, high=1.1), timed=True),
    Claim("flows.flat-memory", "in chunks of a fixed size its peak memory, beside the particles themselves, stays within 1.2 times that "
          "of one chunk's gradient, whatever the number of particles and steps", reported=None, experiment=MEMORY, ours=True,
          rule=NeverViolated("peak beyond the particles, over a chunk's", "TFTF", at_most=1.2),
          note="At a first look, 1.21 with 64 particles: a step's scratch arrays outlived it and were freed before the verdict was taken."),
    Claim("flows.text-to-image-trained", "the same as flows.text-to-image with a trained U-Net in place of the exact flow, shapes moved by "
          "a pixel", reported="CLIP score 0.295 against 0.305 and 0.307, with better pictures (CelebA-HQ)", experiment=TRAINED,
          rule=Superior("caption found again", ours="TFTF", rivals=("importance sampling", "unconditional")),
          note="From the standard scale on: sampling a network in 3,072 dimensions takes hours on a processor. A stand-in, not CelebA-HQ."),
    Claim("flows.beats-rivals-pictures", "on Fashion-MNIST its samples are nearer to held-out pictures, in the features of a judge that "
          "shares no row with the guide, than those of every other sampler", reported=PAPER_MNIST, experiment=FASHION,
          rule=Superior("FD-judge", ours="TFTF", rivals=race.RIVALS, lower_is_better=True), note=PICTURES_NOTE),
    Claim("flows.guide-not-fooled-pictures", "there, too, the guide overrates its samples less than those of tuned FlowChef",
          experiment=FASHION, reported="47.9 points against -0.3 (CIFAR-10)",
          rule=Superior("guide above judge", ours="TFTF", rivals=("FlowChef",), lower_is_better=True), note=PICTURES_NOTE),
]  # fmt: skip
