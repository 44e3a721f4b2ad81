"""Layers of torch: a memory with its own patterns, and attention whose support may end.

`KernelAttention` has the signature of ``torch.nn.MultiheadAttention``, with the kernel of the energy in place of the softmax of dot
products. Per head, query q, keys k::

    LSE    w = softmax(-beta/2 |q - k|^2)                   scaled dot products when all keys have one norm           (1)
    LSR    w = 1[|q - k|^2 < 2/beta] / count                the fixed point of LSR; forwards                            (2)
           w = 1[...] / (eps + sum r),  r = ReLU(1 - beta/2 |q - k|^2)     the energy-gradient step; backwards          (3)

(2) is flat almost everywhere, so gradients are those of (3), whose denominator is differentiable; with a window tau > 0 the indicator,
too, lets gradients pass where |1 - beta/2 |q - k|^2| < tau/2 (straight through).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from upheld.memory.blockwise import blockwise_attention
from upheld.memory.energies import squared_distances
from upheld.memory.recall import weights
from upheld.memory.theory import KERNELS

EPSILON = 1e-6


class DenseAssociativeMemory(nn.Module):
    """Patterns as a layer: a query goes in, what is remembered comes out.

    Parameters
    ----------
    patterns : (M, N)
    values : (M, D) what to return for each pattern; None for the patterns themselves
    kernel : "lse" or "lsr"
    beta : inverse variance of the kernel
    steps : updates of the query before it is read out
    sphere : put every update on the radius sqrt(N)
    trainable : patterns and values are parameters, else buffers

    Shape
    -----
    (..., N) -> (..., D). A query outside every support is returned as it is; with values, as zeros. `empty_rate` counts them.

    Examples
    --------
    >>> memory = DenseAssociativeMemory(torch.eye(3), kernel="lsr", beta=4.0)
    >>> memory(torch.tensor([0.9, 0.1, 0.0])).tolist()
    [1.0, 0.0, 0.0]
    """

    patterns: Tensor
    values: Tensor | None

    def __init__(
        self,
        patterns: Tensor,
        values: Tensor | None = None,
        kernel: str = "lsr",
        beta: float = 1.0,
        steps: int = 1,
        sphere: bool = False,
        trainable: bool = False,
    ) -> None:
        super().__init__()
        _check_kernel(kernel, beta)
        if patterns.ndim != 2 or (values is not None and len(values) != len(patterns)):
            raise ValueError("patterns are (M, N), and values as many rows as patterns")
        if steps < 1:
            raise ValueError(f"steps must be at least 1, got {steps}")
        self.kernel, self.beta, self.steps, self.sphere = kernel, beta, steps, sphere
        for name, tensor in (("patterns", patterns), ("values", values)):
            kept = None if tensor is None else tensor.detach().clone()
            if trainable and kept is not None:
                self.register_parameter(name, nn.Parameter(kept))
            else:
                self.register_buffer(name, kept)
        _count_from_zero(self, patterns.device)

    def forward(self, query: Tensor) -> Tensor:
        """What is remembered at the queries (..., N)."""
        x = query.reshape(-1, query.shape[-1])
        for step in range(self.steps):
            w = weights(x, self.patterns, self.kernel, self.beta)
            empty = w.sum(-1, keepdim=True) == 0
            if step == 0:
                _count(self, empty)
            if step == self.steps - 1 and self.values is not None:
                return (w @ self.values).reshape(*query.shape[:-1], -1)
            moved = w @ self.patterns
            if self.sphere:
                moved = moved * (math.sqrt(x.shape[-1]) / moved.norm(dim=-1, keepdim=True).clamp_min(1e-30))
            x = torch.where(empty, x, moved)
        return x.reshape(query.shape)

    @property
    def empty_rate(self) -> float:
        """Share of queries so far that lay outside every support."""
        return _rate(self)


class KernelAttention(nn.Module):
    """Multi-head attention with the kernel of a dense associative memory, (1) to (3).

    Parameters
    ----------
    embed_dim, num_heads, dropout, bias, kdim, vdim, batch_first, device, dtype : as in ``nn.MultiheadAttention``
        (``batch_first=True`` here)
    kernel : "lse" or "lsr"
    beta : inverse variance, 1/sqrt(head dimension) by default, which is the scale of dot products; or
    radius : of LSR's support, sqrt(2/beta)
    window : tau of the straight-through indicator; 0 for none
    on_empty : rows without support return their query ("abstain") or the value of the nearest key ("nearest")
    backend : "dense", or "flex" (`blockwise`), which never forms the weights and skips blocks without support: to be called with
        ``need_weights=False``; trains LSE on a GPU alone, LSR nowhere (on a CPU torch has no gradient of it: train with "dense", whose
        parameters are the same, and load them)

    Examples
    --------
    >>> layer = KernelAttention(8, 2, kernel="lsr", radius=3.0)
    >>> x = torch.randn(4, 5, 8)
    >>> out, w = layer(x, x, x)
    >>> out.shape, w.shape
    (torch.Size([4, 5, 8]), torch.Size([4, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        kernel: str = "lse",
        beta: float | None = None,
        radius: float | None = None,
        window: float = 0.0,
        on_empty: str = "abstain",
        backend: str = "dense",
    ) -> None:
        super().__init__()
        if backend not in ("dense", "flex"):
            raise ValueError(f"backend must be 'dense' or 'flex', got {backend!r}")
        if backend == "flex" and (dropout or on_empty == "nearest"):
            raise ValueError(
                "backend='flex' never forms the weights that dropout and on_empty='nearest' need; use 'dense'"
            )
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} must be a multiple of num_heads {num_heads}")
        if beta is not None and radius is not None:
            raise ValueError("give beta or radius, not both: radius is sqrt(2/beta)")
        if on_empty not in ("abstain", "nearest"):
            raise ValueError(f"on_empty must be 'abstain' or 'nearest', got {on_empty!r}")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.beta = 2 / radius**2 if radius else beta if beta is not None else 1 / math.sqrt(self.head_dim)
        _check_kernel(kernel, self.beta)
        self.kernel, self.window, self.on_empty, self.batch_first, self.dropout = (
            kernel,
            window,
            on_empty,
            batch_first,
            dropout,
        )
        self.backend = backend
        made: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        self.q_proj = nn.Linear(embed_dim, embed_dim, **made)
        self.k_proj = nn.Linear(kdim or embed_dim, embed_dim, **made)
        self.v_proj = nn.Linear(vdim or embed_dim, embed_dim, **made)
        self.out_proj = nn.Linear(embed_dim, embed_dim, **made)
        _count_from_zero(self, device)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Output and weights, as ``nn.MultiheadAttention.forward``.

        Masks hide keys: True, or -inf. Other numbers are added to the scores of LSE; a support has no scores, so LSR refuses them.
        """
        unbatched = query.ndim == 2
        if unbatched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
        elif not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k, v = (
            self._heads(proj(x))
            for proj, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        )  # fmt: skip
        allowed, added = self._masks(q, k, key_padding_mask, attn_mask, is_causal)
        w: Tensor | None = None
        if self.backend == "flex":
            self._check_flex(q, k, v, need_weights)
            mixed, empty = blockwise_attention(q, k, v, self.kernel, self.beta, allowed, added)
        else:
            w, empty = self.attention_weights(q, k, allowed, added)
            mixed = nn.functional.dropout(w, self.dropout, self.training) @ v
        _count(self, empty)
        if self.kernel == "lsr" and self.on_empty == "abstain":
            mixed = torch.where(empty, q, mixed)
        out = self.out_proj(mixed.transpose(1, 2).flatten(2))
        shown = None
        if need_weights and w is not None:
            shown = w.mean(1) if average_attn_weights else w
        if unbatched:
            return out[0], None if shown is None else shown[0]
        return (out if self.batch_first else out.transpose(0, 1)), shown

    def attention_weights(
        self, q: Tensor, k: Tensor, allowed: Tensor | None = None, added: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Weights (B, H, L, S), and the rows (B, H, L, 1) without support.

        Parameters
        ----------
        allowed : True where a key may be seen; None for everywhere
        added : to the scores of LSE
        Both of a shape that broadcasts to (B, H, L, S).
        """
        distances = squared_distances(q, k)
        if allowed is None:
            allowed = torch.ones((), dtype=torch.bool, device=q.device).expand(distances.shape)
        if self.kernel == "lse":
            scores = -self.beta / 2 * distances
            scores = (scores if added is None else scores + added).masked_fill(~allowed, -math.inf)
            empty = ~allowed.any(-1, keepdim=True).expand(*scores.shape[:-1], 1)
            return torch.softmax(scores.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0), empty
        height = 1 - self.beta / 2 * distances
        inside = ((height > 0) & allowed).to(q.dtype)
        count = inside.sum(-1, keepdim=True)
        w = self._backwards_by_energy(inside / count.clamp_min(1), inside, height)
        empty = count == 0
        if self.on_empty == "nearest":
            nearest = distances.masked_fill(~allowed, math.inf).argmin(-1, keepdim=True)
            w = torch.where(empty & allowed.any(-1, keepdim=True), torch.zeros_like(w).scatter(-1, nearest, 1.0), w)
        return w, empty

    def _check_flex(self, q: Tensor, k: Tensor, v: Tensor, need_weights: bool) -> None:
        if need_weights:
            raise ValueError("backend='flex' never forms the weights; call with need_weights=False, or use 'dense'")
        if not torch.is_grad_enabled() or not any(x.requires_grad for x in (q, k, v)):
            return
        if self.kernel == "lsr":
            raise ValueError(
                "the gradient of LSR needs the weights; train with backend='dense', or call under torch.no_grad()"
            )
        if not q.is_cuda:
            raise ValueError(
                "torch has no gradient of flex_attention on a CPU; train with backend='dense', or call under torch.no_grad()"
            )

    def _backwards_by_energy(self, w: Tensor, inside: Tensor, height: Tensor) -> Tensor:
        """(2) in value, (3) in gradient."""
        if not torch.is_grad_enabled() or not height.requires_grad:
            return w
        soft = inside
        if self.window:
            ramp = (height / self.window + 0.5).clamp(0, 1)
            soft = inside + ramp - ramp.detach()
        step = soft / (EPSILON + (height.clamp_min(0) * inside).sum(-1, keepdim=True))
        return w + step - step.detach()

    def _heads(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:-1], self.num_heads, self.head_dim).transpose(1, 2)

    def _masks(
        self, q: Tensor, k: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, is_causal: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """Where a key may be seen, and what is added to the scores, (B, H or 1, L, S) each; None for everywhere, and for nothing."""
        B, L, S = len(q), q.shape[-2], k.shape[-2]
        allowed, added = None, None
        if is_causal and attn_mask is None:
            allowed = torch.ones(L, S, dtype=torch.bool, device=q.device).tril().expand(B, 1, L, S)
        for name, mask in (("key_padding_mask", key_padding_mask), ("attn_mask", attn_mask)):
            if mask is None:
                continue
            if name == "key_padding_mask":
                mask = mask.reshape(-1, 1, 1, S)
            elif mask.ndim == 3:
                mask = mask.reshape(B, self.num_heads, L, S)
            hidden, extra = self._hidden(mask, name)
            shape = (B, mask.shape[1] if mask.ndim == 4 else 1, L, S)
            allowed = ~hidden.expand(shape) if allowed is None else allowed & ~hidden
            if extra is not None:
                added = extra.to(q.dtype).expand(shape) if added is None else added + extra.to(q.dtype)
        return allowed, added

    def _hidden(self, mask: Tensor, name: str) -> tuple[Tensor, Tensor | None]:
        """What a mask hides (True, or -inf), and what it adds elsewhere."""
        if mask.dtype == torch.bool:
            return mask, None
        hidden = mask == -math.inf
        extra = mask.masked_fill(hidden, 0.0)
        if self.kernel == "lse":
            return hidden, extra
        if bool(extra.any()):
            raise ValueError(f"{name} adds to scores that a support has not; give booleans, or 0 and -inf")
        return hidden, None

    @property
    def empty_rate(self) -> float:
        """Share of rows so far without support."""
        return _rate(self)

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}, kernel={self.kernel!r}, beta={self.beta:.4g}"


def _check_kernel(kernel: str, beta: float) -> None:
    if kernel not in KERNELS:
        raise ValueError(f"kernel must be 'lse' or 'lsr', got {kernel!r}")
    if not beta > 0:
        raise ValueError(f"beta must be above 0, got {beta}")


def _count_from_zero(module: nn.Module, device: Any) -> None:
    for name in ("rows_seen", "rows_empty"):
        module.register_buffer(name, torch.zeros((), dtype=torch.int64, device=device), persistent=False)


def _count(module: Any, empty: Tensor) -> None:
    module.rows_seen += empty.numel()
    module.rows_empty += empty.sum()


def _rate(module: Any) -> float:
    return float(module.rows_empty) / max(int(module.rows_seen), 1)
