"""``upheld run flows`` on a user's own files, called as the command line calls it; and as a user calls it."""

from __future__ import annotations

import json
import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from safetensors.torch import save_file
from typer.testing import CliRunner

from installed import refused
from upheld.diffusion.networks import TimeMLP
from upheld.flows.command import EXAMPLE, run
from upheld.flows.command.embedded import Nearest
from upheld.flows.command.loading import load_flow, load_module
from upheld.flows.mixture import GaussianMixtureFlow


class TwoBlobs(torch.nn.Module):
    """Two clouds at -2 and 2 in the first of two coordinates, as a flow with its weights in it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("means", torch.tensor([[-2.0, 0.0], [2.0, 0.0]]))

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        variance = 0.25 * t**2 + (1 - t) ** 2
        logits = -((x[:, None] - t * self.means) ** 2).sum(2) / (2 * variance)
        centre = torch.softmax(logits, 1) @ self.means
        ends = centre + 0.25 * t / variance * (x - t * centre)
        return (ends - x) / (1 - t)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("models")
    guide = torch.nn.Linear(2, 2)
    with torch.no_grad():
        guide.weight.copy_(torch.tensor([[-2.0, 0.0], [2.0, 0.0]]))
        guide.bias.zero_()
    x = torch.randn(3, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.trace(TwoBlobs(), (x, torch.tensor(0.5))).save(str(place / "flow.pt"))
        torch.jit.trace(guide, x).save(str(place / "guide.pt"))
        torch.jit.script(TwoLogits()).save(str(place / "judge.pt"))
        for name, of in {
            "one": lambda x, *t: x[:, :1],
            "ends": lambda x, t: 0.9 * x,
            "single": lambda x: x[:, :1],
            "side": lambda x: x[:, 0],
            "hard": lambda x: (x > 0).float(),
        }.items():
            torch.jit.trace(of, (x, torch.tensor(0.5)) if name in ("one", "ends") else x).save(
                str(place / f"{name}.pt")
            )
    torch.save(guide.state_dict(), place / "weights.pt")
    torch.save({"a": 1}, place / "numbers.pt")
    (place / "text.pt").write_text("hello")
    return place


class TwoLogits(torch.nn.Module):
    """Which side of 0."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([-x[:, 0], x[:, 0]], 1)


def test_the_exact_flow_of_the_fixture_is_the_mixtures():
    x = torch.randn(4, 2)
    flow = GaussianMixtureFlow(torch.tensor([[-2.0, 0.0], [2.0, 0.0]]), 0.25)
    torch.testing.assert_close(TwoBlobs()(x, torch.tensor(0.6)), flow(x, 0.6))


app = typer.Typer()
app.command()(run)


def call(folder: Path, *further: object, velocity: str | None = None):
    arguments = [
        "--velocity", velocity or str(folder / "flow.pt"), "--likelihood", str(folder / "guide.pt"), "--target", "1", "--shape", "2",
        "-n", "12", "--particles", "4", "--steps", "16", *map(str, further),
    ]  # fmt: skip
    return CliRunner().invoke(app, arguments)


def test_samples_table_and_pictures(folder, tmp_path):
    done = call(folder, "--judge", folder / "judge.pt", "--compare", "--out", tmp_path / "out")
    assert done.exception is None, done.exception
    assert "TFTF" in done.stdout
    assert "importance sampling" in done.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"samples.npz", "summary.json", "samples.png", "samples.svg", "ess.png", "ess.svg"}
    arrays = np.load(tmp_path / "out" / "samples.npz")
    assert arrays["samples"].shape == (12, 2)
    assert arrays["particles"].shape == (12, 4, 2)
    assert (arrays["samples"][:, 0] > 0).mean() >= 11 / 12
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(), parse_constant=pytest.fail)
    rows = {row["method"]: row for row in summary["methods"]}
    assert set(rows) == {"TFTF", "importance sampling", "FlowChef, step 0.01", "FlowChef, step 0.05", "no condition"}
    assert rows["TFTF"]["judge"] >= 11 / 12
    assert rows["no condition"]["judge"] < 11 / 12
    assert 0.5 * rows["TFTF"]["evaluations"] < rows["importance sampling"]["evaluations"] <= rows["TFTF"]["evaluations"]
    assert summary["log_evidence"] < 0 < summary["log_evidence_se"]


def test_without_guidance_the_evidence_is_the_share_of_the_class(folder):
    """Half of the flow's samples are right of 0; a guided run of so few particles has too heavy a tail to show it."""
    found = json.loads(call(folder, "--guidance", 0, "-n", 200, "--json").stdout)
    assert abs(found["log_evidence"] - np.log(0.5)) < 4 * found["log_evidence_se"] < 0.4


def test_json_is_the_summary_and_the_seed_decides(folder):
    first, again, other = (json.loads(call(folder, "--json", "--seed", seed).stdout) for seed in (1, 1, 2))
    assert first["schema"] == "upheld.flows.run/1"
    assert first["log_evidence"] == again["log_evidence"] != other["log_evidence"]
    assert first["methods"][0]["judge"] is None


def test_pilots_say_what_they_found(folder):
    asked = ("--window", "adaptive", "--ladder", "--lookahead", "calibrated", "--kappa", "1")
    said = call(folder, *asked)
    assert said.exception is None, said.exception
    found = json.loads(call(folder, *asked, "--json").stdout)
    assert f"the pilot begins the noisy window at t = {found['window'][0]:.3g} (it ends at 0.875)" in said.stdout
    assert 0 < found["window"][0] < 0.875
    assert found["ladder"] == sorted(found["ladder"])
    assert f"the ladder lets the condition in from exponent {found['ladder'][0]:.2g} to 1" in said.stdout


def test_without_a_judge_it_says_that_the_guide_judged_itself(folder):
    assert "The guide judged its own work" in call(folder).stdout


@pytest.mark.parametrize(
    ("further", "message"),
    [
        (["--shape", "a,b"], "--shape 'a,b' is none; write 64, or 1,28,28"),
        (["--shape", "3"], "--velocity .* does not take examples of --shape 3: "),
        (["--velocity", "{folder}/ends.pt"], "answers of --velocity .*ends.pt rise by 0.90 .*; say --prediction noise, or "),
        (["--velocity", "{folder}/one.pt"], r"--velocity .*one.pt gives shape \(3, 1\) for examples of \(3, 2\); it must give the same"),
        (["--likelihood", "{folder}/hard.pt"], "--likelihood .*hard.pt has no gradient to guide by; take --guidance 0"),
        (["--likelihood", "{folder}/side.pt"], r"--likelihood .*side.pt gives shape \(3,\) for 3 examples; give logits"),
        (["--judge", "{folder}/single.pt"], "--target 1 is no class of --judge .*single.pt; it has 0 to 0"),
        (["--judge", "{folder}/flow.pt"], "--judge .* does not take examples of --shape 2: "),
        (["--target", "2"], "--target 2 is no class of --likelihood .*guide.pt; it has 0 to 1"),
        (["--temperature", "0"], "--temperature 0 is none"),
        (["--velocity", "nothing.pt"], "--velocity nothing.pt is no file"),
        (["--velocity", "{folder}/weights.pt"], "is no TorchScript file; save it with torch.jit.trace"),
        (["--velocity", "{folder}/text.pt"], "is no TorchScript file"),
        (["--velocity", "{folder}/weights.pt", "--loader", "torch.nn"], "names no callable; write module:callable"),
        (["--velocity", "{folder}/weights.pt", "--loader", "nosuch:f"], "cannot be imported"),
        (["--velocity", "{folder}/weights.pt", "--loader", "builtins:dict"], "makes a dict; it must return a torch.nn.Module"),
        (["--velocity", "{folder}/weights.pt", "--loader", "torch.nn:Identity"], "do not fit what --loader torch.nn:Identity makes"),
        (["--velocity", "{folder}/numbers.pt", "--loader", "torch.nn:Identity"], "not a state_dict of tensors"),
        (["--velocity", "{folder}/text.pt", "--loader", "torch.nn:Identity"], "holds no weights that can be loaded safely"),
        (["--velocity", "diffusers:{folder}"], "has no model_index.json"),
        (["--judge", "{folder}/weights.pt"], "--judge .* is no TorchScript file"),
        (["--coupling", "ot"], "--coupling ot: the velocity of such a flow gives no score, .* take --noise 0"),
        (["--prediction", "score"], "--prediction 'score' is none; there are auto, velocity, endpoint, noise"),
        (["--path", "straight"], "--path 'straight' is none; there are linear, cosine, vp"),
        (["--window", "early"], "--window 'early' is none; write auto, adaptive, none, or 0.1875,0.875"),
        (["--window", "0.5,1"], "--window '0.5,1' must be two times with 0 < t_a < t_b < 1"),
        (["--window", "0.5,0.51"], r"window \(0.5, 0.51\) holds no step of 16; widen it or take more steps"),
        (["--extra-window", "0.5"], "--extra-window '0.5' is none; write 0.875,0.95"),
        (["--extra-window", "0.5,0.9"], r"extra_window \(0.5, 0.9\) begins before the window .* ends"),
        (["--window", "none", "--ladder"], "--ladder rises inside the window, and --window none leaves none"),
        (["--lookahead", "calibrated"], "and only with one above 0; give both, or neither"),
        (["--kappa", "1"], "--lookahead calibrated softens a classifier by --kappa"),
        (["--lookahead", "far"], "--lookahead 'far' is none; there are auto, point, calibrated"),
        (["--preset", "fast"], "--preset 'fast' is none; there are paper, default"),
        (["--eps2", "-1"], "--eps2 -1 is none; it must be a number of at least 0"),
        (["--prompt", "a dog"], "--prompt is for --velocity diffusers:FOLDER"),
        (["--velocity", "diffusers:{folder}", "--jobs", "2"], "--jobs does not go with --velocity diffusers:FOLDER; leave it out"),
        (["--judge-loader", "torch.nn:Identity"], "--judge-loader makes the network for the weights of --judge; give both"),
        (["--groups", "2"], "--groups says how many samples go into one job; it needs --jobs or --ray"),
        (["--ray", "somewhere"], "the address of a Ray cluster is"),
        (["--out", "{folder}/text.pt"], "text.pt is a file, so nothing can be written to"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_a_sentence(folder, further, message):
    done = call(folder, *(part.format(folder=folder) for part in further))
    assert isinstance(done.exception, ValueError), done.stdout
    assert re.search(message, str(done.exception)), str(done.exception)


@pytest.mark.parametrize("name", ["weights.pt", "weights.safetensors", "weights.npz"])
def test_weights_go_into_what_the_loader_makes(folder, name, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    (folder / "users_network.py").write_text("import torch\n\n\ndef make():\n    return torch.nn.Linear(2, 2)\n")
    state = torch.load(folder / "weights.pt")
    if name.endswith("npz"):
        np.savez(folder / name, **{key: value.numpy() for key, value in state.items()})
    elif name.endswith("safetensors"):
        save_file(state, folder / name)
    net = load_module(folder / name, "--velocity", "--loader", "users_network:make").module
    assert torch.equal(net.weight, state["weight"])
    assert not any(p.requires_grad for p in net.parameters())


def test_a_traced_network_keeps_the_size_of_its_batch_open():
    net = TimeMLP(4, width=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(net, (torch.zeros(2, 4), torch.tensor(0.5)), check_trace=False)
    x = torch.randn(7, 4)
    torch.testing.assert_close(traced(x, torch.tensor(0.2)), net(x, torch.tensor(0.2)))


def test_the_nearest_example_decides():
    judge = Nearest(torch.tensor([[float(c)] for c in range(10)]), torch.arange(10), 1.0)
    assert judge(torch.tensor([[3.2], [8.9]])).argmax(1).tolist() == [3, 9]


def test_the_example_runs_as_it_stands(with_digits):
    done = with_digits("data", "flows", "--out", "models")
    assert done.returncode == 0, done.stderr
    line = shlex.split(EXAMPLE.format(file="models"))[1:]
    done = with_digits(*line, "-n", "4", "--steps", "16")
    assert done.returncode == 0, done.stderr
    assert (with_digits.folder / "out" / "samples.png").exists()


def test_a_missing_file_is_one_sentence(upheld):
    done = upheld("run", "flows", "--velocity", "no.pt", "--likelihood", "no.pt", "--target", "0", "--shape", "2")
    assert refused(done).startswith("--velocity no.pt is no file")


def test_groups_on_other_processes(folder, upheld):
    """Half of the flow's samples are of class 1; the number of processes does not change a bit."""
    common = ["run", "flows", "--velocity", folder / "flow.pt", "--likelihood", folder / "guide.pt", "--target", "1", "--shape", "2",
              "-n", "6", "--particles", "4", "--steps", "16", "--groups", "2"]  # fmt: skip
    for jobs in (1, 2):
        done = upheld(*common, "--jobs", jobs, "--out", f"out{jobs}")
        assert done.returncode == 0, done.stderr
        assert "TFTF" in done.stdout
    one, two = (np.load(upheld.folder / f"out{jobs}" / "samples.npz") for jobs in (1, 2))
    for name in one.files:
        assert np.array_equal(one[name], two[name]), name
    assert one["samples"].shape == (6, 2)
    assert (one["samples"][:, 0] > 0).all()


def test_a_network_may_want_a_time_for_every_example(tmp_path):
    class Concatenated(torch.nn.Module):
        def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
            return torch.cat([x[:, 1:], t[:, None]], 1)

    torch.jit.script(Concatenated()).save(tmp_path / "batch.pt")
    field = load_flow(str(tmp_path / "batch.pt"), None, "velocity", "independent", "", (2,))
    assert field.predict(torch.ones(4, 2), torch.tensor(0.5)).tolist() == [[1.0, 0.5]] * 4
