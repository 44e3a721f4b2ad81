"""``upheld run bandits`` as a user meets it: what it prints and writes, and what it says of bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import numpy as np
import pandas as pd
import pytest

from installed import refused

SCHEMA = [
    "instance", "policy", "run", "mark", "regret", "regret_threshold", "regret_refined", "uncertain_rounds", "certified_arm",
    "seed",
]  # fmt: skip
RUN = ("run", "bandits")
SMALL = ("--runs", "20", "--policies", "uncertain-ucb,ucb")


def log_of(rows: int = 3000, probabilities: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3)) -> pd.DataFrame:
    """Arms with means 0.1, 0.4 and 0.95."""
    rng = np.random.default_rng(0)
    arm = rng.choice(3, rows, p=probabilities)
    reward = (rng.random(rows) < np.array([0.1, 0.4, 0.95])[arm]).astype(int)
    log = pd.DataFrame({"arm": np.array(["poor", "fair", "fine"])[arm], "reward": reward})
    return log.assign(p=np.asarray(probabilities)[arm])


@pytest.fixture
def choices(upheld):
    log_of().to_csv(upheld.folder / "choices.csv", index=False)
    return upheld


def files(upheld) -> set[str]:
    return {str(path.relative_to(upheld.folder)) for path in upheld.folder.rglob("*")}


def test_a_replay_prints_tables_and_writes_everything(choices):
    done = choices(*RUN, "choices.csv", "--threshold", "0.6", "--out", "out", *SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Replay of choices.csv: 3 arms, good enough is a mean reward of 0.6." in done.stdout
    lines = done.stdout.splitlines()
    ours = next(line for line in lines if line.startswith("uncertain-ucb"))
    assert "100 %" in ours
    assert "fine" in ours
    assert next(line for line in lines if line.startswith("ucb")).rstrip().endswith("makes none")
    assert "\x1b" not in done.stdout
    written = {"results.parquet", "report.json", "regret.png", "regret.svg", "certificates.png", "certificates.svg"}
    assert {path.name for path in (choices.folder / "out").iterdir()} == written

    report = json.loads((choices.folder / "out" / "report.json").read_text())
    assert (report["schema"], report["kind"]) == ("upheld.bandits.run/1", "replay")
    frame = pd.read_parquet(choices.folder / "out" / "results.parquet")
    assert list(frame.columns) == SCHEMA
    assert set(frame["instance"]) == {"replay of choices.csv"}
    assert frame["mark"].max() == report["effective_horizon"]["common"]
    assert (frame["regret_threshold"] <= frame["regret_refined"] + 1e-9).all()
    assert (frame["regret_refined"] <= frame["regret"] + 1e-9).all()
    assert set(frame["certified_arm"].dropna()) == {"fine"}

    means = log_of().groupby("arm")["reward"].mean()
    told = {arm["arm"]: arm["mean"] for arm in report["arms"]}
    assert told == pytest.approx(means.to_dict())
    # what a run lost against the best arm is at most all its rounds on the worst one
    losses = [policy["regret"] for policy in report["policies"]]
    assert max(losses) <= report["effective_horizon"]["common"] * (means.max() - means.min())


def test_option_and_argument_are_the_same_and_json_is_strict(choices):
    first, second = (
        choices(*RUN, *how, "--threshold", "0.6", *SMALL, "--json")
        for how in (("choices.csv",), ("--log", "choices.csv", "--arm", "arm"))
    )
    assert first.stdout == second.stdout
    document = json.loads(first.stdout, parse_constant=pytest.fail)
    assert [policy["policy"] for policy in document["policies"]] == ["uncertain-ucb", "ucb"]
    assert document["policies"][1]["certified_by"] is None
    assert files(choices) == {"choices.csv"}


@pytest.mark.slow
def test_propensities_or_the_bootstrap_for_a_log_that_was_not_uniform(upheld):
    log_of(6000, (0.5, 0.3, 0.2)).to_csv(upheld.folder / "log.csv", index=False)
    sentence = refused(upheld(*RUN, "log.csv", "--threshold", "0.6", "--out", "out"))
    counts = log_of(6000, (0.5, 0.3, 0.2))["arm"].value_counts()
    assert f"poor: {counts['poor']}, fair: {counts['fair']}, fine: {counts['fine']}" in sentence
    assert "--propensity" in sentence
    assert "--bootstrap" in sentence
    assert files(upheld) == {"log.csv"}

    done = upheld(*RUN, "log.csv", "--threshold", "0.6", "--propensity", "p", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    # one row in five of the most frequent arm's propensity, of all rows 0.2 / p: about 3 x 0.2 of them, a third of these accepted
    assert json.loads(done.stdout)["effective_horizon"]["common"] == pytest.approx(0.2 * 6000, rel=0.15)

    done = upheld(*RUN, "log.csv", "--threshold", "0.6", "--bootstrap", "--horizon", "500", "--out", "out", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "BOOTSTRAP, not a replay" in done.stdout
    report = json.loads((upheld.folder / "out" / "report.json").read_text())
    assert report["kind"] == "bootstrap"
    assert report["notice"].startswith("BOOTSTRAP")
    assert set(pd.read_parquet(upheld.folder / "out" / "results.parquet")["instance"]) == {"bootstrap of log.csv"}
    for picture in ("regret.svg", "certificates.svg"):  # the text is in comments beside its outlines
        assert "bootstrap of log.csv" in (upheld.folder / "out" / picture).read_text()


def test_given_means_are_simulated_with_exact_truth(upheld):
    (upheld.folder / "means.csv").write_text("arm,mean\nlow,0.2\nmiddle,0.55\nhigh,0.9\n")
    done = upheld(*RUN, "--means", "means.csv", "--threshold", "0.5", "--horizon", "400", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["kind"] == "simulation"
    assert [arm["satisficing"] for arm in document["arms"]] == [0.0, 1.0, 1.0]
    assert document["policies"][0]["satisficing"] == 1.0
    assert document["effective_horizon"]["common"] == 400


def test_gaussian_means_need_sigma(upheld):
    (upheld.folder / "means.csv").write_text("arm,mean\nlow,1\nhigh,5\n")
    sentence = refused(upheld(*RUN, "--means", "means.csv", "--threshold", "3"))
    assert sentence == (
        "means.csv: the mean 5 of arm 'high' lies outside [0, 1], so its rewards cannot be 0 and 1; pass --sigma, their "
        "standard deviation"
    )
    done = upheld(*RUN, "--means", "means.csv", "--threshold", "3", "--sigma", "2", "--horizon", "300", "--runs", "5")
    assert done.returncode == 0, done.stderr
    assert "Gaussian rewards, sigma 2" in done.stdout
    assert "uncertain-kl-ucb" not in done.stdout


@pytest.mark.slow
def test_the_embedded_log_needs_nothing_but_its_threshold(upheld):
    done = upheld("data", "bandits", "--out", "choices.csv")
    assert (done.returncode, done.stderr) == (0, "")
    *command, out = done.stdout.splitlines()[-1].split()[1:]
    assert out == "out/"
    done = upheld(*command, out, "--runs", "20")
    assert done.returncode == 0, done.stderr
    best = next(line for line in done.stdout.splitlines() if line.startswith("uncertain-kl-ucb"))
    assert "neighbours" in best
    assert (upheld.folder / "out" / "results.parquet").is_file()


# -- bad input

LOGS = {
    "empty.csv": "",
    "header.csv": "arm,reward\n",
    "nan.csv": "arm,reward\na,1\nb,0\na,\n",
    "words.csv": "arm,reward\na,1\nb,good\n",
    "outside.csv": "arm,reward\na,1\nb,0\nb,7.5\n",
    "single.csv": "arm,reward\na,1\na,0\n",
    "near.csv": "arm,rewrd\na,1\nb,0\n",
    "short.csv": "arm,reward\n" + "a,1\nb,0\n" * 40,
    "odd.csv": "arm,reward,p\n" + "a,1,0.5\nb,0,0.5\n" * 10 + "a,1,1.5\n",
    "zero.csv": "arm,reward,p\na,1,0.5\nb,0,0\n",
    "noarm.csv": "arm,reward\na,1\n,0\n",
    "file": "not a folder",
    "text.parquet": "arm,reward\na,1\nb,0\n",
}


@pytest.fixture(scope="module")
def bad(tmp_path_factory, site):
    from installed import Command

    command = Command(tmp_path_factory.mktemp("bad"), site)
    for name, text in LOGS.items():
        (command.folder / name).write_text(text)
    return command


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no.csv"], "there is no file no.csv"),
        (["."], "there is no file ."),
        (["empty.csv"], "empty.csv is empty; it needs a header line and rows"),
        (["header.csv"], "header.csv has no rows"),
        (["near.csv"], "near.csv has no column 'reward' (did you mean 'rewrd'?); it has arm, rewrd"),
        (["near.csv", "--arm", "choice"], "near.csv has no column 'choice'; it has arm, rewrd; name yours with --arm, "),
        (["nan.csv"], "row 3 of nan.csv has reward nan, which is not a finite number; correct it or drop the row"),
        (["words.csv"], "row 2 of words.csv has reward 'good', which is not a finite number; correct it or drop the row"),
        (["noarm.csv"], "row 2 of noarm.csv has no arm in column 'arm'; fill it or drop the row"),
        (["outside.csv"],
         "row 3 of outside.csv has reward 7.5, but sigma = 1/2 is for rewards in [0, 1]; pass --sigma (for rewards in [a, b]: "
         "(b - a)/2)"),
        (["single.csv"], "single.csv holds a single arm, 'a'; a choice needs at least 2"),
        (["odd.csv", "--propensity", "p"],
         "row 21 of odd.csv has p 1.5; a propensity is the probability of the logged choice, above 0 and at most 1"),
        (["zero.csv", "--propensity", "p"],
         "row 2 of zero.csv has p 0; a propensity is the probability of the logged choice, above 0 and at most 1"),
        (["short.csv", "--policies", "ucb"],
         "below 30 for each of the 2 arms (60); policies are not ranked on so little: pass a longer log"),
        (["short.csv", "--policies", "ucbb"], "no policy is called 'ucbb'; there are kl-ucb, "),
        (["short.csv", "--policies", ","], "--policies names none; there are kl-ucb, "),
        (["short.csv", "--sigma", "0"], "--sigma must be a positive number, got 0; for rewards in [a, b] it is (b - a)/2"),
        (["short.csv", "--threshold", "nan"], "--threshold must be a finite number, got nan; pass the mean reward that is good enough"),
        (["short.csv", "--threshold", "inf"], "--threshold must be a finite number, got inf; pass the mean reward that is good enough"),
        (["text.parquet"], "text.parquet is no Parquet file ("),
        (["--serve", "--arms", "a,b", "--state", "no/s.json"],
         "no/s.json cannot be kept there: no is no folder; name another with --state"),
        (["short.csv", "--threshold", "high"],
         "Invalid value for '--threshold': "),
        (["short.csv", "--runs", "0"], "Invalid value for '--runs': "),
        (["short.csv", "--out", "file/out"], "file is a file, so nothing can be written to file/out; name a folder with --out"),
        (["short.csv", "--out", "file"], "file is a file, so nothing can be written to file; name a folder with --out"),
        ([], "there is nothing to play on: name a log of choices, or --means with a table of arms"),
        (["short.csv", "--means", "short.csv"], "LOG and --means both say what to play on; give one of them"),
        (["--means", "short.csv"], "short.csv has no column 'mean'; it has arm, reward"),
        (["short.csv", "--bootstrap", "--propensity", "p"], "--propensity is for replays; leave it out"),
        (["short.csv", "--state", "s.json"], "--state goes with --serve; add that, or leave it out"),
        (["--serve"], "there is nothing to play on: name --arms a,b,c, or a log whose arms to take"),
        (["--serve", "--arms", "a"], "--arms names 1 arm; a choice needs at least 2, separated by commas"),
        (["--serve", "--arms", "a,b", "--policies", "ucb,ts"], "--serve plays one policy, but --policies names 2; keep one of them"),
        (["--serve", "--arms", "a,b", "--state", "file"], "file is no state of a policy (Expecting value: line 1 column 1 (char 0)); "
         "name another file with --state"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_bad_input(bad, arguments, sentence):
    before = files(bad)
    threshold = [] if "--threshold" in arguments else ["--threshold", "0.6"]
    said = refused(bad(*RUN, *arguments, *threshold))
    assert sentence in said
    assert said.count(sentence) == 1
    assert files(bad) == before


def test_the_threshold_must_be_given(bad):
    assert refused(bad(*RUN, "short.csv")) == "Missing option '--threshold'. (upheld run bandits --help tells how)"


@pytest.mark.slow
def test_ctrl_c_leaves_nothing(choices):
    going = choices.start(*RUN, "choices.csv", "--threshold", "0.6", "--runs", "50000", "--out", "out")
    time.sleep(8)  # well into the replay, which would take minutes
    assert going.poll() is None, going.communicate()
    going.send_signal(signal.SIGINT)
    out, error = going.communicate(timeout=60)
    assert (going.returncode, out) == (130, "")
    assert "Traceback" not in error
    assert files(choices) == {"choices.csv"}


# -- playing live


def serve(upheld, events: str, *options: str) -> list[dict]:
    done = upheld(*RUN, "--serve", "--threshold", "0.5", *options, fed=events)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_program_plays_over_a_pipe_until_an_arm_is_certified(upheld):
    process = subprocess.Popen(
        upheld.line(*RUN, "--serve", "--threshold", "0.5", "--arms", "bad,good"),
        cwd=upheld.folder, env=upheld.variables(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    event: dict[str, object] = {}
    for _ in range(300):
        process.stdin.write(json.dumps(event) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        event = {"arm": answer["arm"], "reward": float(answer["arm"] == "good")}
        if answer["certified"]:
            break
    process.stdin.close()
    assert process.wait(timeout=30) == 0
    assert answer["certified"] == ["good"]
    assert answer["rounds"] < 60
    assert answer["uncertain_rounds"] == answer["rounds"]


def test_bad_lines_are_answered_and_change_nothing(upheld):
    events = ['{"arm": "a", "reward": 1}', "nonsense", '{"arm": "z", "reward": 1}', '{"arm": "a", "reward": "x"}', "",
              '{"arm": "a", "reward": 3}', '{"arm": "a"}', "[1]", '{"event": "dance"}', '{"arm": "a", "reward": NaN}',
              '{"reword": 1}', "{}", '{"event": "certificates"}']  # fmt: skip
    answers = serve(upheld, "\n".join(events) + "\n", "--arms", "a,b")
    first, *errors, last, evidence = answers
    assert first == {"arm": "b", "certified": [], "rounds": 1, "uncertain_rounds": 1}
    assert [answer["error"].split(":")[0] for answer in errors] == [f"line {n}" for n in (2, 3, 4, 6, 7, 8, 9, 10, 11)]
    assert "there is no arm 'z'; there are a, b" in errors[1]["error"]
    assert "start with --sigma" in errors[3]["error"]
    assert last == first
    assert [(arm["arm"], arm["pulls"]) for arm in evidence["certificates"]] == [("a", 1), ("b", 0)]


def test_state_is_kept_and_gone_on_from(upheld):
    events = [
        json.dumps({"arm": arm, "reward": reward})
        for arm, reward in zip("abcabcab", (0, 1, 0, 1, 1, 0, 0, 1), strict=True)
    ]
    options = ("--arms", "a,b,c", "--policies", "uncertain-ts", "--seed", "3")
    whole = serve(upheld, "\n".join(events), *options)
    first = serve(upheld, "\n".join(events[:5]), *options, "--state", "state.json")
    second = serve(upheld, "\n".join(events[5:]), *options, "--state", "state.json")
    assert first + second == whole
    assert files(upheld) == {"state.json"}
    sentence = refused(upheld(*RUN, "--serve", "--threshold", "0.5", "--arms", "a,b", "--state", "state.json"))
    assert sentence.startswith("state.json: the state was saved with")
    assert sentence.endswith("; name another file with --state")


def test_arms_of_a_log_may_be_numbers(upheld):
    pd.DataFrame({"dose": [10, 20, 20], "effect": [0.0, 1.0, 0.5]}).to_csv(upheld.folder / "log.csv", index=False)
    answers = serve(upheld, '{"arm": 10, "reward": 0.5}\n', "--log", "log.csv", "--arm", "dose", "--reward", "effect")
    assert answers[0]["arm"] == 20


def test_ctrl_c_while_serving(upheld):
    going = subprocess.Popen(
        upheld.line(*RUN, "--serve", "--threshold", "0.5", "--arms", "a,b"), cwd=upheld.folder, env=upheld.variables(),
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert going.stdin is not None
    assert going.stdout is not None
    going.stdin.write("{}\n")
    going.stdin.flush()
    assert json.loads(going.stdout.readline())["arm"] == "a"
    os.kill(going.pid, signal.SIGINT)
    _, error = going.communicate(timeout=30)
    assert (going.returncode, error) == (130, "")
