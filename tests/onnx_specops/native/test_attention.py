"""GroupQueryAttentionCompressed with each instruction set of this processor, and in place in its cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime as ort
import pytest

import onnx_specops
from onnx_specops.domain import find
from tests.native import needs_library
from tests.onnx_specops.native import nodes
from tests.onnx_specops.native.each_set import Check, Nodes
from tests.onnx_specops.native.nodes import Node
from tests.onnx_specops.native.random_attention import cache_of, group_query_attention_compressed
from tests.processor import instruction_sets

pytestmark = needs_library

OPERATOR = "GroupQueryAttentionCompressed"


def _case(rng: np.random.Generator) -> tuple[Node, Check]:
    name, arrays, _, attributes = node = group_query_attention_compressed(rng)
    operator = find(name)
    expected = operator(*arrays, **operator.node_attributes(attributes))

    def check(got: Sequence[np.ndarray]) -> None:
        np.testing.assert_allclose(got[0], expected[0], rtol=1e-3, atol=3e-4, err_msg=str(attributes))
        for one, other in zip(got[1:], expected[1:], strict=True):
            np.testing.assert_array_equal(one, other)

    return node, check


@pytest.fixture(scope="module")
def random_nodes(tmp_path_factory: pytest.TempPathFactory) -> Nodes:
    rng = np.random.default_rng(0)
    return Nodes((_case(rng) for _ in range(60)), tmp_path_factory.mktemp("attention"))


@pytest.mark.parametrize("name", instruction_sets("portable", "avx2", "avx512", "avx512_vnni"))
def test_each_instruction_set(name: str, random_nodes: Nodes) -> None:
    random_nodes.check(name)


@pytest.mark.parametrize("type_", [np.uint8, np.float16])
@pytest.mark.parametrize(("heads", "groups"), [(2, 2), (6, 1)])
def test_the_cache_is_extended_in_place(type_: type, heads: int, groups: int) -> None:
    rng = np.random.default_rng(0)
    size, past, room = 64, 900, 1000
    tokens = [rng.standard_normal((1, 1, n * size), np.float32) for n in (heads, groups, groups)]
    caches = [cache_of(rng.standard_normal((1, groups, room, size), np.float32), type_) for _ in range(2)]
    counted = [np.int32([past]), np.array(past + 1, np.int32)]
    operator, attributes = find(OPERATOR), {"num_heads": heads, "kv_num_heads": groups}
    expected = operator(*tokens, *caches, *counted, **operator.node_attributes(attributes))
    cache = nodes.element_type(caches[0])
    model = nodes.model(OPERATOR, [*tokens, *caches, *counted], [1, cache, cache], attributes)
    session = onnx_specops.InferenceSession(model, kernels="native")
    values = [ort.OrtValue.ortvalue_from_numpy(array) for array in [*tokens, *caches, *counted]]
    binding = session.io_binding()
    for declared, value in zip(session.get_inputs(), values, strict=True):
        binding.bind_ortvalue_input(declared.name, value)
    names = [declared.name for declared in session.get_outputs()]
    binding.bind_output(names[0])
    for name, value in zip(names[1:], values[3:5], strict=True):
        binding.bind_ortvalue_output(name, value)
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(binding.get_outputs()[0].numpy(), expected[0], rtol=1e-3, atol=3e-4)
    for value, before, wanted in zip(values[3:5], caches, expected[1:], strict=True):
        got = value.numpy()
        np.testing.assert_array_equal(got[:, :, : past + 1], wanted[:, :, : past + 1])
        np.testing.assert_array_equal(got[:, :, past + 1 :], before[:, :, past + 1 :])
