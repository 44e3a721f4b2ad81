from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from upheld.compute import LocalPool, RayCluster, choose


def test_this_machine_is_the_default() -> None:
    pool = choose(ray=None, workers=3)
    assert isinstance(pool, LocalPool)
    assert pool.workers == 3


def test_ray_on_request() -> None:
    pytest.importorskip("ray")
    cluster = choose(ray="auto", workers=2)
    assert isinstance(cluster, RayCluster)
    assert (cluster.address, cluster.workers) == ("auto", 2)


def test_ray_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r'pip install "upheld\[ray\]"'):
        choose(ray="auto", workers=None)


def test_ray_workers_must_be_positive() -> None:
    pytest.importorskip("ray")
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        choose(ray="auto", workers=0)


def test_nothing_heavy_is_imported() -> None:
    code = "import sys, upheld.compute; print([name for name in ('ray', 'numpy', 'pebble') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("address", ["", "nonsense", "ray://127.0.0.1:10001", "host:"])
def test_ray_address_has_a_host_and_a_port(address: str) -> None:
    pytest.importorskip("ray")
    with pytest.raises(ValueError, match='the address of a Ray cluster is "auto" or "host:port", got '):
        choose(ray=address, workers=None)
