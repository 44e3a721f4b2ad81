from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from upheld.speculative import DFlashDrafter
from upheld.speculative.checkpoints import load_published, save_published


def published(target, **options):
    return DFlashDrafter.from_target(target, init="random", mask_token_id=511, draft_vocab_size=None, **options)


def test_round_trip(tiny, tmp_path):
    drafter = published(tiny)
    save_published(drafter, tmp_path)
    again = load_published(tmp_path, dtype=torch.float64)
    for name, value in drafter.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    assert again.config.rope_parameters == drafter.config.rope_parameters
    block = drafter.block_inputs(torch.tensor([3]), tiny.get_input_embeddings())
    given = (block, torch.randn(1, 5, drafter.config.context_width, dtype=torch.float64), torch.arange(13)[None])
    assert torch.equal(again(*given), drafter(*given))


def test_the_published_names(tiny, tmp_path):
    """Names and fields of the published Qwen3 checkpoints."""
    save_published(published(tiny, num_layers=1), tmp_path)
    told = json.loads((tmp_path / "config.json").read_text())
    assert told["dflash_config"] == {"mask_token_id": 511, "target_layer_ids": [0, 1]}
    assert (told["block_size"], told["num_target_layers"], told["model_type"]) == (8, 3, "qwen3")
    attention = {
        f"layers.0.self_attn.{part}.weight" for part in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")
    }
    mlp = {f"layers.0.mlp.{part}.weight" for part in ("gate_proj", "up_proj", "down_proj")}
    norms = {"layers.0.input_layernorm.weight", "layers.0.post_attention_layernorm.weight", "norm.weight"}
    assert set(load_file(tmp_path / "model.safetensors")) == attention | mlp | norms | {
        "fc.weight",
        "hidden_norm.weight",
    }


def test_old_files_keep_the_rotary_base_apart(tiny, tmp_path):
    save_published(published(tiny), tmp_path)
    told = json.loads((tmp_path / "config.json").read_text())
    del told["rope_parameters"]
    told |= {"rope_theta": 1e6, "rope_scaling": None}
    (tmp_path / "config.json").write_text(json.dumps(told))
    assert load_published(tmp_path).config.rope_parameters["rope_theta"] == 1e6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask_token_id": None}, "a learned mask"),
        ({"draft_vocab_size": 100}, "a draft vocabulary"),
        ({"init": "aligned"}, "no norms of queries and keys"),
        ({"injection": "none"}, "an ablation's drafter"),
    ],
)
def test_what_the_format_cannot_say(tiny, tmp_path, options, message):
    options = {"init": "random", "mask_token_id": 511, "draft_vocab_size": None} | options
    with pytest.raises(ValueError, match=message):
        save_published(DFlashDrafter.from_target(tiny, **options), tmp_path)


def test_damaged_folders(tiny, tmp_path):
    with pytest.raises(ValueError, match="holds no config"):
        load_published(tmp_path)
    (tmp_path / "config.json").write_text('{"hidden_size": 64}')
    with pytest.raises(ValueError, match="names no dflash_config"):
        load_published(tmp_path)
    save_published(published(tiny), tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file({name: value for name, value in weights.items() if name != "fc.weight"}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"lacks weight fc.weight \(1 in all\)"):
        load_published(tmp_path)
    save_file({**weights, "embed.weight": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="has an unknown weight embed"):
        load_published(tmp_path)
    save_file({**weights, "fc.weight": torch.zeros(2, 2)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"not the shape that its config.json tells: size mismatch for fc.weight"):
        load_published(tmp_path)
