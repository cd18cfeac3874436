"""ScatterElementsUpdate: reductions, types, index types, axes, shapes, errors."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.onnx_specops.ops.case import Case

NAME = "ScatterElementsUpdate"
REDUCTIONS = ("none", "sum", "prod", "min", "max", "mean")
FLOATS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
F = np.float32


def layer(data, indices, updates, axis, reduction="none", use_init_val=1):
    from openvino import opset12

    return opset12.scatter_elements_update(data, indices, updates, axis, reduction, bool(use_init_val))


def case(name, data, indices, updates, axis=0, *, type_=F, index_type=np.int64, axis_dims=(), **options):
    data, updates = np.asarray(data), np.asarray(updates)
    attributes = {key: options.pop(key) for key in ("reduction", "use_init_val") if key in options}
    inputs = {
        "data": data.astype(type_),
        "indices": np.array(indices, index_type),
        "updates": updates.astype(type_),
        "axis": np.full(axis_dims, axis, np.int64),
    }
    return Case(NAME, name, inputs, attributes, layer=layer, **options)


def both_axes(name, *args, **options):
    """The case with the axis as an input and as a constant."""
    return [case(name, *args, **options), case(f"{name}-constant-axis", *args, **options, constants=["axis"])]


def reduced(reduction, use_init_val, type_, index_type=np.int64):
    """Duplicates, negative indices, untouched elements, fractional means, negative sums."""
    kind = np.dtype(type_)
    data = np.array([[2, 3, 1, 4], [1, 5, 2, 3], [3, 1, 4, 2]])
    updates = np.array([[3, 4, 1, 2], [2, 2, 5, 1]])
    if kind.kind in "if" or kind.name == "bfloat16":
        data, updates = data * [[1], [-1], [-2]], updates * [[-1], [1]]
    if kind.kind == "b":
        data, updates = data > 2, updates > 2
    indices = [[1, -1, 1, 1], [3, 0, 0, -2]] if np.dtype(index_type).kind == "i" else [[1, 3, 1, 1], [3, 0, 0, 2]]
    options = {}
    if reduction == "mean" and kind.kind == "i":
        options = {"source": "evaluate", "reason": FLOORED, "oracle_type": np.int32 if type_ is np.int8 else None}
    name = f"{reduction}-{'init' if use_init_val else 'no-init'}-{kind.name}-{np.dtype(index_type).name}"
    return case(
        name, data, indices, updates, 1, type_=type_, index_type=index_type, reduction=reduction, use_init_val=use_init_val,
        **options,
    )  # fmt: skip


def example_6(reduction, constant):
    """The specification's sixth example with smaller dimensions: updates shorter than data in every dimension."""
    random = np.random.default_rng(6)
    data = random.standard_normal((20, 9, 7, 7))
    shape = (12, 5, 7, 6)
    return case(
        f"example-6-{reduction}{'-constant-axis' if constant else ''}", data, random.integers(-20, 20, shape),
        random.standard_normal(shape), reduction=reduction, axis_dims=(1,), constants=["axis"] if constant else [],
        atol=1e-5,
    )  # fmt: skip


def random_case(seed):
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 5))
    shape = random.integers(1, 6, rank)
    axis = int(random.integers(-rank, rank))
    updates = random.integers(1, shape + 1)
    updates[axis] = random.integers(1, 9)
    reduction = REDUCTIONS[seed % len(REDUCTIONS)]
    return case(
        f"random-{seed}", random.standard_normal(shape), random.integers(-shape[axis], shape[axis], updates),
        random.standard_normal(updates), axis, reduction=reduction, use_init_val=int(random.integers(0, 2)),
        constants=["axis"] if random.integers(0, 2) else [],
    )  # fmt: skip


FLOORED = "the CPU plugin rounds means toward zero, the specification and the reference kernels toward minus infinity"
WIDE = {"source": "evaluate", "reason": "the CPU plugin computes in int32"}
ONES = np.ones((3, 4))
EXAMPLE = {"indices": [[1, 1], [0, 3]], "updates": [[11, 12], [13, 14]], "axis": 1, "axis_dims": (1,)}

CASES = [
    # The specification's examples, as printed there and as OpenVINO computes them.
    *both_axes("example-1", [2, 3, 4, 6], [1, 0, 0, -2, -1, 2], [10, 20, 30, 40, 70, 60], reduction="sum", axis_dims=(1,)),
    *both_axes("example-1-printed", [2, 3, 4, 6], [1, 0, 0, -2, -1, 2], [10, 20, 30, 40, 70, 60], reduction="sum",
               expected=np.array([52, 13, 104, 76], F), reason="as the specification prints it"),
    *both_axes("example-2", [2, 3, 4, 6], [1, 0, 0, 2, 3, 2], [10, 20, 30, 40, 70, 60], reduction="sum", use_init_val=0),
    *both_axes("example-2-printed", [2, 3, 4, 6], [1, 0, 0, 2, 3, 2], [10, 20, 30, 40, 70, 60], reduction="sum",
               use_init_val=0, expected=np.array([50, 10, 100, 70], F), reason="as the specification prints it"),
    *both_axes("example-3", 0 * ONES, [[1, 2], [0, 3]], [[11, 12], [13, 14]], 1, type_=np.int32, axis_dims=(1,)),
    *both_axes("example-3-printed", 0 * ONES, [[1, 2], [0, 3]], [[11, 12], [13, 14]], 1, type_=np.int32,
               expected=np.array([[0, 11, 12, 0], [13, 0, 0, 14], [0, 0, 0, 0]], np.int32),
               reason="as the specification prints it"),
    *both_axes("example-4", ONES, **EXAMPLE, type_=np.int32, reduction="sum"),
    *both_axes("example-4-printed", ONES, **EXAMPLE, type_=np.int32, reduction="sum",
               expected=np.array([[1, 24, 1, 1], [14, 1, 1, 15], [1, 1, 1, 1]], np.int32),
               reason="as the specification prints it"),
    *both_axes("example-5", 2 * ONES, **EXAMPLE, type_=np.int32, reduction="prod"),
    *both_axes("example-5-printed", 2 * ONES, **EXAMPLE, type_=np.int32, reduction="prod",
               expected=np.array([[2, 264, 2, 2], [26, 2, 2, 28], [2, 2, 2, 2]], np.int32),
               reason="as the specification prints it"),
    *[example_6(reduction, constant) for reduction in ("none", "sum", "mean") for constant in (False, True)
      if reduction != "none" or not constant],
    # Every reduction for each kind of type, with and without initial values; every other type and index type.
    *[reduced(r, init, t) for r in REDUCTIONS for init in (1, 0) for t in (np.float32, np.int32, np.uint8)],
    *[reduced(r, 0, t) for r in ("none", "sum", "mean") for t in (*FLOATS, *SIGNED, *UNSIGNED)
      if t not in (np.float32, np.int32, np.uint8)],
    *[reduced(r, 1, t) for r in ("prod", "min", "max") for t in (*FLOATS, *SIGNED, *UNSIGNED)
      if t not in (np.float32, np.int32, np.uint8)],
    *[reduced(r, init, bool) for r in REDUCTIONS if r != "mean" for init in (1, 0)],
    *[reduced("sum", 1, F, t) for t in (*SIGNED, *UNSIGNED) if t is not np.int64],
    # Means.
    *both_axes("mean-of-int8-wraps-around", [100, 5], [0, 0, 0], [100, 100, 7], type_=np.int8, reduction="mean"),
    *both_axes("mean-of-uint8-beyond-255", [200, 5], [0] * 300, [1] * 300, type_=np.uint8, reduction="mean", use_init_val=0),
    *both_axes("mean-of-int64", [-(2**40), 5], [0, 0], [3, 2**40], type_=np.int64, reduction="mean", **WIDE),
    *both_axes("mean-of-int64-negative", [-(2**40) - 8, 5], [0, 0], [3, 2**40], type_=np.int64, reduction="mean", **WIDE),
    *both_axes("mean-of-uint64", np.array([2**63 + 7, 5], np.uint64), [0], np.array([2**62], np.uint64), type_=np.uint64,
               reduction="mean", expected=np.array([(2**63 + 7 + 2**62) // 2, 5], np.uint64),
               reason="the CPU plugin computes in int32, the reference kernels in float64"),
    *both_axes("sum-of-int64", [2**40, 5], [0, -1], [3, 2**41], type_=np.int64, reduction="sum", **WIDE),
    *both_axes("infinite-maximum-alone", [1, 2], [0], [-np.inf], reduction="max", use_init_val=0,
               expected=np.array([-np.inf, 2], F),
               reason="the maximum of -inf only; OpenVINO starts from the lowest finite number"),
    *both_axes("sum-without-a-nan", [np.nan, np.nan], [0], [1], reduction="sum", use_init_val=0),
    # Axes and shapes.
    *[case(f"axis-{axis}", np.arange(24).reshape(2, 3, 4), np.ones((1, 2, 3)), np.ones((1, 2, 3)), axis, reduction="sum")
      for axis in (-3, -2, -1, 0, 1, 2)],
    *both_axes("longer-than-data-along-the-axis", np.zeros((2, 3)), [[0, 1, 1, 2, 0, 0, 2]], [[1, 2, 3, 4, 5, 6, 7]], 1,
               reduction="sum"),
    *both_axes("last-duplicate-stays", np.zeros((2, 2)), [[0, 0], [1, 1]], [[1, 2], [3, 4]], 1),
    *both_axes("indices-at-both-ends", np.zeros(5), [-5, 4, 0, -1], [1, 2, 3, 4], reduction="sum"),
    *both_axes("no-updates", np.ones((2, 3)), np.zeros((0, 3)), np.zeros((0, 3)), reduction="mean"),
    *both_axes("no-updates-along-the-axis", np.ones((2, 3)), np.zeros((2, 0)), np.zeros((2, 0)), 1, reduction="sum"),
    *both_axes("no-data", np.ones((0, 3)), np.zeros((0, 3)), np.zeros((0, 3)), reduction="sum"),
    *both_axes("rank-5", np.arange(48).reshape(2, 3, 2, 2, 2), np.ones((1, 3, 1, 2, 2), int), np.ones((1, 3, 1, 2, 2)), 2,
               reduction="prod"),
    *[random_case(seed) for seed in range(24)],
    # Errors.
    *both_axes("index-too-large", np.zeros((2, 3)), [[0, 1], [1, 3]], np.ones((2, 2)), 1,
               error=r"indices\[1, 1\] = 3 is out of range \[-3, 2\]"),
    *both_axes("index-too-small", np.zeros(4), [0, -5], [1, 1], reduction="sum",
               error=r"indices\[1\] = -5 is out of range \[-4, 3\]"),
    *both_axes("index-beyond-int64", np.zeros(4), [0, 2**64 - 1], [1, 1], index_type=np.uint64,
               error=r"indices\[1\] = 18446744073709551615 is out of range \[-4, 3\]"),
    case("axis-too-large", np.zeros((2, 3)), [[0]], [[1]], 2, error=r"axis = 2 is out of range \[-2, 1\]",
         body_error="axis_out_of_range"),
    case("axis-too-small", np.zeros((2, 3)), [[0]], [[1]], -3, error=r"axis = -3 is out of range \[-2, 1\]",
         body_error="axis_out_of_range"),
    *both_axes("updates-of-another-shape", np.zeros((2, 3)), np.zeros((2, 3)), np.ones((2, 2)), 1,
               error=r"updates has the shape \[2, 2\], indices \[2, 3\]"),
    case("updates-of-as-many-elements", np.zeros((3, 3)), np.zeros((2, 3)), np.ones((3, 2)), 1, reduction="sum",
         error=r"updates has the shape \[3, 2\], indices \[2, 3\]", body_error="updates_and_indices_differ_in_shape"),
    *both_axes("longer-than-data-beside-the-axis", np.zeros((2, 3)), np.zeros((3, 3)), np.ones((3, 3)), 1,
               error=r"indices has the shape \[3, 3\], longer than data \[2, 3\] outside axis 1"),
]  # fmt: skip
