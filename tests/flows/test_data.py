from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
import torch

from upheld.flows.data import digits, pictures, read_idx
from upheld.flows.metrics import energy_distance, frechet_distance, mean_pairwise_distance, sliced_wasserstein
from upheld.flows.shapes import NOISE, SCENES, SHAPE, Scorer, captions, drawn_scenes, parsed, scenes, shapes_flow
from upheld.flows.training import fit_classifier, fit_flow, velocity_network


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_digits_are_split_without_a_shared_row():
    split = digits()
    sizes = [len(part[0]) for part in (split.train, split.tuning, split.held_out)]
    assert sizes == [1000, 400, 397]
    assert len(split.judges[0]) == 797
    assert float(split.train[0].min()) == -1
    assert float(split.train[0].max()) == 1
    rows = torch.cat([split.train[0], split.judges[0]])
    assert len(rows.unique(dim=0)) == len(rows)
    assert torch.equal(
        torch.cat([split.train[1], split.judges[1]]).bincount(),
        torch.tensor([178, 182, 177, 183, 181, 182, 181, 179, 174, 180]),
    )


def idx(values: np.ndarray) -> bytes:
    return (
        b"\x00\x00\x08"
        + bytes([values.ndim])
        + struct.pack(f">{values.ndim}I", *values.shape)
        + values.astype(np.uint8).tobytes()
    )


def test_idx_files_are_read(tmp_path):
    values = np.arange(24).reshape(2, 3, 4)
    (tmp_path / "plain").write_bytes(idx(values))
    with gzip.open(tmp_path / "packed.gz", "wb") as file:
        file.write(idx(values))
    assert np.array_equal(read_idx(tmp_path / "plain"), values)
    assert np.array_equal(read_idx(tmp_path / "packed.gz"), values)
    (tmp_path / "short").write_bytes(idx(values)[:-1])
    with pytest.raises(ValueError, match=r"promises \(2, 3, 4\) and holds 23 values"):
        read_idx(tmp_path / "short")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ValueError, match="is no IDX file of bytes; it begins with 68 65 6c 6c"):
        read_idx(tmp_path / "text")


def test_a_folder_of_pictures(tmp_path):
    for part, n in (("train", 5), ("t10k", 3)):
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx(np.full((n, 28, 28), 255)))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.arange(n)))
    x, labels, test, test_labels = pictures(tmp_path)
    assert x.shape == (5, 1, 32, 32)
    assert float(x[0, 0, 16, 16]) == 1
    assert float(x[0, 0, 0, 0]) == -1
    assert labels.tolist() == [0, 1, 2, 3, 4]
    assert (len(test), test_labels.tolist()) == (3, [0, 1, 2])
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match="has no t10k-labels-idx1-ubyte"):
        pictures(tmp_path)
    with pytest.raises(FileNotFoundError, match="apt install dataset-fashion-mnist, or name a folder that has them"):
        pictures(tmp_path / "nowhere")


def test_scenes_differ_and_are_parsed_through_noise():
    pictures_ = scenes()
    assert pictures_.shape == (192, *SHAPE)
    assert len(set(captions())) == len(SCENES) == 192
    assert float(torch.pdist(pictures_.flatten(1)).min()) > 6 * NOISE
    noisy = pictures_ + NOISE * torch.randn(pictures_.shape, generator=generator())
    assert torch.equal(parsed(noisy), torch.arange(192))
    drawn = shapes_flow().sample(4, generator())
    assert drawn.shape == (4, *SHAPE)


def test_drawn_scenes_are_scenes_a_pixel_off_and_are_parsed_as_such():
    drawn = drawn_scenes(200, generator())
    read = parsed(drawn, moved=True)
    rolled = [torch.roll(scenes()[read], (dy, dx), (2, 3)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    gap = torch.stack([(drawn - one).square().flatten(1).mean(1) for one in rolled])
    assert len(read.unique()) > 90
    assert float(gap.min(0).values.max()) < 1.1 * NOISE**2  # nothing but noise is left
    assert 0.05 < float((gap.argmin(0) == 4).float().mean()) < 0.2  # one in nine is not moved


def test_the_scorer_reads_captions_word_by_word():
    torch.manual_seed(0)
    scorer = Scorer()
    first, again = scorer.encode_text([captions()[0], captions()[1]]), scorer.encode_text([captions()[0]])
    torch.testing.assert_close(first[:1], again)
    assert scorer.logits(torch.randn(2, *SHAPE)).shape == (2, 192)
    with pytest.raises(ValueError, match="'purple' is no word of these captions"):
        scorer.encode_text(["a purple circle"])


def test_energy_distance_is_unbiased_and_sees_a_shift():
    x, y = (torch.randn(200, 100, 2, generator=generator(seed)) for seed in (0, 1))
    same = torch.tensor([energy_distance(a, b) for a, b in zip(x, y, strict=True)])
    assert abs(float(same.mean())) < 4 * float(same.std()) / 200**0.5
    assert energy_distance(x[0], y[0] + 1) > 10 * float(same.std())
    with pytest.raises(ValueError, match="1 and 100 points"):
        energy_distance(x[0][:1], y[0])


def test_distances_of_shifted_samples():
    x = torch.randn(1000, 1, generator=generator())
    assert sliced_wasserstein(x, x + 0.3) == pytest.approx(0.3, abs=1e-6)
    wide = torch.randn(2000, 5, generator=generator())
    assert 0 < sliced_wasserstein(wide, wide + 1) < 5**0.5
    assert frechet_distance(wide, wide + 2) == pytest.approx(20, rel=1e-4)
    assert mean_pairwise_distance(torch.tensor([[0.0], [1.0], [3.0]])) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="they must be the same"):
        sliced_wasserstein(x, x[:5])


def test_a_small_flow_learns_two_points():
    """Data at -1 and 1: the fitted velocity near the end leads to them."""
    data = torch.tensor([[-1.0], [1.0]]).repeat(50, 1)
    net = fit_flow(data, steps=400, jitter=0.05, seed=0)
    with torch.no_grad():
        x = torch.tensor([[-0.5], [0.5]])
        ends = x + 0.3 * net(x, torch.tensor(0.7))
    assert ends[0] < -0.6
    assert ends[1] > 0.6
    again = fit_flow(data, steps=5, seed=3)
    other = fit_flow(data, steps=5, seed=3)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), other.parameters(), strict=True))


def test_a_small_classifier_learns():
    x = torch.randn(400, 2, generator=generator())
    labels = (x[:, 0] > 0).long()
    torch.manual_seed(0)
    net = fit_classifier(torch.nn.Linear(2, 2), x, labels, steps=1000)
    assert float((net(x).argmax(1) == labels).float().mean()) > 0.95


def test_what_is_no_data_is_refused():
    with pytest.raises(ValueError, match="the data hold 1 values that are not finite"):
        fit_flow(torch.tensor([[1.0], [float("nan")]]))
    with pytest.raises(ValueError, match=r"examples of shape \(2, 3\) are neither rows"):
        velocity_network((2, 3))
