"""Hostile nodes in this process. `tests.fuzz` runs more of them, in processes with limits."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_specops.runtime.library import has_library
from tests.fuzz.nodes import hostile_nodes, outcome

pytestmark = pytest.mark.skipif(not has_library(), reason="no native library is built here")


@pytest.mark.parametrize("seed", range(2, 6))
def test_the_native_kernels_in_this_process(seed: int) -> None:
    """For sanitizers, which need more address space than any limit allows."""
    outcomes = [isinstance(outcome("native", node), str) for node in hostile_nodes(np.random.default_rng(seed), 0.05)]
    assert any(outcomes) and not all(outcomes)
