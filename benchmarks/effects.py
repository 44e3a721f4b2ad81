"""Speed and memory of the streaming balancer, beside what one would use without it, in one run.

python benchmarks/effects.py [--part rates|rows|memory|query|update]     all parts by default, about a minute on one core

d = 10 covariates, D = 256 features, k = 256; seconds are CPU seconds of this process. The rival is OnlineCML's augmented inverse weighting,
row by row, as its users call it; where it is not installed, its ratio is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import time

import numpy as np

from measuring import seconds
from upheld.effects import ExactMomentBalancer, ReservoirBalancer, StreamingBalancer
from upheld.effects.data import DriftStream
from upheld.effects.stream import EffectStream

STREAM = DriftStream(30_000, 10, "none", seed=0)
WANTED = {"pooled, nearest": 10_000, "pooled, projection": 25_000, "subset, projection": 40_000}  # rows a second
NAMES = [f"x{j + 1}" for j in range(STREAM.d)]


def feed(balancer: EffectStream, batch: int) -> list[float]:
    """CPU seconds of each batch."""
    return [
        seconds(
            lambda rows=slice(at, at + batch): balancer.partial_fit(
                STREAM.X[rows], STREAM.y[rows], treatment=STREAM.w[rows]
            )
        )
        for at in range(0, STREAM.n, batch)
    ]


def rates() -> None:
    print("rows a second, partial_fit in batches of 500, warm-up and blocks included")
    kinds: dict[str, EffectStream] = {
        "pooled, nearest": StreamingBalancer(random_state=0),
        "pooled, projection": StreamingBalancer(pairing="projection", random_state=0),
        "subset, projection": StreamingBalancer(
            outcomes="subset", pairing="projection", block_size=None, random_state=0
        ),
        "pooled, nearest, no blocks": StreamingBalancer(block_size=None, random_state=0),
        "pooled, projection, no blocks": StreamingBalancer(block_size=None, pairing="projection", random_state=0),
        "exact moments": ExactMomentBalancer(random_state=0),
        "reservoir": ReservoirBalancer(random_state=0),
    }
    feed(StreamingBalancer(random_state=0), 500)  # what a process pays for once
    for name, balancer in kinds.items():
        rate = STREAM.n / sum(feed(balancer, 500))
        wanted = f"   (wanted: {WANTED[name]:,})" if name in WANTED else ""
        print(f"  {name:32}{rate:>12,.0f}   {balancer.memory_bytes_ / 1e6:.2f} MB{wanted}")


def rows() -> None:
    print("\nrow by row")
    table = [dict(zip(NAMES, x, strict=True)) for x in STREAM.X.tolist()]
    balancer, took = StreamingBalancer(random_state=0), []
    for x, w, y in zip(table[:10_000], STREAM.w.tolist(), STREAM.y.tolist(), strict=False):
        begin = time.perf_counter()
        balancer.learn_one(x, w, y)
        took.append(time.perf_counter() - begin)
    ours = float(np.mean(took))
    print(
        f"  learn_one                       median {1e6 * np.median(took):.1f} us (wanted: 60), mean {1e6 * ours:.1f} us"
    )
    if importlib.util.find_spec("onlinecml") is None:
        print("  onlinecml is not installed: no ratio")
        return
    from onlinecml.reweighting import OnlineAIPW

    rival = OnlineAIPW()

    def learn() -> None:
        for x, w, y in zip(table[:5000], STREAM.w.tolist(), STREAM.y.tolist(), strict=False):
            rival.learn_one(x, w, y)

    other = seconds(learn) / 5000
    batch = sum(feed(StreamingBalancer(random_state=0), 500)) / STREAM.n
    print(
        f"  OnlineCML AIPW learn_one        mean {1e6 * other:.1f} us; partial_fit is {other / batch:.1f} times as fast a row "
        "(wanted: 5)"
    )


def memory() -> None:
    print("\nbytes held, one coreset pair over the whole stream (wanted: about 260,000, whatever the rows)")
    balancer = StreamingBalancer(block_size=None, pairing="projection", random_state=0)
    for number, at in enumerate(range(0, STREAM.n, 5000)):
        part = slice(at, at + 5000)
        balancer.partial_fit(STREAM.X[part], STREAM.y[part], treatment=STREAM.w[part])
        if number in (0, 1, 5):
            print(f"  after {at + 5000:>7,} rows  {balancer.memory_bytes_:>9,}   items {balancer.n_items_}")
    print(f"  as a sketch on disk  {len(balancer.to_bytes()):>9,}")


def query() -> None:
    balancer = StreamingBalancer(block_size=None, random_state=0)
    feed(balancer, 500)
    took = [seconds(balancer.estimate) for _ in range(10)]
    print(f"\nquery with {sum(balancer.n_items_.values())} items: median {1e3 * np.median(took):.0f} ms (wanted: 100)")


def update() -> None:
    print("\nupdate in batches of 100, refits, compactions and closing blocks included (wanted: p99 below 50 ms)")
    for name, balancer in {
        "blocks": StreamingBalancer(random_state=0),
        "no blocks": StreamingBalancer(block_size=None, random_state=0),
    }.items():
        took = 1e3 * np.array(feed(balancer, 100))
        print(
            f"  {name:12}median {np.median(took):.1f} ms, p99 {np.percentile(took, 99):.1f} ms, most {took.max():.1f} ms"
        )


PARTS = {"rates": rates, "rows": rows, "memory": memory, "query": query, "update": update}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS)
    chosen = parser.parse_args().part
    for name, part in PARTS.items():
        if chosen in (None, name):
            part()
