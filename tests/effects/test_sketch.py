from __future__ import annotations

import io
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from upheld.effects import StreamingBalancer
from upheld.effects.data import DriftStream
from upheld.effects.sketch import pack, unpack

SMALL = {"n_features": 32, "coreset_size": 64, "random_state": 0}


@pytest.mark.parametrize(
    "parameters",
    [
        {}, {"block_size": None, "half_life": 800.0}, {"outcomes": "subset-xy", "cross_fit": True}, {"inference": "population"},
        {"time": "kernel", "time_scale": 2000.0, "signing": "walk", "pairing": "projection"},
        {"block_size": None, "coreset_size": 16, "warmup": 50},
    ],
)  # fmt: skip
@pytest.mark.parametrize("at", [0, 30, 1000, 5000])
def test_a_stream_goes_on_as_if_it_had_not_been_interrupted(stream, feed, parameters, at):
    unbroken = feed(StreamingBalancer(**(SMALL | parameters)), stream, 0, at, batch=250)
    resumed = StreamingBalancer.from_bytes(unbroken.to_bytes())
    assert resumed.get_params() == unbroken.get_params()
    assert repr(resumed.estimate()) == repr(unbroken.estimate())
    for balancer in (unbroken, resumed):
        feed(balancer, stream, at, 6000, batch=250)
    assert resumed.estimate() == unbroken.estimate()
    assert resumed.memory_bytes_ == unbroken.memory_bytes_
    pd.testing.assert_frame_equal(resumed.blocks_, unbroken.blocks_)
    pd.testing.assert_frame_equal(resumed.balance_table(), unbroken.balance_table())
    pd.testing.assert_frame_equal(resumed.coreset(), unbroken.coreset())
    assert resumed.to_bytes() == unbroken.to_bytes()


def test_words_ids_and_waiting_rows_are_kept():
    stream = DriftStream(900, 4, "none", seed=0)
    table = pd.DataFrame(stream.X, columns=list("abcd")).assign(kind=np.where(stream.X[:, 0] > 0, "p", "q"))
    for n in (200, 900):
        balancer = StreamingBalancer(**SMALL, pending_timeout=5000)
        balancer.partial_fit(table[:n], stream.y[:n], treatment=np.where(stream.w[:n], "new", "old"), ids=np.arange(n))
        balancer.learn_one(table.iloc[0].to_dict(), "new", None, id="late")
        again = StreamingBalancer.from_bytes(balancer.to_bytes())
        for one in (balancer, again):
            one.outcome("late", 2.5)
            one.delete(n - 1)
        assert again.estimate() == balancer.estimate()
        assert again.n_arm_ == balancer.n_arm_


def test_a_resumed_sketch_merges_with_its_siblings(stream, feed):
    first = feed(StreamingBalancer(**SMALL), stream, 0, 2500)
    [sibling] = first.spawn(1)
    feed(sibling, stream, 2500, 6000)
    merged = StreamingBalancer.from_bytes(first.to_bytes()) | StreamingBalancer.from_bytes(sibling.to_bytes())
    assert merged.estimate() == (first | sibling).estimate()


def test_the_size_is_that_of_the_memory(stream, feed):
    balancer = feed(StreamingBalancer(random_state=0), stream)
    assert len(balancer.to_bytes()) < balancer.memory_bytes_


@pytest.fixture(scope="module")
def written():
    stream = DriftStream(1200, 4, "none", seed=0)
    return StreamingBalancer(**SMALL).fit(stream.X, stream.y, treatment=stream.w).to_bytes()


def test_no_damage_goes_unnoticed(written):
    """Every 97th byte flipped: either refused in a sentence, or, where a byte of padding does not matter, the same content."""
    refusals = [message for at in range(0, len(written), 97) if (message := refusal(written, at))]
    assert len(refusals) > 0.8 * len(range(0, len(written), 97))
    assert all("sketch" in message and "\n" not in message for message in refusals)


def refusal(written, at):
    """What is said of a file in which the byte at that place is flipped; nothing if the content is whole."""
    damaged = bytearray(written)
    damaged[at] ^= 0x55
    try:
        header, arrays = unpack(bytes(damaged))
    except ValueError as error:
        return str(error)
    whole = unpack(written)
    assert header == whole[0]
    assert all(np.array_equal(arrays[name], array, equal_nan=True) for name, array in whole[1].items())
    return ""


@pytest.mark.parametrize("keep", [0, 10, 1000, -1])
def test_truncated(written, keep):
    with pytest.raises(ValueError, match="are no sketch, or a damaged or truncated one"):
        StreamingBalancer.from_bytes(written[:keep])


def test_of_a_newer_version(written):
    header, arrays = unpack(written)
    with pytest.raises(
        ValueError, match="was written in format 2, newer than this version's 1; upgrade upheld to read it"
    ):
        StreamingBalancer.from_bytes(pack(header | {"version": 2}, arrays))


def test_another_archive():
    out = io.BytesIO()
    np.savez(out, header=np.frombuffer(json.dumps({"a": 1}).encode(), dtype=np.uint8), digest=np.zeros(1))
    with pytest.raises(ValueError, match="is no sketch of upheld"):
        StreamingBalancer.from_bytes(out.getvalue())


def test_nothing_is_unpickled(written):
    """An archive with a pickled array is refused, not run."""
    header, _ = unpack(written)
    out = io.BytesIO()
    np.savez(
        out,
        digest=np.array([print], dtype=object),
        header=np.frombuffer(json.dumps(header, default=str).encode(), dtype=np.uint8),
    )
    with pytest.raises(ValueError, match="are no sketch"):
        StreamingBalancer.from_bytes(out.getvalue())
    with pytest.raises(ValueError, match="are no sketch"):
        StreamingBalancer.from_bytes(pickle.dumps({"header": 1}))


class Identity:
    """A transformer."""

    def transform(self, X):
        return X


def test_a_transformer_is_a_kernel_that_cannot_be_written(stream, feed):
    balancer = feed(StreamingBalancer(kernel=Identity(), random_state=0), stream)
    linear = feed(StreamingBalancer(n_features=0, random_state=0), stream)
    assert balancer.estimate().ate == pytest.approx(linear.estimate().ate, abs=0.1)
    with pytest.raises(TypeError, match="a sketch with a Identity as its kernel cannot be written without pickle"):
        balancer.to_bytes()
