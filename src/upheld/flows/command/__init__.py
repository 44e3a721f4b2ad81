"""``upheld run flows --velocity flow.pt --likelihood classifier.pt --target 3``: conditional samples of a flow that is not conditional."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = (
    "upheld run flows --velocity {file}/flow.pt --likelihood {file}/guide.pt --judge {file}/judge.pt --shape 64 --target 3 --compare "
    "--out out/"
)
WRITES_A_FOLDER = True


def run(
    velocity: Annotated[
        str,
        typer.Option(
            "--velocity",
            help="The flow: a TorchScript file called as f(x, t), weights (.pt, .safetensors, .npz) with --loader, or diffusers:FOLDER.",
        ),
    ],
    likelihood: Annotated[
        Path, typer.Option("--likelihood", help="The guide: a classifier's TorchScript file; from samples to logits.")
    ],
    target: Annotated[int, typer.Option("--target", min=0, help="The wanted class, counted from 0.")],
    shape: Annotated[
        str, typer.Option("--shape", help="Of one example: 64, or 1,28,28. Of the latents, for diffusers.")
    ],
    judge: Annotated[
        Path | None,
        typer.Option(
            "--judge", help="Another classifier, of other data and family, that did not guide: whom to believe."
        ),
    ] = None,
    loader: Annotated[
        str | None,
        typer.Option("--loader", help="module:callable that makes the network into which --velocity's weights go."),
    ] = None,
    likelihood_loader: Annotated[
        str | None, typer.Option("--likelihood-loader", help="The same for --likelihood, if that is a file of weights.")
    ] = None,
    judge_loader: Annotated[
        str | None, typer.Option("--judge-loader", help="The same for --judge, if that is a file of weights.")
    ] = None,
    prediction: Annotated[
        str, typer.Option("--prediction", help="What the network gives: velocity, endpoint, noise; auto looks.")
    ] = "auto",
    coupling: Annotated[
        str,
        typer.Option(
            "--coupling", help="How training paired noise and data: independent, or ot (then no noise is added)."
        ),
    ] = "independent",
    path: Annotated[str, typer.Option("--path", help="linear, cosine or vp.")] = "linear",
    n: Annotated[int, typer.Option("-n", "--samples", min=1, help="Samples, independent of each other.")] = 64,
    particles: Annotated[int | None, typer.Option("--particles", min=1, help="K, particles a sample; 16.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=2, help="N, steps of the flow; 128.")] = None,
    preset: Annotated[str, typer.Option("--preset", help="default, or paper: the published settings.")] = "default",
    guidance: Annotated[
        float | None,
        typer.Option("--guidance", min=0, help="Strength of the gradient in the proposal; 2 for classifiers."),
    ] = None,
    window: Annotated[
        str,
        typer.Option(
            "--window",
            help="Where noise is added: auto, adaptive (a pilot finds where to begin), none, or t_a,t_b in (0, 1).",
        ),
    ] = "auto",
    extra_window: Annotated[
        str | None,
        typer.Option(
            "--extra-window", help="t_a,t_b after --window, also with noise but not weighed: it makes copies differ."
        ),
    ] = None,
    lookahead: Annotated[
        str,
        typer.Option(
            "--lookahead", help="point; calibrated: softened while x_1 is uncertain, by --kappa; auto is point."
        ),
    ] = "auto",
    kappa: Annotated[
        float | None,
        typer.Option("--kappa", min=0, help="With --lookahead calibrated: logits are divided by 1 + kappa r^2/c."),
    ] = None,
    eps2: Annotated[
        float,
        typer.Option(
            "--eps2", help="Added to the look-ahead, never to the guide itself: for guides that are 0 somewhere."
        ),
    ] = 0.0,
    ladder: Annotated[
        bool,
        typer.Option("--ladder", help="Let the condition in gradually, by a ladder of exponents that a pilot finds."),
    ] = False,
    noise: Annotated[float, typer.Option("--noise", min=0, help="1: memoryless; 0: the deterministic flow.")] = 1.0,
    temperature: Annotated[float, typer.Option("--temperature", help="The guide's logits are divided by it.")] = 1.0,
    prompt: Annotated[str, typer.Option("--prompt", help="For diffusers: the pipeline's own condition.")] = "",
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Beside it (TFTF in the table), at the same evaluations: importance sampling, FlowChef, and the flow without a "
            "condition.",
        ),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, help="Sample in so many processes; their number does not change the samples."),
    ] = None,
    ray: Annotated[
        str | None, typer.Option("--ray", help="Sample on Ray: 'auto', or a cluster's address; models are sent there.")
    ] = None,
    groups: Annotated[
        int | None,
        typer.Option(
            "--groups",
            min=1,
            help="With --jobs or --ray: samples a job, each a group of particles; 16. Batches of other sizes round otherwise.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for samples.npz, summary.json and pictures.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Samples of a pretrained flow-matching model that a classifier takes for the wanted class, without training: by weighted and
    resampled particles, with an estimate of the evidence and warnings where they should not be trusted."""
    asked = dict(locals())
    from upheld.flows.command.options import Options
    from upheld.flows.command.running import sample

    sample(Options(**asked))


def write_data(out: Path) -> None:
    """Handwritten digits of 8 x 8 pixels (scikit-learn): a small flow, a guide, and a judge of another family that shares no row with
    either, as TorchScript files. Trained on the first call, in about half a minute."""
    from upheld.flows.command.embedded import write_digit_models

    write_digit_models(out)
