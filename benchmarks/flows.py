"""Speed and memory of targeted flows against the network evaluations that they cannot do without, in one run.

python benchmarks/flows.py [--part overhead|particles|chunks]     all parts by default, about a minute on one core

The rival is the bare network: N forward passes, and as many backward ones as the window has steps, on the same batch in the same
process. A sampler that takes 1.1 times as long spends a tenth on weights, resampling and noise.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time

import torch

from upheld.diffusion.networks import SmallUNet, TimeMLP
from upheld.flows import ClassifierLikelihood, FlowField, TargetedFlow

GROUPS, K, STEPS = 16, 16, 16


def seconds(work: object) -> float:
    begin = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - begin


def flow_of(
    net: torch.nn.Module, classifier: torch.nn.Module, particles: int = K, chunk: int | None = None
) -> TargetedFlow:
    field = FlowField(net, parametrization="velocity")
    return TargetedFlow(
        field, ClassifierLikelihood(classifier, 0), n_steps=STEPS, n_particles=particles, particles_per_chunk=chunk
    )  # fmt: skip


def bare(
    net: torch.nn.Module, x: torch.Tensor, forward: int, backward: int, classifier: torch.nn.Module, chunk: int
) -> None:
    """The evaluations of one run and nothing else."""
    for _ in range(forward - backward):
        with torch.no_grad():
            for part in x.split(chunk):
                net(part, torch.tensor(0.5))
    for _ in range(backward):
        for part in x.split(chunk):
            at = part.detach().requires_grad_()
            torch.autograd.grad(classifier(at + net(at, torch.tensor(0.5))).sum(), at)


def overhead() -> None:
    print("time of a run over that of its network evaluations")
    for name, net, shape, groups in (
        ("MLP, 64 numbers", TimeMLP(64, width=512), (64,), 64),
        ("U-Net, 1 x 16 x 16", SmallUNet(1, widths=(16, 32)), (1, 16, 16), GROUPS),
    ):
        net.requires_grad_(False)
        classifier = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(torch.Size(shape).numel(), 10))
        flow, x = flow_of(net, classifier, chunk=groups * K), torch.randn(groups * K, *shape)
        asked = flow.evaluations()
        pairs = [  # in turn, so that a busy machine slows both alike
            (
                seconds(lambda flow=flow, shape=shape, groups=groups: flow.sample(groups, shape=shape)),
                seconds(lambda n=net, x=x, c=classifier, a=asked: bare(n, x, a["forward"], a["backward"], c, len(x))),
            )
            for _ in range(5)
        ]
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        ours, theirs = (min(times) for times in zip(*pairs, strict=True))
        print(
            f"  {name:24}{ours:8.2f} s{theirs:8.2f} s   ratio {ratio:.2f}, held to 1.10   {'met' if ratio <= 1.1 else 'MISSED'}"
        )


def particles() -> None:
    print("processor seconds by K, 16 groups")
    net, classifier = TimeMLP(64, width=512).requires_grad_(False), torch.nn.Linear(64, 10)
    for count in (4, 16, 64):
        print(
            f"  K = {count:3}{seconds(lambda c=count: flow_of(net, classifier, c).sample(GROUPS, shape=(64,))):8.2f} s"
        )


def chunks() -> None:
    print("peak memory of the process as chunks grow (U-Net, 512 particles)")
    net, classifier = (
        SmallUNet(1, widths=(16, 32)).requires_grad_(False),
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(256, 10)),
    )
    for chunk in (16, 64, 256):
        flow_of(net, classifier, 16, chunk).sample(32, shape=(1, 16, 16))
        print(f"  {chunk:4} a chunk: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.0f} MB so far")


PARTS = {"overhead": overhead, "particles": particles, "chunks": chunks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=sorted(PARTS))
    chosen = parser.parse_args().part
    torch.set_num_threads(1)
    for name, part in PARTS.items():
        if chosen in (None, name):
            part()


if __name__ == "__main__":
    main()
