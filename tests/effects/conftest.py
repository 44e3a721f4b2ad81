"""Streams that several tests feed to several balancers."""

from __future__ import annotations

import sys

import pytest
from threadpoolctl import threadpool_limits

from upheld.effects import StreamingBalancer
from upheld.effects.data import DriftStream


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """What tests themselves compute, too, is small: several threads would only wait for each other."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="session")
def stream():
    return DriftStream(6000, 5, "none", seed=11)


@pytest.fixture
def feed():
    """Give rows [start, stop) of a stream to a balancer."""

    def give(
        balancer: StreamingBalancer,
        stream: DriftStream,
        start: int = 0,
        stop: int | None = None,
        batch: int = 6000,
        **rows,
    ):
        stop = stream.n if stop is None else stop
        for at in range(start, stop, batch):
            part = slice(at, min(at + batch, stop))
            balancer.partial_fit(
                stream.X[part],
                stream.y[part],
                treatment=stream.w[part],
                **{name: value[part] for name, value in rows.items()},
            )
        return balancer

    return give


@pytest.fixture
def absent(monkeypatch):
    """Makes a package one that is not installed, whether it is or not."""

    def remove(package: str) -> None:
        for part in [one for one in sys.modules if one.startswith(f"{package}.")]:
            monkeypatch.delitem(sys.modules, part)
        monkeypatch.setitem(sys.modules, package, None)

    return remove
