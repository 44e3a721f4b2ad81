"""The experiments with language models, small, at an endpoint whose one model plays everyone by a script."""

from __future__ import annotations

import json
import re
from functools import partial

import pandas as pd
import pytest
from context_samples import hashed
from scripted_agent import DONE, Messages, acting, calling, is_base, is_meta, results
from servers import Reply, chat

from upheld.claims import Measurements, NotRun, Outcome, Scale, Trial
from upheld.context import dspy_rival, package_ace_rival
from upheld.context.claims import (
    CLAIMS,
    ENDPOINT,
    ENDPOINT_STREAMS,
    ENDPOINT_TRANSFER,
    ORIGINAL,
    endpoint,
    endpoint_streams,
)
from upheld.context.claims.endpoint_transfer import CONSUMERS, LEARNERS
from upheld.context.claims.originals import DATA, ORIGINALS, original

PACKAGED = {"context.endpoint-dspy": dspy_rival, "context.endpoint-ace-package": package_ace_rival}
"""Claims on rivals that run where their packages are installed."""
ALL = "def get_context(question, *, root, embed):\n    return open(root + '/context/cases.md').read()\n"


def everyone(messages: Messages) -> Reply:
    """Agents and rivals write cases down word for word, and the consumer answers with the label of the nearest line it is shown."""
    if is_meta(messages):
        folder = messages[1]["content"].partition("your new skill")[0].rstrip(":/ ").rpartition(" ")[2]
        text = "# S\n\n## Skill Overview\n\nWrite all cases down.\n"
        return DONE if results(messages) else calling(("write", {"path": f"{folder}/SKILL.md", "text": text}))
    if is_base(messages):
        return learning(results(messages))
    if messages[0]["content"].startswith("You keep a playbook"):
        return chat(
            json.dumps(
                {"bullets": [{"section": b, "text": a} for a, b in cases(messages[1]["content"], "right answer")]}
            )
        )
    if messages[0]["content"].startswith("You keep a cheatsheet"):
        memory = messages[1]["content"].partition("so far:\n")[2].partition("\n\nThe task:\n")
        question, _, rest = memory[2].partition("\n\n")
        return chat(f"{memory[0].replace('(empty)', '')}\n- {rest.rpartition(': ')[2]}: {question}")
    if messages[-1]["content"].startswith("I provided an assistant"):
        found = re.findall(r"## Inputs\n(.*?)\n.*?right answer is (\w+)", messages[-1]["content"], re.DOTALL)
        return chat("```\n" + "\n".join(f"- {label}: {text}" for text, label in found) + "\n```")
    if "ReflectorOutput" in messages[0]["content"]:
        return chat('{"reasoning": "r", "correct_approach": "c", "key_insight": "k"}')
    if "SkillManagerOutput" in messages[0]["content"]:
        question, _, rest = messages[0]["content"].rpartition("question: ")[2].partition("\ncontext: ")
        label = rest.partition("ground_truth: ")[2].partition("\n")[0]
        added = {"type": "ADD", "section": "cases", "content": f"- {label}: {question}"}
        return chat(json.dumps({"update": {"reasoning": "r", "operations": [added]}}))
    if messages[0]["content"].startswith("Your input fields are"):
        return shown_cases(messages)
    return consumed(messages[-1]["content"])


def learning(said: list[str]) -> Reply:
    """A base agent's turns: read, keep what is there, write, end."""
    if not said:
        return calling(("read", {"path": "data/train.json"}), ("read", {"path": "context/cases.md"}))
    if len(said) > 2:
        return DONE
    told = [(one["question"], one["target"]) for one in json.loads(said[0])["detailed_results"]]
    lines = [f"- {label}: {text}" for text, label in told] + (
        [] if said[1].startswith("error") else said[1].splitlines()
    )
    return calling(
        ("write", {"path": "context/cases.md", "text": "\n".join(lines)}),
        ("write", {"path": "interfaces/get_context.py", "text": ALL}),
    )


def cases(text: str, name: str) -> list[tuple[str, str]]:
    rows = [json.loads(line) for line in text.splitlines() if line.startswith('{"question"')]
    return [(row["question"], row[name]) for row in rows]


def shown_cases(messages: Messages) -> Reply:
    """DSPy's chat: the label of the demonstration that is nearest, in the package's marks."""
    turns = [one["content"] for one in messages[1:]]
    asked = set(turns[-1].split())
    near = max(range(0, len(turns) - 1, 2), key=lambda place: len(asked & set(turns[place].split())), default=None)
    label = "none" if near is None else turns[near + 1].split("## ]]")[1].split("[[")[0].strip()
    return chat(f"[[ ## label ## ]]\n{label}\n\n[[ ## completed ## ]]")


def consumed(prompt: str) -> Reply:
    context, _, question = prompt.rpartition("Text: ")
    asked = set(question.removesuffix("\nLabel:").split())
    shown = [re.sub(r"^\s*cases-\d+\tcases\t\"?", "", line) for line in context.splitlines()]
    lines = [line[2:].partition(": ") for line in shown if line.startswith("- ")]
    best = max(lines, key=lambda line: len(asked & set(line[2].split())), default=("none", "", ""))
    return chat(f"<answer>{best[0]}</answer>")


@pytest.fixture
def models(monkeypatch):
    monkeypatch.setattr(endpoint, "vectors", lambda: hashed)
    monkeypatch.setattr(endpoint_streams, "vectors", lambda: hashed)
    with acting(everyone) as server:
        monkeypatch.setenv(endpoint.CONSUMER, f"openai:small@{server.url}")
        monkeypatch.setenv(endpoint.AGENTS, f"openai:large@{server.url}")
        yield server


def measured(experiment, trials) -> pd.DataFrame:
    return pd.DataFrame([
        {**trial.condition, "seed": trial.seed, "item": one.item, "method": one.method, "metric": one.metric, "value": one.value}
        for trial in trials for one in experiment.measure(trial)
    ])  # fmt: skip


def judged(experiment, frame: pd.DataFrame) -> None:
    """Every claim of an experiment reads what was measured."""
    claims = [claim for claim in CLAIMS if claim.experiment is experiment]
    assert claims
    for claim in claims:
        judgement = claim.rule.judge(Measurements(frame, experiment.units))
        rival = PACKAGED.get(claim.id)
        assert bool(judgement.findings) == (rival is None or rival.installed()), claim.id


@pytest.mark.parametrize(("claim", "rival"), PACKAGED.items())
def test_a_rival_whose_package_is_missing_is_not_run_and_says_what_to_install(claim, rival, monkeypatch):
    monkeypatch.setattr(rival, "installed", lambda: False)
    assert (
        [*endpoint.raced_with_dspy(None)] == []
        if rival is dspy_rival
        else [*endpoint.raced_with_package_ace(None, "")] == []
    )
    frame = pd.DataFrame([{"seed": 0, "item": "", "method": "MCE", "metric": "score", "value": 0.5}])
    judgement = next(one for one in CLAIMS if one.id == claim).rule.judge(Measurements(frame))
    assert judgement.outcome is Outcome.NOT_RUN
    assert judgement.note.startswith(
        ("DSPy KNNFewShot needs the package dspy; pip", "ace-framework needs the package ace-framework; pip")
    )


def test_offline_everyone_is_measured_with_the_models_that_are_named(models, sandbox):
    frame = measured(ENDPOINT, ENDPOINT.trials(Scale.SMOKE))
    judged(ENDPOINT, frame)
    value = frame.set_index(["method", "metric"])["value"]
    assert value["base", "score"] == 0
    for name in ("MCE", "ACE", "GEPA", "many-shot"):
        assert value[name, "score"] > 0, name
    for name in ("MCE", "ACE", "GEPA"):
        assert value[name, "tokens written by agents"] > 0
    if package_ace_rival.installed():
        assert value["ace-framework", "score"] > 0
        assert value["ace-framework", "tokens written by agents"] > 0
        assert (
            value["ace-framework", "rollouts"]
            > value["DSPy KNNFewShot" if dspy_rival.installed() else "base", "rollouts"]
        )
    if dspy_rival.installed():
        assert value["DSPy KNNFewShot", "score"] > 0
        assert value["DSPy KNNFewShot", "rollouts"] == 3 * 6  # one to five cases, each on the validation set
        assert 0 < value["DSPy KNNFewShot", "tokens"] < value["many-shot", "tokens"] * 2
    asked = {
        model: {one.body["messages"][0]["content"] for one in models.seen if one.body["model"] == model}
        for model in (one.body["model"] for one in models.seen)
    }
    assert set(asked) == {"small", "large"}
    assert all("<answer>" in one or one.startswith("Your input fields are") for one in asked["small"])


def test_online_everyone_is_measured(models, sandbox):
    frame = measured(ENDPOINT_STREAMS, ENDPOINT_STREAMS.trials(Scale.SMOKE))
    judged(ENDPOINT_STREAMS, frame)
    score = frame[frame["metric"] == "score"].set_index("method")["value"]
    assert score["base"] == 0
    assert (score.drop("base") > 0).all()
    assert set(score.index) == {
        "MCE",
        "knn few-shot",
        "ACE, wrong rollouts",
        "ACE, all rollouts",
        "Dynamic Cheatsheet",
        "base",
    }


@pytest.mark.parametrize("experiment", [ENDPOINT, ENDPOINT_STREAMS, ORIGINAL], ids=lambda one: one.name)
def test_without_models_it_is_not_run_and_says_what_to_set(experiment, monkeypatch):
    for name in (endpoint.CONSUMER, endpoint.AGENTS):
        monkeypatch.delenv(name, raising=False)
        with pytest.raises(
            NotRun, match="set UPHELD_CONTEXT_CONSUMER and UPHELD_CONTEXT_AGENTS to openai:MODEL@URL each"
        ):
            next(iter(experiment.measure(next(experiment.trials(Scale.FULL)))))
        monkeypatch.setenv(name, "openai:m@http://127.0.0.1:9/v1")


def test_contexts_carry_over_among_a_reader_and_three_models(models, monkeypatch):
    names = [f"openai:{name}@{models.url}" for name in ("small", "medium", "large")]
    condition = {"domain": "policy", "length": "own", "pool": 30, "iterations": 2}
    trial = Trial(ENDPOINT_TRANSFER.name, condition, 0, Scale.STANDARD)
    for few in ("", names[0], f"{names[0]} {names[0]} {names[1]}"):
        monkeypatch.setenv(CONSUMERS, few)
        with pytest.raises(NotRun, match="set UPHELD_CONTEXT_CONSUMERS to three different openai:MODEL@URL"):
            measured(ENDPOINT_TRANSFER, [trial])
    monkeypatch.setenv(CONSUMERS, " ".join(names))
    frame = measured(ENDPOINT_TRANSFER, [trial])
    judged(ENDPOINT_TRANSFER, frame)
    assert {one.body["model"] for one in models.seen} == {"small", "medium", "large"}
    gains = frame[frame["metric"].str.startswith("gain")].set_index(["method", "item"])
    assert set(gains.index) == {(f"learned with {a}", b) for a in LEARNERS for b in LEARNERS}  # both ways, each pair
    assert all(
        (row["metric"] == "gain, same reader") == (at[0] == f"learned with {at[1]}") for at, row in gains.iterrows()
    )
    without = frame[frame["metric"] == "score without a context"].set_index("method")["value"]
    assert (without.drop("embedding") == 0).all()  # the script knows nothing that it is not shown
    assert (gains.xs("model 2", level="item")["value"] > 0).all()


def test_where_programs_cannot_be_confined_it_is_not_run(models, monkeypatch):
    bare = partial(endpoint.Sandbox, without=("namespaces", "landlock", "seccomp"))
    monkeypatch.setattr(endpoint, "Sandbox", bare)
    with pytest.raises(NotRun, match="programs written by a model are not run here"):
        measured(ENDPOINT, ENDPOINT.trials(Scale.SMOKE))
    assert models.seen == []


# -- the paper's data

ROWS = {
    "finer": {"question": "What is best tag for {n}?", "target": "Debt{n}", "context": ""},
    "uspto": {"question": "Product {n}", "target": "CCO.CC(=O)O"},
    "symptom_diagnosis": {"question": "pain {n}", "answer": "migraine"},
    "crime_prediction": {"question": "事实{n}", "answer": "[罪名]诈骗；盗窃<eoa>"},
    "aegis2": {"prompt": "say {n}", "prompt_label": "unsafe", "violated_categories": ""},
}


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The five domains, half of them in a folder `data` of their own; the first two test questions stand in the other files too."""
    for place, (name, row) in enumerate(ROWS.items()):
        home = tmp_path / name / ("data" if place % 2 else "")
        home.mkdir(parents=True)
        for part, first, n in (("train", 0, 12), ("val", 10, 6), ("test", 10, 8)):
            rows = [{key: value.replace("{n}", str(first + i)) for key, value in row.items()} for i in range(n)]
            (home / f"{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setenv(DATA, str(tmp_path))
    return tmp_path


def test_the_paper_s_data_are_read_as_they_are_and_test_questions_are_held_out(data):
    assert set(ROWS) == set(ORIGINALS)
    tasks = {name: original(name, 0) for name in ORIGINALS}
    for task, (train, val, test) in tasks.values():
        assert [len(train), len(val), len(test)] == [10, 0, 8]
        assert len(task.samples) == 18
    assert tasks["crime_prediction"][0].labels() == ("盗窃", "诈骗")
    assert tasks["uspto"][0].scoring(["CC(=O)O.CCO", "CCO"], ["CCO.CC(=O)O"] * 2) == 0.5
    assert original("finer", 1)[1][0] != tasks["finer"][1][0]  # another seed draws another order


def test_data_that_are_missing_are_named(data, monkeypatch):
    (data / "aegis2/val.jsonl").unlink()
    with pytest.raises(NotRun, match=r"UPHELD_CONTEXT_DATA holds no aegis2/val\.jsonl"):
        original("aegis2", 0)
    monkeypatch.delenv(DATA)
    with pytest.raises(NotRun, match="set UPHELD_CONTEXT_DATA to a folder with finer, uspto"):
        original("finer", 0)


def test_a_trial_on_the_paper_s_data_has_their_split(data, models, tmp_path):
    trial = next(ORIGINAL.trials(Scale.FULL))
    one = endpoint.raced(trial, "openai:small@" + models.url, tmp_path)
    assert [len(part) for part in (one.task.samples, one.val, one.test)] == [10, 0, 8]
    assert (one.budget, one.iterations) == (80_000, 5)
