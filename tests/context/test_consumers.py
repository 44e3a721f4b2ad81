from __future__ import annotations

import numpy as np
import pytest

from upheld.context import Sample, Task, embedding_reader, tfidf_reader

CITIES = Task([Sample("0", "q", "york"), Sample("1", "q", "new york"), Sample("2", "q", "bath")])


def test_longest_label_first_and_whole_tokens_only(embed):
    reader = embedding_reader(CITIES, embed)
    names = lambda line: [reader.labels[place] for place in reader._read(line)[0]]  # noqa: E731
    assert names("- new york: tall towers") == ["new york"]
    assert names("- york: old walls") == ["york"]
    assert names("bathing in yorkshire") == []
    assert names("bath or york?") == ["bath", "york"]
    assert reader._read("- new york: tall towers")[1] == "tall towers"


def test_without_context_it_is_nearest_label_and_ties_go_by_order(embed):
    reader = embedding_reader(CITIES, embed)
    assert reader.answer(["a bath of milk"], [""])[0].text == "bath"
    assert reader.answer(["nothing known"], [""])[0].text == reader.labels[0]


def test_the_nearest_line_decides(embed):
    reader = embedding_reader(CITIES, embed)
    context = "- york: old stone walls\n- bath: hot springs water"
    answer = reader.answer(["walls of old stone", "springs with water"], [context, context])
    assert [one.text for one in answer] == ["york", "bath"]
    assert all(one.margin > 0 for one in answer)


def test_a_case_is_compared_as_its_question_is_which_is_embedded_already(embed):
    reader = embedding_reader(CITIES, embed)
    question = "Where do towers stand, and why?  On rock."
    assert reader._read("- new york: Where do towers stand, and why? On rock.")[1] == " ".join(question.split())
    assert reader.scores([question], [f"- bath: {question}"])[0].max() > 1 - 1e-6


def test_scores_by_hand(embed):
    reader = embedding_reader(CITIES, embed)
    score = reader.scores(["hot water york"], ["- bath: hot water springs"])[0]
    # cos of three words each that share two = 2/3; label york is one of three words = 1/sqrt 3
    assert score[reader.labels.index("bath")] == pytest.approx(2 / 3, abs=1e-5)
    assert score[reader.labels.index("york")] == pytest.approx(0.3 / np.sqrt(3), abs=1e-5)


def test_an_answer_does_not_depend_on_its_neighbours(embed):
    reader = embedding_reader(CITIES, embed)
    questions, contexts = ["old walls", "springs", "x"], ["- york: old walls", "", "- bath: springs\n- york: x"]
    together = reader.scores(questions, contexts)
    alone = [reader.scores([q], [c])[0] for q, c in zip(questions, contexts, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_several_labels_and_their_delta(embed):
    task = Task([Sample(str(i), text, label) for i, (text, label) in enumerate([
        ("fire smoke", "arson"), ("fire smoke knife", "arson; assault"), ("knife blow", "assault"), ("smoke fire", "arson"),
        ("blow knife", "assault"), ("knife smoke fire", "arson; assault"),
    ])], "micro-f1")  # fmt: skip
    reader = embedding_reader(task, embed)
    reader.tune(task.samples)
    assert reader.delta >= 0
    assert "delta" in reader.id
    context = "- arson; assault: fire knife"
    assert reader.answer(["fire knife"], [context])[0].text == "arson; assault"


def test_words_of_the_training_texts(embed):
    reader = tfidf_reader(CITIES, ["old walls", "hot springs"])
    assert reader.answer(["old walls"], ["- york: old walls\n- bath: hot springs"])[0].text == "york"


def test_one_label_is_nothing_to_choose_from(embed):
    with pytest.raises(ValueError, match="have one label only, 'a'"):
        embedding_reader(Task([Sample("0", "q", "a")]), embed)
