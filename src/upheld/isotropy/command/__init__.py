"""``upheld run isotropy responses.jsonl --html report.html``: which of a model's answers to distrust, and which passage differs."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from upheld.report.content import json_text

EXAMPLE = "upheld run isotropy {file} --rivals lexical,jaccard,cosine --html report.html"


def run(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Answers: JSON Lines with id, prompt, responses; CSV with columns id, prompt, response; a folder <id>/*.txt; "
            "or SegmentScore. With factuality, signals are judged by it.",
        ),
    ] = None,
    embedder: Annotated[
        str, typer.Option("--embedder", help="minilm, smollm2, a folder with a model, or openai:MODEL@URL.")
    ] = "minilm",
    pooling: Annotated[
        str | None,
        typer.Option(
            "--pooling", help="Of a model's token states: mean, cls, max, last, unmasked_mean; else as its folder says."
        ),
    ] = None,
    template: Annotated[
        str | None, typer.Option("--template", help="excerpt: put a line that names the prompt before every answer.")
    ] = None,
    long_text: Annotated[
        str, typer.Option("--long-text", help="Answers longer than the embedder reads: window, truncate or error.")
    ] = "window",
    n: Annotated[
        int | None,
        typer.Option("--n", min=2, help="Answers used of each prompt; with --prompts, answers sampled (5)."),
    ] = None,
    allow_mixed_n: Annotated[
        bool,
        typer.Option(
            "--allow-mixed-n", help="Score prompts with different numbers of answers, though they do not compare."
        ),
    ] = False,
    rivals: Annotated[
        str | None,
        typer.Option(
            "--rivals",
            help="Other signals beside the score: names separated by commas (lexical, jaccard, cosine, eigenscore, nli, luq, ...), "
            "or all.",
        ),
    ] = None,
    nli: Annotated[
        Path | None,
        typer.Option("--nli", help="Folder of a model of natural-language inference, for the rivals that ask one."),
    ] = None,
    as_published: Annotated[
        bool,
        typer.Option("--as-published", help="Also what three rivals give in the paper's repository, faults included."),
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", help="JSON Lines with all about every prompt.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="A page with the worst prompts' answers side by side.")
    ] = None,
    pictures: Annotated[Path | None, typer.Option("--pictures", help="Folder for pictures (png and svg).")] = None,
    top: Annotated[
        int, typer.Option("--top", min=1, help="Prompts in the table and on the page, the worst first.")
    ] = 20,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Of everything random; sample i of a prompt has seed + i.")
    ] = 0,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep vectors and models' answers in the user's cache folder.")
    ] = True,
    calibrate: Annotated[
        Path | None, typer.Option("--calibrate", help="A saved calibration: adds the expected factuality.")
    ] = None,
    save_calibrator: Annotated[
        Path | None, typer.Option("--save-calibrator", help="Calibrate on the labelled prompts, and save that.")
    ] = None,
    prompts: Annotated[
        Path | None,
        typer.Option("--prompts", help="No answers yet: sample them for the prompts of this file, one a line."),
    ] = None,
    endpoint: Annotated[
        str | None, typer.Option("--endpoint", help="URL of an OpenAI-compatible endpoint, up to and with /v1.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="The model that answers: its name at the endpoint, a folder, or embedded."),
    ] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", help="Of the samples; 0.7 by default.")] = None,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", min=1, help="Of an answer; 700 by default.")] = None,
    adaptive: Annotated[
        float | None,
        typer.Option(
            "--adaptive", help="Draw until it is plain on which side of this score (of --n answers) a prompt lies."
        ),
    ] = None,
    n_max: Annotated[
        int | None, typer.Option("--n-max", help="With --adaptive: answers to end with, 20 by default.")
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option("--prices", help=r'JSON file {"MODEL": \[per million tokens read, per million written]}.'),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, help="Requests to the endpoint at a time, 4 by default.")
    ] = None,
    responses_out: Annotated[
        Path | None, typer.Option("--responses-out", help="JSON Lines with the sampled answers.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", help="Take the model's answers from a file that --record wrote.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option("--record", help="Keep what the model answered, so that the run can be replayed.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """How far several answers to one prompt differ: a score a prompt, high as a warning that they may be invented, with its error,
    the odd answer out and the answer nearest to all. The score measures agreement: a falsehood that all answers share scores low."""
    asked = dict(locals())
    from upheld.isotropy.command.options import PARAMETERS, Options, check, named_rivals
    from upheld.isotropy.command.scoring import surveyed, write, written
    from upheld.isotropy.command.terminal import print_run
    from upheld.llm import ModelError
    from upheld.report.progress import Progress
    from upheld.report.wording import told_as_options
    from upheld.storage import whole_file

    options = Options(**asked)
    check(options)
    chosen_rivals = named_rivals(options)
    with told_as_options(PARAMETERS, ModelError, ValueError), Progress() as progress, ExitStack() as unfinished:
        scores, responses = (
            None if path is None else unfinished.enter_context(whole_file(path)) for path in (out, responses_out)
        )
        found = surveyed(options, chosen_rivals, progress, scores, responses)
        write(found, options, progress)
    if json:
        sys.stdout.write(json_text(found.document))
    else:
        print_run(found.document, written=written(options))


def write_data(out: Path) -> None:
    """Descriptions of countries by a small language model, five each, with the share of facts that is right."""
    from upheld.isotropy.data import write_countries

    write_countries(out)
