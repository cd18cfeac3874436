"""Parts of tensors: read and written."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, mixed, ramp, static

I32, I64, U8, F16, F64 = np.int32, np.int64, np.uint8, np.float16, np.float64
MOST, LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


_PARTINGS = {
    "shrink-begin-mask": decided("cpu", "the reference overlooks begin_mask at a shrunk axis"),
    "ellipsis-before-new-and-shrink": decided("cpu", "the reference lets a new axis go before an ellipsis"),
    "ellipsis-before-shrink": decided("cpu", "the reference slices nothing"),
    "shrink-new-axis": decided("evaluate", "the CPU plugin reads out of bounds"),
}


def _strided_slice():
    data = dynamic(ramp(2, 3, 4, dtype=I32))

    def attributes(masks):
        longest = max(map(len, masks.values()), default=0)
        names = ("begin", "end", "new_axis", "shrink_axis", "ellipsis")
        return {f"{n}_mask": [*masks.get(n, []), *[0] * (longest - len(masks.get(n, [])))] for n in names}

    def case(name, inputs, settings=None, **masks):
        return layer_case("StridedSlice", "opset1", "strided_slice", name, inputs, attributes(masks), **(settings or {}))

    # Each with constant and with run-time begins, ends and strides.
    for name, begin, end, stride, masks in (
        ("plain", [1, 0, 1], [2, 3, 4], [1, 2, 2], {}),
        ("fewer-than-rank", [1], [2], [1], {}),
        ("begin-mask", [1, 2, 1], [2, 3, 4], [1, 1, 1], {"begin": [0, 1, 1]}),
        ("end-mask", [1, 1, 1], [1, 1, 1], [1, 1, 2], {"end": [0, 1, 1]}),
        ("backwards", [1, -1, 10], [-3, 0, -10], [-1, -2, -3], {}),
        ("backwards-masks", [0, -1, 0], [-3, 0, 0], [-1, -2, -3], {"begin": [1, 0, 1], "end": [0, 1, 1]}),
        ("nothing", [1, 2, 3], [1, 1, 0], [1, 1, 1], {}),
        ("clamped", [-100, 1, 2], [100, 100, -1], [1, 1, 1], {}),
        ("shrink", [1, 0, -1], [2, 3, 0], [1, 1, 1], {"shrink_axis": [1, 0, 1]}),
        ("shrink-ignores-end-and-stride", [1, 0, 2], [0, 3, 3], [1, 1, -1], {"shrink_axis": [1, 0, 1]}),
        ("shrink-begin-mask", [1, 0, 2], [2, 3, 3], [1, 1, 1], {"shrink_axis": [1, 0, 0], "begin": [1, 0, 0]}),
        ("new-axis", [7, 1, 7, 2], [7, 3, 7, 3], [1, 1, 1, 1], {"new_axis": [1, 0, 1, 0]}),
        ("new-axis-before-shrink", [1, 0, 2], [2, 3, 3], [1, 1, 1], {"new_axis": [1, 0, 0], "shrink_axis": [1, 0, 0]}),
        ("ellipsis-last", [1, 0], [2, 0], [1, 1], {"ellipsis": [0, 1]}),
        ("ellipsis-before-new-and-shrink", [1, 0], [2, 3], [1, 1],
         {"ellipsis": [1, 0], "new_axis": [1, 0], "shrink_axis": [1, 0]}),
        ("ellipsis-before-shrink", [0, 1], [0, 3], [1, 1], {"ellipsis": [1, 0], "shrink_axis": [1, 0]}),
        ("ellipsis-and-shrink", [0, 3], [0, 4], [1, 1], {"ellipsis": [1, 0], "shrink_axis": [0, 1]}),
        ("shrink-new-axis", [1, 0, 1], [2, 0, 3], [1, 1, 1], {"shrink_axis": [1, 0, 0], "new_axis": [0, 1, 0]}),
    ):  # fmt: skip
        bounds = [np.array(x) for x in (begin, end, stride)]
        parts = _PARTINGS.get(name, {})
        yield case(name, [data, *bounds], parts, **masks)
        narrow = [dynamic(x.astype(I32), dims=[len(x)]) for x in bounds]
        yield case(f"{name}-at-run-time", [data, *narrow], parts, **masks)
    masks = {"ellipsis": [0, 1, 0, 0], "new_axis": [0, 0, 1, 0]}
    bounds = [[1, 0, 0, 1], [2, 9, 0, 3], [1, 1, 1, 1]]
    yield case("ellipsis-and-new-axis", [data, *map(np.array, bounds)], **masks)
    yield case("ellipsis-and-new-axis-at-run-time", [data, *(static(np.array(x)) for x in bounds)], decided("evaluate", "the CPU plugin fails on these masks with ends at run time"), **masks)  # fmt: skip
    masks = {"ellipsis": [1, 0], "shrink_axis": [1, 1]}
    bounds = [static(ramp(2, 6, 3)), *map(np.array, ([0, 5], [0, 0], [1, 1]))]
    yield case("shrunk-ellipsis-before-beyond", bounds, decided("cpu", "the reference shrinks the ellipsis"), **masks)
    unset = decided("evaluate", "the CPU plugin returns uninitialized memory")
    none = [static(ramp(2, 3, 4)), *(static(np.array(x)) for x in ([5, 0], [6, 0], [1, 1]))]
    yield case("ellipsis-alone-at-run-time", none, unset, ellipsis=[0, 1], new_axis=[1, 0])
    yield case("new-axes-alone-at-run-time", none, unset, new_axis=[1, 1])
    fails = decided("evaluate", "the CPU plugin fails where it knows the shape, and not the bounds")
    yield case(
        "shrink-of-known-size",
        [static(ramp(5)), static(np.array([3])), np.array([4]), np.array([1])],
        fails,
        shrink_axis=[1],
    )
    bounds = [[0, 1, -2, -2, -1, 0], [1, -2, -1, 1, 1, 2], [2, 1, 1, 2, 2, 2]]
    masks = {"begin": [0, 1, 0, 1, 0, 1], "end": [0, 1], "new_axis": [0, 0, 0, 1, 0, 1], "shrink_axis": [0, 0, 1, 1],
             "ellipsis": [1]}  # fmt: skip
    yield case("ellipsis-first-and-new-axes-at-run-time", [dynamic(ramp(4, 1, 3, 2), dims=[4, -1, -1, 2]),
               *(static(np.array(x)) for x in bounds)], **masks)  # fmt: skip
    yield layer_case(
        "StridedSlice", "opset1", "StridedSlice", "no-stride", [data, np.array([0, 1]), np.array([2, 3])], attributes({})
    )
    yield case("whole", [data, np.array([0, 0]), np.array([0, MOST]), np.array([1, 1])], end=[1, 0])
    yield case(
        "boolean-one-element", [static(ramp(5, dtype=bool)), np.array([3]), np.array([4]), np.array([1])], shrink_axis=[1]
    )
    yield case("several-shapes", [dynamic(ramp(5, 2), ramp(3, 4), ramp(0, 4)), np.array([1, -1], I32), np.array([-1, 0], I32),
               np.array([1, -1], I32)], end=[0, 1])  # fmt: skip
    beyond = decided("cpu", "the reference rejects an index out of range")
    for index in (2, -4):
        yield case(f"shrink-beyond{index}", [dynamic(ramp(2, 3), ramp(3, 3), dims=[-1, 3]), np.array([index]), np.array([0]),
                   np.array([1])], beyond, shrink_axis=[1])  # fmt: skip
        yield case(f"shrink-beyond{index}-a-known-size", [static(ramp(2, 3)), np.array([index, 0]), np.array([0, 2]),
                   static(np.array([1, 1]))], beyond, shrink_axis=[1, 0])  # fmt: skip
        yield case(f"shrink-beyond{index}-a-known-size-beside-an-unknown-one", [dynamic(ramp(2, 2), ramp(3, 2), dims=[-1, 2]),
                   np.array([0, index]), np.array([3, 0]), np.array([1, 1])], beyond, shrink_axis=[0, 1])  # fmt: skip
    unknown = decided("evaluate", "the CPU plugin does not support an unknown number of begins")
    bounds = [dynamic(np.array(a), np.array(b)) for a, b in (([1, 0], [0, 1, 1]), ([2, 2], [2, 3, 3]), ([1, 1], [1, 1, 1]))]
    yield case("unknown-number", [dynamic(ramp(2, 3, 4), ramp(2, 3, 4)), *bounds], unknown, begin=[0, 1], end=[1])


def _slice():
    def case(name, *inputs, **settings):
        return layer_case("Slice", "opset8", "slice", name, inputs, **settings)

    data = dynamic(ramp(3, 4, 5), ramp(1, 4, 2))
    yield case("no-axes", data, np.array([1, 0]), np.array([3, 2]), np.array([1, 1]))
    yield case("axes", data, np.array([0, 1], I32), np.array([2, 100], I32), np.array([1, 2], I32), np.array([-1, 1], I32))
    yield case("backwards", data, np.array([MOST, -2]), np.array([LEAST, 0]), np.array([-2, -1]), np.array([0, 1]))
    yield case("nothing", data, np.array([3]), np.array([1]), np.array([1]), np.array([2]))
    # ONNX Runtime uses the largest int32 and int64 for "up to the first element".
    for most, dtype in ((MOST, I64), (2**31 - 1, I32)):
        name = np.dtype(dtype).name
        yield case(f"backwards-from-behind-{name}", data, np.array([3, 1]), np.array([0, most]), np.array([-1, -1]))
        yield case(f"backwards-from-behind-{name}-at-run-time", data, np.array([3, 1], dtype),
                   static(*[np.array([0, most], dtype)] * 2), static(*[np.array([-1, -1], dtype)] * 2))  # fmt: skip
    yield case("at-run-time", dynamic(mixed(3, 4, dtype=U8), mixed(2, 5, dtype=U8)), *(static(np.array(a, I32), np.array(b, I32))
               for a, b in (([0, -1], [1, 0]), ([2, 0], [-9, 3]), ([1, -1], [-1, 2]), ([0, 1], [1, 0]))))  # fmt: skip
    yield case("mixed-index-types", static(ramp(6, dtype=bool)), static(np.array([1], I32)), static(np.array([5])),
               np.array([2]), np.array([0], np.int8))  # fmt: skip


def _slice_scatter():
    def case(name, *inputs, **settings):
        return layer_case("SliceScatter", "opset15", "slice_scatter", name, inputs, **settings)

    data = dynamic(ramp(3, 5), ramp(4, 5))
    yield case("axis", data, dynamic(-ramp(3, 2), -ramp(4, 2)), np.array([1]), np.array([5]), np.array([2]), np.array([1]))
    yield case("no-axes", data, dynamic(-ramp(2, 2), -ramp(2, 2)), np.array([0, 1]), np.array([3, 5]), np.array([2, 2]))
    yield case("backwards", data, dynamic(-ramp(3, 3), -ramp(4, 3)), np.array([-1], I32), np.array([-100], I32),
               np.array([-2], I32), np.array([-1], I32))  # fmt: skip
    yield case("nothing", data, dynamic(ramp(0, 5), ramp(0, 5)), np.array([2]), np.array([1]), np.array([1]), np.array([0]))
    yield case("clamped-i32", static(ramp(2, 5, dtype=I32)), static(-ramp(2, 3, dtype=I32)), np.array([-25]), np.array([25]),
               np.array([2]), np.array([1]))  # fmt: skip
    yield case("backwards-from-behind", data, dynamic(ramp(0, 5), ramp(0, 5)), np.array([-1]), np.array([2**31 - 1]),
               np.array([-2]), np.array([0]))  # fmt: skip
    yield case("at-run-time", dynamic(ramp(3, 5, dtype=F16), ramp(3, 5, dtype=F16)), dynamic(ramp(1, 5, dtype=F16), ramp(3, 2, dtype=F16)),
               *(static(np.array(a, I32), np.array(b, I32)) for a, b in (([1], [0]), ([2], [-1]), ([1], [2]), ([0], [1]))))  # fmt: skip
    yield case(
        "boolean", static(ramp(4, dtype=bool)), static(np.array([True, True])), np.array([0]), np.array([2]), np.array([1])
    )


CASES = [*_strided_slice(), *_slice(), *_slice_scatter()]
