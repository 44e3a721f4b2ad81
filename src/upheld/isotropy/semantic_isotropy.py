"""The scorer: groups of sampled answers in, one score a prompt out (equation 5), with its error bar and what is behind it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from upheld.isotropy.embedding import LONG_TEXTS, Embedded, LongText, Pooling, chosen, embed
from upheld.isotropy.entropy import unit_entropy
from upheld.isotropy.groups import Answers, Group, checked, chunks
from upheld.isotropy.leave_one_out import influence, jackknife_standard_error, unit_leave_one_out
from upheld.isotropy.result import IsotropyResult, IsotropyWarning, mixed_sizes
from upheld.isotropy.spread import mean_cosine_distance, medoid, purity, purity_unbiased, unit_cosines, vmf_kappa
from upheld.isotropy.templates import TEMPLATES, Template
from upheld.llm.model import Embedder, Told

FloatArray = NDArray[np.float64]

# Answers embedded together: enough for batches of like length, few enough for memory not to notice.
CHUNK_ANSWERS = 2048
# The id of no embedder, where the user gave vectors.
GIVEN_VECTORS = "vectors"
# A cosine below this: opposite vectors count as equal (the spectrum does not see signs), and that starts to matter.
ANTIPODAL = -0.2
# Above this share of tokens that the embedder does not know, what is left no longer stands for the answers.
UNKNOWN = 0.1


class SemanticIsotropy(BaseEstimator):  # type: ignore[misc]
    """How far several answers to one prompt spread on the sphere: HIGH score = expect LOW factuality.

    0 = all answers say the same, 1 = they are mutually orthogonal. Nothing is fitted: no labels, no threshold, no training.
    It measures agreement; a falsehood that all answers share scores low.

    Parameters
    ----------
    embedder : "minilm", a folder with a transformer, "openai:<model>@<url>", a callable from a list of texts to an (n, D)
        array, or an `upheld.llm.Embedder`. Nothing is downloaded. Not needed for groups of vectors
    normalize : whether `score` is S / log N between 0 and 1; else S in nats
    jitter : added to K's diagonal for parity with the paper's repository (1e-3 there), see `upheld.isotropy.spectrum`
    pooling : of the tokens' states, for a model on the own machine: "mean" (masked), "cls", "max", "last", or "unmasked_mean",
        which counts padding as the paper's repository does, so that a score depends on what is embedded beside it. None: what
        the model's folder says it was trained with, and "mean" where it says nothing (so MiniLM's)
    template : None embeds the answer alone; "excerpt" puts a line that names the prompt before it
    long_text : answers longer than the embedder reads: "window" averages windows, "truncate" cuts them as the paper does and
        tells the share, "error" raises
    n_samples : use this many answers of each group, drawn by `random_state`; None, all
    batch_size : texts that a model given by name, or a function, reads at once
    device : of a model on the own machine, as PyTorch names it
    random_state : seed of `n_samples`; the same answers are drawn of every group of the same size

    Notes
    -----
    Scores compare only at the same N, embedder, template and treatment of long texts.
    Source: Bhardwaj, Kempe and Rudner, "Embedding Trust", ICML 2026 (arXiv 2510.21891).

    Examples
    --------
    >>> import numpy as np
    >>> same, different = np.ones((4, 8)), np.eye(4, 8)
    >>> SemanticIsotropy().score_samples([same, different])
    array([0., 1.])
    """

    def __init__(
        self,
        embedder: Any = "minilm",
        *,
        normalize: bool = True,
        jitter: float = 0.0,
        pooling: Pooling | None = None,
        template: Template = None,
        long_text: LongText = "window",
        n_samples: int | None = None,
        batch_size: int = 32,
        device: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.embedder = embedder
        self.normalize = normalize
        self.jitter = jitter
        self.pooling = pooling
        self.template = template
        self.long_text = long_text
        self.n_samples = n_samples
        self.batch_size = batch_size
        self.device = device
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any = None, y: Any = None) -> SemanticIsotropy:
        """Nothing to fit; for pipelines."""
        return self

    def score_samples(
        self, groups: Iterable[Group], *, prompts: Sequence[str] | None = None, told: Told | None = None
    ) -> FloatArray:
        """Score of every prompt, HIGH = less trustworthy.

        Parameters
        ----------
        groups : for each prompt its answers: a list of texts, or an (N, D) array of their vectors
        prompts : what the template "excerpt" names, one a group
        told : hears how many prompts are done of how many (0 of an iterator)

        Returns
        -------
        (n_prompts,) scores, without unit or in nats

        Raises
        ------
        ValueError
            Naming group and answer: fewer than 2 answers, an empty one, a vector that is zero or not finite.
        ModelError
            If the embedder cannot be reached.
        """
        total, scores = _length(groups), []
        for read in self._read(groups, prompts):
            part = np.empty(len(read))
            for places, E in _stacks(read):
                part[places] = self._score(unit_entropy(E, self.jitter), E.shape[-2])
            scores.append(part)
            if told:
                told(sum(map(len, scores)), total)
        return np.concatenate(scores) if scores else np.empty(0)

    def explain(self, group: Group, *, prompt: str | None = None) -> IsotropyResult:
        """Score of one prompt with its standard error, each answer's influence, the medoid and the companions.

        Raises
        ------
        ValueError, ModelError
            As `score_samples`.
        """
        [result] = self.explain_all([group], prompts=None if prompt is None else [prompt])
        return result

    def explain_all(
        self, groups: Iterable[Group], told: Told | None = None, *, prompts: Sequence[str] | None = None
    ) -> Iterator[IsotropyResult]:
        """As `explain`, group after group, in memory that does not grow with their number.

        Parameters
        ----------
        groups : as in `score_samples`; an iterator is read as far as results are taken, some thousands of answers ahead
        told : hears how many prompts are done of how many (0 of an iterator)
        prompts : what the template "excerpt" names, one a group
        """
        total, done = _length(groups), 0
        for read in self._read(groups, prompts):
            results: dict[int, IsotropyResult] = {}
            for places, E in _stacks(read):
                results.update(zip(places, self._explained([read[place] for place in places], E), strict=True))
            done += len(read)
            if told:
                told(done, total)
            yield from (results[place] for place in range(len(read)))

    def _score(self, S: FloatArray, n: int) -> FloatArray:
        """Equation (5)."""
        return S / np.log(n) if self.normalize else S

    def _explained(self, read: list[_Read], E: FloatArray) -> Iterator[IsotropyResult]:
        """Results of groups of one size, their unit vectors in a stack (P, n, D)."""
        n, D = E.shape[1:]
        S, left_out = unit_entropy(E, self.jitter), unit_leave_one_out(E, self.jitter)
        unit = 1.0 if self.normalize else np.log(n)
        K = unit_cosines(E)
        figures = {
            "score": self._score(S, n),
            "se": unit * jackknife_standard_error(left_out),
            "raw": S,
            "purity": purity(K),
            "purity_unbiased": purity_unbiased(K),
            "effective_samples": np.exp(S),
            "mean_cosine_distance": mean_cosine_distance(K),
            "vmf_kappa": vmf_kappa(K, D),
        }
        added, centre = unit * influence(S / np.log(n), left_out), medoid(K)
        for p, (answers, embedded, embedder_id) in enumerate(read):
            yield IsotropyResult(
                **{name: float(values[p]) for name, values in figures.items()},
                n=n,
                answers=answers.used,
                cosines=K[p],
                influence=added[p],
                medoid=int(answers.used[centre[p]]),
                truncated_share=embedded.truncated_share,
                unknown_share=embedded.unknown_share,
                template=self.template if answers.texts else None,
                embedder_id=embedder_id,
                long_text=self.long_text,
                jitter=self.jitter,
                normalized=self.normalize,
            )

    def _read(self, groups: Iterable[Group], prompts: Sequence[str] | None) -> Iterator[list[_Read]]:
        """Groups with their unit vectors, some thousands of answers at a time."""
        self._check()
        remarks = _Remarks()
        for chunk in chunks(self._answers(groups, prompts), CHUNK_ANSWERS):
            told = [answers for answers in chunk if answers.texts]
            embedder = self._embedder() if told else None
            embedded = iter(embed(told, embedder, self.template, self.long_text) if embedder else [])
            read = [
                _Read(answers, Embedded(answers.vectors, np.nan, np.nan), GIVEN_VECTORS)
                if answers.vectors is not None
                else _Read(answers, next(embedded), embedder.id if embedder else "")
                for answers in chunk
            ]
            for one in read:
                remarks.look_at(one.answers, one.embedded)
            yield read

    def _answers(self, groups: Iterable[Group], prompts: Sequence[str] | None) -> Iterator[Answers]:
        if isinstance(groups, str):
            raise TypeError("groups is one text; give for each prompt a list of its answers: [[...], [...]]")
        index = -1
        for index, group in enumerate(groups):
            if prompts is not None and index >= len(prompts):
                raise ValueError(f"{len(prompts)} prompts for more groups; give one prompt a group")
            prompt = None if prompts is None else prompts[index]
            yield checked(group, index, prompt, self.n_samples, self.random_state)
        if prompts is not None and len(prompts) != index + 1:
            raise ValueError(f"{len(prompts)} prompts for {index + 1} groups; give one prompt a group")

    def _check(self) -> None:
        if self.long_text not in LONG_TEXTS:
            raise ValueError(f"long_text must be one of {', '.join(map(repr, LONG_TEXTS))}, got {self.long_text!r}")
        if self.template not in TEMPLATES:
            raise ValueError(f"template must be one of {', '.join(map(repr, TEMPLATES))}, got {self.template!r}")
        if self.n_samples is not None and self.n_samples < 2:
            raise ValueError(f"n_samples must be at least 2, got {self.n_samples}")

    def _embedder(self) -> Embedder:
        if isinstance(self.embedder, Embedder):
            return self.embedder
        return chosen(self.embedder, self.pooling, self.device, self.batch_size)


class _Read(NamedTuple):
    answers: Answers
    embedded: Embedded
    embedder_id: str


def _stacks(read: list[_Read]) -> Iterator[tuple[list[int], FloatArray]]:
    """Groups of one shape together: their places, and a stack (P, n, D)."""
    shapes: dict[tuple[int, ...], list[int]] = {}
    for place, one in enumerate(read):
        shapes.setdefault(one.embedded.vectors.shape, []).append(place)
    for places in shapes.values():
        yield places, np.stack([read[place].embedded.vectors for place in places])


def _length(groups: Iterable[Group]) -> int:
    return len(groups) if isinstance(groups, Sized) else 0


class _Remarks:
    """What makes a score mean something else than it seems to; each said once a call, of the first group that shows it."""

    def __init__(self) -> None:
        self._first: Answers | None = None
        self._said: set[str] = set()

    def look_at(self, answers: Answers, embedded: Embedded) -> None:
        E = embedded.vectors
        first = self._first = self._first or answers
        if len(answers.used) != len(first.used):
            self._say(
                "sizes",
                mixed_sizes(f"{answers.name} holds {len(answers.used)} answers and {first.name} {len(first.used)}"),
            )
        texts = dict(zip(answers.texts, answers.used, strict=False))
        if len(texts) < len(answers.texts):
            self._say(
                "identical",
                f"{len(answers.texts) - len(texts)} of the answers of {answers.name} are identical byte for byte to others of it: "
                "a cache, a fixed seed or temperature 0 makes the score low by construction; sample anew unless they are short",
            )
        if embedded.unknown_share > UNKNOWN:
            self._say(
                "unknown",
                f"the embedder's vocabulary lacks {100 * embedded.unknown_share:.0f} % of the tokens of {answers.name}, which all read "
                "the same to it, so the score may be too low; take an embedder made for that language",
            )
        if (lowest := float(np.min(E @ E.T))) < ANTIPODAL:
            self._say(
                "antipodal",
                f"two answers of {answers.name} have cosine {lowest:.2f}: the score takes opposite vectors for equal ones, "
                "so it understates this spread; read mean_cosine_distance beside it",
            )

    def _say(self, kind: str, message: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            warnings.warn(message, IsotropyWarning, stacklevel=5)
