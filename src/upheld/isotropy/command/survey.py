"""Many prompts scored one after another, in memory that does not grow with their number.

What is kept: a few hundred answers on their way through the embedder, the worst prompts, and of the labelled ones a random sample of
at most 2,000, for how well each signal foretells factuality. Everything else is handed on as it comes.
"""

from __future__ import annotations

import heapq
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from upheld.isotropy.adaptive import AdaptiveSample
from upheld.isotropy.calibration import ScoreSetting, TrustCalibrator
from upheld.isotropy.data.responses import Responses
from upheld.isotropy.embedding import Embedded, LongText, embed
from upheld.isotropy.groups import Answers, taken
from upheld.isotropy.result import IsotropyResult, IsotropyWarning
from upheld.isotropy.rivals import Rival, race
from upheld.isotropy.rivals.entailment import Inference
from upheld.isotropy.rivals.evidence import Evidence, Need
from upheld.isotropy.semantic_isotropy import ANTIPODAL, UNKNOWN, SemanticIsotropy
from upheld.isotropy.templates import Template
from upheld.llm import Embedder, LanguageModel, ModelError
from upheld.llm.model import Told

FloatArray = NDArray[np.float64]

OURS, ORDER_2 = "isotropy", "1 - unbiased purity"
AT_ONCE = 512  # answers embedded together: enough to sort them by length, few enough to hear of progress
JUDGED = 2000  # labelled prompts on which signals are judged: a correlation is then known to about 0.02
WIDTH = 1.96  # standard errors to either side of a 95 % interval
NOTHING = 1e-6  # an influence that is rounding


@dataclass(frozen=True)
class Overview:
    """What a first look through the prompts tells: how many there are, how many answers they have, and what else is known."""

    prompts: int
    answers: int
    smallest: int
    smallest_id: str
    largest: int
    largest_id: str
    labelled: int
    with_logprobs: int
    promptless_id: str | None = None


@dataclass(frozen=True, eq=False)
class Scored:
    """One prompt with all that was found out about it.

    Attributes
    ----------
    score, se : what prompts are ranked by: those of `result`, or of n_min answers where they were drawn adaptively
    rivals : what other signals say, each high where trust is not deserved; NaN where it has nothing to say
    expected : expected factuality with the ends of its interval, if there is a calibration
    adaptive : how its answers were drawn, if until a decision
    """

    item: Responses
    result: IsotropyResult
    score: float
    se: float
    rivals: Mapping[str, float]
    expected: tuple[float, float, float] | None = None
    adaptive: AdaptiveSample | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """95 %; NaN for two answers."""
        return self.score - WIDTH * self.se, self.score + WIDTH * self.se

    @property
    def odd(self) -> int | None:
        """Index among the answers of the one that adds most to the spread; None if none does, or there are two."""
        influence = self.result.influence
        if np.isnan(influence).any() or influence.max() < NOTHING:
            return None
        return int(self.result.answers[np.argmax(influence)])

    def overlaps(self, other: Scored) -> bool:
        """Whether the intervals have a point in common; not known, and so not said, for two answers."""
        low, high = self.interval
        return bool(low <= other.interval[1] and other.interval[0] <= high)

    def record(self) -> dict[str, Any]:
        """As JSON can hold it."""
        record = {"id": self.item.id, "prompt": self.item.prompt, **self.result.to_dict()}
        record["odd"] = self.odd
        if self.item.factuality is not None:
            record["factuality"] = self.item.factuality
        if self.rivals:
            record["rivals"] = {name: None if np.isnan(value) else value for name, value in self.rivals.items()}
        if self.expected is not None:
            record["expected_factuality"] = dict(zip(("estimate", "low", "high"), self.expected, strict=True))
        if self.adaptive is not None:
            record["adaptive"] = {
                "score": self.score, "se": self.se, "verdict": self.adaptive.verdict, "threshold": self.adaptive.threshold,
                "calls_saved": self.adaptive.calls_saved,
            }  # fmt: skip
        return record


@dataclass(frozen=True)
class Reading:
    """How answers are read, scored and compared.

    Parameters
    ----------
    embedder, template, long_text, n_samples : see `SemanticIsotropy`; prompts with fewer than n_samples answers give all of them
    seed : which n_samples answers are taken
    rivals : those that can run, see `runnable`
    nli, model : for rivals that need them
    calibrator : gives the expected factuality
    """

    embedder: Embedder
    template: Template = None
    long_text: LongText = "window"
    n_samples: int | None = None
    seed: int = 0
    rivals: Sequence[Rival] = ()
    nli: Inference | None = None
    model: LanguageModel | None = None
    calibrator: TrustCalibrator | None = None


Given = tuple[Responses, AdaptiveSample | None]


def look_through(items: Iterable[Responses], told: Told | None = None) -> Overview:
    """Read all prompts once, so that what is wrong with the last one is heard of before the first is embedded.

    Raises
    ------
    ValueError
        As the reader of the items; if there is none.
    """
    sizes: Counter[int] = Counter()
    first: dict[int, str] = {}
    labelled = with_logprobs = 0
    promptless = None
    for number, item in enumerate(items, start=1):
        sizes[len(item.responses)] += 1
        first.setdefault(len(item.responses), item.id)
        labelled += item.factuality is not None
        with_logprobs += item.logprobs is not None
        if promptless is None and not item.prompt.strip():
            promptless = item.id
        if told is not None:
            told(number, 0)
    if not sizes:
        raise ValueError("there are no answers; give at least one prompt with 2")
    smallest, largest = min(sizes), max(sizes)
    answers = sum(size * times for size, times in sizes.items())
    return Overview(
        sizes.total(), answers, smallest, first[smallest], largest, first[largest], labelled, with_logprobs, promptless
    )


def runnable(rivals: Sequence[Rival], given: Mapping[Need, int], prompts: int) -> tuple[list[Rival], dict[str, str]]:
    """Rivals whose needs are met for all prompts, and for the others, by name, why they cannot run.

    Parameters
    ----------
    given : for how many of the prompts each need is met; 0 if it is not named
    """
    absent: dict[str, str] = {}
    for rival in rivals:
        for need in rival.needs:
            without = prompts - given.get(need, 0)
            if without:
                absent[rival.name] = (
                    str(need) if without == prompts else f"{need} for {without:,} of {prompts:,} prompts"
                )
                break
    return [rival for rival in rivals if rival.name not in absent], absent


def scored(given: Iterable[Given], reading: Reading) -> Iterator[Scored]:
    """Every prompt with its score, in their order; some hundred answers are read ahead.

    Raises
    ------
    ValueError
        Naming the prompt's id and the answer (the first is answer 1): a zero vector or one that is not finite, an answer too long
        with ``long_text="error"``; if the calibration is of another setting, or used one of the prompts.
    ModelError
        If a model cannot be reached.
    """
    for chunk in _chunks(given):
        answers = [_answers(item, reading) for item, _ in chunk]
        embedded = _embedded(answers, reading)
        scorer = SemanticIsotropy(long_text=reading.long_text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IsotropyWarning)  # `Digest` says them of all prompts together
            results = list(scorer.explain_all([one.vectors for one in embedded]))
        found = [
            _found(item, sample, group, result, vectors, reading)
            for (item, sample), group, result, vectors in zip(chunk, answers, results, embedded, strict=True)
        ]
        found = _compared(found, [one.vectors for one in embedded], reading)
        yield from _calibrated(found, reading.calibrator)


def _embedded(answers: list[Answers], reading: Reading) -> list[Embedded]:
    try:
        return embed(answers, reading.embedder, reading.template, reading.long_text)
    except ModelError as error:
        if "not finite" not in str(error):
            raise
        for group in answers:  # of which prompt?
            try:
                embed([group], reading.embedder, reading.template, reading.long_text)
            except ModelError as found:
                raise ModelError(
                    f"{found}; it belongs to an answer to {group.name}: drop that, or take another embedder"
                ) from error
        raise


def _chunks(given: Iterable[Given]) -> Iterator[list[Given]]:
    chunk: list[Given] = []
    size = 0
    for one in given:
        chunk.append(one)
        size += len(one[0].responses)
        if size >= AT_ONCE or one[1] is not None:  # what was drawn until a decision is shown as it comes
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _answers(item: Responses, reading: Reading) -> Answers:
    """The answers that are used; errors call the prompt by its id and count its answers from 1."""
    N = len(item.responses)
    n = None if reading.n_samples is None else min(reading.n_samples, N)
    used = taken(N, n, reading.seed, repr(item.id))
    return Answers(repr(item.id), used + 1, item.prompt, texts=tuple(item.responses[i] for i in used))


def _found(
    item: Responses,
    sample: AdaptiveSample | None,
    group: Answers,
    result: IsotropyResult,
    read: Embedded,
    reading: Reading,
) -> Scored:
    used = group.used - 1
    result = replace(
        result,
        answers=used,
        medoid=int(used[result.medoid]),
        truncated_share=read.truncated_share,
        unknown_share=read.unknown_share,
        template=reading.template,
        embedder_id=reading.embedder.id,
    )
    figures = result if sample is None else sample
    return Scored(item, result, figures.score, figures.se, {}, adaptive=sample)


def _compared(found: list[Scored], vectors: Sequence[FloatArray], reading: Reading) -> list[Scored]:
    """With what the rivals say of the same answers; of as many for every prompt where they were drawn until a decision."""
    if not reading.rivals:
        return found
    evidence = [_evidence(one, E, reading) for one, E in zip(found, vectors, strict=True)]
    values = {one.rival.name: one.values for one in race(evidence, reading.rivals)}
    return [
        replace(one, rivals={name: float(column[place]) for name, column in values.items() if column is not None})
        for place, one in enumerate(found)
    ]


def _evidence(one: Scored, E: FloatArray, reading: Reading) -> Evidence:
    n = one.result.n if one.adaptive is None else one.adaptive.looks[0].n
    used = one.result.answers[:n]
    item = one.item
    return Evidence(
        [item.responses[i] for i in used],
        prompt=item.prompt,
        embeddings=E[:n],
        nli=reading.nli,
        model=reading.model,
        logprobs=None if item.logprobs is None else [item.logprobs[i] for i in used],
    )


def _calibrated(found: list[Scored], calibrator: TrustCalibrator | None) -> list[Scored]:
    if calibrator is None:
        return found
    ids = [one.item.id for one in found] if calibrator.ids_ is not None else None
    scores = [one.score for one in found]
    expected = zip(*calibrator.predict(scores, ids, setting=one_setting(found)), strict=True)
    return [
        replace(one, expected=(float(estimate), float(low), float(high)))
        for one, (estimate, low, high) in zip(found, expected, strict=True)
    ]


def one_setting(found: Sequence[Scored]) -> ScoreSetting:
    """The setting of the scores that prompts are ranked by.

    Raises
    ------
    ValueError
        If there are several.
    """
    return ScoreSetting.of(
        [one.result if one.adaptive is None else replace(one.result, n=one.adaptive.looks[0].n) for one in found]
    )


@dataclass
class Digest:
    """What is kept of all prompts.

    Parameters
    ----------
    keep : how many of the worst
    signals : names of the rivals whose values are kept of labelled prompts
    seed : which of more than 2,000 labelled prompts are kept
    """

    keep: int
    signals: Sequence[str] = ()
    seed: int = 0
    prompts: int = 0
    answers: int = 0
    labelled: int = 0
    calls_saved: int = 0
    total: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    histogram: NDArray[np.int64] = field(default_factory=lambda: np.zeros(50, dtype=np.int64))
    _identical: tuple[int, str] = (0, "")
    _antipodal: tuple[int, str] = (0, "")
    _cut: tuple[int, float] = (0, 0.0)
    _unknown: tuple[int, float] = (0, 0.0)

    def __post_init__(self) -> None:
        self._order = count()
        self._heap: list[tuple[float, int, Scored]] = []
        self._rng = np.random.default_rng(self.seed)
        self._judged: list[tuple[float, ...]] = []

    def add(self, one: Scored) -> None:
        self.prompts += 1
        self.answers += one.result.n
        self.total += one.score
        self.histogram[min(max(int(one.score * len(self.histogram)), 0), len(self.histogram) - 1)] += 1
        entry = (one.score, -next(self._order), one)  # of equal scores the first of the file is worse
        if len(self._heap) < self.keep:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)
        if one.adaptive is not None:
            self.calls_saved += one.adaptive.calls_saved
            self.verdicts[one.adaptive.verdict] += 1
        self._look_at(one)
        self._judge_by(one)

    @property
    def worst(self) -> list[Scored]:
        """Highest score first."""
        return [one for _, _, one in sorted(self._heap, reverse=True)]

    @property
    def factuality(self) -> FloatArray:
        """(n,) of the labelled prompts that are kept."""
        return np.array([row[0] for row in self._judged])

    def values(self) -> dict[str, FloatArray]:
        """(n,) of every signal on those prompts: the score, 1 - unbiased purity, the rivals."""
        table = np.array(self._judged).reshape(len(self._judged), -1)
        names = (OURS, ORDER_2, *self.signals)
        return {name: table[:, column] for column, name in enumerate(names, start=1)} if len(table) else {}

    def remarks(self) -> list[str]:
        """What makes scores mean something else than they seem to."""
        said = []
        n, first = self._identical
        if n:
            said.append(
                f"{n:,} of {self.prompts:,} prompts have answers that are identical byte for byte, {first!r} first: a cache, a fixed seed "
                "or temperature 0 makes the score low by construction; sample them anew unless they are short"
            )
        n, first = self._antipodal
        if n:
            said.append(
                f"{n:,} of {self.prompts:,} prompts have two answers of cosine below {ANTIPODAL}, {first!r} first: the score takes "
                "opposite vectors for equal ones, so it understates their spread; read mean_cosine_distance beside it"
            )
        n, most = self._unknown
        if n:
            said.append(
                f"the embedder's vocabulary lacks over {100 * UNKNOWN:.0f} % of the tokens of the answers of {n:,} of {self.prompts:,} "
                f"prompts, up to {100 * most:.0f} %; they all read the same to it, so scores may be too low: take an embedder made for "
                "that language, with --embedder"
            )
        n, most = self._cut
        if n:
            said.append(
                f"the embedder did not read all of the answers of {n:,} of {self.prompts:,} prompts, at most {100 * most:.0f} % of "
                "the tokens of one went unread; --long-text window reads all"
            )
        return said

    def _look_at(self, one: Scored) -> None:
        texts = [one.item.responses[i] for i in one.result.answers]
        if len(set(texts)) < len(texts):
            self._identical = (self._identical[0] + 1, self._identical[1] or one.item.id)
        if one.result.cosines.min() < ANTIPODAL:
            self._antipodal = (self._antipodal[0] + 1, self._antipodal[1] or one.item.id)
        if one.result.unknown_share > UNKNOWN:
            self._unknown = (self._unknown[0] + 1, max(self._unknown[1], one.result.unknown_share))
        if one.result.truncated_share > 0:
            self._cut = (self._cut[0] + 1, max(self._cut[1], one.result.truncated_share))

    def _judge_by(self, one: Scored) -> None:
        """A uniform sample of the labelled prompts: the k-th takes the place of a kept one with probability JUDGED / k."""
        if one.item.factuality is None:
            return
        self.labelled += 1
        own = (one.item.factuality, one.score, 1 - one.result.purity_unbiased)
        row = own + tuple(one.rivals[name] for name in self.signals)
        if len(self._judged) < JUDGED:
            self._judged.append(row)
        elif (place := int(self._rng.integers(self.labelled))) < JUDGED:
            self._judged[place] = row
