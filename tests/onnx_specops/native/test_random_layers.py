"""Random nodes of OpenVINO's operators: the native kernels against the NumPy kernels."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto

from onnx_specops.domain import find
from tests.onnx_specops.native import (
    nodes,
    random_attention,
    random_detectors,
    random_elementwise,
    random_in_place_attention,
    random_products,
    random_regions,
    random_tokenizers,
)
from tests.onnx_specops.native.nodes import Node
from tests.onnx_specops.native.random_detectors import scores
from tests.onnx_specops.native.test_random_nodes import FLOATS, INTEGERS, any_values, pick
from tests.onnx_specops.ops import causal_layers, gated_delta_layers, scan_layers, state_space_layers

NODES = 25  # per seed

INT64 = TensorProto.INT64
INTERPOLATE = find("Interpolate").attributes


def _type(array: np.ndarray) -> int:
    return nodes.element_type(array)


def _limits(rng: np.random.Generator) -> list[np.ndarray]:
    return [
        np.array([rng.integers(-1, 12)]),
        np.array(pick(rng, (0.0, 0.3, 0.5)), np.float32),
        np.array([pick(rng, (-0.5, 0.0, 0.25))], np.float32),
    ]


def non_max_suppression(rng: np.random.Generator) -> Node:
    type_ = pick(rng, (np.float32, np.float64))
    batches, classes, count = rng.integers(0, 3), rng.integers(0, 3), rng.integers(0, 30)
    boxes = rng.integers(0, 12, (batches, count, 4)).astype(type_)
    values = (scores(rng, (batches, classes, count), np.float64) - pick(rng, (0, 0.5))).astype(type_)
    arrays = [boxes, values, *_limits(rng), np.array(pick(rng, (0.0, 0.5)), np.float32)]
    attributes = {"center_point_box": int(rng.integers(2)), "sort_result_descending": int(rng.integers(2))}
    return "NonMaxSuppression", arrays, [INT64, _type(boxes)], attributes


def nms_rotated(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    batches, classes, count = rng.integers(0, 3), rng.integers(0, 3), rng.integers(0, 20)
    boxes = (rng.random((batches, count, 5)) * [20, 20, 10, 10, 3]).astype(type_)
    arrays = [boxes, scores(rng, (batches, classes, count), type_), *_limits(rng)]
    attributes = {"clockwise": int(rng.integers(2)), "sort_result_descending": int(rng.integers(2))}
    return "NMSRotated", arrays, [INT64, _type(boxes)], attributes


def ctc_loss(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS)
    images, steps, classes = rng.integers(0, 5), rng.integers(0, 12), rng.integers(1, 6)
    lengths = rng.integers(0, steps + 1, images)
    arrays = [
        rng.standard_normal((images, steps, classes)).astype(type_),
        lengths,
        rng.integers(0, classes, (images, steps)),
        rng.integers(0, lengths + 1),
        pick(rng, (None, np.zeros(0, np.int64), np.array(rng.integers(classes)))),
    ]
    names = ("preprocess_collapse_repeated", "ctc_merge_repeated", "unique")
    return "CTCLoss", arrays, [_type(arrays[0])], {name: int(rng.integers(2)) for name in names}


def gather_tree(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS + INTEGERS)
    time, batch, beams = rng.integers(0, 9), rng.integers(0, 4), rng.integers(1, 6)
    arrays = [
        rng.integers(0, 9, (time, batch, beams)).astype(type_),
        rng.integers(0, beams, (time, batch, beams)).astype(type_),
        rng.integers(0, time + 2, batch).astype(type_),
        np.array(2).astype(type_),
    ]
    return "GatherTree", arrays, [_type(arrays[0])], {}


def search_sorted(rng: np.random.Generator) -> Node:
    type_ = pick(rng, FLOATS + INTEGERS)
    leading = rng.integers(1, 4, rng.integers(0, 3))
    sequence = rng.integers(0, 20, [*leading, rng.integers(0, 12)])
    values = rng.integers(0, 20, [*leading, rng.integers(0, 9)])
    arrays = [np.sort(sequence, axis=-1).astype(type_), values.astype(type_)]
    return "SearchSorted", arrays, [INT64], {"right_mode": int(rng.integers(2))}


def segment_max(rng: np.random.Generator) -> Node:
    type_, index_type = pick(rng, FLOATS + INTEGERS), pick(rng, (np.int32, np.int64))
    count = rng.integers(0, 30)
    data = any_values(rng, [count, *rng.integers(0, 20, rng.integers(0, 3))], type_)
    ids = np.sort(rng.integers(0, 9, count)).astype(index_type)
    segments = pick(rng, (None, np.zeros(0, index_type), np.array(rng.integers(0, 12)).astype(index_type)))
    return "SegmentMax", [data, ids, segments], [_type(data)], {"fill_mode": pick(rng, ("ZERO", "LOWEST"))}


def random_uniform(rng: np.random.Generator) -> Node:
    type_ = pick(rng, (*FLOATS, np.int32, np.int64))
    low = rng.integers(-100, 100)
    high = low + rng.integers(1, 2**40 if type_ == np.int64 else 1000)
    shape = rng.integers(0, pick(rng, (5, 70)), rng.integers(0, 4))
    seeds = {"global_seed": int(rng.integers(1, 2**63 - 1)), "op_seed": int(rng.integers(-9, 2**62))}
    arrays = [shape, np.array(low).astype(type_), np.array([high]).astype(type_)]
    return "RandomUniform", arrays, [_type(arrays[1])], seeds | {"alignment": pick(rng, ("TENSORFLOW", "PYTORCH"))}


def inverse(rng: np.random.Generator) -> Node:
    type_, size = pick(rng, (np.float32, np.float64)), rng.integers(0, 12)
    matrices = rng.standard_normal([*rng.integers(0, 4, rng.integers(0, 3)), size, size]) + np.eye(size) * 6
    return "Inverse", [matrices.astype(type_)], [_type(matrices.astype(type_))], {"adjoint": int(rng.integers(2))}


def erf_inv(rng: np.random.Generator) -> Node:
    x = rng.uniform(-1.1, 1.1, rng.integers(0, 90, rng.integers(1, 3))).astype(pick(rng, FLOATS))
    return "ErfInv", [x], [_type(x)], {}


def fake_quantize(rng: np.random.Generator) -> Node:
    type_ = pick(rng, (np.float32, np.float64))
    x = (rng.standard_normal(rng.integers(0, pick(rng, (4, 40)), rng.integers(0, 5))) * 3).astype(type_)
    limits = []
    for _ in range(4):
        kept = x.shape[rng.integers(0, x.ndim + 1) :]
        limits.append(rng.standard_normal([pick(rng, (1, size)) for size in kept]).astype(type_))
    is_ordered = bool(rng.integers(2))
    if is_ordered:
        limits[:2] = [np.asarray(-1 - np.abs(limits[0])), np.asarray(1 + np.abs(limits[1]))]
    attributes = {"levels": int(pick(rng, (2, 16, 255, 256, 65536))), "ordered": int(is_ordered)}
    return "FakeQuantize", [x, *limits], [_type(x)], attributes


def interpolate(rng: np.random.Generator) -> Node:
    type_, mode = pick(rng, FLOATS + INTEGERS), pick(rng, INTERPOLATE["mode"].choices)
    shape = rng.integers(1, pick(rng, (5, 24)), rng.integers(1, 5))
    axes = rng.permutation(len(shape))[: rng.integers(0, 4)]
    sizes = rng.integers(0, pick(rng, (6, 50)), len(axes))
    scales = (sizes / shape[axes]).astype(np.float32)
    if rng.random() < 0.2:
        scales += pick(rng, (0.5, 1.3, -1, np.inf))
    attributes = {
        "axes": ",".join(map(str, axes)),
        "mode": mode,
        "coordinate_transformation_mode": pick(rng, INTERPOLATE["coordinate_transformation_mode"].choices),
        "nearest_mode": pick(rng, INTERPOLATE["nearest_mode"].choices),
        "antialias": int(rng.integers(2)),
        "cube_coeff": float(pick(rng, (-0.5, -0.75))),
    }
    image = any_values(rng, shape, type_)
    if type_ in INTEGERS and np.dtype(type_).itemsize > 1:  # float32 represents all of them and their sums
        image = (image % 1000).astype(type_)
    return "Interpolate", [image, sizes, scales], [_type(image)], attributes


def grouped_mat_mul(rng: np.random.Generator) -> Node:
    type_, index_type = pick(rng, FLOATS + INTEGERS), pick(rng, (np.int32, np.int64))
    groups, columns, depth = (rng.integers(0, pick(rng, most)) for most in ((5,), (4, 150), (4, 70, 1500)))
    rows = rng.integers(0, pick(rng, (5, 250))) if groups else 0
    ends = np.sort(rng.integers(0, rows + 3, groups)).astype(index_type)
    if groups:
        ends[-1] = max(ends[-1], rows)
    arrays = [any_values(rng, shape, type_) for shape in ((rows, depth), (groups, columns, depth))] + [ends]
    if type_ in FLOATS:  # sums of about 1
        arrays[0] = (arrays[0] / np.sqrt(depth + 1)).astype(type_)
    return "GroupedMatMul", arrays, [_type(arrays[0])], {}


def yuv_to_rgb(rng: np.random.Generator) -> Node:
    type_, together = pick(rng, (np.uint8, *FLOATS)), rng.random() < 0.5
    half = (rng.integers(0, 3), rng.integers(1, 4), rng.integers(1, pick(rng, (9, 100))))
    shapes = [(half[0], 2 * half[1], 2 * half[2], 1), *([(*half, 2)] if together else [(*half, 1)] * 2)]
    planes: list[np.ndarray | None] = [rng.integers(0, 256, shape).astype(type_) for shape in shapes]
    return "YUVtoRGB", planes + [None] * together, [nodes.element_type(planes[0])], {"bgr": int(rng.integers(2))}


def selective_scan(rng: np.random.Generator) -> Node:
    shape = [int(size) for size in rng.integers((1, 1, 1, 0), (4, 40, 9, 20))]
    arrays = list(scan_layers.arrays(*shape, seed=int(rng.integers(1000)), width=0.2).values())  # type: ignore[misc]
    arrays[5] *= 0  # otherwise the sums of many tokens cancel
    float_type = _type(arrays[0])
    return "SelectiveScan", arrays, [float_type, float_type], {"epsilon": 1e-12}


def causal_conv(rng: np.random.Generator) -> Node:
    batch, tokens, channels, kernel, more = (int(n) for n in rng.integers((0, 0, 0, 1, 0), (4, 40, 70, 7, 3)))
    given = causal_layers.arrays(batch, tokens, channels, kernel, kernel - 1 + more, seed=int(rng.integers(1000)))
    float_type = _type(given["x"])
    return "CausalConv", list(given.values()), [float_type, float_type], {}


def gated_delta_rule(rng: np.random.Generator) -> Node:
    batch, tokens, groups, repeats, rows, columns = (int(n) for n in rng.integers((1, 0, 1, 1, 0, 0), (4, 40, 4, 4, 40, 70)))
    given = gated_delta_layers.arrays(batch, tokens, groups * repeats, groups, rows, columns, seed=int(rng.integers(1000)))
    float_type = _type(given["value"])
    return "GatedDeltaRule", list(given.values()), [float_type, float_type], {}


def state_space_scan(rng: np.random.Generator) -> Node:
    batch, tokens, groups, repeats, channels, size = (int(n) for n in rng.integers((1, 0, 1, 1, 0, 0), (4, 40, 4, 4, 9, 40)))
    given = state_space_layers.arrays(batch, tokens, groups * repeats, channels, groups, size, seed=int(rng.integers(1000)))
    arrays: list[np.ndarray | None] = [*state_space_layers.operator_inputs(given)]
    float_type = _type(given["x"])
    return "StateSpaceScan", arrays, [float_type, float_type], {}


def volume_conv(rng: np.random.Generator) -> Node:
    def listed(numbers: np.ndarray) -> str:
        return ",".join(map(str, numbers.tolist()))

    rank = int(rng.integers(1, 4))
    groups, inside, outside = (int(n) for n in rng.integers((1, 1, 1), (12, 6, 12)))
    kernel, strides, dilations = rng.integers(1, 4, rank), rng.integers(1, 4, rank), rng.integers(1, 3, rank)
    pads = rng.integers(0, 3, 2 * rank)
    sizes = np.maximum((kernel - 1) * dilations + 1 - pads[:rank] - pads[rank:], 0) + rng.integers(0, (6, 8, 40)[-rank:])
    x = rng.standard_normal((int(rng.integers(1, 3)), groups * inside, *sizes)).astype(np.float32)
    w = rng.standard_normal((groups * outside, inside, *kernel)).astype(np.float32)
    bias = rng.standard_normal(groups * outside).astype(np.float32) if rng.random() < 0.5 else None
    attributes = {"strides": listed(strides), "pads": listed(pads), "dilations": listed(dilations), "group": groups}
    return "VolumeConv", [x, w, bias], [_type(x)], attributes | {"slope": float(pick(rng, (0, 0.1, 1)))}


def depthwise_conv(rng: np.random.Generator) -> Node:
    def listed(numbers: np.ndarray) -> str:
        return ",".join(map(str, numbers.tolist()))

    rank, channels = int(rng.integers(1, 4)), int(pick(rng, (1, 5, 15, 16, 17, 32, 40, 48, 63)))
    kernel, strides, dilations = rng.integers(1, 4, rank), rng.integers(1, 4, rank), rng.integers(1, 3, rank)
    pads = rng.integers(0, 3, 2 * rank)
    sizes = np.maximum((kernel - 1) * dilations + 1 - pads[:rank] - pads[rank:], 0) + rng.integers(0, (6, 8, 20)[-rank:])
    x = rng.standard_normal((int(rng.integers(0, 3)), *sizes, channels)).astype(np.float32)
    w = rng.standard_normal((*kernel, channels)).astype(np.float32)
    bias = rng.standard_normal(channels).astype(np.float32) if rng.random() < 0.5 else None
    attributes = {"channels": channels, "kernel": listed(kernel), "strides": listed(strides), "pads": listed(pads)}
    return "DepthwiseConv", [x, w, bias], [_type(x)], attributes | {"dilations": listed(dilations)}


MAKERS = (
    *random_detectors.MAKERS,
    causal_conv,
    ctc_loss,
    depthwise_conv,
    erf_inv,
    fake_quantize,
    gated_delta_rule,
    gather_tree,
    grouped_mat_mul,
    interpolate,
    inverse,
    nms_rotated,
    non_max_suppression,
    random_uniform,
    search_sorted,
    segment_max,
    selective_scan,
    state_space_scan,
    volume_conv,
    yuv_to_rgb,
    random_in_place_attention.attention,
    random_attention.group_query_attention_compressed,
    random_elementwise.elementwise,
    random_products.mat_mul_compressed,
    random_products.attention,
    random_products.quantized_attention,
    random_products.quantized_group_moments,
    random_products.quantized_layer_normalization,
    *random_regions.MAKERS,
    *random_tokenizers.makers(),
)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("make", MAKERS)
def test_native_and_numpy_agree(make: Callable[..., Node], seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(NODES):
        name, arrays, types, attributes = make(rng)
        operator = find(name)
        absent = {k for k, a in enumerate(arrays) if a is not None and a.shape == (0,) and operator.optional[k]}
        given = [None if k in absent else array for k, array in enumerate(arrays)]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = operator(*given, **operator.node_attributes(attributes))
        expected = expected if isinstance(expected, tuple) else (expected,)
        got = nodes.run(name, arrays, types, attributes, threads=int(rng.integers(1, 3)))
        for one, other in zip(got, expected, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            # Sums are added in another order, then rounded.
            if name in ("Interpolate", "QuantizedAttention", "QuantizedLayerNormalization") and one.dtype.kind in "iu":
                assert np.abs(one.astype(np.float64) - other).max(initial=0) <= 1
                continue
            if one.dtype.kind not in "fV" or name == "RandomUniform":
                np.testing.assert_array_equal(one, other)
                continue
            tolerance = 2e-2 if one.dtype.itemsize == 2 else 1e-4
            one, other = one.astype(np.float64), other.astype(np.float64)
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=1e-5)


def test_native_kernels_reject_invalid_nodes() -> None:
    """Random damage to random nodes gives a result or an error, never a read out of bounds."""
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        name, arrays, types, attributes = pick(rng, MAKERS)(rng)
        at = rng.integers(len(arrays))
        damaged = arrays[at]
        # A random shape would be allocated.
        if damaged is None or (name == "RandomUniform" and at == 0) or (name == "SegmentMax" and at > 0):
            continue
        if rng.random() < 0.5 and damaged.size:
            flat = damaged.reshape(-1).copy()
            flat[rng.integers(flat.size)] = (
                damaged.dtype.type(pick(rng, (-1, 127, -128, 0))) if damaged.dtype.kind != "u" else 255
            )
            arrays[at] = flat.reshape(damaged.shape)
        else:
            arrays[at] = np.resize(damaged, np.array(damaged.shape, int) + rng.integers(0, 3, damaged.ndim))
        try:
            nodes.run(name, arrays, types, attributes)
        except Exception as error:
            assert name in str(error)
            refused += 1
    assert refused > 30
