from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest
import torch
from scipy import stats
from transformers import AutoModelForCausalLM

from upheld.llm import Message, Request, Sampling, conversation
from upheld.llm.embedded import EmbeddedModel

PROMPTS = [
    "a",
    "The cat",
    "Käse",
    "a longer prompt than the others, by far",
    "xyz " * 12,
    "日本",
    "12 + 30 =",
    "one more",
]


@pytest.fixture(scope="module")
def model(causal):
    return EmbeddedModel(causal, device="cpu")


@pytest.fixture(scope="module")
def network(causal):
    """The same weights, as transformers has them: the judge."""
    return AutoModelForCausalLM.from_pretrained(causal, dtype=torch.float32, local_files_only=True).eval()


@torch.inference_mode()
def logprobs(network, ids: list[int]) -> torch.Tensor:
    """(n, V) log-probabilities of what follows each token, read alone and without a cache."""
    return network(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)


def requests(**options) -> list[Request]:
    return [Request(prompt=text, sampling=Sampling(seed=k, **options)) for k, text in enumerate(PROMPTS)]


# -- what is drawn


@pytest.mark.parametrize("temperature", [0.6, 1.3])
def test_the_first_token_follows_the_softmax(model, network, temperature):
    """Over 3,000 seeds; which token it was is known from its log-probability, since half a character has no text of its own."""
    n = 3000
    sampling = [Sampling(temperature=temperature, max_tokens=1, seed=seed, logprobs=0) for seed in range(n)]
    answers = model.answers([Request(prompt="The cat", sampling=each) for each in sampling])
    law = logprobs(network, list(b_tokens(model, "The cat")))[-1].double()
    ends = n - sum(len(answer.tokens) for answer in answers)
    counts = np.zeros(len(law))
    for answer in answers:
        for token in answer.tokens:
            counts[(law - token.logprob).abs().argmin()] += 1
    expected = n * (law / temperature).softmax(-1).numpy()
    counts[1] += ends  # token 1 ends the text and is not shown
    often = expected >= 5
    observed, awaited = (
        np.append(counts[often], counts[~often].sum()),
        np.append(expected[often], expected[~often].sum()),
    )
    assert often.sum() > 10
    assert stats.chisquare(observed, awaited).pvalue > 1e-3


def b_tokens(model, text):
    return model.tokenizer(text)["input_ids"]


def test_an_answer_is_the_same_alone_in_company_and_in_another_order(causal, model):
    asked = requests(max_tokens=25, temperature=1.0, top_p=0.9)
    together = model.answers(asked)
    assert model.answers(asked[::-1])[::-1] == together
    assert [model.answers([request])[0] for request in asked] == together
    assert EmbeddedModel(causal, device="cpu", batch_tokens=100).answers(asked) == together


def test_more_samples_leave_the_earlier_ones_as_they_were(model):
    def samples(n):
        return [Request(prompt="The", sampling=Sampling(temperature=1, seed=100 + k, max_tokens=20)) for k in range(n)]

    few, many = model.answers(samples(3)), model.answers(samples(9))
    assert many[:3] == few
    assert len({answer.text for answer in many}) == 9


def test_without_a_seed_every_answer_is_fresh(model):
    request = Request(prompt="The", sampling=Sampling(temperature=1, max_tokens=20))
    # An answer may end at its first token, and two that do are alike.
    assert len({answer.text for answer in model.answers([request] * 20)}) > 10


def test_the_likeliest_tokens_are_those_that_transformers_generates(model, network):
    asked = requests(max_tokens=30, temperature=0, logprobs=0)
    for request, answer in zip(asked, model.answers(asked), strict=True):
        prompt = torch.tensor([b_tokens(model, request.prompt)])
        theirs = network.generate(
            input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=30, do_sample=False
        )[0, prompt.shape[1] :].tolist()
        ended = 1 in theirs
        assert answer.text == model.tokenizer.decode(theirs, skip_special_tokens=True)
        assert answer.finish == ("stop" if ended else "length")
        assert answer.usage.completion_tokens == len(theirs)
        assert answer.usage.prompt_tokens == prompt.shape[1]


def test_a_conversation_is_put_into_the_models_own_template(model):
    turns = conversation(
        [Message("user", "Hi"), Message("assistant", "Yes?"), Message("user", "Go")], system="Be brief"
    )
    told = "<system>Be brief\n<user>Hi\n<assistant>Yes?\n<user>Go\n<assistant>"
    sampling = Sampling(seed=4, max_tokens=12)
    assert model.chat(turns, sampling=sampling).text == model.complete(told, sampling).text


# -- where it ends


def test_it_ends_before_a_stop_string(model):
    whole = model.complete("The cat", Sampling(temperature=0, max_tokens=40, logprobs=0))
    stop = whole.text[6:8]
    cut = model.complete("The cat", Sampling(temperature=0, max_tokens=40, logprobs=0, stop=("never there", stop)))
    assert cut.text == whole.text[: whole.text.find(stop)]
    assert cut.finish == "stop"
    assert "".join(token.text for token in cut.tokens) == cut.text
    assert cut.tokens == whole.tokens[: len(cut.tokens)]


def test_every_request_has_its_own_length(model):
    asked = [Request(prompt=text, sampling=Sampling(seed=k, max_tokens=1 + 3 * k)) for k, text in enumerate(PROMPTS)]
    for k, answer in enumerate(model.answers(asked)):
        assert answer.finish == "stop" or answer.usage.completion_tokens == 1 + 3 * k


def test_it_ends_with_any_token_that_the_model_names(causal, model, network, tmp_path):
    """A token that would have come is made an end."""
    prompt = torch.tensor([b_tokens(model, "The cat")])
    coming = network.generate(
        input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=8, do_sample=False
    )
    ids = coming[0, prompt.shape[1] :].tolist()
    place = next(place for place in range(2, 8) if ids[place] not in ids[:place])
    folder = shutil.copytree(causal, tmp_path / "ends")
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, ids[place]]}))
    answer = EmbeddedModel(folder, device="cpu").complete("The cat", Sampling(temperature=0, max_tokens=8))
    assert answer.text == model.tokenizer.decode(ids[:place])
    assert (answer.finish, answer.usage.completion_tokens) == ("stop", place + 1)


def test_the_models_length_ends_it_too(model):
    answer = model.complete("x" * 190, Sampling(seed=0, max_tokens=500))
    assert answer.usage.completion_tokens <= 10
    assert answer.finish == "length" or answer.usage.completion_tokens < 10
    with pytest.raises(
        ValueError, match=r"prompt of request 1 is 200 tokens long, and the model reads 200; shorten it"
    ):
        model.answers([Request(prompt="x"), Request(prompt="x" * 200)])


def test_a_stream_is_the_answer_in_pieces(model):
    for request in requests(max_tokens=30, temperature=1.0, stop=("e", "aa")):
        pieces = list(model.stream(request))
        assert "".join(pieces) == model.answers([request])[0].text
        assert all(pieces)


def test_an_empty_prompt_begins_with_the_token_that_begins_a_text(model, network):
    answer = model.complete("", Sampling(temperature=0, max_tokens=1, logprobs=0))
    assert answer.usage.prompt_tokens == 1
    assert answer.tokens[0].logprob == pytest.approx(logprobs(network, [2])[-1].max().item(), abs=1e-4)


def test_progress_is_told_to_the_end(model):
    told = []
    model.answers(requests(max_tokens=5), told=lambda done, of: told.append((done, of)))
    assert told[-1] == (8, 8)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_no_request_no_answer(model):
    assert model.answers([]) == []


# -- log-probabilities


def test_tokens_carry_the_models_own_log_probabilities(model, network):
    asked = requests(max_tokens=10, temperature=0.5, top_p=0.8, logprobs=4)
    for request, answer in zip(asked, model.answers(asked), strict=True):
        prompt, drawn = b_tokens(model, request.prompt), []
        for token in answer.tokens:
            law = logprobs(network, prompt + drawn)[-1]
            assert [value for _, value in token.alternatives] == pytest.approx(law.topk(4).values.tolist(), abs=1e-4)
            drawn.append((law - token.logprob).abs().argmin().item())
            assert law[drawn[-1]].item() == pytest.approx(token.logprob, abs=1e-4)
        assert answer.text == "".join(token.text for token in answer.tokens)
        assert answer.text == model.tokenizer.decode(drawn, skip_special_tokens=True)


def test_how_likely_a_given_text_is(model, network):
    pairs = [(text, "é, and so on"[: 2 + 3 * k]) for k, text in enumerate(PROMPTS[:4])]
    told = []
    found = model.logprobs_of_each(pairs, alternatives=1, told=lambda done, of: told.append((done, of)))
    for (prompt, text), tokens in zip(pairs, found, strict=True):
        read, given = b_tokens(model, prompt), b_tokens(model, text)
        law = logprobs(network, read + given)[len(read) - 1 : -1]
        own = law[range(len(given)), given]
        assert [token.logprob for token in tokens] == pytest.approx(own.tolist(), abs=1e-4)
        assert [token.alternatives[0][1] for token in tokens] == pytest.approx(law.amax(-1).tolist(), abs=1e-4)
        alone = model.logprobs_of(prompt, text)
        assert [token.logprob for token in alone] == pytest.approx([token.logprob for token in tokens], abs=1e-4)
    assert told[-1] == (4, 4)


def test_how_likely_a_next_turn_is(model):
    turn = model.logprobs_of(conversation("Is it true?"), "Yes")
    assert turn == model.logprobs_of("<user>Is it true?\n<assistant>", "Yes")
    assert [token.text for token in turn] == ["Y", "e", "s"]


def test_the_probabilities_of_all_that_may_come_add_up_to_one(model):
    tokens = model.logprobs_of("The cat", "s", alternatives=20)[0]
    every = sum(math.exp(value) for _, value in tokens.alternatives)
    assert 0.3 < every <= 1 + 1e-6


def test_texts_that_have_no_log_probabilities(model):
    with pytest.raises(ValueError, match="continuation of pair 1 is empty"):
        model.logprobs_of_each([("a", "b"), ("a", "")])
    with pytest.raises(ValueError, match="pair 0 is 201 tokens long, the model reads 200; shorten it"):
        model.logprobs_of("x" * 200, "y")


# -- what it is, and what it is not


def test_the_id_says_weights_and_number_format(causal, model, tmp_path):
    other = shutil.copytree(causal, tmp_path / causal.name)
    same = EmbeddedModel(other, device="cpu")
    assert same.id == model.id
    assert model.id.startswith(causal.name)
    assert EmbeddedModel(other, device="cpu", dtype="bfloat16").id != model.id
    weights = other / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
    assert EmbeddedModel(other, device="cpu").id != model.id


def test_bfloat16_answers_in_bfloat16(causal):
    model = EmbeddedModel(causal, device="cpu", dtype="bfloat16")
    assert model.network.dtype == torch.bfloat16
    assert all(answer.finish in ("stop", "length") for answer in model.answers(requests(max_tokens=4, logprobs=1)))


def test_a_model_without_a_template_does_not_chat(causal, tmp_path):
    folder = shutil.copytree(causal, tmp_path / "plain")
    (folder / "chat_template.jinja").unlink()
    model = EmbeddedModel(folder, device="cpu")
    with pytest.raises(ValueError, match="has no chat template, so it cannot chat; let it complete a text"):
        model.chat("Hi")
    assert model.complete("Hi", Sampling(max_tokens=2)).model == model.id


def test_folders_that_are_no_causal_model(tmp_path, causal):
    with pytest.raises(ValueError, match="is not a folder"):
        EmbeddedModel("HuggingFaceTB/SmolLM2-135M-Instruct")
    folder = shutil.copytree(causal, tmp_path / "halved")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"transformers cannot load a model from .*halved"):
        EmbeddedModel(folder)
    with pytest.raises(ValueError, match="dtype must be float32, bfloat16 or float16, got 'int8'"):
        EmbeddedModel(causal, dtype="int8")


def test_it_says_nothing_and_asks_no_network(causal, capfd, no_network, recwarn):
    model = EmbeddedModel(causal, device="cpu")
    model.answers(requests(max_tokens=3))
    model.logprobs_of("a", "b" * 150)
    assert capfd.readouterr() == ("", "")
    assert [str(warning.message) for warning in recwarn] == []


# -- the real one


@pytest.fixture(scope="module")
def smollm2(smollm2_files):
    return EmbeddedModel(smollm2_files, device="cpu")


@pytest.mark.slow
def test_smollm2_knows_a_capital_and_answers_as_transformers_does(smollm2):
    paris, rome = (smollm2.logprobs_of("The capital of France is", city)[0].logprob for city in (" Paris", " Rome"))
    assert paris > math.log(0.5)
    assert rome < paris - 3
    answer = smollm2.complete("Gravity is", Sampling(temperature=0, max_tokens=8))
    prompt = smollm2.tokenizer("Gravity is", return_tensors="pt")
    theirs = smollm2.network.generate(**prompt, max_new_tokens=8, do_sample=False)[0, prompt.input_ids.shape[1] :]
    assert answer.text == smollm2.tokenizer.decode(theirs)


@pytest.mark.slow
def test_smollm2_ends_its_turn_and_finds_english_likelier_than_its_words_in_disorder(smollm2):
    answer = smollm2.chat("Say hello.", sampling=Sampling(temperature=0, max_tokens=60))
    assert answer.finish == "stop"
    assert "<|" not in answer.text
    good, bad = smollm2.logprobs_of_each(
        [("Facts.", " The sun rises in the east."), ("Facts.", " East the in rises sun the.")]
    )
    assert np.mean([token.logprob for token in good]) > np.mean([token.logprob for token in bad]) + 1
