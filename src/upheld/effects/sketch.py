"""A balancer as bytes: an npz archive of arrays with a JSON header, versioned, checked by a digest, without pickle (section 8).

The archive holds `header` (JSON as bytes), `digest` (SHA-256 of the header and all other arrays) and the arrays. Everything that the
next row or query depends on is in it, random state included, so that a stream goes on as if it had not been interrupted.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
import zipfile
import zlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from upheld.effects.arms import CoresetArm, Sums
from upheld.effects.balance import Balance
from upheld.effects.blocks import Block, ClosedBlock
from upheld.effects.coreset import ITEM_ARRAYS, ArmCoreset, Run
from upheld.effects.drift import Cusum, Profile
from upheld.effects.encoding import Encoding
from upheld.effects.features import FeatureMap
from upheld.effects.pending import Pending, WaitingRow
from upheld.effects.pooling import OutcomeModel, PoolingModel
from upheld.effects.rows import Covariates, Rows
from upheld.effects.sensitivity import Bounds
from upheld.effects.uniform import UniformSample

if TYPE_CHECKING:
    from upheld.effects.balancer import StreamingBalancer

FORMAT = "upheld.effects sketch"
VERSION = 1
DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, ValueError, KeyError, EOFError, OSError, NotImplementedError)

Arrays = dict[str, NDArray[Any]]
Header = dict[str, Any]
B = TypeVar("B", bound="StreamingBalancer")


def pack(header: Header, arrays: Arrays) -> bytes:
    """Header and arrays as one archive."""
    text = np.frombuffer(json.dumps(_without_nan(header), allow_nan=False).encode(), dtype=np.uint8)
    content = {"header": text, **arrays}
    digest = np.frombuffer(_digest(content), dtype=np.uint8)
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, digest=digest, **content)
    return out.getvalue()


def unpack(data: bytes) -> tuple[Header, Arrays]:
    """What `pack` put together.

    Raises
    ------
    ValueError
        One sentence: not a sketch, damaged, or of a newer version.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
        digest, header = content.pop("digest"), json.loads(content["header"].tobytes())
    except DAMAGE as error:
        raise ValueError(
            f"these {len(data)} bytes are no sketch, or a damaged or truncated one ({type(error).__name__}); restore them from a copy"
        ) from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError("this npz archive is no sketch of upheld.effects; pass what to_bytes() wrote")
    if header["version"] > VERSION:
        raise ValueError(
            f"the sketch was written in format {header['version']}, newer than this version's {VERSION}; upgrade upheld to read it"
        )
    if digest.tobytes() != _digest(content):
        raise ValueError("the sketch is damaged: its content does not match its digest; restore it from a copy")
    content.pop("header")
    return header, content


def _digest(content: Arrays) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(content):
        array = np.ascontiguousarray(content[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.digest()


def _without_nan(value: Any) -> Any:
    """NaN and infinities, which JSON lacks, by name."""
    if isinstance(value, dict):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _with_nan(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"float"}:
            return float(value["float"])
        return {key: _with_nan(one) for key, one in value.items()}
    return [_with_nan(one) for one in value] if isinstance(value, list) else value


def write(balancer: StreamingBalancer) -> bytes:
    """All of a balancer's state."""
    if hasattr(balancer.kernel, "transform"):
        raise TypeError(
            f"a sketch with a {type(balancer.kernel).__name__} as its kernel cannot be written without pickle; "
            "use a kernel by name"
        )
    arrays: Arrays = {}
    header: Header = {
        "format": FORMAT, "version": VERSION, "parameters": balancer.get_params(), "n_seen": balancer.n_seen_,
        "arrived": balancer._arrived, "seed": balancer._seed, "random": balancer._rng.bit_generator.state,
        "n_spawned": balancer._n_spawned, "like": balancer._like, "dated": balancer._dated,
        "seen": _pairs(balancer._seen), "arms": sorted(balancer._arms), "warm": [], "pending": _pending(balancer._pending),
        "closed": [one.state() for one in balancer._closed],
        "cusum": [[label, asdict(one)] for label, one in balancer._cusum.items()],
        "balance_rows": _pairs(balancer._balance.rows), "bounds": _write_bounds(balancer._bounds),
    }  # fmt: skip
    for number, part in enumerate(balancer._warm):
        header["warm"].append(_write_rows(arrays, f"warm{number}", part))
    for number, label in enumerate(balancer._balance.rows):
        arrays[f"balance{number}/before"] = balancer._balance.before[label]
        arrays[f"balance{number}/after"] = balancer._balance.after[label]
    header["models"] = [[label, gap] for label, (gap, _) in balancer._models.items()]
    for number, (_, coef) in enumerate(balancer._models.values()):
        arrays[f"model{number}"] = coef
    if balancer._profile is not None:
        header["profile"] = _write_profile(arrays, balancer._profile)
    if balancer.feature_map_ is not None and balancer.encoding_ is not None:
        header["encoding"] = balancer.encoding_.state()
        header["map"] = {
            name: getattr(balancer.feature_map_, name)
            for name in ("kernel", "bandwidth", "linear", "n_coordinates", "time_start", "time_scale")
        }
        arrays["map/frequencies"] = balancer.feature_map_.frequencies
        header["block"] = _write_block(arrays, balancer._block)
    return pack(header, arrays)


def read(kind: type[B], data: bytes) -> B:
    """The balancer that `write` wrote."""
    header, arrays = unpack(data)
    header = _with_nan(header)
    balancer = kind(**header["parameters"])
    balancer._begin()
    balancer.n_seen_, balancer._arrived = header["n_seen"], header["arrived"]
    balancer._seed, balancer._n_spawned, balancer._dated = header["seed"], header["n_spawned"], header["dated"]
    balancer._rng.bit_generator.state = header["random"]
    balancer._like = None if header["like"] is None else (tuple(header["like"][0]), tuple(header["like"][1]))
    balancer._seen, balancer._arms = dict(header["seen"]), set(header["arms"])
    balancer._warm = [
        _read_rows(arrays, f"warm{number}", one, balancer._like) for number, one in enumerate(header["warm"])
    ]
    _read_pending(balancer._pending, header["pending"])
    balancer._closed = [ClosedBlock.from_state(one) for one in header["closed"]]
    balancer._cusum = {label: Cusum(**one) for label, one in header["cusum"]}
    rows = dict(header["balance_rows"])
    balancer._balance = Balance(
        {label: arrays[f"balance{number}/before"] for number, label in enumerate(rows)},
        {label: arrays[f"balance{number}/after"] for number, label in enumerate(rows)},
        rows,
    )
    balancer._bounds = _read_bounds(header["bounds"])
    balancer._models = {label: (gap, arrays[f"model{number}"]) for number, (label, gap) in enumerate(header["models"])}
    if "profile" in header:
        balancer._profile = _read_profile(arrays, header["profile"])
    if "map" in header:
        balancer.encoding_ = Encoding.from_state(header["encoding"])
        balancer.feature_map_ = FeatureMap(frequencies=arrays["map/frequencies"], **header["map"])
        balancer._block = balancer._new_block()
        _read_block(arrays, balancer._block, header["block"])
    return balancer


def _pairs(by_arm: dict[Any, Any]) -> list[list[Any]]:
    """Arms can be numbers, keys of JSON cannot."""
    return [[label, value] for label, value in by_arm.items()]


def _write_bounds(bounds: Bounds) -> Header:
    arms = [
        [label, rows, bounds.low[label].tolist(), bounds.high[label].tolist()] for label, rows in bounds.rows.items()
    ]
    return {"arms": arms, "squares": bounds.squares, "degrees": bounds.degrees}


def _read_bounds(state: Header) -> Bounds:
    arms = state["arms"]
    return Bounds(
        {label: np.array(low) for label, _, low, _ in arms}, {label: np.array(high) for label, *_, high in arms},
        {label: rows for label, rows, *_ in arms}, state["squares"], state["degrees"],
    )  # fmt: skip


def _pending(pending: Pending) -> Header:
    return {
        "expired": pending.expired, "crowded_out": pending.crowded_out,
        "rows": [[identifier, asdict(row)] for identifier, row in pending.rows.items()],
    }  # fmt: skip


def _read_pending(pending: Pending, state: Header) -> None:
    pending.expired, pending.crowded_out = state["expired"], state["crowded_out"]
    for identifier, row in state["rows"]:
        pending.rows[identifier] = WaitingRow(tuple(row["values"]), row["treatment"], row["time"])


def _write_rows(arrays: Arrays, prefix: str, rows: Rows) -> Header:
    arrays |= {
        f"{prefix}/numbers": rows.covariates.numbers, f"{prefix}/outcome": rows.outcome, f"{prefix}/time": rows.time,
        f"{prefix}/ident": rows.ident, f"{prefix}/words": rows.covariates.words.astype(str),
    }  # fmt: skip
    return {"treatment": rows.treatment.tolist()}


def _read_rows(arrays: Arrays, prefix: str, state: Header, like: tuple[tuple[str, ...], tuple[bool, ...]]) -> Rows:
    covariates = Covariates(*like, arrays[f"{prefix}/numbers"], arrays[f"{prefix}/words"].astype(object))
    return Rows(
        covariates, _objects(state["treatment"]), arrays[f"{prefix}/outcome"], arrays[f"{prefix}/time"],
        arrays[f"{prefix}/ident"],
    )  # fmt: skip


def _objects(values: list[Any]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _write_profile(arrays: Arrays, profile: Profile) -> Header:
    arrays["profile/mean"] = profile.mean
    for number, mean in enumerate(profile.by_arm.values()):
        arrays[f"profile/arm{number}"] = mean
    names = ("n", "trace", "square", "trace_by_arm", "square_by_arm")
    return {"arms": list(profile.by_arm), **{name: getattr(profile, name) for name in names}}


def _read_profile(arrays: Arrays, state: Header) -> Profile:
    numbers = dict(state)
    arms = numbers.pop("arms")
    by_arm = {label: arrays[f"profile/arm{number}"] for number, label in enumerate(arms)}
    return Profile(mean=arrays["profile/mean"], by_arm=by_arm, **numbers)


def _write_block(arrays: Arrays, block: Block) -> Header:
    arrays["block/phi"], arrays["block/recent"] = block.phi, block.recent
    state: Header = {
        "n": block.n, "start": block.start, "now": block.now, "recent_rows": block.recent_rows, "arms": [],
    }  # fmt: skip
    if block.population is not None:
        sample = block.population
        state["population"] = {"size": sample.size, "seen": sample.seen, "treatment": sample.held("treatment").tolist()}
        arrays |= {f"population/{name}": sample.held(name) for name in sample.kinds if name != "treatment"}
    for number, (label, arm) in enumerate(block.arms.items()):
        assert isinstance(arm, CoresetArm)
        state["arms"].append([label, _write_arm(arrays, f"arm{number}", arm)])
    return state


def _read_block(arrays: Arrays, block: Block, state: Header) -> None:
    block.phi, block.recent = arrays["block/phi"], arrays["block/recent"]
    block.n, block.start, block.now, block.recent_rows = (state[name] for name in ("n", "start", "now", "recent_rows"))
    if block.population is not None:
        held = state["population"]
        _read_sample(
            block.population, held, {name: arrays.get(f"population/{name}") for name in block.population.kinds}
        )
    for number, (label, one) in enumerate(state["arms"]):
        arm = block.arms[label] = block.new_arm()
        assert isinstance(arm, CoresetArm)
        _read_arm(arrays, f"arm{number}", arm, one)


def _read_sample(sample: UniformSample, state: Header, columns: dict[str, Any]) -> None:
    sample.size, sample.seen = state["size"], state["seen"]
    columns["treatment"] = _objects(state["treatment"])
    for name, array in sample.columns.items():
        array[: sample.size] = columns[name]


def _write_arm(arrays: Arrays, prefix: str, arm: CoresetArm) -> Header:
    arrays |= {f"{prefix}/{name}": getattr(arm.sums, name) for name in ("phi", "x", "xx")}
    state: Header = {
        "n": arm.sums.n,
        "y": arm.sums.y,
        "yy": arm.sums.yy,
        "fitted_at": arm.fitted_at,
        "models": [],
        "halves": [],
    }
    for number, model in enumerate(arm.models):
        if model is not None:
            arrays[f"{prefix}/model{number}"] = model.regression.coef
        state["models"].append(
            None if model is None else [model.regression.intercept, model.spread, model.centre, model.scale]
        )
    for number, half in enumerate(arm.halves):
        state["halves"].append(_write_coreset(arrays, f"{prefix}/half{number}", half))
    return state


def _read_arm(arrays: Arrays, prefix: str, arm: CoresetArm, state: Header) -> None:
    phi, x, xx = (arrays[f"{prefix}/{name}"] for name in ("phi", "x", "xx"))
    arm.sums = Sums(state["n"], phi, x, xx, state["y"], state["yy"])
    arm.fitted_at = state["fitted_at"]
    for number, model in enumerate(state["models"]):
        if model is not None:
            regression = OutcomeModel(model[0], arrays[f"{prefix}/model{number}"], model[1])
            arm.models[number] = PoolingModel(regression, model[2], model[3])
    for number, (half, one) in enumerate(zip(arm.halves, state["halves"], strict=True)):
        _read_coreset(arrays, f"{prefix}/half{number}", half, one)


def _write_coreset(arrays: Arrays, prefix: str, coreset: ArmCoreset) -> Header:
    arrays |= {f"{prefix}/{name}": getattr(coreset, name)[: coreset.size] for name in ITEM_ARRAYS}
    arrays[f"{prefix}/run"] = coreset.run.x
    run = {name: getattr(coreset.run, name) for name in ("y", "q", "t", "ident", "rows")}
    numbers = {name: getattr(coreset, name) for name in ("size", "n_rows", "base", "top", "discrepancy_sq")}
    return {**numbers, "run": run}


def _read_coreset(arrays: Arrays, prefix: str, coreset: ArmCoreset, state: Header) -> None:
    numbers = dict(state)
    coreset.run = Run(arrays[f"{prefix}/run"], **numbers.pop("run"))
    for name, value in numbers.items():
        setattr(coreset, name, value)
    for name in ITEM_ARRAYS:
        getattr(coreset, name)[: coreset.size] = arrays[f"{prefix}/{name}"]
