"""Recall: from a damaged cue to the fixed point it falls to.

::

    LSE    x <- sum_mu softmax_mu(-beta/2 |x - xi_mu|^2) xi_mu                     one step is softmax attention  (1)
    LSR    x <- mean of the patterns with |x - xi_mu|^2 < 2/beta                   flat-kernel mean shift         (2)

both put back on the sphere of radius sqrt(N) with ``sphere=True``. (2) stops after finitely many steps: the support is a set of patterns
and the energy falls whenever it changes (shadow kernels, Cheng 1995). A cue outside every support has no energy below +inf: it is left
alone (``"abstain"``), moved to its nearest pattern (``"nearest"``), or refused (``"error"``).

The descent of either energy by small steps is `gradient_flow`. (1): Ramsauer et al., ICLR 2021; (2): ours, of the LSR energy of Hoover
et al., NeurIPS 2025.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from upheld.memory.energies import LSEEnergy, LSREnergy, squared_distances
from upheld.memory.theory import KERNELS

if TYPE_CHECKING:
    import torch

MAX_STEPS, TOLERANCE = 100, 1e-6
ON_EMPTY = ("abstain", "nearest", "error")
CHUNK_BYTES = 2**27


class Recall(NamedTuple):
    """`x` (B, N) fixed points, `iterations` (B,) until nothing moved, `empty` (B,) cues outside every support,
    `support` (B,) patterns in the support of the fixed point (LSR; 0 for LSE)."""

    x: torch.Tensor
    iterations: torch.Tensor
    empty: torch.Tensor
    support: torch.Tensor


def weights(x: torch.Tensor, patterns: torch.Tensor, kernel: str, beta: float) -> torch.Tensor:
    """Weights (B, M) of one step of (1) or (2); a row of zeros where the support is empty."""
    return _weights_at(squared_distances(x, patterns), kernel, beta)


def _weights_at(distances: torch.Tensor, kernel: str, beta: float | torch.Tensor) -> torch.Tensor:
    """`beta` may be one a row, (B, 1)."""
    import torch

    if kernel == "lse":
        return torch.softmax(-beta / 2 * distances, -1)
    inside = (distances < 2 / beta).to(distances.dtype)
    return inside / inside.sum(-1, keepdim=True).clamp_min(1)


def recall(
    cues: torch.Tensor,
    patterns: torch.Tensor,
    kernel: str = "lsr",
    beta: float | torch.Tensor = 1.0,
    *,
    sphere: bool = True,
    on_empty: str = "abstain",
    max_steps: int = MAX_STEPS,
    tol: float = TOLERANCE,
    distances: torch.Tensor | None = None,
) -> Recall:
    """Fixed points of cues.

    Parameters
    ----------
    cues : (B, N); patterns : (M, N), of the same dtype and device
    beta : inverse variance, one for all or (B,); LSR's support has the radius sqrt(2/beta)
    sphere : put every step back on the radius sqrt(N)
    on_empty : what becomes of cues outside every support: "abstain", "nearest", "error"
    tol : of |step| / sqrt(N)
    distances : (B, M) squared ones of the cues to the patterns, where they are known already

    Raises
    ------
    ValueError
        On shapes that do not fit, an unknown kernel, or an empty support with ``on_empty="error"`` (with the number of cues).

    Examples
    --------
    >>> import torch
    >>> patterns = torch.eye(4)
    >>> found = recall(torch.tensor([[0.8, 0.1, 0.0, 0.0], [9.0, 9.0, 9.0, 9.0]]), patterns, beta=4.0, sphere=False)
    >>> found.x[0].tolist(), found.empty.tolist()
    ([1.0, 0.0, 0.0, 0.0], [False, True])
    """
    import torch

    _check(cues, patterns, kernel, on_empty)
    each = torch.as_tensor(beta, dtype=cues.dtype, device=cues.device).expand(len(cues)).unsqueeze(-1)
    rows = max(1, CHUNK_BYTES // (len(patterns) * patterns.element_size()))
    parts = [
        _recall_chunk(
            cues[at : at + rows], patterns, kernel, each[at : at + rows], sphere, on_empty, max_steps, tol,
            None if distances is None else distances[at : at + rows],
        )
        for at in range(0, max(len(cues), 1), rows)
    ]  # fmt: skip
    found = Recall(*(torch.cat(columns) for columns in zip(*parts, strict=True)))
    if on_empty == "error" and found.empty.any():
        raise ValueError(
            f"{int(found.empty.sum())} of {len(cues)} cues lie outside every support (radius {math.sqrt(2 / float(each.min())):.3g}); "
            "lower beta, or "
            'take on_empty="abstain"'
        )
    return found


def _recall_chunk(
    cues: torch.Tensor, patterns: torch.Tensor, kernel: str, beta: torch.Tensor, sphere: bool, on_empty: str, max_steps: int, tol: float,
    distances: torch.Tensor | None,
) -> Recall:  # fmt: skip
    import torch

    x, N = cues.clone(), cues.shape[-1]
    iterations = torch.zeros(len(x), dtype=torch.int64, device=x.device)
    support, empty = torch.zeros_like(iterations), torch.zeros(len(x), dtype=torch.bool, device=x.device)
    active, state = torch.arange(len(x), device=x.device), cues
    squares = (patterns * patterns).sum(-1)
    for step in range(max_steps):
        w = _weights_at(
            squared_distances(state, patterns, squares) if step or distances is None else distances,
            kernel,
            beta[active],
        )
        if kernel == "lsr":
            support[active] = (w > 0).sum(-1)
            if step == 0:
                empty = support == 0
                active, state, w = active[~empty], state[~empty], w[~empty]
        moved = w @ patterns
        if sphere:
            moved = moved * (math.sqrt(N) / moved.norm(dim=-1, keepdim=True).clamp_min(1e-30))
        going = (moved - state).norm(dim=-1) / math.sqrt(N) > tol
        x[active] = moved
        iterations[active] += 1
        active, state = active[going], moved[going]
        if not len(active):
            break
    if on_empty == "nearest" and empty.any():
        x[empty] = patterns[squared_distances(cues[empty], patterns).argmin(-1)]
    return Recall(x, iterations, empty, support)


def gradient_flow(
    cues: torch.Tensor, patterns: torch.Tensor, energy: LSEEnergy | LSREnergy, *, eta: float = 0.1, steps: int = 1000,
    sphere: bool = False,
) -> torch.Tensor:  # fmt: skip
    """States after `steps` steps of size `eta` down an energy; cues outside every support of LSR stay where they are."""
    if not eta > 0:
        raise ValueError(f"eta must be above 0, got {eta}")
    x = cues.clone()
    for _ in range(steps):
        x = x - eta * energy.grad(x, patterns)
        if sphere:
            x = x * (math.sqrt(x.shape[-1]) / x.norm(dim=-1, keepdim=True))
    return x


def _check(cues: torch.Tensor, patterns: torch.Tensor, kernel: str, on_empty: str) -> None:
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be 'lse' or 'lsr', got {kernel!r}")
    if on_empty not in ON_EMPTY:
        raise ValueError(f"on_empty must be {' or '.join(map(repr, ON_EMPTY))}, got {on_empty!r}")
    if cues.ndim != 2 or patterns.ndim != 2 or cues.shape[-1] != patterns.shape[-1]:
        raise ValueError(
            f"cues (B, N) and patterns (M, N) need one width, got {tuple(cues.shape)} and {tuple(patterns.shape)}"
        )
