"""The kernels of floats with each instruction set of this processor: attention, recurrences, volumes, grouped products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from onnx_specops.domain import find
from tests.native import needs_library
from tests.onnx_specops.native import nodes
from tests.onnx_specops.native.each_set import Check, Nodes
from tests.onnx_specops.native.nodes import Node
from tests.onnx_specops.native.random_in_place_attention import attention
from tests.processor import instruction_sets

pytestmark = needs_library

F = np.float32
FLOAT = 1  # TensorProto.FLOAT


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(F)


def _gated_delta_rule(rng: np.random.Generator) -> Node:
    batch, tokens, groups, rows = (int(rng.choice(sizes)) for sizes in ([1, 2], [1, 2, 5, 20], [1, 2], [1, 7, 16, 64]))
    heads, columns = groups * int(rng.integers(1, 3)), int(rng.choice([1, 7, 8, 9, 16, 17, 31, 32, 33, 64]))
    keys = [_normal(rng, batch, tokens, groups, rows) for _ in range(2)]
    keys[1] /= np.linalg.norm(keys[1], axis=-1, keepdims=True)
    gates = [-abs(_normal(rng, batch, tokens, heads)), rng.random((batch, tokens, heads), F)]
    inputs = [*keys, _normal(rng, batch, tokens, heads, columns), _normal(rng, batch, heads, rows, columns), *gates]
    return "GatedDeltaRule", inputs, [FLOAT] * 2, {}


def _state_space_scan(rng: np.random.Generator) -> Node:
    batch, tokens, groups, size = (int(rng.choice(sizes)) for sizes in ([1, 2], [1, 3, 20], [1, 2], [1, 8, 15, 16, 37, 64]))
    heads, channels = groups * int(rng.integers(1, 3)), int(rng.choice([1, 3, 4, 6, 9]))
    gates = [_normal(rng, batch, tokens, groups, size) for _ in range(2)]
    decay = np.exp(-abs(_normal(rng, batch, tokens, heads)))
    inputs = [_normal(rng, batch, tokens, heads, channels), decay, *gates, _normal(rng, batch, heads, channels, size)]
    return "StateSpaceScan", inputs, [FLOAT] * 2, {}


def _selective_scan(rng: np.random.Generator) -> Node:
    batch, tokens, channels, size = (int(rng.choice(sizes)) for sizes in ([1, 2], [1, 2, 8, 21], [1, 5], [1, 8, 16, 17, 40]))
    times = abs(_normal(rng, batch, tokens, channels)) * F(rng.choice([0.1, 1.0, 30.0]))
    gates = [_normal(rng, batch, tokens, size) for _ in range(2)]
    state = _normal(rng, batch, channels, size)
    inputs = [_normal(rng, batch, tokens, channels), times, -abs(_normal(rng, channels, size)), *gates, state]
    return "SelectiveScan", inputs, [FLOAT] * 2, {"epsilon": float(F(1e-12))}


def _causal_conv(rng: np.random.Generator) -> Node:
    batch, tokens, channels, taps = (
        int(rng.choice(sizes)) for sizes in ([1, 2], [1, 2, 9], [1, 8, 19, 32], [1, 2, 3, 4, 6])
    )
    state = _normal(rng, batch, channels, taps - 1 + int(rng.integers(0, 3)))
    return "CausalConv", [_normal(rng, batch, tokens, channels), _normal(rng, taps, channels), state], [FLOAT] * 2, {}


def _volume_conv(rng: np.random.Generator) -> Node:
    rank = int(rng.integers(1, 4))
    groups, channels, columns = (int(rng.choice(sizes)) for sizes in ([1, 2, 11], [1, 3, 8], [1, 2, 3, 5, 8, 15]))
    kernel, strides = rng.integers(1, 4, rank), rng.integers(1, 4, rank)
    sizes = rng.integers(3, {1: 400, 2: 60, 3: 24}[rank], rank)
    x = _normal(rng, int(rng.integers(1, 3)), groups * channels, *(int(size) for size in sizes))
    w = _normal(rng, groups * columns, channels, *(int(size) for size in kernel))
    attributes = {"strides": ",".join(map(str, strides)), "pads": ",".join("1" * 2 * rank), "group": groups}
    return "VolumeConv", [x, w, _normal(rng, len(w))], [FLOAT], attributes | {"slope": float(rng.choice([0.0, 0.25, 1.0]))}


def _interpolate(rng: np.random.Generator) -> Node:
    height, width = int(rng.integers(1, 9)), int(rng.integers(1, 70))
    sizes = np.array([rng.integers(1, 20), rng.integers(max(1, width - 5), 3 * width + 2)])
    scales = np.float32(sizes) / np.float32([height, width]) * np.float32(rng.choice([1, 1.01, 0.98], 2))
    modes = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    attributes = {"axes": "2,3", "mode": "linear_onnx", "coordinate_transformation_mode": str(rng.choice(modes))}
    return "Interpolate", [_normal(rng, 1, 3, height, width), sizes, scales], [FLOAT], attributes


def _grouped_mat_mul(rng: np.random.Generator) -> Node:
    rows, depth, columns, groups = (int(rng.integers(1, most)) for most in (20, 1100, 12, 4))
    ends = np.sort(rng.integers(0, rows + 1, groups))
    ends[-1] = rows
    return "GroupedMatMul", [_normal(rng, rows, depth), _normal(rng, groups, columns, depth), ends], [FLOAT], {}


MAKERS = {
    "ScaledDotProductAttentionWithKVCache": attention,
    "GatedDeltaRule": _gated_delta_rule,
    "StateSpaceScan": _state_space_scan,
    "SelectiveScan": _selective_scan,
    "CausalConv": _causal_conv,
    "VolumeConv": _volume_conv,
    "GroupedMatMul": _grouped_mat_mul,
    "Interpolate": _interpolate,
}


def _case(node: Node) -> tuple[Node, Check]:
    name, arrays, _, attributes = node
    operator = find(name)
    result = operator(*arrays, **operator.node_attributes(attributes))
    expected = result if isinstance(result, tuple) else (result,)
    message = f"{name} {[None if array is None else array.shape for array in arrays]} {attributes}"

    def check(outputs: Sequence[np.ndarray]) -> None:
        for got, wanted in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=2e-4, err_msg=message)

    return node, check


@pytest.fixture(scope="module")
def random_nodes(tmp_path_factory: pytest.TempPathFactory) -> Nodes:
    """Return 40 random nodes of each operation."""
    made = (
        maker(rng)
        for number, maker in enumerate(MAKERS.values())
        for rng in [np.random.default_rng(number)]
        for _ in range(40)
    )
    return Nodes(map(_case, made), tmp_path_factory.mktemp("floats"))


@pytest.mark.parametrize("name", instruction_sets("portable", "avx2", "avx512"))
def test_each_instruction_set(name: str, random_nodes: Nodes) -> None:
    random_nodes.check(name)


@pytest.mark.parametrize("tokens", [1, 5, 40])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_in_attention(special: float, tokens: int) -> None:
    rng = np.random.default_rng(0)
    name = "ScaledDotProductAttentionWithKVCache"
    arrays = [_normal(rng, 1, 2, tokens, 16), *(_normal(rng, 1, 1, tokens, 16) for _ in range(2))]
    arrays += [_normal(rng, 1, 1, 70, 16) for _ in range(2)]
    arrays[3][0, 0, 3, 5] = special
    arrays[4][0, 0, 66, 2] = special
    operator, attributes = find(name), {"scale": 0.25}
    expected = operator(*arrays, **operator.node_attributes(attributes))
    got = nodes.run(name, arrays, [FLOAT] * 3, attributes)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_numbers_that_are_not_finite_in_volumes(slope: float) -> None:
    x = np.zeros((1, 1, 1, 2, 20), F)
    x[0, 0, 0, :, :3] = np.nan, -np.inf, np.inf
    got = nodes.run("VolumeConv", [x, np.ones((9, 1, 1, 1, 1), F)], [FLOAT], {"slope": slope})[0]
    np.testing.assert_array_equal(
        got[0, :, 0, :, :4], np.broadcast_to([np.nan, -np.inf if slope else 0, np.inf, 0], (9, 2, 4))
    )
