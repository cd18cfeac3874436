"""Near misses: pieces of the networks that lie here, with a change or two, which a pattern may overlook."""

from __future__ import annotations

import numpy as np

from tests.conformance.random.recipe import Recipe, build

OF_ONE = 32
"""So many models in a row are of one network, which is read and run once."""


def recipe(seed: int, number: int) -> Recipe:
    """The near miss of that number; in OpenVINO's process."""
    from tests.conformance.random.near.changes import changed
    from tests.conformance.random.near.networks import network
    from tests.conformance.random.near.pieces import piece

    rng = np.random.default_rng([seed, number])
    of = network(number // OF_ONE)
    while True:
        made = piece(of, rng)
        try:
            build(made)
        except Exception:  # of dimensions that only a value at the border told
            continue
        return changed(made, rng)
