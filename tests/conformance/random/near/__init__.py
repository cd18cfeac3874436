"""Near misses: changed pieces of this repository's networks, to test the conditions of patterns."""

from __future__ import annotations

import numpy as np

from tests.conformance.random.recipe import Recipe, build

OF_ONE = 32
"""The number of consecutive models from one network, which is read and run once."""


def recipe(seed: int, number: int) -> Recipe:
    """Return the near miss with that number; runs in OpenVINO's process."""
    from tests.conformance.random.near.changes import changed
    from tests.conformance.random.near.networks import network
    from tests.conformance.random.near.pieces import piece

    rng = np.random.default_rng([seed, number])
    of = network(number // OF_ONE)
    while True:
        made = piece(of, rng)
        try:
            build(made)
        except Exception:  # dimensions that depended on a value at the border
            continue
        return changed(made, rng)
