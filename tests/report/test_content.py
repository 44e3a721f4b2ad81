from __future__ import annotations

import warnings

import pytest

from upheld.report.content import drawn


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_letters_that_the_font_lacks_are_no_remark(ending: str) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    figure.text(0.5, 0.5, "\u65e5\u672c \U0001f98a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert drawn(figure, ending) == drawn(figure, ending)
