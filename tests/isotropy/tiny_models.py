"""Models of random weights in folders, made in a moment, for what does not need a real one."""

from __future__ import annotations

from pathlib import Path


def tiny_bert(folder: Path, *, norm: float = 1.0) -> Path:
    """An encoder of two layers that reads 300 bytes; `norm` scales its last states: 0 makes zero vectors of all texts."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=259, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=300, initializer_range=0.6,
    )  # fmt: skip
    network = BertModel(config)
    for weights in network.encoder.layer[-1].output.LayerNorm.parameters():
        weights.requires_grad_(False)
        weights *= norm
    network.save_pretrained(folder)
    _byte_tokenizer(folder)
    return folder


def word_bert(folder: Path) -> Path:
    """The same, but it knows one word; all others are the same unknown token to it."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tiny_bert(folder)
    tokenizer = Tokenizer(models.WordLevel({"<pad>": 0, "<unk>": 1, "seen": 2}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>").save_pretrained(folder)
    return folder


def tiny_nli(folder: Path) -> Path:
    """A judge of pairs of texts, of two layers that read 300 bytes, whose weights are wild enough to find all three kinds."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    labels = dict(enumerate(["entailment", "neutral", "contradiction"]))
    config = BertConfig(
        vocab_size=259, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=300, initializer_range=0.6, id2label=labels, label2id={v: k for k, v in labels.items()},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    _byte_tokenizer(folder)
    return folder


def _byte_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["<pad>", "<end>", "<begin>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<begin> $A <end>",
        pair="<begin> $A <end> $B:1 <end>:1",
        special_tokens=[("<begin>", 2), ("<end>", 1)],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>", bos_token="<begin>"
    ).save_pretrained(folder)
