"""Halving a level: pair its items, then choose one of each pair so that the feature means hardly move (section 3).

For pairs (p_i, q_i) with differences v_i = phi(p_i) - phi(q_i), keeping p_i (s_i = +1) or q_i (s_i = -1) at twice the
multiplicity moves the sum of features by u = sum_i s_i v_i. The signs are drawn one after the other to keep u short:

    greedy   s_i = -sign <u, v_i>                                         (Karnin & Liberty 2019; a tie is +1)
    walk     s_i = +1 with probability 1/2 - clip(<u, v_i> / (2 c |v|_max^2), -1/2, 1/2)     (Alweiss, Liu & Sawhney 2021)

then all are flipped with probability 1/2, so that each item survives with probability exactly 1/2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from upheld.effects.rows import FloatArray

Indices = NDArray[np.intp]
PAIRINGS = ("nearest", "projection", "random")
SIGNINGS = ("greedy", "walk")


def pairs(phi: FloatArray, pairing: str, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Indices p, q (b,) of disjoint pairs of the rows of phi (n, D), in random order; with odd n one row is in none."""
    order = rng.permutation(len(phi))[len(phi) % 2 :]  # whom an odd level leaves over is drawn before anyone is paired
    if pairing == "nearest":
        order = order[nearest_pairs(phi[order])]
    elif pairing == "projection":
        order = order[np.argsort(phi[order] @ rng.standard_normal(phi.shape[1]))]
    couples = order.reshape(-1, 2)
    couples = rng.permuted(couples, axis=1)[rng.permutation(len(couples))]
    return couples[:, 0], couples[:, 1]


def nearest_pairs(phi: FloatArray) -> Indices:
    """(b, 2): in the order given, each of 2b rows with the nearest one that is still single."""
    distance = phi @ phi.T
    distance *= -2
    distance += np.einsum("ij,ij->i", phi, phi)  # up to what is constant in a row
    taken = np.zeros(len(phi))  # infinite for those that are, so that they are nobody's nearest
    couples = []
    for i in range(len(phi)):
        if taken[i]:
            continue
        taken[i] = np.inf
        j = int((distance[i] + taken).argmin())
        taken[j] = np.inf
        couples.append((i, j))
    return np.array(couples, dtype=np.intp).reshape(-1, 2)


def signs(
    differences: FloatArray, signing: str, rng: np.random.Generator, walk_constant: float = 1.0
) -> tuple[FloatArray, float]:
    """Signs (b,) for differences (b, D), and |u|^2 of the sum they leave."""
    gram = differences @ differences.T
    s = np.empty(len(gram))
    if signing == "greedy":
        for i, row in enumerate(gram):
            s[i] = 1.0 if row[:i] @ s[:i] <= 0 else -1.0
    else:
        bound = 2 * walk_constant * max(float(gram.diagonal().max(initial=0.0)), np.finfo(float).tiny)
        for i, row in enumerate(gram):
            lean = min(max(float(row[:i] @ s[:i]) / bound, -0.5), 0.5)
            s[i] = 1.0 if rng.random() < 0.5 - lean else -1.0
    if rng.random() < 0.5:
        s = -s
    return s, float(s @ gram @ s)
