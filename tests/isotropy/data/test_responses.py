from __future__ import annotations

import math

import pytest

from upheld.isotropy.data.responses import Responses

TWO = ("In Peru.", "In Chile.")


def test_lists_become_tuples_so_that_it_hashes():
    item = Responses("q", "Where?", list(TWO), factualities=[1, 0], logprobs=[[-1], [-0.5, -2.0]])
    assert item.responses == TWO
    assert item.factualities == (1.0, 0.0)
    assert item.logprobs == ((-1.0,), (-0.5, -2.0))
    assert hash(item) == hash(Responses("q", "Where?", TWO, factualities=(1, 0), logprobs=((-1,), (-0.5, -2.0))))


def test_factuality_is_the_mean_of_the_labelled_answers():
    assert Responses("q", "", (*TWO, "?"), factualities=(1, None, 0.5)).factuality == 0.75


def test_a_factuality_of_the_prompt_is_kept_beside_those_of_its_answers():
    assert Responses("q", "", TWO, factuality=0.3, factualities=(1, 0)).factuality == 0.3


def test_labels_that_are_all_missing_are_no_labels():
    item = Responses("q", "", TWO, factualities=(None, None))
    assert item.factualities is None
    assert item.factuality is None


def test_a_log_probability_a_shade_above_zero_is_rounding():
    assert Responses("q", "", TWO, logprobs=[[1e-4], [0.0]]).logprobs == ((1e-4,), (0.0,))


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"id": " "}, ValueError, "the id is empty"),
        ({"id": "a\x1b[2J"}, ValueError, "control character"),
        ({"id": 3}, TypeError, "the id must be text, got int"),
        ({"prompt": None}, TypeError, "the prompt of 'q' must be text, got NoneType"),
        ({"responses": "both"}, TypeError, "must be a list, got str"),
        ({"responses": ("one",)}, ValueError, r"'q' has 1 answer\(s\); their spread needs at least 2"),
        ({"responses": ("one", " \n")}, ValueError, "answer 2 of 'q' is empty"),
        ({"responses": ("one", "\u200b\ufeff\x07")}, ValueError, "answer 2 of 'q' is empty"),
        (
            {"logprobs": ((-1.0,), ("x",))},
            TypeError,
            "each of the logprobs of answer 2 of 'q' must be a number, got str",
        ),
        ({"responses": ("one", None)}, TypeError, "answer 2 of 'q' must be text"),
        ({"responses": ("one", "t\x00wo")}, ValueError, r"answer 2 of 'q' holds '\\x00' at character 2"),
        ({"responses": ("\ud83d", "two")}, ValueError, "answer 1 of 'q' holds"),
        ({"factuality": 1.2}, ValueError, "the factuality of 'q' is 1.2; it is a share"),
        ({"factuality": math.nan}, ValueError, "finite"),
        ({"factuality": 10**400}, ValueError, "finite"),
        ({"factuality": True}, TypeError, "must be a number, got bool"),
        ({"factuality": "high"}, TypeError, "must be a number, got str"),
        ({"factualities": (1,)}, ValueError, "'q' has 2 answers, but 1 times a factuality"),
        ({"factualities": (0.5, -0.1)}, ValueError, "factuality of answer 2 of 'q' is -0.1"),
        ({"logprobs": ((-1.0,),)}, ValueError, "'q' has 2 answers, but 1 times a list of logprobs"),
        ({"logprobs": ((-1.0,), ())}, ValueError, "logprobs of answer 2 of 'q' are empty"),
        ({"logprobs": ((-1.0,), (0.7,))}, ValueError, "logprobs of answer 2 of 'q' hold 0.7"),
        ({"logprobs": ((-1.0,), (-math.inf,))}, ValueError, "finite"),
        ({"logprobs": ((-1.0,), -2.0)}, TypeError, "must be a list, got float"),
    ],
)
def test_what_is_wrong_is_named(fields, error, message):
    with pytest.raises(error, match=message):
        Responses(**({"id": "q", "prompt": "Where?", "responses": TWO} | fields))
