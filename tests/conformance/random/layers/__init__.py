"""Makers of layers by family; importing this module registers them."""

from tests.conformance.random.layers import (  # noqa: F401
    bodies,
    detection,
    elementwise,
    indices,
    movement,
    networks,
    recurrent,
    reductions,
    regions,
    signals,
)
