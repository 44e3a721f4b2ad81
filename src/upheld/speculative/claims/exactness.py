"""Is the text still the target's own? Token for token when greedy, in law when sampled; and would the check notice if it were not?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from upheld.claims import Experiment, Finding, Judgement, Measurement, Measurements, Outcome, Scale, Trial, grid
from upheld.claims.measurements import Cell
from upheld.claims.rules import NOMINAL, Levels
from upheld.speculative.claims.models import drafter_for, question, smollm2
from upheld.speculative.decoder import SpeculativeDecoder
from upheld.speculative.proposals import BlockProposer, Proposer
from upheld.speculative.reading import Reader
from upheld.speculative.rivals import dflash, generate
from upheld.speculative.verification import Draft, Sampling, Verifier, draw, match, rejection

TINY, SMOLLM2, SMOLLM2_BF16 = "tiny float64", "SmolLM2 float32", "SmolLM2 bfloat16"


@lru_cache(maxsize=8)
def tiny(seed: int, vocabulary: int = 512, layers: int = 3) -> PreTrainedModel:
    """A random Llama of width 64 in float64, whose choices are sharp enough to differ from place to place."""
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=64, intermediate_size=128, num_hidden_layers=layers, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings=False, bos_token_id=None, eos_token_id=None,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
        for parameter in model.parameters():
            if parameter.dim() == 2:
                torch.nn.init.normal_(parameter, std=0.25)
    model.to(dtype=torch.float64)  # type: ignore[call-arg]
    found: PreTrainedModel = model.requires_grad_(False)
    found.eval()  # type: ignore[no-untyped-call]
    return found


class Oracle:
    """Drafts the text it was told, passed through `twist`: the right tokens, or surely wrong ones."""

    def __init__(self, text: Tensor, twist: Callable[[Tensor], Tensor], block_size: int = 8) -> None:
        self.text, self.twist, self.block_size, self.taps = text, twist, block_size, (0,)

    def begin(self, room: int) -> None: ...

    def propose(
        self, ids: Tensor, states: Tensor | None, count: int, sampling: Sampling, generator: torch.Generator | None
    ) -> Draft:
        known = ids.shape[1]
        return Draft(self.twist(self.text[:, known : known + count]))

    def nbytes(self) -> int:
        return 0


class Guess:
    """Drafts drawn from laws that know nothing of the text."""

    def __init__(self, vocabulary: int, rng: torch.Generator, block_size: int = 8) -> None:
        self.vocabulary, self.rng, self.block_size, self.taps = vocabulary, rng, block_size, (0,)

    def begin(self, room: int) -> None: ...

    def propose(
        self, ids: Tensor, states: Tensor | None, count: int, sampling: Sampling, generator: torch.Generator | None
    ) -> Draft:
        law = torch.randn(1, count, self.vocabulary, generator=self.rng, dtype=torch.float64).softmax(-1)
        return Draft(draw(law, self.rng), law)

    def nbytes(self) -> int:
        return 0


# -- greedy


def measure_greedy(trial: Trial) -> Iterator[Measurement]:
    """Texts against those of `generate`; where one differs, how near to a tie the target was."""
    torch.set_num_threads(1)
    tokens = int(trial.condition["tokens"])
    config = GenerationConfig(max_new_tokens=tokens, do_sample=False, pad_token_id=0)  # type: ignore[no-untyped-call]
    if trial.condition["target"] == TINY:
        yield from _tiny_greedy(trial, config)
        return
    bf16 = trial.condition["target"] == SMOLLM2_BF16
    target, tokenizer = smollm2("bfloat16" if bf16 else "float32")
    prompt = question(trial.seed, tokenizer)
    theirs = generate(target).decode(prompt, config).tokens
    ours = dflash(target, drafter_for(target)).decode(prompt, config).tokens
    gap = divergence(target, prompt, theirs, ours)
    yield Measurement("DFlash", "identical", float(gap is None))
    yield Measurement("DFlash", "gap of logits at the first divergence", gap or 0.0)
    if bf16:
        yield Measurement("DFlash", "gap over 4 times the noise", (gap or 0.0) / (4 * noise(target, prompt, theirs)))


def _tiny_greedy(trial: Trial, config: GenerationConfig) -> Iterator[Measurement]:
    target, rng = tiny(trial.seed), trial.torch_generator()
    for number in range(int(trial.condition["prompts"])):
        prompt = torch.randint(512, (1, 8), generator=rng)
        theirs = generate(target).decode(prompt, config).tokens
        whole = torch.cat([prompt, theirs[None]], dim=1)
        drafters: dict[str, Proposer] = {
            "random": Guess(512, rng),
            "anti-oracle": Oracle(whole, lambda right: (right + 1) % 512),
            "oracle": Oracle(whole, lambda right: right),
        }
        for name, drafter in drafters.items():
            ours = SpeculativeDecoder(target, drafter).generate(prompt, config)[0, 8:]
            yield Measurement(name, "identical", float(torch.equal(ours, theirs)), item=str(number))


@torch.inference_mode()
def divergence(target: PreTrainedModel, prompt: Tensor, theirs: Tensor, ours: Tensor) -> float | None:
    """Distance of the target's two largest logits where the texts part; None if they do not, infinite if one just ends."""
    if torch.equal(theirs, ours):
        return None
    shorter = min(len(theirs), len(ours))
    differing = (theirs[:shorter] != ours[:shorter]).nonzero()
    if not len(differing):
        return float("inf")
    until = int(differing[0])
    logits = target(input_ids=torch.cat([prompt[0], theirs[:until]])[None], logits_to_keep=1).logits[0, -1].float()
    first, second = logits.topk(2).values.tolist()
    return float(first - second)


@torch.inference_mode()
def noise(target: PreTrainedModel, prompt: Tensor, text: Tensor) -> float:
    """Largest difference of a logit between reading a text token by token and in blocks of eight."""
    with Reader(target) as one, Reader(target) as many:
        one.read(prompt, keep=1)
        many.read(prompt, keep=1)
        steps = torch.cat([one.read(token[None, None])[0] for token in text], dim=1)
        blocks = torch.cat([many.read(part[None])[0] for part in torch.split(text, 8)], dim=1)
    return float((steps - blocks).abs().max())


GREEDY = Experiment(
    "speculative.greedy", measure_greedy,
    conditions={
        Scale.SMOKE: [{"target": TINY, "tokens": 12, "prompts": 1}, {"target": SMOLLM2, "tokens": 6}],
        Scale.QUICK: [{"target": TINY, "tokens": 48, "prompts": 8}, {"target": SMOLLM2, "tokens": 48}],
        Scale.STANDARD: [{"target": TINY, "tokens": 64, "prompts": 8}, {"target": SMOLLM2, "tokens": 64}],
        Scale.FULL: [{"target": TINY, "tokens": 64, "prompts": 40}, {"target": SMOLLM2, "tokens": 128}],
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 5, Scale.STANDARD: 25, Scale.FULL: 100},
    timeout_s={Scale.SMOKE: 600, Scale.QUICK: 900, Scale.STANDARD: 1800, Scale.FULL: 1800},
)  # fmt: skip

GREEDY_BF16 = Experiment(
    "speculative.greedy-bfloat16", measure_greedy,
    conditions={Scale.STANDARD: [{"target": SMOLLM2_BF16, "tokens": 64}], Scale.FULL: [{"target": SMOLLM2_BF16, "tokens": 128}]},
    repeats={Scale.STANDARD: 25, Scale.FULL: 100}, timeout_s={Scale.STANDARD: 600, Scale.FULL: 1800},
)  # fmt: skip


# -- sampled: texts of 3 tokens out of 8, blocks of 4; the law of a text is the product along its 73 prefixes

V, LENGTH, B = 8, 3, 4
PREFIXES = [prefix for length in range(LENGTH) for prefix in itertools.product(range(V), repeat=length)]
WARPS = {
    "T=0.5": Sampling(do_sample=True, temperature=0.5, dtype=torch.float64),
    "T=1": Sampling(do_sample=True, dtype=torch.float64),
    "T=1.5": Sampling(do_sample=True, temperature=1.5, dtype=torch.float64),
    "top-k 3": Sampling(do_sample=True, top_k=3, dtype=torch.float64),
    "top-p 0.9": Sampling(do_sample=True, top_p=0.9, dtype=torch.float64),
}
ROWS = 100
"""Laws of the real vocabulary that are compared at once."""

WRONG = "no residual (wrong on purpose)"


def without_residual(draft: Draft, target: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """At a rejection the target's whole law: what is often written, and is not the target's law."""
    accepted, _ = rejection(draft, target, generator)
    return accepted, draw(target[torch.arange(len(accepted)), accepted], generator)


VERIFIED: dict[str, Verifier] = {"rejection": rejection, "match": match, WRONG: without_residual}


def measure_sampling(trial: Trial) -> Iterator[Measurement]:
    """One target and drafter: p-values of Pearson's test, and the distance to the law over that of direct draws."""
    torch.set_num_threads(1)
    rows, rng = int(trial.condition["rows"]), trial.torch_generator()
    target = torch.randn(len(PREFIXES), V, generator=rng, dtype=torch.float64) * 2
    drafter = torch.randn(len(PREFIXES), B - 1, V, generator=rng, dtype=torch.float64) * 2
    for warp, sampling in WARPS.items():
        p, q = sampling.law(target), sampling.law(drafter)
        law = law_of_texts(p)
        direct = trial.rng(warp).multinomial(rows, law, size=20)
        usual = float(np.abs(direct / rows - law).sum(1).mean() / 2)
        for name, verify in VERIFIED.items():
            counts = counted(texts(p, q, verify, rows, rng))
            yield Measurement(name, "p", pearson(counts, law), item=warp)
            if name != WRONG:
                distance = float(np.abs(counts / rows - law).sum() / 2)
                yield Measurement(name, "distance over that of direct draws", distance / usual, item=warp)
    yield Measurement("end to end", "p", end_to_end(trial, int(trial.condition["draws"])), item="T=1")


def texts(target: Tensor, drafter: Tensor, verify: Verifier, n: int, generator: torch.Generator) -> Tensor:
    """(n, 3) texts, block after block, by the decoder's own verification; laws by prefix, as `PREFIXES` lists them."""
    text = torch.full((n, LENGTH + B), -1)
    done = torch.zeros(n, dtype=torch.long)
    while bool((done < LENGTH).any()):
        for length in range(LENGTH):
            rows = (done == length).nonzero()[:, 0]
            if not len(rows):
                continue
            law = drafter[place(text[rows], length)]
            drafts = draw(law, generator)
            ahead = torch.cat([text[rows, :length], drafts], dim=1)
            # What comes past the third token is cut off: any law will do there.
            p = torch.stack([target[place(ahead, min(length + k, LENGTH - 1))] for k in range(B)], dim=1)
            accepted, after = verify(Draft(drafts, law), p, generator)
            for k in range(B - 1):
                text[rows[accepted > k], length + k] = drafts[accepted > k, k]
            text[rows, length + accepted] = after
            done[rows] += accepted + 1
    return text[:, :LENGTH]


def place(text: Tensor, length: int) -> Tensor:
    """(n, >= length) texts -> (n,) numbers of their first `length` tokens among `PREFIXES`."""
    code = torch.zeros(len(text), dtype=torch.long)
    for column in range(length):
        code = code * V + text[:, column]
    found: Tensor = code + sum(V**k for k in range(length))
    return found


def law_of_texts(target: Tensor) -> NDArray[np.float64]:
    """(512,) probabilities of all texts, from (73, 8) laws after their prefixes."""
    pairs = target[0][:, None] * target[1 : 1 + V]
    whole: NDArray[np.float64] = (pairs[..., None] * target[1 + V :].view(V, V, V)).flatten().numpy()
    return whole


def counted(found: Tensor) -> NDArray[np.int64]:
    return torch.bincount((found[:, 0] * V + found[:, 1]) * V + found[:, 2], minlength=V**LENGTH).numpy()


def pearson(counts: NDArray[np.int64], law: NDArray[np.float64]) -> float:
    """p-value, cells that expect fewer than 5 pooled; 0 if a text came that cannot."""
    if counts[law == 0].sum():
        return 0.0
    expected = law * counts.sum()
    small = expected < 5
    observed, wanted = [*counts[~small], counts[small].sum()], [*expected[~small], expected[small].sum()]
    if wanted[-1] == 0:
        observed, wanted = observed[:-1], wanted[:-1]
    if len(observed) < 2:  # so few texts tell nothing
        return 1.0
    scale = sum(observed) / sum(wanted)  # the sum of the law is 1 to rounding only
    return float(stats.chisquare(observed, np.asarray(wanted) * scale).pvalue)


@torch.inference_mode()
def end_to_end(trial: Trial, draws: int) -> float:
    """The decoder itself on a network of 8 tokens, one text of 3 a draw."""
    target, prompt = tiny(trial.seed, vocabulary=V, layers=1), torch.tensor([[1, 2, 3, 4]])
    # Prefixes of one length after the prompt, read together.
    laws = []
    for length in range(LENGTH):
        rows = torch.tensor([p for p in PREFIXES if len(p) == length], dtype=torch.long)
        logits = target(input_ids=torch.cat([prompt.expand(len(rows), -1), rows], dim=1)).logits[:, -1]
        laws.append(WARPS["T=1"].law(logits))
    law = law_of_texts(torch.cat(laws))
    rng = trial.torch_generator("end to end")
    decoder = SpeculativeDecoder(target, Guess(V, rng, block_size=B))
    config: Any = GenerationConfig(max_new_tokens=LENGTH, do_sample=True, top_k=0, pad_token_id=0)  # type: ignore[no-untyped-call]
    found = torch.cat([decoder.generate(prompt, config, generator=rng)[:, 4:] for _ in range(draws)])
    return pearson(counted(found), law)


SAMPLING = Experiment(
    "speculative.sampling", measure_sampling,
    conditions={
        Scale.SMOKE: grid(rows=[2000], draws=[20]), Scale.QUICK: grid(rows=[100_000], draws=[400]),
        Scale.STANDARD: grid(rows=[100_000], draws=[2000]), Scale.FULL: grid(rows=[1_000_000], draws=[20_000]),
    },
    repeats={Scale.SMOKE: 1, Scale.QUICK: 5, Scale.STANDARD: 20, Scale.FULL: 50},
    timeout_s={Scale.SMOKE: 300, Scale.QUICK: 600, Scale.STANDARD: 1800, Scale.FULL: 3600},
)  # fmt: skip


# -- on the real model, from standard scale on: the first token that a cycle writes after a prompt


@torch.inference_mode()
def measure_first_token(trial: Trial) -> Iterator[Measurement]:
    """One prompt: first tokens through the decoder's own verification, with the shipped drafter's laws, against the target's law."""
    torch.set_num_threads(1)
    target, tokenizer = smollm2("float32")
    proposer = BlockProposer(target, drafter_for(target))
    prompt, sampling = question(trial.seed, tokenizer), Sampling(do_sample=True)
    with Reader(target, proposer.taps) as reader:
        _, states = reader.read(prompt[:, :-1], keep=1)
        logits, _ = reader.read(prompt[:, -1:])
    p, q = sampling.law(logits)[0], sampling.law(proposer.logits(prompt, states, 1))[0]
    law, rng = p[0].double().numpy(), trial.torch_generator()
    for name, verify in VERIFIED.items():
        found = first_tokens(p, q, proposer.ids, verify, int(trial.condition["rows"]), rng)
        yield Measurement(name, "p", pearson(found, law / law.sum()), item=str(trial.seed))


def first_tokens(
    p: Tensor, q: Tensor, ids: Tensor | None, verify: Verifier, rows: int, generator: torch.Generator
) -> NDArray[np.int64]:
    """(V,) counts of the first token of so many cycles of one draft; (1, V) and (1, K) laws of target and drafter."""
    counts = np.zeros(p.shape[1], dtype=np.int64)
    for start in range(0, rows, ROWS):
        n = min(ROWS, rows - start)
        places = draw(q.expand(n, -1), generator)[:, None]
        draft = Draft(places if ids is None else ids[places], q.expand(n, 1, -1), ids)
        # The token after an accepted draft is the next one's business: any law will do there.
        accepted, after = verify(draft, p.expand(n, 2, -1), generator)
        first = torch.where(accepted > 0, draft.tokens[:, 0], after)
        counts += torch.bincount(first, minlength=len(counts)).numpy()
    return counts


FIRST_TOKEN = Experiment(
    "speculative.first-token", measure_first_token,
    conditions={Scale.STANDARD: grid(rows=[20_000]), Scale.FULL: grid(rows=[200_000])},
    repeats={Scale.STANDARD: 20, Scale.FULL: 20}, timeout_s={Scale.STANDARD: 1800, Scale.FULL: 7200},
)  # fmt: skip


@dataclass(frozen=True)
class Unrejected:
    """Tests of a law that is claimed to be right: after Holm's correction over all of them none rejects it.

    A smallest corrected p-value of at least `uphold` upholds, one below `refute` refutes.
    """

    metric: str
    methods: tuple[str, ...]
    uphold: float = 0.01
    refute: float = 0.001

    def judge(self, data: Measurements, levels: Levels = NOMINAL) -> Judgement:
        found = np.concatenate([data.rows(Cell(self.metric, method))["value"].to_numpy() for method in self.methods])
        # The smallest of Holm's corrected p-values is the smallest p-value times their number.
        least = min(1.0, float(found.min()) * len(found))
        outcome = (
            Outcome.UPHELD if least >= self.uphold
            else Outcome.NOT_UPHELD if least < self.refute
            else Outcome.INCONCLUSIVE
        )  # fmt: skip
        finding = Finding(
            f"smallest {self.metric} of {' and '.join(self.methods)}, corrected", least, least, least, (self.uphold, 1.0), outcome,
            len(found), f"smallest of {len(found)} p-values {found.min():.3g}, corrected by Holm", f"smallest {self.metric}, corrected",
        )  # fmt: skip
        return Judgement(outcome, (replace(finding),))

    def words(self) -> str:
        return (
            f"no {self.metric} of {' and '.join(self.methods)} is below {self.uphold:g} after Holm's correction "
            f"(below {self.refute:g} refutes)"
        )
