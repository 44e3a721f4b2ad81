"""``upheld run speculative --prompts prompts.jsonl``: the same text sooner, and whether it is; ``train``, ``calibrate`` and ``serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = """upheld run speculative --prompts {file} --out runs.jsonl --html report.html
  upheld run speculative train --model FOLDER --train-prompts {file} --minutes 10 --out mine/
  upheld run speculative --model FOLDER --drafter mine/drafter --prompts {file}"""


def run(
    what: Annotated[
        str,
        typer.Argument(
            metavar="[decode|train|calibrate|serve]",
            help="decode prompts beside the rivals; train a drafter; measure whether it pays here; serve an OpenAI-compatible endpoint.",
        ),
    ] = "decode",
    model: Annotated[
        str,
        typer.Option("--model", help="The target: smollm2, a folder of a Hugging Face causal model, or a GGUF file."),
    ] = "smollm2",
    prompts: Annotated[
        Path | None,
        typer.Option(
            "--prompts",
            help='Prompts to decode: a text file, one a line, or .jsonl with {"prompt": ...} or {"messages": ...}.',
        ),
    ] = None,
    drafter: Annotated[
        Path | None,
        typer.Option(
            "--drafter",
            help="Folder of the target's drafter; by default the one shipped for smollm2. train: one to go on from (shipped: that one).",
        ),
    ] = None,
    train_prompts: Annotated[
        Path | None,
        typer.Option(
            "--train-prompts",
            help="Prompts to train on, in the same formats; the target answers them itself. decode: trains first.",
        ),
    ] = None,
    minutes: Annotated[
        float, typer.Option("--minutes", help="Of training, of which at most half go into the answers.")
    ] = 10.0,
    rivals: Annotated[
        str,
        typer.Option(
            "--rivals",
            help="Beside the drafter: plain (always), generate, lookup, assistant, eagle, medusa; the last two are trained as long as it.",
        ),
    ] = "plain,generate,lookup",
    assistant: Annotated[
        Path | None, typer.Option("--assistant", help="Folder of a smaller model of the same vocabulary, a rival.")
    ] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Tokens of an answer, at most.")] = 128,
    temperature: Annotated[float, typer.Option("--temperature", min=0, help="0: the likeliest token each time.")] = 0.0,
    top_p: Annotated[float, typer.Option("--top-p", help="With a temperature: the nucleus sampled from.")] = 1.0,
    block_size: Annotated[
        str,
        typer.Option(
            "--block-size",
            help="Tokens verified at once, at most the drafter's own; auto: what pays best here, told from prompts that are not timed.",
        ),
    ] = "auto",
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Shorten and lengthen blocks by how many drafts stand.")
    ] = False,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Times that every method decodes a prompt.")] = 1,
    dtype: Annotated[str, typer.Option("--dtype", help="float32, bfloat16, float16; auto: the fastest here.")] = "auto",
    device: Annotated[
        str | None, typer.Option("--device", help="cpu, cuda, cuda:1; by default CUDA where there is one.")
    ] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Of the processor.")] = 1,
    host: Annotated[str, typer.Option("--host", help="serve: address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="serve: 0 takes a free one.")] = 8000,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Of everything random.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="decode: JSON Lines, a line an answer. train: the folder to work in.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="decode: a page with the table and pictures.")] = None,
    pictures: Annotated[
        Path | None, typer.Option("--pictures", help="decode: folder for the pictures (png and svg).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """What a language model of yours says, sooner and unchanged: a small drafter, trained on the model's own states, proposes blocks of
    tokens that the model verifies. Tells with an interval whether it pays on this machine, beside prompt lookup and others."""
    asked = {name: value for name, value in locals().items() if name != "what"}
    from upheld.speculative.command.asking import Asked, block_named, check

    if what not in ("decode", "train", "calibrate", "serve"):
        raise ValueError(f"{what!r} is none of decode, train, calibrate and serve; to decode, give --prompts FILE")
    request = Asked(**asked | {"block_size": block_named(block_size)})
    check(what, request)
    from upheld.llm.loading import quietly

    with quietly():
        if what == "train":
            from upheld.speculative.command.training import train

            train(request)
        elif what == "calibrate":
            from upheld.speculative.command.calibrating import tell

            tell(request)
        elif what == "decode":
            from upheld.speculative.command.decoding import decode

            decode(request)
    if what == "serve":  # its threads say what they say
        from upheld.speculative.command.serving import serve

        serve(request)


def write_data(out: Path) -> None:
    """Twelve requests for prose, lists and code, on topics of which the shipped drafter has seen none; lines of text, or JSON Lines
    where the file ends in .jsonl."""
    from upheld.speculative.command.asking import write_prompts

    write_prompts(out)
