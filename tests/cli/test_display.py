"""What `upheld check` says while it measures."""

from __future__ import annotations

from pathlib import Path

from upheld.claims import Experiment, Measurement, Plan, Preparation, Result, Scale
from upheld.claims.preparation import lacking
from upheld.cli.display import Display


def train(folder: Path, seed: int) -> None:
    (folder / "model").write_text(str(seed))


# In the name of a package that is there, since a recipe is kept by the fingerprint of its method.
MODEL = Preparation("bandits.model", train, timeout_s=60)
CORPUS = Preparation("bandits.corpus", train, timeout_s=60)


def measure(trial):
    yield Measurement("ours", "error", 0.0)


def planned(prepare) -> Plan:
    experiment = Experiment(
        "bandits.toy", measure, {Scale.QUICK: [{}]}, {Scale.QUICK: 2}, {Scale.QUICK: 60}, prepare=prepare
    )
    return Plan(Scale.QUICK, tuple((experiment, trial) for trial in experiment.trials(Scale.QUICK)), 0, 0)


def said(capsys) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_what_has_to_be_made_first_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("UPHELD_CACHE", str(tmp_path))
    plan = planned(lambda trial: [MODEL(seed=trial.seed), CORPUS(seed=0)])
    with Display(plan):
        pass
    assert said(capsys) == [
        "quick scale: 2 trials to measure",
        "preparing first, once and for all runs: bandits.model (2 of them), bandits.corpus",
    ]
    for recipe in lacking(plan.pending):
        recipe.folder()
    with Display(plan):
        pass
    assert said(capsys) == ["quick scale: 2 trials to measure"]


def test_a_trial_that_cannot_say_what_it_needs_is_no_error_here(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("UPHELD_CACHE", str(tmp_path))
    plan = planned(lambda trial: [MODEL(seed=trial.seed)] if trial.seed else 1 / 0)
    with Display(plan) as display:
        display.show(Result(plan.pending[0][1], "failed", reason="what to prepare cannot be told"))
    assert said(capsys)[1] == "preparing first, once and for all runs: bandits.model"
