"""Elementwise with each instruction set of this processor: random programs, against the NumPy kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from onnx_specops.domain import find
from tests.native import needs_library
from tests.onnx_specops.native.each_set import Check, Nodes
from tests.onnx_specops.native.nodes import Node, element_type
from tests.onnx_specops.native.random_elementwise import ARGUMENTS, EXACT, random_program
from tests.processor import instruction_sets

pytestmark = needs_library


def _case(seed: int) -> tuple[Node, Check]:
    operator = find("Elementwise")
    exact = seed % 2 == 0
    arrays, attributes = random_program(np.random.default_rng(seed), EXACT if exact else tuple(ARGUMENTS))
    stated = operator.node_attributes(attributes)
    expected = operator(*arrays, **stated)
    floats = operator(arrays[0], np.float32(0), None, *arrays[3:], **stated)
    finite = np.isfinite(floats)  # rounding NaN is undefined

    def check(outputs: Sequence[np.ndarray]) -> None:
        (got,) = outputs
        message = f"{seed} {attributes}"
        assert got.shape == expected.shape, (message, got.shape, expected.shape)
        if exact:
            np.testing.assert_array_equal(got[finite], expected[finite], err_msg=message)
        elif expected.dtype == np.uint8:
            np.testing.assert_allclose(got[finite].astype(int), expected[finite].astype(int), atol=1, err_msg=message)
        else:
            np.testing.assert_allclose(got[finite], expected[finite], rtol=1e-3, atol=1e-4, err_msg=message)

    return ("Elementwise", arrays, [element_type(arrays[1])], attributes), check


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Nodes:
    return Nodes(map(_case, range(400)), tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize("name", instruction_sets("portable", "avx2", "avx512"))
def test_each_instruction_set(name: str, programs: Nodes) -> None:
    programs.check(name)
