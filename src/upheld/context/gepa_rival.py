"""GEPA through its own package: reflective mutation and Pareto selection are the package's; an adapter evaluates.

Without a language model a deterministic proposer rewrites one label's instruction; with one the package's own proposer asks it for a new
prompt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from upheld.context.assembly import TOKEN, count_tokens
from upheld.context.folder import Context, ContextFunction, Line, shortened
from upheld.context.generate_lm import answered
from upheld.context.metrics import label_set
from upheld.context.program_base import by_label, flat
from upheld.context.rivals import Candidate, Contender, Contest, apart, best, telling, unanswered
from upheld.context.rollouts import Rollout, RolloutCache
from upheld.context.skill import Genes
from upheld.context.task import Sample
from upheld.llm.answer import Sampling, Usage

if TYPE_CHECKING:
    from upheld.llm import LanguageModel

KEYWORDS = 8
LINES = 2
MINIBATCHES = (10, 20)
"""Its main knob, tuned on validation: rollouts of a minibatch."""


class Adapter:
    """A prompt of one instruction a label, as `gepa` wants it; a candidate maps every label to at most two lines."""

    def __init__(self, contest: Contest) -> None:
        self.contest, self.cache = contest, RolloutCache()
        self.seen: dict[str, Rollout] = {}

    def prompt(self, candidate: Mapping[str, str]) -> str:
        """All lines, as far as the budget goes."""
        kept: list[str] = []
        left = self.contest.budget
        for label, text in candidate.items():
            for line in (f"- {label}: {part}" for part in text.split("\n") if part):
                if (length := count_tokens(line)) <= left:
                    kept.append(line)
                    left -= length
        return "\n".join(kept)

    def evaluate(self, batch: list[Sample], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        from gepa.core.adapter import EvaluationBatch

        contest, questions = self.contest, [one.asked for one in batch]
        answers = self.cache.answers(contest.consumer, questions, [self.prompt(candidate)] * len(batch))
        scores = contest.task.scoring.scores([one.text for one in answers], [one.target for one in batch])
        rollouts = [
            Rollout(
                one.id,
                one.question,
                answer.text,
                one.target,
                score == 1.0,
                score,
                answer.margin,
                answer.tokens,
                context=one.context,
            )
            for one, answer, score in zip(batch, answers, scores, strict=True)
        ]
        if capture_traces:  # the package asks for traces of training minibatches alone
            self.seen.update({one.id: one for one in rollouts})
        return EvaluationBatch(
            outputs=[one.text for one in answers], scores=scores, trajectories=rollouts if capture_traces else None
        )

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:  # fmt: skip
        """The wrong rollouts of every label that may be rewritten."""
        wrong = [one for one in eval_batch.trajectories if not one.is_correct]
        return {
            label: [{"question": one.question, "answer": one.answer} for one in wrong if label in label_set(one.target)]
            for label in components_to_update
        }

    def propose_new_texts(
        self, candidate: dict[str, str], reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]], components_to_update: list[str]
    ) -> dict[str, str]:  # fmt: skip
        """A label's keywords by smoothed log-odds over all training rollouts seen, and the words of its latest wrong question."""
        counts = by_label([one for seen in self.seen.values() for one in apart(seen)])
        total = sum(counts.values(), Counter[str]())
        proposed = {}
        for label in components_to_update:
            own = counts.get(label, Counter[str]())
            lines = [" ".join(telling(own, total - own, KEYWORDS))] + [
                flat(str(one["question"])) for one in reflective_dataset[label][-1:]
            ]
            proposed[label] = "\n".join(line for line in lines[:LINES] if TOKEN.search(line)) or candidate[label]
        return proposed


class WorstLabel:
    """Which instruction to rewrite: that of the label with most wrong rollouts in the minibatch."""

    def __call__(
        self, state: Any, trajectories: list[Rollout], subsample_scores: list[float], candidate_idx: int, candidate: dict[str, str]
    ) -> list[str]:  # fmt: skip
        wrong = [alone.target for one in trajectories if not one.is_correct for alone in apart(one)]
        return [max(sorted(candidate), key=wrong.count)]


def gepa(contest: Contest) -> Contender:
    """GEPA with as many metric calls as the search has rollouts, split over the settings of its knob."""

    def context(size: int, found: Mapping[str, str]) -> ContextFunction:
        return contest.write(f"gepa-{size}", instructions(found), Genes(retrieve="all"))

    return optimised(contest, Adapter, first_prompt(contest), context, module_selector=WorstLabel())


def optimised(
    contest: Contest, adapter_of: Callable[[Contest], Adapter], first: Mapping[str, str],
    context: Callable[[int, Mapping[str, str]], ContextFunction], **options: Any,
) -> Contender:  # fmt: skip
    """The better of two runs of the package, one for each size of a minibatch, by the validation set."""
    from gepa.api import optimize

    allowed = (contest.tries * len(contest.val) + (contest.tries - 1) * len(contest.train)) // len(MINIBATCHES)
    candidates: list[Candidate] = []
    spent = 0
    for size in MINIBATCHES:
        adapter = adapter_of(contest)
        package: Any = optimize  # its types know nothing of an adapter's own samples and traces
        result = package(
            seed_candidate=dict(first), adapter=adapter, trainset=list(contest.train), valset=list(contest.val),
            reflection_minibatch_size=size, logger=_Silent(), max_metric_calls=allowed, seed=contest.seed, **options,
        )  # fmt: skip
        candidates.append((f"minibatch {size}", context(size, result.best_candidate)))
        spent += adapter.cache.spent
    found = best(contest, "GEPA", candidates, RolloutCache())
    return Contender(found.name, found.context, spent + found.rollouts, found.knob, found.val)


def first_prompt(contest: Contest) -> dict[str, str]:
    """What a user would begin with: a one-line description of every label, as of the rival `labels`. From nothing GEPA gets nowhere: the
    first label that has a line draws all answers, and the change is rejected."""
    counts = by_label([alone for sample in contest.train for alone in apart(unanswered(sample))])
    total = sum(counts.values(), Counter[str]())
    return {label: " ".join(telling(counts[label], total - counts[label], KEYWORDS)) for label in contest.task.labels()}


def instructions(candidate: Mapping[str, str]) -> list[Line]:
    """A candidate as a store. The first instructions count as the newest, so that a budget cuts the same lines as `Adapter.prompt`."""
    told = [(label, text) for label, whole in candidate.items() for text in whole.split("\n") if text]
    return [Line("instruction", label, text, born=-place) for place, (label, text) in enumerate(told)]


# -- with a model that reflects

PROMPT = "prompt"


class ReflectiveAdapter(Adapter):
    """One prompt, which the package's own proposer has a model rewrite from the answers of a minibatch."""

    propose_new_texts = None  # type: ignore[assignment]

    def prompt(self, candidate: Mapping[str, str]) -> str:
        return shortened(candidate[PROMPT], self.contest.budget)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: Any, components_to_update: list[str]
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:  # fmt: skip
        """Question, answer and feedback of the whole minibatch, as the package's prompt expects them."""
        told = [
            {
                "Inputs": one.asked, "Generated Outputs": one.answer,
                "Feedback": "This is right." if one.is_correct else f"This is wrong. The right answer is {one.target}.",
            }
            for one in eval_batch.trajectories
        ]  # fmt: skip
        return dict.fromkeys(components_to_update, told)


def reflective_gepa(contest: Contest, reflect: Callable[[str], str]) -> Contender:
    """GEPA as it is published: `reflect` is a model's answer to the package's own question for a better prompt. It begins from the list
    of labels, each with its most telling words; what is beyond the budget is cut at the end of a line."""

    def context(size: int, found: Mapping[str, str]) -> ContextFunction:
        text, root = shortened(found[PROMPT], contest.budget), contest.folder / f"gepa-{size}"
        kept = Context.from_prompt(text, root, contest.budget) if text else Context(root)
        return ContextFunction(kept, contest.embed, contest.budget)

    first = "\n".join(f"- {label}: {words}" for label, words in first_prompt(contest).items())
    return optimised(contest, ReflectiveAdapter, {PROMPT: first}, context, reflection_lm=reflect)


def asking(model: LanguageModel, spent: list[Usage]) -> Callable[[str], str]:
    """A model as a function of a prompt; `spent` holds what it used so far."""

    def ask(prompt: str) -> str:
        answer = answered(model, prompt, None, Sampling(temperature=0.0, max_tokens=4096))
        spent[0] = spent[0] + answer.usage
        return answer.text

    return ask


class _Silent:
    """What the package says of every step is not wanted here."""

    def log(self, message: str) -> None:
        pass
