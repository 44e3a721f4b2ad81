"""Draw the pictures of the documentation: ``python scripts/draw_docs.py [METHOD ...]`` writes docs/methods/METHOD.png.

Each is what a command draws of the embedded data; `RUNS` says which. Few colours are kept, so that the files stay small.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).parents[1] / "docs" / "methods"
RUNS = {  # the data, the command that draws them, the picture
    "hubs": ("khan.csv", "khan.csv --groups subtype --out drawn", "drawn/hubs.png"),
    "bandits": ("choices.csv", "choices.csv --threshold 0.9 --runs 10 --horizon 1000 --out drawn", "drawn/*.png"),
    "isotropy": ("responses.jsonl", "responses.jsonl --rivals lexical,cosine --pictures drawn", "drawn/*.png"),
    "effects": (
        "nhefs.csv",
        "nhefs.csv --treatment quit_smoking --outcome weight_gain_kg --every 100 --out drawn",
        "drawn/estimate.png",
    ),
    "lagrangian": (
        "days",
        "--train days/past/*.mps --test days/today.mps --coupling 'demand_.*|reserve_.*' --compare --seconds 0 --out drawn",
        "drawn/bounds.png",
    ),
    "memory": ("keys.npy", "--patterns keys.npy --out drawn", "drawn/recall.png"),
    "flows": (
        "models",
        "--velocity models/flow.pt --likelihood models/guide.pt --judge models/judge.pt --shape 64 --target 3 -n 16 --out drawn",
        "drawn/*.png",
    ),
    "speculative": ("prompts.jsonl", "--prompts prompts.jsonl --max-tokens 48 --pictures drawn", "drawn/race.png"),
    "context": (
        "train.jsonl",
        "--train train.jsonl --consumer tfidf --iterations 3 --train-limit 100 --out drawn",
        "drawn/tokens.png",
    ),
}
WIDEST, COLOURS = 900, 64  # pixels; a line drawing needs few colours


def draw(method: str) -> Path:
    """Run the method's command in a new folder and keep its picture.

    Raises
    ------
    subprocess.CalledProcessError
        If the command fails.
    """
    data, arguments, picture = RUNS[method]
    with tempfile.TemporaryDirectory() as folder:
        _upheld(folder, "data", method, "--out", data)
        _upheld(folder, "run", method, *_spread(folder, shlex.split(arguments)))
        first = sorted(Path(folder).glob(picture))[0]
        kept = DOCS / f"{method}.png"
        image = Image.open(first).convert("RGB")
        image.thumbnail((WIDEST, 4 * WIDEST), Image.Resampling.LANCZOS)
        image.quantize(COLOURS).save(kept, optimize=True)
    print(f"{kept}: {kept.stat().st_size:,} bytes, from {first.name}", flush=True)
    return kept


def _upheld(folder: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "upheld", *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _spread(folder: str, arguments: list[str]) -> list[str]:
    """Patterns as a shell spreads them."""
    found: list[str] = []
    for argument in arguments:
        matches = (
            sorted(str(path.relative_to(folder)) for path in Path(folder).glob(argument)) if "*." in argument else []
        )
        found += matches or [argument]
    return found


if __name__ == "__main__":
    for name in sys.argv[1:] or RUNS:
        draw(name)
