"""EmbeddingBagOffsetsSum: types, kinds of bags, errors."""

from __future__ import annotations

import hashlib
from pathlib import Path

import ml_dtypes
import numpy as np

from tests.onnx_specops.ops.case import Case

NAME = "EmbeddingBagOffsetsSum"
# The table of the specification's examples.
TABLE = np.array([[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]], np.float32)
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INTEGERS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


def layer(table, indices, offsets, default_index=None, per_sample_weights=None):
    from openvino import opset3

    return opset3.embedding_bag_offsets_sum(table, indices, offsets, default_index, per_sample_weights)


STORED = Path(__file__).parents[2] / "data" / "torch_embedding_bags.npz"


def inputs_digest(**inputs):
    """Return a name for a set of inputs."""
    digest = hashlib.sha256()
    for name, array in sorted(inputs.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()[:16]


def by_torch(**inputs):
    """Return torch's result, which ``python -m tests.data.make_torch_embedding_bags`` (it needs torch) stored."""
    with np.load(STORED) as stored:
        return stored[inputs_digest(**inputs)]


def case(name, indices, offsets, default=None, weights=None, *, table=TABLE, index_type=np.int32, **options):
    inputs = {
        "emb_table": table,
        "indices": np.array(indices, index_type),
        "offsets": np.array(offsets, index_type),
    }
    if default is not None or weights is not None:
        inputs["default_index"] = np.array(-1 if default is None else default, index_type)
    if weights is not None:
        inputs["per_sample_weights"] = np.array(weights).astype(table.dtype)
    options.setdefault("layer", layer)
    return Case(NAME, name, inputs, **options)


def typed(type_):
    """Return small integers, so that no type overflows; types that OpenVINO lacks are computed in int32."""
    kind = np.dtype(type_)
    table = (np.arange(24).reshape(4, 3, 2) % 7).astype(type_)
    known = kind.name in ("float16", "bfloat16", "float32", "int32", "int8", "uint8")
    return case(
        f"type-{kind.name}",
        [0, 2, 3, 1, 1],
        [0, 2, 2],
        3,
        [1, 2, 1, 3, 2],
        table=table,
        oracle_type=None if known else np.float32,
    )


def random_case(name, rows, dims, count, bags, **options):
    random = np.random.default_rng(rows * count + bags)
    offsets = np.sort(random.integers(0, count, bags))
    offsets[0] = 0
    table = random.standard_normal((rows, *dims)).astype(np.float32)
    weights = random.standard_normal(count)
    return case(name, random.integers(0, rows, count), offsets, 1, weights, table=table, atol=1e-4, **options)


SMALL = {"indices": [0, 2, 3, 4], "offsets": [0, 2, 2]}

CASES = [
    # The specification's examples.
    case("example-1", **SMALL, default=0, weights=[0.5] * 4),
    case("example-1-printed", **SMALL, default=0, weights=[0.5] * 4,
         expected=np.array([[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]], np.float32), reason="as the specification prints it"),
    case("example-2", **SMALL, default=-1, weights=[0.5] * 4),
    case("example-2-printed", **SMALL, default=-1, weights=[0.5] * 4,
         expected=np.array([[-1.05, -1.2], [0, 0], [-0.1, 0.4]], np.float32), reason="as the specification prints it"),
    # Omitted inputs, empty inputs, and both index types.
    case("no-default-no-weights", **SMALL),
    case("default-no-weights", **SMALL, default=4),
    case("default-of-one-element", **SMALL, default=[2], expected=by_torch, index_type=np.int64,
         reason="OpenVINO only supports a scalar default_index"),
    case("int64-indices", **SMALL, default=0, weights=[1, 2, 3, 4], index_type=np.int64),
    case("constant-default", **SMALL, default=1, weights=[1, 2, 3, 4], constants=["default_index"]),
    case("constant-default-minus-1", **SMALL, default=-1, weights=[1, 2, 3, 4], constants=["default_index"]),
    case("constant-table", **SMALL, constants=["emb_table"]),
    case("empty-default", **SMALL, default=np.zeros(0), weights=[1, 2, 3, 4], expected=by_torch,
         reason="OpenVINO does not support an empty default_index"),
    case("empty-default-and-weights", **SMALL, default=np.zeros(0), weights=[], expected=by_torch,
         reason="OpenVINO does not support an empty default_index"),
    case("default-and-empty-weights", **SMALL, default=1, weights=[], expected=by_torch,
         reason="OpenVINO does not support empty per_sample_weights"),
    # Bags.
    case("one-bag", [4, 3, 2, 1, 0], [0]),
    case("every-bag-one-row", [4, 3, 2], [0, 1, 2]),
    case("the-same-row", [1, 1, 1, 1, 1, 1], [0, 5]),
    case("offsets-begin-late", [0, 1, 2, 3, 4], [2, 3]),
    case("empty-bags-at-the-start", [0, 1, 2], [0, 0, 0, 1], 3),
    case("empty-bags-in-a-row", [0, 1, 2], [0, 1, 1, 1, 2], 3),
    case("empty-bags-at-the-end", [0, 1, 2], [0, 3, 3], 3, expected=by_torch,
         reason="OpenVINO crashes on an offset equal to the number of indices", index_type=np.int64),
    case("nothing-but-empty-bags", [], [0, 0], 2, expected=by_torch,
         reason="OpenVINO crashes on an offset equal to the number of indices", index_type=np.int64),
    case("no-bags", [0, 1], [], 2, expected=np.zeros((0, 2), np.float32), reason="OpenVINO does not support empty offsets"),
    case("no-indices-no-bags", [], [], expected=np.zeros((0, 2), np.float32),
         reason="OpenVINO does not support empty offsets"),
    case("empty-table", [], [0, 0], table=np.zeros((0, 2), np.float32), index_type=np.int64,
         expected=np.zeros((2, 2), np.float32), reason="OpenVINO does not support an empty table"),
    case("empty-rows", [0, 1], [0, 1], table=np.zeros((3, 0), np.float32), expected=np.zeros((2, 0), np.float32),
         reason="OpenVINO does not support an empty table"),
    random_case("many-bags", 50, (16,), 400, 60),
    random_case("a-long-bag", 50, (7,), 1000, 3),
    *[random_case(f"random-{size}", 3 + size, (size % 4 + 1,), 5 * size, 2 * size) for size in range(1, 9)],
    # Ranks and types.
    case("rank-1", [0, 2, 3, 1], [0, 1, 1], 2, [1, 2, 3, 4], table=np.arange(4, dtype=np.float32), expected=by_torch,
         index_type=np.int64, reason="OpenVINO does not support a table of rank 1"),
    random_case("rank-4", 9, (2, 3, 4), 40, 8),
    *[typed(type_) for type_ in (*FLOATS, *INTEGERS)],
    case("float16-summed-in-float32", [0] * 9, [0], table=np.array([[2049.0], [1.0]]).astype(np.float16) / 8),
    case("int8-wraps-around", [0, 0, 1], [0], table=np.array([[100, 3], [-100, 7]], np.int8),
         expected=np.array([[100, 13]], np.int8), reason="200 - 100 through -56, which is 200 modulo 256"),
    # Errors.
    case("index-too-large", [0, 5], [0], error=r"indices\[1\] = 5 is out of range \[0, 4\]"),
    case("index-negative", [0, 1, -1], [0], error=r"indices\[2\] = -1 is out of range \[0, 4\]",
         body_error="indices_are_negative"),
    case("index-before-the-first-bag", [9, 1], [1], error=r"indices\[0\] = 9 is out of range \[0, 4\]"),
    case("offsets-decrease", [0, 1, 2], [0, 2, 1], error=r"offsets\[2\] = 1 is less than offsets\[1\] = 2",
         body_error="offsets_decrease"),
    case("offset-negative", [0, 1, 2], [-1, 2], error=r"offsets\[0\] = -1 is out of range \[0, 3\]",
         body_error="offsets_out_of_range"),
    case("offset-too-large", [0, 1, 2], [0, 4], error=r"offsets\[1\] = 4 is out of range \[0, 3\]",
         body_error="offsets_out_of_range"),
    case("default-too-large", [0, 1], [0], 5, error=r"default_index = 5 is out of range \[-1, 4\]"),
    case("default-too-small", [0, 1], [0], -2, error=r"default_index = -2 is out of range \[-1, 4\]",
         body_error="default_index_is_less_than_minus_1"),
    case("weights-too-few", [0, 1, 2], [0], -1, [1, 2], error=r"per_sample_weights has the shape \[2\], indices \[3\]",
         body_error="differ_in_length"),
    case("one-weight-for-all", [0, 1, 2], [0], -1, [2], error=r"per_sample_weights has the shape \[1\], indices \[3\]",
         body_error="differ_in_length"),
]  # fmt: skip

# The cases that torch supports: it requires float32, a first offset of 0, and at least one index.
FOR_TORCH = [
    case
    for case in CASES
    if not case.error
    and case.inputs["emb_table"].dtype == np.float32
    and case.inputs["emb_table"].size
    and case.inputs["offsets"][:1].tolist() == [0]
]
