"""What ``upheld run isotropy`` was asked for: the options, and everything that can be found wrong with them before the run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from upheld.isotropy.rivals import RIVALS, Rival, chosen
from upheld.isotropy.rivals.evidence import Need
from upheld.isotropy.rivals.published import AS_PUBLISHED
from upheld.report.wording import option, options_of
from upheld.report.writing import expect_file, expect_folder

TOO_DEAR = "luq-pair"  # sentences by sentences: "all" leaves it out


@dataclass(frozen=True)
class Options:
    """As they were given; see `run`."""

    file: Path | None
    embedder: str
    pooling: str | None
    template: str | None
    long_text: str
    n: int | None
    allow_mixed_n: bool
    rivals: str | None
    nli: Path | None
    as_published: bool
    out: Path | None
    html: Path | None
    pictures: Path | None
    top: int
    seed: int
    cache: bool
    calibrate: Path | None
    save_calibrator: Path | None
    prompts: Path | None
    endpoint: str | None
    model: str | None
    temperature: float | None
    max_tokens: int | None
    adaptive: float | None
    n_max: int | None
    prices: Path | None
    concurrency: int | None
    responses_out: Path | None
    replay: Path | None
    record: Path | None
    json: bool

    @property
    def command(self) -> str:
        """The line that repeats the run."""
        usual = {"embedder": "minilm", "long_text": "window", "top": 20, "seed": 0, "cache": True}
        words = ["upheld", "run", "isotropy", *([str(self.file)] if self.file else [])]
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "file" or value is None or value is False or value == usual.get(one.name):
                if one.name == "cache" and not value:
                    words.append("--no-cache")
                continue
            words += [option(one.name)] if value is True else [option(one.name), str(value)]
        return shlex.join(words)


POOLINGS = ("mean", "cls", "max", "last", "unmasked_mean")
LONG_TEXTS = ("window", "truncate", "error")
PARAMETERS = options_of(
    ["long_text", "template", "pooling", "n_samples", "max_tokens", "temperature", "n_max"], {"n_samples": "--n"}
)
SAMPLING = ("temperature", "max_tokens", "adaptive", "n_max", "responses_out")
OUTPUTS = ("out", "html", "save_calibrator", "responses_out", "record")
INPUTS = ("file", "prompts", "calibrate", "prices", "replay")


def check(options: Options) -> None:
    """Say now, and not after the run, what cannot be done."""
    if options.file is None and options.prompts is None:
        raise ValueError(
            "there is nothing to score: name a file of answers, or with --prompts a file of prompts to ask"
        )
    if options.file is not None and options.prompts is not None:
        raise ValueError("FILE holds answers and --prompts asks for new ones; give one of them")
    _one_of("--pooling", options.pooling, POOLINGS)
    _one_of("--template", options.template, ("excerpt",))
    _one_of("--long-text", options.long_text, LONG_TEXTS)
    if options.prompts is None:
        for name in SAMPLING:
            if getattr(options, name) is not None:
                raise ValueError(f"{option(name)} goes with --prompts; add that, or leave it out")
    else:
        _check_sampling(options)
    _check_model(options)
    _check_places(options)


def _one_of(option: str, value: str | None, among: Sequence[str]) -> None:
    if value is not None and value not in among:
        raise ValueError(f"{option} must be {' or '.join(among)}, got {value!r}")


def _check_sampling(options: Options) -> None:
    if options.allow_mixed_n:
        raise ValueError("--allow-mixed-n is for files of answers; leave it out, every prompt is asked as often")
    if options.model is None and options.replay is None:
        raise ValueError("--prompts needs a model: name it with --model (and its --endpoint, or --model embedded)")
    if options.temperature is not None and not 0 < options.temperature <= 2:
        why = "gives the same answer each time, and so the score 0" if options.temperature == 0 else "is none"
        raise ValueError(
            f"--temperature {options.temperature:g} {why}; take one above 0 and at most 2, such as the paper's 0.7"
        )
    if options.n_max is not None and options.adaptive is None:
        raise ValueError("--n-max goes with --adaptive; add that, or leave it out")
    if options.adaptive is not None:
        if not 0 <= options.adaptive <= 1:  # nor NaN
            raise ValueError(f"--adaptive must be a score between 0 and 1, got {options.adaptive}")
        if not 3 <= samples(options) <= most(options):
            raise ValueError(
                f"--adaptive begins with --n answers, at least 3, and ends with --n-max; got {samples(options)} and {most(options)}"
            )


def _check_model(options: Options) -> None:
    if options.endpoint is not None and options.model is None:
        raise ValueError("--endpoint needs the name of a model there; add --model")
    if options.endpoint is not None and options.replay is not None:
        raise ValueError("--replay asks no model; leave out --endpoint")
    if options.replay is not None and options.record is not None:
        raise ValueError("--record of what is replayed would be the same file again; leave one of them out")
    if options.record is not None and not options.cache:
        raise ValueError("--record writes what the cache keeps; leave out --no-cache")
    at_endpoint = options.endpoint is not None or (options.model or "").startswith("openai:")
    for name in ("prices", "concurrency"):
        if getattr(options, name) is not None and not at_endpoint:
            raise ValueError(f"{option(name)} goes with --endpoint; add that, or leave it out")
    if options.record is not None and options.model is None:
        raise ValueError("--record goes with --model; add that, or leave it out")


def _check_places(options: Options) -> None:
    """Outputs can be written, and are neither each other nor what is read."""
    read = {_resolved(getattr(options, name)): name for name in INPUTS if getattr(options, name) is not None}
    taken: dict[Path, str] = {}
    for name in OUTPUTS:
        path: Path | None = getattr(options, name)
        if path is None:
            continue
        place = _resolved(path)
        if place in read:
            raise ValueError(f"{option(name)} names {path}, which is read; name another file")
        if place in taken:
            raise ValueError(f"{taken[place]} and {option(name)} both name {path}; name two files")
        taken[place] = option(name)
        expect_file(path, option(name))
    if options.pictures is not None:
        expect_folder(options.pictures, "--pictures")


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except RuntimeError:
        raise ValueError(f"{path} is a symbolic link that leads back to itself; name another file") from None


def samples(options: Options) -> int:
    """Answers asked of each prompt."""
    return 5 if options.n is None else options.n


def most(options: Options) -> int:
    return 20 if options.n_max is None else options.n_max


def named_rivals(options: Options) -> list[Rival]:
    """Those named; of "all", none that is too dear unless it is named as well."""
    found: list[Rival] = []
    if options.rivals is not None:
        names = [name.strip() for name in options.rivals.split(",") if name.strip()]
        if not names:
            raise ValueError(f"--rivals names none; there are {', '.join(rival.name for rival in RIVALS)}, or all")
        if "all" in names:
            names = [name for name in names if name != "all"] + [r.name for r in RIVALS if r.name != TOO_DEAR]
        found = chosen(names)
    if options.as_published:
        found += AS_PUBLISHED
    _check_rivals(options, found)
    return found


def _check_rivals(options: Options, rivals: Sequence[Rival]) -> None:
    needed = {need for rival in rivals for need in rival.needs}
    if options.nli is not None and Need.NLI not in needed:
        raise ValueError("--nli is for rivals that ask it; add --rivals nli, or another of them, or leave it out")
    if options.file is not None and Need.MODEL not in needed:
        for name in ("model", "endpoint", "replay"):
            if getattr(options, name) is not None:
                raise ValueError(f"{option(name)} goes with --prompts, or with rivals that ask a model; leave it out")
