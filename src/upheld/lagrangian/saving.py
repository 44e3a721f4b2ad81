"""Multipliers on disk: one number a coupling row, under the row's name, as JSON, NumPy archive or safetensors.

A ``.json`` file is an object of row names and numbers, for people; ``.npz`` holds the arrays ``rows`` and ``multipliers``;
``.safetensors`` the tensor ``multipliers`` with the row names in its metadata. Contextual multipliers save themselves, see
`ContextualMultipliers.save`.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from upheld.lagrangian.oracles import Instance
from upheld.storage import whole_file

ENDINGS = (".json", ".npz", ".safetensors")


def save_multipliers(path: str | Path, row_names: Sequence[str], multipliers: ArrayLike) -> None:
    """Write one multiplier a row, in the format that the ending of `path` names.

    Raises
    ------
    ValueError
        If the ending is none of .json, .npz, .safetensors, a name stands twice, or there are as many names as numbers not.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "prices.npz"
    >>> save_multipliers(path, ["energy", "reserve"], [21.5, 0.0])
    >>> load_multipliers(path)
    {'energy': 21.5, 'reserve': 0.0}
    """
    path, names, pi = Path(path), list(row_names), np.asarray(multipliers, dtype=float)
    _ending(path)
    if pi.shape != (len(names),) or len(set(names)) < len(names):
        raise ValueError(f"{len(names)} row names, each once, need as many multipliers; got shape {pi.shape}")
    with whole_file(path, "wb") as file:
        if path.suffix == ".json":
            file.write(
                (json.dumps(dict(zip(names, pi.tolist(), strict=True)), indent=2, ensure_ascii=False) + "\n").encode()
            )
        elif path.suffix == ".npz":
            np.savez(file, rows=np.array(names), multipliers=pi)
        else:
            from safetensors.numpy import save

            file.write(save({"multipliers": pi}, {"rows": json.dumps(names, ensure_ascii=False)}))


def load_multipliers(path: str | Path) -> dict[str, float]:
    """What `save_multipliers` wrote, or any such file: multipliers by row name.

    Raises
    ------
    ValueError
        If the file is not of the format that its ending names, or a multiplier is no finite number (its row is named).
    OSError
        If it cannot be read.
    """
    path = Path(path)
    _ending(path)
    if path.suffix == ".json":
        found = _from_json(path)
    else:
        names, values = _from_npz(path) if path.suffix == ".npz" else _from_safetensors(path)
        if values.shape != (len(names),):
            raise ValueError(
                f"{path} holds {len(names)} row names and multipliers of shape {values.shape}; save it anew"
            )
        found = dict(zip(names, values.tolist(), strict=True))
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
            raise ValueError(f"{path}: the multiplier of row {name} is {value!r}; it must be a finite number")
    return {name: float(value) for name, value in found.items()}


def for_instance(multipliers: dict[str, float], P: Instance) -> np.ndarray:
    """(s,) the multipliers in the order of the instance's coupling rows.

    Raises
    ------
    ValueError
        If the instance has a row without a multiplier, or there is one without a row; some are named.
    """
    lacking = [name for name in P.row_names if name not in multipliers]
    extra = sorted(set(multipliers) - set(P.row_names))
    for names, what in ((lacking, "have no multiplier"), (extra, "have a multiplier but are no coupling rows here")):
        if names:
            raise ValueError(f"the rows {', '.join(names[:5])}{', ...' if len(names) > 5 else ''} {what}; {CARRY_OVER}")
    return np.array([multipliers[name] for name in P.row_names])


CARRY_OVER = "multipliers carry over only between the same rows"


def _ending(path: Path) -> None:
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path} ends in no known format; multipliers are saved as {', '.join(ENDINGS)}")


def _from_json(path: Path) -> dict[str, float]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # also what is no UTF-8, or lists in lists without end
        raise ValueError(f"{path} is no JSON file: {error}") from None
    if not isinstance(found, dict) or not found:
        raise ValueError(f'{path} must hold an object of row names and numbers, such as {{"demand_1": 21.5}}')
    return found


def _from_npz(path: Path) -> tuple[list[str], np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return [str(name) for name in arrays["rows"]], np.asarray(arrays["multipliers"], dtype=float)
    except (ValueError, KeyError, AttributeError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is no archive with the arrays rows and multipliers: {error}") from None


def _from_safetensors(path: Path) -> tuple[list[str], np.ndarray]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            about = file.metadata() or {}
            if "upheld" in about:
                raise ValueError(f"{path} holds contextual multipliers; load it with ContextualMultipliers.load")
            if "rows" not in about or "multipliers" not in file.keys():  # noqa: SIM118, it is no mapping
                raise ValueError(f"{path} lacks the tensor multipliers or the names of its rows")
            return [str(name) for name in json.loads(about["rows"])], np.asarray(
                file.get_tensor("multipliers"), dtype=float
            )
    except SafetensorError as error:
        raise ValueError(f"{path} is no .safetensors file: {error}") from None


def is_contextual(path: str | Path) -> bool:
    """Whether a file was written by `ContextualMultipliers.save`."""
    if Path(path).suffix != ".safetensors":
        return False
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            return "upheld" in (file.metadata() or {})
    except SafetensorError:
        return False
