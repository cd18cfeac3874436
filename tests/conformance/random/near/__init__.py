"""Near misses: changed pieces of this repository's networks, to test the conditions of patterns."""

from __future__ import annotations

import numpy as np

from tests.conformance.random.recipe import Recipe, build

OF_ONE = 32
"""The number of consecutive models from one network, which is read and run once."""

_ENCLOSED = 0.15
"""The fraction of models with a part in a body."""


def recipe(seed: int, number: int) -> Recipe:
    """Return the near miss with that number; runs in OpenVINO's process."""
    from tests.conformance.random.near.changes import changed
    from tests.conformance.random.near.enclosing import enclosed
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
        made = changed(made, rng)
        rng = np.random.default_rng([seed, number, 2])
        inner = enclosed(made, rng) if rng.random() < _ENCLOSED else None
        return made if inner is None else inner
