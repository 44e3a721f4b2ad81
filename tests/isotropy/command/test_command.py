"""``upheld run isotropy`` as a user meets it: what it prints and writes, and what it says of bad input."""

from __future__ import annotations

import csv
import errno
import gzip
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scripted_model import ScriptedModel
from tiny_models import tiny_bert, tiny_nli, word_bert

from installed import Command, refused
from upheld.isotropy import SemanticIsotropy
from upheld.isotropy.command.options import Options
from upheld.isotropy.data import bioworld, from_bioworld
from upheld.isotropy.data.files import read_responses, write_responses
from upheld.isotropy.result import IsotropyWarning
from upheld.llm import Answer, CachedModel

RUN = ("run", "isotropy")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def persons():
    return from_bioworld(bioworld.generate(np.random.default_rng(0), persons=12, answers=4, mode="independent"))


@pytest.fixture
def answers(inside, tmp_path, persons, monkeypatch):
    """The command in this process, with a file of answers; vectors are kept in its folder."""
    monkeypatch.setenv("UPHELD_CACHE", str(tmp_path / "cache"))
    write_responses(tmp_path / "answers.jsonl", persons)
    return inside


def by_id(path: Path) -> dict[str, dict]:
    return {record["id"]: record for record in map(json.loads, path.read_text().splitlines())}


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"cache"}


def test_tables_and_files_tell_what_the_scorer_says(answers, tmp_path, persons, encoder):
    done = answers(*RUN, "answers.jsonl", "--embedder", encoder, "--out", "scores.jsonl", "--html", "report.html", "--pictures", "pictures",
                   "--rivals", "lexical,jaccard,luq", "--top", 5)  # fmt: skip
    assert done.returncode == 0, done.stderr
    scorer = SemanticIsotropy(str(encoder))
    expected = {item.id: scorer.explain(item.responses) for item in persons}
    records = by_id(tmp_path / "scores.jsonl")
    assert list(records) == [item.id for item in persons]  # in the order of the file
    for id_, result in expected.items():
        assert records[id_]["score"] == pytest.approx(result.score)
        assert records[id_]["se"] == pytest.approx(result.se)
        assert records[id_]["medoid"] == result.medoid
        np.testing.assert_allclose(records[id_]["cosines"], result.cosines, atol=1e-6)
        assert set(records[id_]["rivals"]) == {"lexical", "jaccard-degree", "jaccard-eccentricity", "jaccard-eigv"}

    worst = sorted(expected, key=lambda id_: -expected[id_].score)[:5]
    rows = [line for line in done.stdout.splitlines() if re.match(r"(≈|  ) *\d  \w", line)][:5]
    assert [next(id_ for id_ in worst if id_ in row) for row in rows] == worst
    assert f"{expected[worst[0]].score:.3f} ± {expected[worst[0]].se:.3f}" in rows[0]
    assert "a falsehood that all responses share scores low" in done.stdout
    assert "probability of hallucination" not in done.stdout
    assert "Not run: LUQ: no NLI model." in done.stdout
    assert "\x1b" not in done.stdout

    page = (tmp_path / "report.html").read_text()
    assert all(id_ in page for id_ in worst)
    assert "upheld run isotropy answers.jsonl" in page
    assert {path.stem for path in (tmp_path / "pictures").iterdir()} == {
        "score-against-factuality",
        "score-by-number",
        "maps",
    }
    assert files(tmp_path) == {"answers.jsonl", "scores.jsonl", "report.html", "pictures"}


def test_labels_judge_every_signal(answers, encoder, persons, tmp_path):
    wrong = [type(item)(item.id, item.prompt, item.responses, factuality=item.factuality) for item in persons]
    write_responses(tmp_path / "answers.jsonl", wrong)
    done = answers(*RUN, "answers.jsonl", "--embedder", encoder, "--rivals", "lexical,cosine", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout, parse_constant=pytest.fail)
    judged = document["judged"]
    assert (judged["labelled"], judged["used"]) == (12, 12)
    assert judged["signals"][0]["name"] == "isotropy"
    assert {said["name"] for said in judged["signals"]} == {"isotropy", "lexical", "cosine"}
    for one in judged["signals"]:
        estimate, low, high = one["spearman"]
        assert low <= estimate <= high
        warned = [sentence for sentence in judged["sentences"] if one["title"] in sentence and "wrong way" in sentence]
        assert len(warned) == (estimate > 0)
        assert all(("may be chance" in sentence) == (low <= 0) for sentence in warned)
    _, low, high = judged["signals"][0]["spearman"]
    assert any("nothing certain" in sentence for sentence in judged["sentences"]) == (
        low <= 0 <= high and not warned_of(judged)
    )
    assert any("less of the answers is true" in sentence for sentence in judged["sentences"]) == (high < 0)


def warned_of(judged) -> bool:
    return any("(the score) points the wrong way" in sentence for sentence in judged["sentences"])


def test_signals_that_never_vary_and_labels_that_never_vary_are_called_so(answers, encoder, persons, tmp_path):
    done = answers(*RUN, "answers.jsonl", "--embedder", encoder, "--as-published", "--json")
    judged = json.loads(done.stdout)["judged"]
    title = "Kernel language entropy, as published by the repository"
    assert f"{title} is the same for all of them, so it tells nothing." in judged["sentences"]
    assert not any("explains more" in sentence and title in sentence for sentence in judged["sentences"])
    write_responses(
        tmp_path / "answers.jsonl", [type(item)(item.id, "", item.responses, factuality=1.0) for item in persons]
    )
    judged = json.loads(answers(*RUN, "answers.jsonl", "--embedder", encoder, "--json").stdout)["judged"]
    assert judged["sentences"] == ["All 12 labelled prompts have the same factuality, so there is nothing to foretell."]
    write_responses(tmp_path / "answers.jsonl", persons[:3])
    judged = json.loads(answers(*RUN, "answers.jsonl", "--embedder", encoder, "--json").stdout)["judged"]
    assert judged["sentences"] == ["3 labelled prompts tell nothing about a signal; label at least 5."]


def test_an_anti_correlated_score_is_called_so(answers, encoder, persons, tmp_path):
    scorer = SemanticIsotropy(str(encoder))
    upside_down = [
        type(item)(item.id, item.prompt, item.responses, factuality=scorer.explain(item.responses).score)
        for item in persons
    ]
    write_responses(tmp_path / "answers.jsonl", upside_down)
    done = answers(*RUN, "answers.jsonl", "--embedder", encoder)
    sentence = "Semantic isotropy (the score) points the wrong way here: where it is high, answers are MORE factual"
    assert sentence in done.stdout
    assert "(rank correlation +1.00 [+1.00, +1.00]); its R² does not show that." in done.stdout


def test_every_format_gives_the_same_scores(answers, tmp_path, persons, encoder):
    with (tmp_path / "answers.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "prompt", "response", "factuality"])
        for item in persons:
            table.writerows(
                [item.id, item.prompt, text, label]
                for text, label in zip(item.responses, item.factualities, strict=True)
            )
    for item in persons:
        folder = tmp_path / "folder" / item.id
        folder.mkdir(parents=True)
        for number, text in enumerate(item.responses):
            (folder / f"{number}.txt").write_text(text)
    segments = [
        {
            "entity": item.id,
            "responses": [{"response": text, "statements": [{"class": 1}, {"class": 0}]} for text in item.responses],
        }
        for item in persons
    ]
    (tmp_path / "segments.jsonl").write_text("".join(json.dumps(record) + "\n" for record in segments))
    with gzip.open(tmp_path / "answers.gz", "wt") as file:
        file.write((tmp_path / "answers.jsonl").read_text())
    scores = []
    for name in ("answers.jsonl", "answers.csv", "folder", "segments.jsonl", "answers.gz"):
        done = answers(*RUN, name, "--embedder", encoder, "--out", "scores.jsonl")
        assert done.returncode == 0, done.stderr
        scores.append({id_: record["score"] for id_, record in by_id(tmp_path / "scores.jsonl").items()})
    assert all(found == scores[0] for found in scores[1:])


def test_what_was_embedded_is_not_embedded_again(answers, tmp_path, encoder, monkeypatch):
    first = answers(*RUN, "answers.jsonl", "--embedder", encoder, "--json")
    from upheld.llm.encoder import Encoder

    monkeypatch.setattr(Encoder, "embed", lambda *_: pytest.fail("it embeds again"))
    assert answers(*RUN, "answers.jsonl", "--embedder", encoder, "--json").stdout == first.stdout
    with pytest.raises(pytest.fail.Exception, match="it embeds again"):
        answers(*RUN, "answers.jsonl", "--embedder", encoder, "--json", "--no-cache")


def test_windows_are_the_same_with_and_without_the_cache(answers, tmp_path, encoder):
    """An answer of more bytes than the tiny encoder's 300: a cache that forgot its special tokens would cut other windows."""
    long = "This sentence is about sixty bytes long, as you can count. " * 9
    (tmp_path / "long.jsonl").write_text(
        json.dumps({"id": "a", "prompt": "p", "responses": [long, long[::-1], "short one"]})
    )
    scores = []
    for option in ("--cache", "--no-cache"):
        done = answers(*RUN, "long.jsonl", "--embedder", encoder, "--json", option)
        scores.append(json.loads(done.stdout)["worst"][0]["score"])
    assert scores[0] == pytest.approx(scores[1], abs=1e-9)


def test_a_model_of_inference_in_a_folder_is_asked_of_every_sentence_and_every_answer(answers, tmp_path, encoder):
    """Its weights are random; LUQ and semantic entropy are computed here from what transformers says of each pair by itself."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = tiny_nli(tmp_path / "nli")
    groups = {"a": ["It rains. It is cold.", "Dry and hot!", "It rains."], "b": ["Yes.", "Yes.", "No, never."]}
    records = [{"id": id_, "prompt": "p", "responses": texts} for id_, texts in groups.items()]
    (tmp_path / "two.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.warns(IsotropyWarning, match="identical"):
        done = answers(*RUN, "two.jsonl", "--embedder", encoder, "--nli", folder, "--as-published",
                       "--rivals", "nli,semantic-entropy,kle,luq,luq-pair,selfcheck", "--out", "scores.jsonl", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["not_run"] == {}
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)

    def judged(premise: str, hypothesis: str) -> tuple[float, float, float]:
        """Of entailment, neutral and contradiction."""
        if premise == hypothesis:
            return 1.0, 0.0, 0.0
        with torch.inference_mode():
            return tuple(
                model(**tokenizer(premise, hypothesis, return_tensors="pt")).logits.double().softmax(-1)[0].tolist()
            )

    found = by_id(tmp_path / "scores.jsonl")
    for id_, texts in groups.items():
        doubts, homes = [], []
        for i, text in enumerate(texts):
            pairs = [
                judged(other, one)
                for one in re.findall(r"\w[^.!]+[.!]", text)
                for j, other in enumerate(texts)
                if j != i
            ]
            doubts.append(1 - np.mean([yes / (yes + no) for yes, _, no in pairs]))
            same = (j for j in range(i) if homes[j] == j and max(judged(texts[j], text)) == judged(texts[j], text)[0]
                    and max(judged(text, texts[j])) == judged(text, texts[j])[0])  # fmt: skip
            homes.append(next(same, i))
        shares = np.unique(homes, return_counts=True)[1] / len(texts)
        said = found[id_]["rivals"]
        assert said["luq"] == pytest.approx(np.mean(doubts), abs=1e-5)
        assert said["selfcheck-nli"] == pytest.approx(doubts[0], abs=1e-5)
        assert said["semantic-entropy"] == pytest.approx(-np.sum(shares * np.log(shares)), abs=1e-9)
        assert {
            "nli-degree",
            "nli-eccentricity",
            "nli-eigv",
            "kle-heat",
            "kle-matern",
            "luq-pair",
            "published-selfcheck",
        } <= set(said)
    assert 0 < found["b"]["rivals"]["semantic-entropy"] < np.log(3)  # two of its answers are the same


def test_different_numbers_of_answers(answers, tmp_path, encoder):
    records = [{"id": f"q{n}", "prompt": "p", "responses": [f"answer {k} to {n}" for k in range(n)]} for n in (3, 5, 4)]
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    sentence = r"the prompts have 3 \('q3'\) to 5 \('q5'\) answers, and scores of different numbers do not compare: 3 of each are used"
    with pytest.warns(IsotropyWarning, match=sentence):
        done = answers(*RUN, "mixed.jsonl", "--embedder", encoder, "--json", "--seed", 3)
    document = json.loads(done.stdout)
    assert [row["n"] for row in document["worst"]] == [3, 3, 3]
    scorer = SemanticIsotropy(str(encoder), n_samples=3, random_state=3)
    expected = {record["id"]: scorer.explain(record["responses"]).score for record in records}
    assert {row["id"]: row["score"] for row in document["worst"]} == pytest.approx(expected)

    with pytest.warns(IsotropyWarning, match="compare means of the unbiased purity"):
        done = answers(*RUN, "mixed.jsonl", "--embedder", encoder, "--allow-mixed-n")
    assert "unbiased" in done.stdout
    assert refused(answers(*RUN, "mixed.jsonl", "--embedder", encoder, "--n", 4)) == (
        "'q3' has 3 answers, fewer than --n 4; take --n 3, sample more, or add --allow-mixed-n"
    )


def test_answers_from_a_cache_are_remarked_on(answers, tmp_path, encoder):
    (tmp_path / "same.jsonl").write_text(json.dumps({"id": "q", "prompt": "p", "responses": ["as before"] * 3}))
    with pytest.warns(
        IsotropyWarning, match="1 of 1 prompts have answers that are identical byte for byte, 'q' first: a cache"
    ):
        done = answers(*RUN, "same.jsonl", "--embedder", encoder, "--json")
    [row] = json.loads(done.stdout)["worst"]
    assert row["score"] == pytest.approx(0, abs=1e-9)
    assert row["odd"] is None


def test_a_cache_that_cannot_be_used_says_how_to_do_without(answers, tmp_path, encoder):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "isotropy.sqlite").write_text("no database" * 100)
    said = refused(answers(*RUN, "answers.jsonl", "--embedder", encoder))
    assert said.endswith("(UPHELD_CACHE names its folder, --no-cache does without)")
    assert answers(*RUN, "answers.jsonl", "--embedder", encoder, "--no-cache").returncode == 0


def test_a_page_that_cannot_be_written_is_called_by_its_option(answers, tmp_path, encoder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("upheld.report.writing.os.fsync", full)
    said = refused(answers(*RUN, "answers.jsonl", "--embedder", encoder, "--html", "report.html"))
    assert said == "cannot write report.html: No space left on device; name a folder of yours with --html"
    assert files(tmp_path) == {"answers.jsonl"}


def test_letters_that_the_embedder_lacks_are_remarked_on(answers, tmp_path, encoder):
    """Emoji are one unknown token each to a vocabulary of words: any of them scores like any other."""
    records = [
        {"id": "q", "prompt": "p", "responses": ["😀 seen", "🎉 🎉"]},
        {"id": "r", "prompt": "p", "responses": ["seen", "seen seen"]},
    ]
    (tmp_path / "signs.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    words = word_bert(tmp_path / "words")
    with pytest.warns(
        IsotropyWarning, match=r"lacks over 10 % of the tokens of the answers of 1 of 2 prompts, up to 75 %"
    ):
        done = answers(*RUN, "signs.jsonl", "--embedder", words, "--out", "scores.jsonl")
    assert done.returncode == 0, done.stderr
    assert {id_: record["unknown_share"] for id_, record in by_id(tmp_path / "scores.jsonl").items()} == {
        "q": 0.75,
        "r": 0,
    }


def test_the_price_list_is_explained_whole(inside):
    assert '{"MODEL": [per million' in " ".join(inside(*RUN, "--help").stdout.replace("│", " ").split())


def test_a_calibration_is_saved_and_used(answers, tmp_path, encoder):
    def items(prefix, seed, persons):
        people = from_bioworld(
            bioworld.generate(np.random.default_rng(seed), persons=persons, answers=3, mode="independent")
        )
        return [
            type(item)(f"{prefix}{k}", item.prompt, item.responses, factuality=item.factuality)
            for k, item in enumerate(people)
        ]

    write_responses(tmp_path / "labelled.jsonl", items("old", 1, 24))
    done = answers(*RUN, "labelled.jsonl", "--embedder", encoder, "--save-calibrator", "trust.json")
    assert done.returncode == 0, done.stderr
    assert "wrote trust.json: the calibration, for --calibrate" in done.stdout
    write_responses(tmp_path / "new.jsonl", items("new", 2, 4))
    done = answers(*RUN, "new.jsonl", "--embedder", encoder, "--calibrate", "trust.json", "--json")
    for row in json.loads(done.stdout)["worst"]:
        expected = row["expected_factuality"]
        assert 0 <= expected["low"] <= expected["estimate"] <= expected["high"] <= 1
    done = answers(*RUN, "new.jsonl", "--embedder", encoder, "--calibrate", "trust.json")
    assert "expected" in done.stdout
    assert "took part in the calibration" in refused(
        answers(*RUN, "labelled.jsonl", "--embedder", encoder, "--calibrate", "trust.json")
    )
    assert "such scores cannot be compared" in refused(
        answers(*RUN, "new.jsonl", "--embedder", encoder, "--calibrate", "trust.json", "--n", 2)
    )
    assert "residuals" in refused(
        answers(*RUN, "answers.jsonl", "--embedder", encoder, "--save-calibrator", "few.json")
    )
    assert not (tmp_path / "few.json").exists()


def test_the_line_that_repeats_a_run_repeats_it():
    usual = dict.fromkeys(Options.__dataclass_fields__)
    usual |= {"embedder": "minilm", "long_text": "window", "top": 20, "seed": 0, "cache": True, "allow_mixed_n": False, "json": False,
              "as_published": False}  # fmt: skip
    assert Options(**usual | {"file": Path("my answers.jsonl")}).command == "upheld run isotropy 'my answers.jsonl'"
    given = {"file": Path("a"), "n": 3, "cache": False, "as_published": True, "top": 5, "html": Path("r.html")}
    assert (
        Options(**usual | given).command
        == "upheld run isotropy a --n 3 --as-published --html r.html --top 5 --no-cache"
    )


# -- sampling


def spoken(request):
    """Two of five answers to each prompt agree."""
    prompt, seed = request.messages[-1].content, request.sampling.seed
    return f"<answer>{prompt} {'same words' if seed < 2 else f'other {seed} words {seed * seed}'}</answer>"


@pytest.fixture
def model(monkeypatch):
    """What --model gives in place of a real one."""
    scripted = ScriptedModel(spoken)
    monkeypatch.setattr("upheld.llm.language_model", lambda *_, **__: scripted)
    return scripted


@pytest.fixture
def prompts(answers, tmp_path):
    (tmp_path / "prompts.txt").write_text("Where is Lima?\nWho was Ada?\n")
    return answers


def test_prompts_are_asked_and_everything_is_kept(prompts, tmp_path, encoder, model):
    sampled = (*RUN, "--prompts", "prompts.txt", "--embedder", encoder, "--seed", "0")
    with pytest.warns(IsotropyWarning, match="identical"):
        done = prompts(
            *sampled,
            "--model",
            "embedded",
            "--responses-out",
            "answers.out",
            "--record",
            "record.jsonl",
            "--out",
            "first",
        )
    assert done.returncode == 0, done.stderr
    assert "Asked of the model: 10 answers asked for: 100 tokens read and " in done.stdout
    items = list(read_responses(tmp_path / "answers.out"))
    assert [(item.id, item.prompt, len(item.responses)) for item in items] == [
        ("1", "Where is Lima?", 5),
        ("2", "Who was Ada?", 5),
    ]
    assert items[0].responses[:2] == ("Where is Lima? same words",) * 2

    with pytest.warns(IsotropyWarning):
        again = prompts(*sampled, "--model", "embedded", "--json")
    assert json.loads(again.stdout)["sampling"]["from_earlier_runs"] == 10
    assert len(model.asked) == 10
    with pytest.warns(IsotropyWarning):
        replayed = prompts(*sampled, "--replay", "record.jsonl", "--no-cache", "--out", "second")
    assert replayed.returncode == 0, replayed.stderr
    assert (tmp_path / "first").read_text() == (tmp_path / "second").read_text()
    with pytest.warns(IsotropyWarning):
        from_file = prompts(*RUN, "answers.out", "--embedder", encoder, "--json")
    scores = [{row["id"]: row["score"] for row in json.loads(done.stdout)["worst"]} for done in (again, from_file)]
    assert scores[0] == pytest.approx(scores[1])
    assert "holds no answer of scripted to 'Where is Lima?'" in refused(
        prompts(*sampled, "--replay", "record.jsonl", "--n", 6)
    )


def test_adaptive_sampling_saves_calls(prompts, tmp_path, encoder, model):
    with pytest.warns(IsotropyWarning):
        done = prompts(*RUN, "--prompts", "prompts.txt", "--embedder", encoder, "--model", "embedded", "--adaptive", "0.99", "--n", 3,
                       "--n-max", 9, "--rivals", "lexical", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    saved = document["sampling"]["calls_saved"]
    assert document["sampling"]["verdicts"] == {"below": 2}
    assert saved == 18 - len(model.asked) > 0
    assert f"deciding at 0.99 saved {saved} of 18 calls" in document["sampling"]["sentence"]


def test_answers_cut_off_are_counted(prompts, encoder, monkeypatch):
    cut = ScriptedModel(lambda request: Answer(f"<answer>no end {request.sampling.seed}", "length", "scripted"))
    monkeypatch.setattr("upheld.llm.language_model", lambda *_, **__: cut)
    with pytest.warns(
        IsotropyWarning, match=r"10 of 10 answers lack their closing tag: they were cut off \(raise --max-tokens\)"
    ):
        assert prompts(*RUN, "--prompts", "prompts.txt", "--embedder", encoder, "--model", "embedded").returncode == 0


def test_an_endpoint_is_asked_with_prices(prompts, tmp_path, encoder):
    sys.path.insert(0, str(Path(__file__).parents[2] / "llm"))
    try:
        from servers import counted, serving
    finally:
        sys.path.pop(0)
    (tmp_path / "prices.json").write_text('{"m": [1000000, 2000000]}')
    with serving(counted()) as server, pytest.warns(IsotropyWarning, match="closing tag"):
        done = prompts(*RUN, "--prompts", "prompts.txt", "--embedder", encoder, "--endpoint", server.url, "--model", "m", "--n", 3,
                       "--prices", "prices.json", "--json", "--temperature", "0.9", "--max-tokens", 50)  # fmt: skip
    assert done.returncode == 0, done.stderr
    sampling = json.loads(done.stdout)["sampling"]
    assert (sampling["asked"], sampling["prompt_tokens"], sampling["completion_tokens"]) == (6, 42, 18)
    assert sampling["cost"] == pytest.approx(42 + 36)
    assert sorted(seen.body["seed"] for seen in server.seen) == [0, 0, 1, 1, 2, 2]
    assert {(seen.body["temperature"], seen.body["max_tokens"]) for seen in server.seen} == {(0.9, 50)}


# -- bad input


def line(**fields) -> str:
    return json.dumps({"id": "q1", "prompt": "p", "responses": ["a b", "c d", "e"], **fields}) + "\n"


BAD = {
    "empty.jsonl": "",
    "one.jsonl": line() + line(id="q2", responses=["alone"]),
    "blank.jsonl": line() + line(id="q2", responses=["a", " \n"]),
    "twice.jsonl": line() + line(id="q2") + line(),
    "broken.jsonl": line() + '{"id": "q2", \n',
    "text.jsonl": line(responses="a b"),
    "label.jsonl": line(factuality=1.5),
    "near.csv": "id,prompt,respnse\nq,p,a\n",
    "apart.csv": "id,prompt,response\nq,p,a\nr,p,b\nq,p,c\n",
    "blank.csv": "id,prompt,response\nq,p,a\nq,p,\n",
    "fine.jsonl": line() + line(id="q2", prompt=""),
    "prompts.txt": "Where?\n",
    "nothing.txt": "\n",
    "prices.json": "{}",
    "trust.json": "[]",
}


@pytest.fixture(scope="module")
def bad_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    for name, text in BAD.items():
        (folder / name).write_text(text)
    (folder / "folder" / "q").mkdir(parents=True)
    (folder / "folder" / "q" / "1.txt").write_text("alone")
    (folder / "none").mkdir()
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    return folder


SPECIFIED = [  # the specified ones, as a subprocess
    (["one.jsonl"], "line 2 of one.jsonl: 'q2' has 1 answer(s); their spread needs at least 2"),
    (["blank.jsonl"], "line 2 of blank.jsonl: answer 2 of 'q2' is empty; drop it or sample it again"),
    (["blank.csv"], "line 3 of blank.csv: the response of 'q' is empty; fill it or drop the row"),
    (["twice.jsonl"], "line 3 of twice.jsonl: the id 'q1' was there before; give each prompt an id of its own"),
    (["fine.jsonl", "--embedder", "minilmm"], "there is no embedder 'minilmm'; choose minilm, smollm2, a folder, openai:MODEL@URL"),
    (["fine.jsonl", "--rivals", "lexicl"], "there is no rival 'lexicl'; there are cosine, eigenscore, lexical, "),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "sentence"), SPECIFIED, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_specified_bad_input(bad_folder, site, arguments, sentence):
    before = files(bad_folder)
    said = refused(Command(bad_folder, site)(*RUN, *arguments, "--out", "scores.jsonl"))
    assert said.startswith(sentence)
    assert files(bad_folder) == before


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "there is nothing to score: name a file of answers, or with --prompts a file of prompts to ask"),
        (["no.jsonl"], "there is no file or folder no.jsonl; check the path"),
        (["empty.jsonl"], "empty.jsonl is empty; it needs at least one prompt with 2 answers"),
        (["broken.jsonl"], "line 2 of broken.jsonl is no JSON: "),
        (["text.jsonl"], "line 1 of text.jsonl: the responses of 'q1' must be a list, got str"),
        (["label.jsonl"], "line 1 of label.jsonl: the factuality of 'q1' is 1.5; it is a share, between 0 and 1"),
        (["near.csv"], "near.csv is neither JSON nor CSV with columns id, prompt and response: it has no column 'response'; did you"),
        (["apart.csv"], "line 2 of apart.csv: 'q' has 1 answer(s); their spread needs at least 2; the rows of an id must stand"),
        (["folder"], "the folder folder/q: 'q' has 1 answer(s); their spread needs at least 2"),
        (["none"], "the folder none holds no folders; it needs one a prompt, with one .txt file an answer"),
        (["fine.jsonl", "--prompts", "prompts.txt"], "FILE holds answers and --prompts asks for new ones; give one of them"),
        (["fine.jsonl", "--n", "4"], "'q1' has 3 answers, fewer than --n 4; take --n 3"),
        (["fine.jsonl", "--n", "1"], "Invalid value for '--n': "),
        (["fine.jsonl", "--pooling", "median"], "--pooling must be mean or cls or max or last or unmasked_mean, got 'median'"),
        (["fine.jsonl", "--template", "other"], "--template must be excerpt, got 'other'"),
        (["fine.jsonl", "--template", "excerpt"], "--template excerpt names the prompt, and 'q2' has none; fill it, or leave out"),
        (["fine.jsonl", "--long-text", "fold"], "--long-text must be window or truncate or error, got 'fold'"),
        (["fine.jsonl", "--embedder", "none"], "none holds no "),
        (["fine.jsonl", "--rivals", ","], "--rivals names none; there are cosine, "),
        (["fine.jsonl", "--nli", "none"], "--nli is for rivals that ask it; add --rivals nli"),
        (["fine.jsonl", "--nli", "none", "--rivals", "luq"], "no NLI model in 'none': give a folder with config.json"),
        (["fine.jsonl", "--model", "embedded"], "--model goes with --prompts, or with rivals that ask a model; leave it out"),
        (["fine.jsonl", "--adaptive", "0.5"], "--adaptive goes with --prompts; add that, or leave it out"),
        (["fine.jsonl", "--temperature", "0.5"], "--temperature goes with --prompts; add that, or leave it out"),
        (["fine.jsonl", "--calibrate", "no.json"], "there is no file no.json; --calibrate names what --save-calibrator wrote"),
        (["fine.jsonl", "--calibrate", "trust.json"], "trust.json is no saved calibration ("),
        (["fine.jsonl", "--save-calibrator", "new.json"], "--save-calibrator needs labelled prompts, and fine.jsonl has no factuality"),
        (["loop"], "loop is a symbolic link that leads back to itself; name another file"),
        (["fine.jsonl", "--out", "loop"], "loop is a symbolic link that leads back to itself; name another file"),
        (["fine.jsonl", "--out", "pipe"], "pipe is a device or a pipe; --out names a file to write"),
        (["fine.jsonl", "--html", "pipe"], "pipe is a device or a pipe; --html names a file to write"),
        (["fine.jsonl", "--out", "fine.jsonl"], "--out names fine.jsonl, which is read; name another file"),
        (["fine.jsonl", "--out", "a", "--html", "./a"], "--out and --html both name a; name two files"),
        (["fine.jsonl", "--out", "none"], "none is a folder; --out names the file to write"),
        (["fine.jsonl", "--html", "new/report.html"], "the folder new does not exist; make it first, or name another with --html"),
        (["fine.jsonl", "--pictures", "prices.json"], "prices.json is a file, so nothing can be written to prices.json; name a folder"),
        (["--prompts", "prompts.txt"], "--prompts needs a model: name it with --model (and its --endpoint, or --model embedded)"),
        (["--prompts", "no.txt", "--model", "embedded"], "there is no file no.txt; name a text file with a prompt a line"),
        (["--prompts", "nothing.txt", "--model", "embedded"], "nothing.txt holds no prompt; write one a line"),
        (["--prompts", "prompts.txt", "--model", "embeded"], "there is no language model 'embeded'; choose embedded, a folder"),
        (["--prompts", "prompts.txt", "--endpoint", "http://localhost/v1"], "--prompts needs a model: name it with --model"),
        (["--prompts", "prompts.txt", "--endpoint", "localhost", "--model", "m"], "localhost"),
        (["--prompts", "prompts.txt", "--model", "m", "--temperature", "0"], "--temperature 0 gives the same answer each time"),
        (["--prompts", "prompts.txt", "--model", "m", "--temperature", "3"], "--temperature 3 is none; take one above 0"),
        (["--prompts", "prompts.txt", "--model", "m", "--adaptive", "nan"], "--adaptive must be a score between 0 and 1, got nan"),
        (["--prompts", "prompts.txt", "--model", "m", "--adaptive", "2"], "--adaptive must be a score between 0 and 1, got 2.0"),
        (["--prompts", "prompts.txt", "--model", "m", "--adaptive", "-1"], "--adaptive must be a score between 0 and 1, got -1.0"),
        (["--prompts", "prompts.txt", "--model", "m", "--adaptive", ".5", "--n", "2"], "--adaptive begins with --n answers, at least 3"),
        (["--prompts", "prompts.txt", "--model", "m", "--adaptive", ".5", "--n-max", "4"], "--adaptive begins with --n answers, at least"),
        (["--prompts", "prompts.txt", "--model", "m", "--n-max", "4"], "--n-max goes with --adaptive; add that, or leave it out"),
        (["--prompts", "prompts.txt", "--model", "m", "--allow-mixed-n"], "--allow-mixed-n is for files of answers; leave it out"),
        (["--prompts", "prompts.txt", "--model", "embedded", "--prices", "prices.json"], "--prices goes with --endpoint; add that"),
        (["--prompts", "prompts.txt", "--model", "m", "--endpoint", "http://localhost/v1", "--prices", "prices.json"],
         "the price list prices.json does not list 'm'; add "),
        (["--prompts", "prompts.txt", "--replay", "prices.json"], "prices.json is no export of answers"),
        (["--prompts", "prompts.txt", "--replay", "no.jsonl"], "cannot read no.jsonl: No such file or directory"),
        (["--prompts", "prompts.txt", "--model", "embedded", "--record", "r", "--no-cache"], "--record writes what the cache keeps"),
        (["--prompts", "prompts.txt", "--model", "embedded", "--save-calibrator", "c"], "--save-calibrator needs labelled answers"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_bad_input(inside, bad_folder, monkeypatch, arguments, sentence):
    monkeypatch.chdir(bad_folder)
    monkeypatch.setenv("UPHELD_CACHE", str(bad_folder.parent / "cache"))
    before = files(bad_folder)
    assert sentence in refused(inside(*RUN, *arguments))
    assert files(bad_folder) == before


def test_embeddings_that_are_none_name_prompt_and_answer(answers, tmp_path, tmp_path_factory):
    zero = tiny_bert(tmp_path_factory.mktemp("zero"), norm=0.0)
    said = refused(answers(*RUN, "answers.jsonl", "--embedder", zero, "--out", "scores.jsonl"))
    assert re.search(r"answer 1 of '\w+ \w+'", said), said
    wild = tiny_bert(tmp_path_factory.mktemp("wild"), norm=float("nan"))
    said = refused(answers(*RUN, "answers.jsonl", "--embedder", wild, "--out", "scores.jsonl"))
    assert re.search(r"gave a vector that is not finite .* belongs to an answer to '\w+ \w+'", said), said
    assert files(tmp_path) == {"answers.jsonl"}


def test_an_answer_too_long_is_an_error_if_so_wished(answers, tmp_path, encoder):
    (tmp_path / "long.jsonl").write_text(line(responses=["short", "long " * 100]))
    said = refused(answers(*RUN, "long.jsonl", "--embedder", encoder, "--long-text", "error"))
    assert said.startswith("answer 2 of 'q1' is 500 tokens long")
    assert "take --long-text window" in said
    with pytest.warns(
        IsotropyWarning, match="at most 40 % of the tokens of one went unread; --long-text window reads all"
    ):
        assert answers(*RUN, "long.jsonl", "--embedder", encoder, "--long-text", "truncate").returncode == 0


def test_a_model_that_fails_leaves_nothing_but_its_answers(prompts, tmp_path, encoder, monkeypatch):
    from upheld.llm import ModelError

    def fail(request):
        if "Ada" in request.messages[-1].content:
            raise ModelError("the endpoint is gone; start it")
        return spoken(request)

    monkeypatch.setattr("upheld.llm.language_model", lambda *_, **__: ScriptedModel(fail))
    said = refused(
        prompts(
            *RUN,
            "--prompts",
            "prompts.txt",
            "--model",
            "m",
            "--embedder",
            encoder,
            "--out",
            "s",
            "--responses-out",
            "r",
        )
    )
    assert said == "the endpoint is gone; start it"
    assert files(tmp_path) == {"answers.jsonl", "prompts.txt"}
    kept = CachedModel(ScriptedModel(spoken), tmp_path / "cache" / "isotropy.sqlite")
    kept.export(tmp_path / "kept", everything=True)
    assert len((tmp_path / "kept").read_text().splitlines()) == 1 + 5


# -- with the real models, as a program


@pytest.mark.slow
def test_the_real_thing_from_a_pipe(upheld, persons):
    write_responses(upheld.folder / "answers.jsonl", persons[:3])
    done = upheld(*RUN, "answers.jsonl", "--rivals", "lexical,jaccard,cosine", "--html", "report.html")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "<script" not in (upheld.folder / "report.html").read_text()


@pytest.mark.slow
def test_ctrl_c_leaves_nothing(upheld, encoder):
    many = "".join(line(id=f"q{k}", responses=[f"{k} {n} " * 40 for n in range(5)]) for k in range(4_000))
    (upheld.folder / "answers.jsonl").write_text(many)
    going = upheld.start(*RUN, "answers.jsonl", "--embedder", encoder, "--out", "scores.jsonl", "--no-cache")
    for _ in range(300):  # until it writes
        time.sleep(0.2)
        if any(path.name.startswith(".scores.jsonl") and path.stat().st_size for path in upheld.folder.iterdir()):
            break
    assert going.poll() is None, going.communicate()
    os.kill(going.pid, signal.SIGINT)
    out, error = going.communicate(timeout=60)
    assert (going.returncode, out) == (130, "")
    assert "Traceback" not in error
    assert files(upheld.folder) == {"answers.jsonl"}
