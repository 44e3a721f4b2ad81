"""An instruction's id names its text."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from upheld.isotropy import confidence, sampling, segments
from upheld.isotropy.wording import Wording

ALL = (sampling.INSTRUCTION, *segments.JUDGES, confidence.P_TRUE, confidence.PERCENTAGE)


def test_another_text_has_another_id():
    wording = Wording("greeting", 3, "Good morning.")
    assert wording.id.startswith("greeting/3#")
    assert replace(wording, text="Good morning!").id != wording.id
    # sha256 of "abc", FIPS 180-2, appendix B.1
    assert Wording("abc", 1, "abc").id == "abc/1#ba7816bf8f01"


def test_no_two_instructions_share_a_name():
    assert all(one.name != other.name and one.text != other.text for one, other in combinations(ALL, 2))


def test_a_changed_text_has_a_new_version():
    """Whoever changes a text raises its version, and puts the new id here."""
    assert {wording.id for wording in ALL} == IDS


IDS = {
    "answer-between-tags/1#b944ae080c7e",
    "segment-judge-plain/1#20d0a43dc1d5",
    "segment-judge-editor/1#9010ab51a70d",
    "segment-judge-steps/1#8afd4df1ed8f",
    "p-true/1#26d1efe91345",
    "verbalised-confidence/1#c1fe7836ffe3",
}
