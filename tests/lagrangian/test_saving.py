"""Multipliers on disk."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upheld.lagrangian.families import HardFamily
from upheld.lagrangian.saving import ENDINGS, for_instance, load_multipliers, save_multipliers

NAMES = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20)


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=25, deadline=None)
@given(held=st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_what_is_saved_is_loaded(tmp_path_factory, ending, held):
    path = tmp_path_factory.mktemp("m") / f"prices{ending}"
    save_multipliers(path, list(held), list(held.values()))
    assert load_multipliers(path) == held


def test_json_is_for_people(tmp_path):
    save_multipliers(tmp_path / "m.json", ["demand_1", "réserve"], [21.5, 0.0])
    assert json.loads((tmp_path / "m.json").read_text(encoding="utf-8")) == {"demand_1": 21.5, "réserve": 0.0}
    assert "réserve" in (tmp_path / "m.json").read_text(encoding="utf-8")


def test_the_order_is_the_instance_s():
    P = HardFamily([0.25, 0.75])
    first, second = P.row_names
    assert for_instance({second: 2.0, first: 1.0}, P).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=f"the rows {second} have no multiplier"):
        for_instance({first: 1.0}, P)
    with pytest.raises(ValueError, match="the rows other have a multiplier but are no coupling rows here"):
        for_instance({first: 1.0, second: 2.0, "other": 3.0}, P)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.txt", b"", "ends in no known format; multipliers are saved as .json, .npz, .safetensors"),
        ("m.json", b"{", "is no JSON file"),
        ("m.json", b"\xff\xfe", "is no JSON file"),
        ("m.json", b"[1, 2]", "must hold an object of row names and numbers"),
        ("m.json", b"{}", "must hold an object of row names and numbers"),
        ("m.json", b'{"a": "1"}', "the multiplier of row a is '1'; it must be a finite number"),
        ("m.json", b'{"a": NaN}', "the multiplier of row a is nan"),
        ("m.json", b'{"a": true}', "the multiplier of row a is True"),
        ("m.npz", b"nothing", "is no archive with the arrays rows and multipliers"),
        ("m.npz", b"", "is no archive with the arrays rows and multipliers"),
        ("m.safetensors", b"nothing", "is no .safetensors file"),
    ],
)
def test_what_is_no_such_file_is_told(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        load_multipliers(tmp_path / name)


def test_arrays_that_do_not_fit(tmp_path):
    np.savez(tmp_path / "m.npz", rows=np.array(["a", "b"]), multipliers=np.ones(3))
    with pytest.raises(ValueError, match="holds 2 row names and multipliers of shape"):
        load_multipliers(tmp_path / "m.npz")
    np.savez(tmp_path / "m.npz", rows=np.array(["a", "b"]))
    with pytest.raises(ValueError, match="is no archive with the arrays rows and multipliers"):
        load_multipliers(tmp_path / "m.npz")
    with pytest.raises(ValueError, match="2 row names, each once, need as many multipliers"):
        save_multipliers(tmp_path / "m.npz", ["a", "a"], [1.0, 2.0])
