"""Whoever has seen one method's package knows all of them."""

from __future__ import annotations

import importlib
import inspect
import pickle
from collections import Counter
from pathlib import Path

import pytest

from upheld.catalog import METHODS, Method
from upheld.claims import Claim, Experiment, Scale

ROOMS = ("rivals", "data", "claims", "plots", "command")  # each a module, or a package where it is large
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


def experiments(method: Method) -> list[Experiment]:
    return list(dict.fromkeys(claim.experiment for claim in method.claims()))


@every_method
def test_it_has_every_room(method):
    folder = Path(method.module().__file__).parent
    assert (folder / "__init__.py").is_file()
    assert [
        room for room in ROOMS if not any(folder.glob(f"{room}.py")) and not any(folder.glob(f"{room}/__init__.py"))
    ] == []
    named = {path.name for path in folder.rglob("*.py")}
    assert not named & {"utils.py", "common.py", "helpers.py"}


@every_method
def test_it_says_what_it_does(method):
    doc = inspect.getdoc(method.module()) or ""
    assert ">>>" in doc, "an example"
    assert method.module().__all__, "public names"
    assert all((method.title, method.field, method.summary, method.paper))
    assert "\n" not in method.summary


@every_method
def test_every_module_says_what_stands_in_it(method):
    folder = Path(method.module().__file__).parent
    for path in folder.rglob("*.py"):
        module = ".".join(("upheld", method.name, *path.relative_to(folder).with_suffix("").parts))
        assert inspect.getdoc(importlib.import_module(module.removesuffix(".__init__"))), module


@every_method
def test_the_algorithm_knows_nothing_of_claims_files_and_plots(method):
    """Only the rooms that are about them do."""
    folder = Path(method.module().__file__).parent
    for path in folder.glob("*.py"):
        if path.stem in (*ROOMS, "__init__"):
            continue
        text = path.read_text()
        assert "upheld.claims" not in text, path.name
        assert "matplotlib" not in text, path.name
        assert "import typer" not in text, path.name


@every_method
def test_claims_bear_its_name_and_no_name_twice(method):
    claims = method.claims()
    assert claims
    assert [claim.id for claim in claims if not claim.id.startswith(f"{method.name}.")] == []
    assert [name for name, count in Counter(claim.id for claim in claims).items() if count > 1] == []
    assert [one.name for one in experiments(method) if not one.name.startswith(f"{method.name}.")] == []
    assert [name for name, count in Counter(one.name for one in experiments(method)).items() if count > 1] == []


@every_method
def test_claims_can_be_printed(method):
    for claim in method.claims():
        assert isinstance(claim, Claim)
        assert claim.statement
        assert claim.rule.words()
        assert "<" not in repr(claim.rule), f"the rule of {claim.id} does not print: a change of it would not be seen"
        assert claim.reported is None or claim.reported, claim.id


@every_method
def test_every_experiment_has_a_smoke_and_a_quick_scale_or_says_from_where_on(method):
    """Scales are filled from one on: what is measured at quick scale is measured at every larger one."""
    for experiment in experiments(method):
        present = [scale for scale in Scale if experiment.conditions.get(scale)]
        assert present, experiment.name
        assert present == list(Scale)[list(Scale).index(present[0]) :], experiment.name
        if Scale.QUICK in present:
            assert Scale.SMOKE in present, f"{experiment.name} runs at quick scale, but no smoke run shows that it can"


@every_method
def test_workers_can_import_what_they_run(method):
    for experiment in experiments(method):
        measure = experiment.measure
        assert pickle.loads(pickle.dumps(measure)) is measure, f"{experiment.name}: measure is no module-level function"
        assert measure.__module__.startswith(f"upheld.{method.name}")
        trial = next(trial for scale in Scale for trial in experiment.trials(scale))
        for recipe in experiment.prepare(trial):
            assert pickle.loads(pickle.dumps(recipe)) == recipe
            assert recipe.preparation.name.startswith(f"{method.name}.")


@every_method
def test_pictures_belong_to_claims(method):
    assert set(method.pictures()) <= {claim.id for claim in method.claims()}


@every_method
def test_the_command_has_what_the_verbs_ask_for(method):
    command = method.module("command")
    assert inspect.getdoc(command.run)
    assert command.EXAMPLE.startswith(f"upheld run {method.name}")
    assert "{file}" in command.EXAMPLE
    assert list(inspect.signature(command.write_data).parameters) == ["out"]


def test_names_are_unique():
    assert len({method.name for method in METHODS}) == len(METHODS)
