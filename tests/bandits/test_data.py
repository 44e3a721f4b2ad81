"""Instance families, the embedded log, and the messages on bad files."""

import numpy as np
import pandas as pd
import pytest

from upheld.bandits import data


def test_families_have_the_stated_means():
    assert data.small_excess(0.1).means == pytest.approx([0.6] + 9 * [0.3])
    assert data.small_excess(0.05, gap=0.4, n_arms=5).means == pytest.approx([0.55] + 4 * [0.15])
    assert data.decoy(0.01).means == pytest.approx([0.8] + 9 * [0.49])
    assert data.mix(0.003).means == pytest.approx([0.6, 0.497] + 8 * [0.2])
    assert data.unrealisable(0.1).means == pytest.approx([0.4] + 9 * [0.2])
    assert data.several(3).means == pytest.approx(3 * [0.6] + 7 * [0.3])
    for instance in (data.small_excess(0.1), data.decoy(0.1), data.mix(0.1), data.unrealisable(0.1)):
        assert (instance.threshold, instance.sigma) == (0.5, 0.5)


def test_lower_pair_differs_from_nu_in_two_arms():
    nu, *others = data.lower_pair(5, 0.3, 0.02)
    assert nu.means == pytest.approx([0.52] + 4 * [0.22])
    assert len(others) == 4
    for i, instance in enumerate(others, start=1):
        expected = np.array([0.48] + 4 * [0.22])
        expected[i] = 0.78
        assert instance.means == pytest.approx(expected)


def test_published_settings():
    settings = {b.name: b for b in data.published()}
    assert set(settings) == {"linear 0.8", "linear 1", "root 0.92", "root 1.1", "single 0.5", "single 1.1"}
    assert all(b.n_arms == 20 and b.sigma == 1 for b in settings.values())
    assert (~settings["linear 0.8"].bad).sum() == 4  # 0.8, 0.85, 0.9, 0.95
    assert settings["linear 1"].bad.all()


def test_digits_router_has_classifiers_on_both_sides_of_its_threshold():
    router = data.digits_router(0.9)
    assert router.n_arms == 10
    assert len(set(router.labels)) == 10
    assert 2 <= router.bad.sum() <= 8
    assert router.means.min() < 0.15
    assert router.means.max() > 0.95


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_embedded_log_reads_back_and_agrees_with_the_router(tmp_path, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"choices{suffix}"
    written = data.write_digits_log(path, rows=8000)
    log = data.read_log(path)
    pd.testing.assert_frame_equal(log, written.astype({"reward": float}), check_dtype=False)
    router = data.digits_router()
    means = log.groupby("arm")["reward"].mean()
    for label, mean in zip(router.labels, router.means, strict=True):
        assert means[label] == pytest.approx(mean, abs=0.07)


def write(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "kwargs", "message"),
    [
        ("arm,reward\na,1\nb,good\n", {}, r"row 2 of .*log\.csv has reward 'good', which is not a finite number"),
        ("arm,reward\na,1\nb,\n", {}, "row 2 of .* has reward nan, which is not a finite number"),
        ("arm,reward\na,inf\nb,1\n", {}, "row 1 of .* has reward inf"),
        ("arm,reward\na,1\n,0\n", {}, "row 2 of .* has no arm in column 'arm'"),
        ("arm,reward\na,1\na,0\n", {}, "holds a single arm, 'a'; a choice needs at least 2"),
        ("choice,reward\na,1\nb,0\n", {}, "has no column 'arm'; it has choice, reward"),
        ("arm,reward\n", {}, "has no rows"),
        ("", {}, "is empty; it needs a header line and rows"),
        ('arm,reward\na,1\nb,"0\n', {}, "not a well-formed CSV file"),
        ("arm,reward,p\na,1,0.5\nb,0,1.5\n", {"propensity": "p"}, "row 2 of .* has p 1.5; a propensity is the prob"),
        ("arm,reward\na,1\nb,0\n", {"propensity": "p"}, "has no column 'p'"),
        ("arm,reward\na,1\nb,1e308\n", {}, r"row 2 of .* has reward 1e\+308, too large .*; measure it in another unit"),
        ("arm;reward\na;0,5\nb;1\n", {}, "is separated by ';'; save it as CSV, with commas and decimal points"),
        ("arm,reward\n\x1b[31ma,1\nb,0\n", {}, r"arm '\\x1b\[31ma' of .* holds a control character; rename it"),
        ("arm,reward\na,1\nb,0\n", {"reward": "arm"}, "column 'arm' of .* cannot hold both the arm and its reward"),
    ],
)
def test_bad_logs_are_named_by_row(tmp_path, text, kwargs, message):
    with pytest.raises(ValueError, match=message):
        data.read_log(write(tmp_path, text), **kwargs)


def test_missing_file_and_rewards_outside_the_unit_interval(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        data.read_log(tmp_path / "nothing.csv")
    log = data.read_log(write(tmp_path, "arm,reward\na,1\nb,7.5\n"))
    with pytest.raises(ValueError, match=r"row 2 of the log has reward 7.5, but sigma = 1/2 .* pass --sigma"):
        data.check_unit_rewards(log)
    data.check_unit_rewards(log.iloc[:1])


def test_means_file(tmp_path):
    means = data.read_means(write(tmp_path, "arm,mean\na,0.2\nb,0.9\n"))
    assert means.to_dict() == {"a": 0.2, "b": 0.9}
    with pytest.raises(ValueError, match=r"row 2 of .* repeats arm 'a'"):
        data.read_means(write(tmp_path, "arm,mean\na,0.2\na,0.9\n"))
    with pytest.raises(ValueError, match="holds 1 arm; a choice needs at least 2"):
        data.read_means(write(tmp_path, "arm,mean\na,0.2\n"))
    with pytest.raises(ValueError, match="has no column 'mean'"):
        data.read_means(write(tmp_path, "arm,average\na,0.2\n"))
