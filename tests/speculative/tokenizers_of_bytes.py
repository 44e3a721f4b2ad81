"""A tokenizer with no file behind it."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

TEMPLATE = "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}"


def byte_tokenizer(chat=True):
    """512 tokens, of which the first 256 are bytes and the others words of two."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = [a + b for a in alphabet[:16] for b in alphabet[:16]]
    vocabulary = {piece: number for number, piece in enumerate([*alphabet, *pairs])}
    plain = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    plain.pre_tokenizer, plain.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=plain, chat_template=TEMPLATE if chat else None)
