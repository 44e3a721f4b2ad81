"""The run behind ``upheld run isotropy``: answers read or sampled, scored as they come, and what was found written."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

from upheld.isotropy.calibration import TrustCalibrator
from upheld.isotropy.command.asking import Asking, Meter, asked, read_prompts
from upheld.isotropy.command.document import run_document
from upheld.isotropy.command.options import Options, most, samples
from upheld.isotropy.command.survey import (
    OURS,
    Digest,
    Given,
    Overview,
    Reading,
    Scored,
    look_through,
    one_setting,
    runnable,
    scored,
)
from upheld.isotropy.data.files import read_responses
from upheld.isotropy.embedding import chosen
from upheld.isotropy.result import IsotropyWarning
from upheld.isotropy.rivals import Rival
from upheld.isotropy.rivals.evidence import Need
from upheld.isotropy.semantic_isotropy import SemanticIsotropy
from upheld.llm import CachedModel, Embedder, LanguageModel
from upheld.llm.cache_file import CacheError
from upheld.llm.embedding_cache import CachedEmbedder
from upheld.report.content import drawn, plain
from upheld.report.progress import Progress
from upheld.report.writing import write_files
from upheld.storage import cache_folder


@dataclass(frozen=True, eq=False)
class Found:
    """What the run found, for the printing and writing of it."""

    document: dict[str, Any]
    worst: list[Scored]
    digest: Digest
    embedder: Embedder
    calibrator: TrustCalibrator | None


def surveyed(
    options: Options, rivals: Sequence[Rival], progress: Progress, scores: IO[str] | None, responses: IO[str] | None
) -> Found:
    """Look through the answers, score them, and sum up; `scores` and `responses` are written as it goes."""
    overview, prompts = _first_look(options, progress)
    total = len(prompts) if overview is None else overview.prompts
    calibration = _Calibration(options, overview)
    model = _model(options)
    reading, not_run = _reading(options, rivals, overview, total, model, calibration.given)
    names = [rival.name for rival in reading.rivals]
    digest = Digest(options.top, names, options.seed)
    sizes: set[int] = set()
    with progress.part("scoring", total, "prompts") as part:
        sampled = _Sampled()
        given = _given(options, prompts, model, reading, responses, sampled, part.reach)
        for one in scored(given, reading):
            digest.add(one)
            sizes.add(one.result.n)
            calibration.note(one)
            if scores is not None:
                scores.write(json.dumps(one.record(), ensure_ascii=False, allow_nan=False) + "\n")
            if options.file is not None:
                part.reach(digest.prompts)
    if options.record is not None and model is not None:
        model.model.export(options.record)  # type: ignore[attr-defined]  # with --record it is a CachedModel
    remarks = _mixed(options, overview) + sampled.remarks() + digest.remarks()
    document = run_document(
        digest,
        source=(options.file or options.prompts or Path()).name,
        settings=_settings(options, reading),
        titles={rival.name: rival.title for rival in rivals},
        not_run=not_run,
        remarks=remarks,
        mixed=len(sizes) > 1 and options.adaptive is None,
        sampling=None if model is None else sampled.account(options, model, digest),
        seed=options.seed,
    )
    _remark(remarks)
    return Found(document, digest.worst, digest, reading.embedder, calibration.fitted())


def _remark(remarks: Sequence[str]) -> None:
    for remark in remarks:
        warnings.warn(remark, IsotropyWarning, stacklevel=2)


def _first_look(options: Options, progress: Progress) -> tuple[Overview | None, list[tuple[str, str]]]:
    """What the file holds, or the prompts to ask."""
    if options.prompts is not None:
        return None, read_prompts(options.prompts)
    assert options.file is not None  # `check`
    with progress.part("looking through the answers", unit="prompts") as part:
        overview = look_through(read_responses(options.file), lambda done, _: part.reach(done))
    if options.template is not None and overview.promptless_id is not None:
        raise ValueError(
            f"--template {options.template} names the prompt, and {overview.promptless_id!r} has none; fill it, or leave out --template"
        )
    if options.n is not None and options.n > overview.smallest and not options.allow_mixed_n:
        raise ValueError(
            f"{overview.smallest_id!r} has {overview.smallest} answers, fewer than --n {options.n}; take --n {overview.smallest}, sample "
            "more, or add --allow-mixed-n"
        )
    return overview, []


def _mixed(options: Options, overview: Overview | None) -> list[str]:
    """What is done about prompts with different numbers of answers."""
    if overview is None or overview.smallest == overview.largest:
        return []
    some = f"the prompts have {overview.smallest} ({overview.smallest_id!r}) to {overview.largest} ({overview.largest_id!r}) answers"
    if options.allow_mixed_n and (options.n or overview.largest) > overview.smallest:
        return [f"{some}: their scores do not compare; compare means of the unbiased purity, shown beside"]
    if options.n is not None:
        return []
    return [
        f"{some}, and scores of different numbers do not compare: {overview.smallest} of each are used, drawn with --seed "
        f"{options.seed}; --allow-mixed-n uses all"
    ]


def _reading(
    options: Options,
    rivals: Sequence[Rival],
    overview: Overview | None,
    total: int,
    model: Meter | None,
    calibrator: TrustCalibrator | None,
) -> tuple[Reading, dict[str, str]]:
    """How answers are read, with the rivals that can run; and why the others cannot."""
    from upheld.isotropy.rivals.nli import NLI

    nli = None if options.nli is None else NLI(options.nli)
    given = {
        Need.EMBEDDINGS: total,
        Need.NLI: total * (nli is not None),
        Need.MODEL: total * (model is not None),
        Need.LOGPROBS: 0 if overview is None else overview.with_logprobs,
    }
    can, not_run = runnable(rivals, given, total)
    n = options.n
    if overview is not None and n is None and not options.allow_mixed_n:
        n = overview.smallest
    reading = Reading(
        _embedder(options),
        options.template,  # type: ignore[arg-type]  # `check`
        options.long_text,  # type: ignore[arg-type]
        n_samples=n if options.prompts is None else None,
        seed=options.seed,
        rivals=can,
        nli=nli,
        model=model,
        calibrator=calibrator,
    )
    return reading, not_run


def _embedder(options: Options) -> Embedder:
    """The embedder, with its cache: what was embedded once is not embedded again."""
    found = chosen(options.embedder, options.pooling)  # type: ignore[arg-type]  # `check`
    if not options.cache or options.pooling == "unmasked_mean":  # there a vector depends on what is embedded beside it
        return found
    with _named_cache():
        return CachedEmbedder(found, _cache_file(), template=options.template or "")


@contextmanager
def _named_cache() -> Iterator[None]:
    try:
        yield
    except CacheError as error:
        raise CacheError(f"{error} (UPHELD_CACHE names its folder, --no-cache does without)") from error


def _cache_file() -> Path:
    return cache_folder() / "isotropy.sqlite"


def _model(options: Options) -> Meter | None:
    """The model that answers, with its cache and an account of its cost."""
    from upheld.llm import Endpoint, language_model

    if options.replay is not None:
        return Meter(CachedModel.replay(options.replay, options.model))
    if options.model is None:
        return None
    at: dict[str, Any] = {"concurrency": options.concurrency or 4, "prices": options.prices}
    found: LanguageModel
    if options.endpoint is not None:
        found = Endpoint(options.model, options.endpoint, **at)
    else:
        found = language_model(options.model, **(at if options.model.startswith("openai:") else {}))
    with _named_cache():
        return Meter(CachedModel(found, _cache_file()) if options.cache else found)


def _asking(options: Options) -> Asking:
    usual = Asking()
    local = options.endpoint is None and not (options.model or "").startswith("openai:")
    return Asking(
        samples(options),
        usual.temperature if options.temperature is None else options.temperature,
        usual.max_tokens if options.max_tokens is None else options.max_tokens,
        options.seed,
        options.adaptive,
        most(options),
        1 if local else options.concurrency or 4,
    )


class _Sampled:
    """How the answers came, over all prompts."""

    def __init__(self) -> None:
        self.prompts = self.answers = self.without_end = 0

    def note(self, truncated: Sequence[bool]) -> None:
        self.prompts += 1
        self.answers += len(truncated)
        self.without_end += sum(truncated)

    def remarks(self) -> list[str]:
        if not self.without_end:
            return []
        return [
            f"{self.without_end:,} of {self.answers:,} answers lack their closing tag: they were cut off (raise --max-tokens), or the "
            "model pays no heed to the tags"
        ]

    def account(self, options: Options, model: Meter, digest: Digest) -> dict[str, Any]:
        """Calls, tokens and cost."""
        usage = model.usage
        cost = usage.cost if options.prices is not None else None
        tokens = f"{usage.prompt_tokens:,} tokens read and {usage.completion_tokens:,} written"
        fresh = (
            f"{model.fresh:,} answer{'s' * (model.fresh > 1)} asked for: {tokens}"
            if model.fresh
            else "no answer asked for"
        )
        price = "" if cost is None else f", at a cost of {cost:,.4g}"
        kept = f"; {model.kept:,} were there from an earlier run" if model.kept else ""
        saved = (
            f"; deciding at {options.adaptive:g} saved {digest.calls_saved:,} of {self.prompts * most(options):,} calls"
            if options.adaptive is not None
            else ""
        )
        return {
            "model": model.id,
            "asked": model.fresh,
            "from_earlier_runs": model.kept,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost": None if cost is None else plain(cost),
            "calls_saved": digest.calls_saved if options.adaptive is not None else None,
            "verdicts": dict(digest.verdicts),
            "sentence": f"{fresh}{price}{kept}{saved}",
        }


def _given(
    options: Options,
    prompts: Sequence[tuple[str, str]],
    model: Meter | None,
    reading: Reading,
    responses: IO[str] | None,
    sampled: _Sampled,
    told: Callable[[int], None],
) -> Iterator[Given]:
    """The answers of the file, or those that the model gives now."""

    if options.file is not None:
        yield from ((item, None) for item in read_responses(options.file))
        return
    assert model is not None  # `check`
    scorer = SemanticIsotropy(reading.embedder, template=reading.template, long_text=reading.long_text)
    for one in asked(prompts, model, _asking(options), scorer, lambda done, _: told(done)):
        sampled.note(one.drawn.truncated)
        if responses is not None:
            record = {"id": one.item.id, "prompt": one.item.prompt, "responses": one.item.responses}
            responses.write(json.dumps(record, ensure_ascii=False) + "\n")
        yield one.item, one.adaptive


class _Calibration:
    """The calibration that is given, and the labelled prompts for a new one."""

    def __init__(self, options: Options, overview: Overview | None) -> None:
        self.given = None if options.calibrate is None else _loaded(options.calibrate)
        self._new = TrustCalibrator(random_state=options.seed) if options.save_calibrator is not None else None
        self._ids: list[str] = []
        self._scores: list[float] = []
        self._factuality: list[float] = []
        self._example: Scored | None = None
        if self._new is None:
            return
        if overview is None:
            raise ValueError(
                "--save-calibrator needs labelled answers, and --prompts has none; label them, then give the file"
            )
        if options.allow_mixed_n and overview.smallest < (options.n or overview.largest):
            raise ValueError("--save-calibrator needs the same number of answers everywhere; leave out --allow-mixed-n")
        if not overview.labelled:
            raise ValueError(
                f"--save-calibrator needs labelled prompts, and {options.file} has no factuality; label about 50"
            )
        self._new.fit([0.0] * overview.labelled, [0.0] * overview.labelled)  # are they enough?

    def note(self, one: Scored) -> None:
        if self._new is not None and one.item.factuality is not None:
            self._ids.append(one.item.id)
            self._scores.append(one.score)
            self._factuality.append(one.item.factuality)
            self._example = one

    def fitted(self) -> TrustCalibrator | None:
        if self._new is None or self._example is None:
            return None
        return self._new.fit(self._scores, self._factuality, self._ids, setting=one_setting([self._example]))


def _loaded(path: Path) -> TrustCalibrator:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; --calibrate names what --save-calibrator wrote")
    return TrustCalibrator.load(path)


# -- what comes out


def _settings(options: Options, reading: Reading) -> dict[str, Any]:
    said = {
        one.name: getattr(options, one.name)
        for one in fields(options)
        if one.name not in ("out", "json", "html", "pictures")
    }
    named = {name: value.name if isinstance(value, Path) else value for name, value in said.items()}
    return named | {
        "embedder": options.embedder,
        "embedder_id": reading.embedder.id,
        "n": samples(options) if options.prompts is not None else reading.n_samples,
    }


def write(found: Found, options: Options, progress: Progress) -> None:
    """The page, the pictures and the calibration; each is whole before any is in its place."""
    drawings = _drawings(found, options)
    if options.html is not None:
        text = _page(found, options, drawings, progress)
        with _named_option("html"):
            write_files(options.html.parent, {options.html.name: text})
    if options.pictures is not None:
        endings = ("png", "svg")
        contents = {
            f"{name}.{ending}": drawn(figure, ending) for name, (_, figure) in drawings.items() for ending in endings
        }
        with _named_option("pictures"):
            write_files(options.pictures, contents)
    if options.save_calibrator is not None and found.calibrator is not None:
        found.calibrator.save(options.save_calibrator)


@contextmanager
def _named_option(name: str) -> Iterator[None]:
    """`write_files` calls the place of every method's results --out."""
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error).replace("with --out", f"with --{name}")) from error


def _drawings(found: Found, options: Options) -> dict[str, tuple[str, Any]]:
    """Figures by the names of their files, each with what it shows."""
    if options.pictures is None and options.html is None:
        return {}
    from upheld.isotropy import plots

    drawings: dict[str, tuple[str, Any]] = {}
    judged = found.document["judged"]
    if judged and judged["signals"]:
        own = judged["signals"][0]
        figure = plots.score_against_factuality(
            found.digest.values()[OURS], found.digest.factuality, (own["spearman"], own["r_squared"])
        )
        drawings["score-against-factuality"] = ("Score and factuality of the labelled prompts", figure)
    if max(one.result.n for one in found.worst) > 2:
        drawings["score-by-number"] = (
            "What fewer answers would have given, for the worst prompts",
            plots.score_by_n(found.worst),
        )
    if options.pictures is not None:  # the page has its own maps
        drawings["maps"] = ("Maps of the answers to the worst prompts", plots.answer_maps(found.worst))
    return drawings


def _page(found: Found, options: Options, drawings: Mapping[str, tuple[str, Any]], progress: Progress) -> str:
    from upheld.isotropy.command.page import page
    from upheld.isotropy.passages import passages

    differing = {}
    with progress.part("comparing passages", len(found.worst), "prompts") as part:
        for done, one in enumerate(found.worst, start=1):
            texts = [one.item.responses[i] for i in one.result.answers]
            differing[one.item.id] = passages(texts, found.embedder)
            part.reach(done)
    shown = {what: drawn(figure, "svg") for name, (what, figure) in drawings.items() if name != "maps"}
    return page(found.document, found.worst, differing, pictures=shown, command=options.command)


def written(options: Options) -> dict[Path, str]:
    """The files that were asked for, with what is in them."""
    named = {
        options.out: "all about every prompt",
        options.html: "the answers side by side",
        options.pictures: "pictures (png and svg)",
        options.responses_out: "the sampled answers",
        options.save_calibrator: "the calibration, for --calibrate",
        options.record: "what the model answered, for --replay",
    }
    return {path: what for path, what in named.items() if path is not None}
