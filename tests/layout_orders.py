"""Orders of dimensions: the permutations of Transposes that ONNX Runtime may move past other nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

ORDERS: Mapping[str, Callable[[int], list[int]]] = {
    "channels last": lambda rank: [0, rank - 1, *range(1, rank - 1)],
    "channels first": lambda rank: [0, *range(2, rank), 1],
    "reversed": lambda rank: list(range(rank))[::-1],
}
"""Names of permutations for three dimensions or more."""


def permutation(rank: int, order: str) -> list[int]:
    """Return the permutation of an order; two dimensions are exchanged in each of them."""
    return [1, 0] if rank == 2 else ORDERS[order](rank)


def inverse(perm: Sequence[int]) -> list[int]:
    """Return the permutation that restores the order of dimensions."""
    return sorted(range(len(perm)), key=perm.__getitem__)
