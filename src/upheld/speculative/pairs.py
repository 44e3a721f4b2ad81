"""A target and its drafter, out of what a user names: a package's model, a folder, a GGUF file."""

from __future__ import annotations

import hashlib
import json
from importlib import resources
from pathlib import Path

import torch
import transformers
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from upheld.llm.loading import device_for, dtype_for, load_network, load_tokenizer
from upheld.llm.model_files import ModelFiles, converted, local, smollm2
from upheld.speculative.checkpoints import load_published
from upheld.speculative.configuration import DFlashConfig
from upheld.speculative.drafter import DFlashDrafter

SHIPPED = "smollm2-135m-dflash-b8"
"""The drafter of SmolLM2-135M-Instruct that comes with the package."""


def model_files(named: str | Path) -> ModelFiles:
    """``"smollm2"``, a folder of transformers, or a GGUF file, which is turned into such a folder once.

    Raises
    ------
    ValueError
        If there is no such model, or the file is damaged.
    """
    if named == "smollm2":
        return smollm2()
    path = Path(named).expanduser()
    if path.suffix != ".gguf":
        return local(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}; give a GGUF file, a model's folder, or smollm2")
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    try:
        return ModelFiles(path.stem, converted(path, digest), digest)
    except OSError:
        raise
    except Exception as error:  # damaged files fail in as many ways as there are
        what = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"the GGUF file {path} cannot be read ({what}); copy it again, or name another") from error


def load_target(
    named: str | Path, *, dtype: str = "float32", device: str | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The target and its tokenizer."""
    files = model_files(named)
    kind = transformers.AutoModelForCausalLM
    target = load_network(kind, files.folder, dtype=dtype_for(dtype), device=device_for(device))
    return target, load_tokenizer(files.folder)


def load_drafter(folder: str | Path, target: PreTrainedModel) -> DFlashDrafter:
    """A drafter in this package's format or the published one, in the target's number format and on its device.

    Raises
    ------
    ValueError
        If the folder holds neither, or is damaged.
    """
    drafter = read_drafter(folder)
    drafter.to(device=target.device, dtype=target.dtype)  # type: ignore[call-arg]
    drafter.eval()  # type: ignore[no-untyped-call]
    drafter.requires_grad_(False)
    return drafter


def read_drafter(folder: str | Path) -> DFlashDrafter:
    """A drafter in either format, in single precision and on the processor, its weights to be trained further or not.

    Raises
    ------
    ValueError
        If the folder holds neither, or is damaged.
    """
    folder = Path(folder).expanduser()
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder} holds no config.json; give the folder of a trained drafter")
    try:
        return _drafter(folder)
    except ValueError:
        raise
    except Exception as error:  # damaged files fail in as many ways as there are
        what = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(
            f"the drafter in {folder} cannot be loaded ({what}); copy it again, or train it anew"
        ) from error


def _drafter(folder: Path) -> DFlashDrafter:
    """In either format, in single precision."""
    described = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if not isinstance(described, dict):
        raise ValueError(f"the config.json in {folder} is no object; give the folder of a trained drafter")
    if "dflash_config" in described:
        return load_published(folder)
    if described.get("model_type") != DFlashConfig.model_type:
        raise ValueError(
            f"{folder} holds a model of the kind {described.get('model_type')!r}, no drafter; give the folder of a trained drafter"
        )
    return DFlashDrafter.from_pretrained(folder, dtype=torch.float32, local_files_only=True)


def shipped_drafter(target: PreTrainedModel) -> DFlashDrafter:
    """The drafter that comes with the package, for SmolLM2-135M-Instruct."""
    with resources.as_file(resources.files("upheld.speculative") / "weights" / SHIPPED) as folder:
        return load_drafter(folder, target)


def drafter_folder(named: Path) -> Path:
    """The folder of a drafter, or of the training that made it, which holds it in a folder of its own.

    ``shipped`` names the one that comes with the package.
    """
    if named == Path("shipped") and not named.exists():
        return Path(str(resources.files("upheld.speculative") / "weights" / SHIPPED))
    inside = named / "drafter"
    return inside if (inside / "config.json").is_file() else named
