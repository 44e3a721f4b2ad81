from __future__ import annotations

import pytest

from upheld.speculative import DFlashConfig


def test_round_trip_through_a_file(tmp_path):
    rope = {"rope_type": "default", "rope_theta": 1e5}
    config = DFlashConfig(block_size=16, target_layer_ids=[1, 9, 17], mask_token_id=7, rope_parameters=rope)
    config.save_pretrained(tmp_path)
    again = DFlashConfig.from_pretrained(tmp_path)
    assert again.to_dict() == config.to_dict()
    assert (again.block_size, again.target_layer_ids, again.rope_parameters["rope_theta"]) == (16, [1, 9, 17], 1e5)


@pytest.mark.parametrize(("injection", "width"), [("kv", 1728), ("none", 576), ("input", 2304)])
def test_context_width(injection, width):
    assert DFlashConfig(injection=injection).context_width == width


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_hidden_layers": 0}, "num_hidden_layers must be 1 or more"),
        ({"num_attention_heads": 8, "num_key_value_heads": 3}, "8 heads cannot share 3"),
    ],
)
def test_impossible_sizes(options, message):
    with pytest.raises(ValueError, match=message):
        DFlashConfig(**options)
