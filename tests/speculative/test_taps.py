from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from upheld.speculative.taps import Taps, decoder_layers, tap_layers, target_digest


@pytest.mark.parametrize(
    ("layers", "taps", "expected"),
    [  # the published selection: package dflash 0.1.0, build_target_layer_ids
        (36, 5, [1, 9, 17, 25, 33]),
        (30, 5, [1, 8, 14, 20, 27]),
        (30, 3, [1, 14, 27]),
        (24, 5, [1, 6, 11, 16, 21]),
        (30, 1, [15]),
        (3, 3, [0, 1]),
        (4, 3, [0, 1, 2]),
    ],
)
def test_selection(layers, taps, expected):
    assert tap_layers(layers, taps) == expected


@given(st.integers(2, 100), st.integers(1, 8))
def test_taps_increase_and_leave_the_last_layer(layers, taps):
    found = tap_layers(layers, taps)
    assert found == sorted(set(found))
    assert found[0] >= 0
    assert len(found) <= taps
    assert found[-1] <= max(layers - 2, layers // 2)


@pytest.mark.parametrize(("layers", "taps"), [(1, 1), (30, 0)])
def test_nothing_to_tap(layers, taps):
    with pytest.raises(ValueError, match="at least 1 tap"):
        tap_layers(layers, taps)


def test_tap_is_the_output_of_the_layer_not_its_input(tiny):
    ids = torch.arange(7)[None]
    with Taps(tiny, [0, 1]) as taps:
        out = tiny(input_ids=ids, output_hidden_states=True)
        states = taps.take()
    torch.testing.assert_close(states, torch.cat([out.hidden_states[1], out.hidden_states[2]], -1), atol=0, rtol=0)


def test_hooks_are_gone_after_an_error(make_llama):
    target = make_llama()
    with pytest.raises(IndexError), Taps(target, [0]):
        target(input_ids=torch.tensor([[512]]))  # a token that the target does not know
    assert not any(layer._forward_hooks for layer in decoder_layers(target))


def test_states_are_given_once(tiny):
    with Taps(tiny, [1]) as taps:
        tiny(input_ids=torch.arange(3)[None])
        taps.take()
        with pytest.raises(RuntimeError, match="was not run"):
            taps.take()


def test_a_tap_past_the_target(tiny):
    with pytest.raises(ValueError, match="tap 3 is past the target's last layer, 2"):
        Taps(tiny, [1, 3])


def test_a_model_without_layers_is_named():
    class Flat(torch.nn.Module):
        pass

    with pytest.raises(ValueError, match="Flat shows no list of decoder layers"):
        decoder_layers(Flat())


def test_digest_tells_targets_apart_and_survives_rounding(make_llama):
    model, other = make_llama(), make_llama(seed=1)
    before = target_digest(model)
    assert before != target_digest(other)
    assert before == target_digest(model.float()) == target_digest(model.to(torch.bfloat16))
