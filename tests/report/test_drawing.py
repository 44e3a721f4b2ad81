"""What all pictures share: colours that everybody can tell apart, a frame that does not get in the way, numbers as people write them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from upheld.report import drawing
from upheld.report.drawing import figure, framed, legend_above, legend_below, plain_logs, plain_numbers

PALETTE = [drawing.BLUE, drawing.SKY, drawing.GREEN, drawing.ORANGE, drawing.RED, drawing.PINK, drawing.BROWN]
# Viénot, Brettel and Mollon 1999, equations for linear RGB: what protanopes and deuteranopes see of a colour.
PROTANOPE = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
DEUTERANOPE = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])


def seen(colour: str, eye: np.ndarray) -> np.ndarray:
    """Lightness and two opponent colours (CIELAB) of a colour as an eye sees it."""
    rgb = np.array(to_rgb(colour))
    linear = eye @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    white = np.array([0.9505, 1, 1.089])
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear / white
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(np.maximum(xyz, 0)), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", [np.eye(3), PROTANOPE, DEUTERANOPE], ids=["trichromat", "protanope", "deuteranope"])
def test_every_eye_tells_the_palette_apart(eye):
    """A distance of 2.3 in CIELAB is just noticeable side by side; lines in a picture need several times that."""
    assert min(np.linalg.norm(seen(a, eye) - seen(b, eye)) for a, b in combinations(PALETTE, 2)) > 15


@pytest.mark.parametrize(("ink", "ratio"), [(drawing.INK, 7), (drawing.QUIET, 4.5)])
def test_words_stand_out_from_white(ink, ratio):
    """WCAG 2.1, contrast of text: at least 4.5, enhanced 7."""
    rgb = np.array(to_rgb(ink))
    luminance = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
    assert 1.05 / (luminance + 0.05) >= ratio


def test_one_panel_and_several():
    picture, axes = figure(4, 3)
    assert tuple(picture.get_size_inches()) == (4, 3)
    assert axes.figure is picture
    picture, panels = figure(nrows=2, ncols=3, sharex=True)
    assert panels.shape == (2, 3)
    for one in panels.flat:
        assert {name for name, line in one.spines.items() if line.get_visible()} == {"left", "bottom"}


def test_labels_have_the_size_that_was_asked_for():
    picture, axes = figure(labels=7)
    other = framed(picture.add_subplot(), 7)
    for one in (axes, other):
        one.set(xlabel="x", ylabel="y", xscale="log", xlim=(1, 1000))
        picture.draw_without_rendering()
        assert {label.get_fontsize() for label in one.get_xticklabels()} == {7}
        assert one.xaxis.label.get_fontsize() == one.yaxis.label.get_fontsize() == 7.5


def test_pictures_leave_nothing_open():
    """What pyplot knows of stays in memory until it is closed."""
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    figure()
    assert pyplot.get_fignums() == before


@pytest.mark.parametrize("legend", [legend_above, legend_below])
def test_a_legend_hides_no_data(legend):
    picture, (left, right) = figure(ncols=2)
    left.plot([0, 1], [0, 1], label="ours")
    left.plot([0, 1], [1, 0], label="theirs")
    right.plot([0, 1], [0, 1])
    legend(picture, left)
    picture.draw_without_rendering()
    [shown] = picture.legends
    assert [text.get_text() for text in shown.get_texts()] == ["ours", "theirs"]
    box = shown.get_window_extent()
    for axes in (left, right):
        panel = axes.get_tightbbox()
        assert box.y0 >= panel.y1 if legend is legend_above else box.y1 <= panel.y0


def marks(axis) -> list[str]:
    axis.axes.figure.draw_without_rendering()
    return [label.get_text() for label in axis.get_ticklabels(which="both") if label.get_text()]


def test_numbers_as_people_write_them():
    _, axes = figure()
    axes.set(xlim=(0, 20_000), ylim=(0, 1e-3))
    axes.set_xticks([0, 12_500, 20_000])
    axes.set_yticks([0, 0.00025])
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)
    assert marks(axes.xaxis) == ["0", "12,500", "20,000"]
    assert marks(axes.yaxis) == ["0", "0.00025"]


def test_decades_alone_are_numbered():
    _, axes = figure()
    axes.set(xscale="log", xlim=(0.1, 3000))
    plain_logs(axes.xaxis)
    assert [mark for mark in marks(axes.xaxis) if 0.1 <= float(mark.replace(",", "")) <= 3000] == [
        "0.1", "1", "10", "100", "1,000",
    ]  # fmt: skip
