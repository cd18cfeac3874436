"""Elements and slices gathered by index."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, mixed, ramp, static, unranked

I32, I64, U8, F16, F64 = np.int32, np.int64, np.uint8, np.float16, np.float64

_BATCHED = decided("cpu", "the reference cannot run it")


def _gather():
    def case(version, name, inputs, attributes=None, **settings):
        return layer_case("Gather", version, "gather", name, inputs, attributes, **settings)

    for version in ("opset1", "opset7", "opset8"):
        data = dynamic(ramp(4, 3, 2), ramp(3, 0, 2))
        indices = dynamic(np.array([[0, 2], [1, 1]], I32), np.array([[0, 2]], I32))
        for axis, at in (("first", 0), ("last", -3)):
            yield case(version, f"{axis}-axis", [data, indices, np.array(at)])
        yield case(version, "constant-indices", [static(ramp(4, 3)), np.array([2, 0, 2]), np.array([1], I32)])
        yield case(version, "scalar-index", [dynamic(ramp(4, 3), ramp(2, 3)), np.array(1), np.array(0)])
        yield case(version, "zero-of-dynamic", [dynamic(ramp(4, 3), ramp(2, 1)), np.array([0]), np.array(1)])
        yield case(version, "axis-at-run-time", [dynamic(ramp(4, 3, 4), ramp(3, 3, 3)), static(np.array([0, 2]), np.array([2, 2])),
                   static(np.array(0), np.array(-1))])  # fmt: skip
        for dtype in (bool, U8, F16, F64, I64):
            yield case(
                version, np.dtype(dtype).name, [dynamic(mixed(5, 2, dtype=dtype)), static(np.array([4, 0])), np.array(0)]
            )
        yield case(version, "out-of-range", [dynamic(ramp(3, 2) + 1), dynamic(np.array([[0, 9], [3, 2]])), np.array(0)])
        yield case(
            version, "out-of-range-constant", [dynamic(ramp(3, 2) + 1, ramp(7, 2) + 1), np.array([0, 5], I32), np.array(0)]
        )
        yield case(
            version,
            "out-of-range-last-axis",
            [dynamic(mixed(3, 2, dtype=U8) + 1), dynamic(np.array([[1, 2]], I32)), np.array(-1)],
        )
        yield case(
            version,
            "out-of-range-axis-at-run-time",
            [dynamic(ramp(3, 2) + 1), dynamic(np.array([1, 2], I32)), static(np.array(1))],
        )
        uninitialized = decided("evaluate", "the CPU plugin returns uninitialized memory")
        indices = static(np.array([[1, 0]]))
        yield case(version, "of-none", [static(ramp(2, 0, 3)), indices, np.array(1)], **uninitialized)
        yield case(version, "of-none-to-none", [static(ramp(0, 0, 3)), dynamic(np.array([2, 1])), np.array(-3)])
        wrapped = {} if version == "opset8" else decided("cpu", "the reference wraps negative indices, which the specification does not allow")  # fmt: skip
        indices = np.array([-1, -3, -4, 1])
        yield case(version, "negative", [dynamic(ramp(3, 2) + 1), dynamic(indices), np.array(0)], **wrapped)
        yield case(version, "negative-constant", [static(ramp(3, 2) + 1), indices, np.array(0)], **wrapped)
        for index in (-1, [-2]):
            data = dynamic(ramp(3, 2) + 1, ramp(3, 4), dims=[3, -1])
            yield case(version, f"one-negative-constant-{np.ndim(index)}d", [data, np.array(index, I32), np.array(0)])
        one = [dynamic(ramp(3, 2) + 1, ramp(4, 2)), np.array([-1]), np.array(0)]
        yield case(version, "one-negative-constant-of-dynamic", one, **wrapped)
        folded = decided("evaluate", "the CPU plugin returns uninitialized memory")
        short = [static(ramp(5, dtype=I64) + 1), np.array([-1, 1, -5]), np.array(0)]
        yield case(version, "negative-of-short-integers", short, **({} if version == "opset8" else folded))
        long = [static(ramp(65, dtype=I32) + 1), np.array([-1, 1, -65]), np.array(0)]
        yield case(version, "negative-of-long-integers", long, **wrapped)
        yield case(version, "negative-of-constant", [ramp(3, 2) + 1, np.array([-1, 1]), np.array(0)])
    words = np.array([["a", "bb"], ["", "é"], ["ccc", "d"]], dtype=object)
    yield case("opset8", "strings", [dynamic(words), dynamic(np.array([2, -1, 0, 9])), np.array(0)])
    yield case("opset8", "strings-last-axis", [dynamic(words), dynamic(np.array([[1], [0]], I32)), np.array(1)])
    yield case("opset8", "minus-one-of-dynamic", [dynamic(ramp(4, 3), ramp(2, 1)), np.array(-1), np.array(1)])
    yield case("opset8", "strings-of-none", [static(words[:0]), static(np.array([1])), np.array(0)])
    for version in ("opset7", "opset8"):
        batched = [static(ramp(2, 0, 3)), static(np.array([[1], [0]])), np.array(1)]
        yield case(version, "batch-of-none", batched, {"batch_dims": 1}, **uninitialized)
        of_one = [static(ramp(1, 8, 3)), static(np.array([[6, 5]])), np.array(1)]
        yield case(version, "batch-of-one", of_one, {"batch_dims": 1}, **uninitialized)
        indices = np.array([[0, 0, 4], [4, 0, 1]])
        for batch_dims in (1, -1):
            yield case(
                version,
                f"batch{batch_dims}",
                [dynamic(ramp(2, 5)), dynamic(indices), np.array(1)],
                {"batch_dims": batch_dims},
            )
        yield case(version, "batch-2", [dynamic(ramp(2, 2, 5)), dynamic(np.array([[[0, 0, 4], [4, 0, 7]], [[1, 2, 4], [4, 3, 2]]], I32)),
                   np.array(2)], {"batch_dims": 2})  # fmt: skip
        yield case(
            version, "batch-all-indices", [dynamic(ramp(2, 3, 2)), dynamic(np.array([1, 2])), np.array(1)], {"batch_dims": 1}
        )
        data = dynamic(ramp(2, 3, 5, 4), ramp(1, 2, 3, 1))
        indices = dynamic(np.array([[1, 2, 4], [9, 3, 2]]), np.array([[0, 2]]))
        yield case(version, "batch-any-rank", [unranked(ramp(2, 3, 4), ramp(2, 2, 2, 3)), unranked(np.array([[1, 2], [0, 1]]),
                   np.array([[[1], [0]], [[1], [1]]])), np.array(2)], {"batch_dims": -1})  # fmt: skip
        yield case(version, "axis-behind-batch", [data, indices, np.array(2)], {"batch_dims": 1})
        yield case(version, "batch-axis-at-run-time", [data, indices, static(np.array(2), np.array(-2))], {"batch_dims": 1})


def _gather_elements():
    def case(name, data, indices, axis, **settings):
        return layer_case("GatherElements", "opset6", "gather_elements", name, [data, indices], {"axis": axis}, **settings)

    only_cpu = decided("cpu", "the reference cannot run it")
    yield case("rows", dynamic(ramp(3, 2), ramp(1, 1)), dynamic(np.array([[0, 2], [1, 0]], I32), np.array([[0]], I32)), 0)
    yield case("negative-axis", static(ramp(2, 3)), static(np.array([[0, 2, 2, 1], [1, 0, 0, 0]])), -1)
    yield case("negative-indices", dynamic(ramp(2, 3)), dynamic(np.array([[-1, 2], [-3, 0]])), 1, **only_cpu)
    yield case("empty", dynamic(ramp(2, 3)), dynamic(np.zeros((2, 0), I64)), 1)
    for dtype in (bool, U8, F16, I64):
        yield case(np.dtype(dtype).name, dynamic(mixed(2, 2, 2, dtype=dtype)), dynamic(np.array([[[1, 0]], [[0, 1]]])), 1)


def _gather_nd():
    for version in ("opset5", "opset8"):

        def case(name, data, indices, batch_dims=0, version=version, **settings):
            dims = (*[-1] * (indices.arrays[0].ndim - 1), indices.arrays[0].shape[-1])
            inputs = [data, dynamic(*indices.arrays, dims=dims)]
            return layer_case("GatherND", version, "gather_nd", name, inputs, {"batch_dims": batch_dims}, **settings)

        data = dynamic(ramp(2, 3, 4), ramp(3, 3, 1))
        yield case("slices", data, static(np.array([[1], [0]]), np.array([[2], [1]])))
        yield case("elements", data, static(np.array([[1, 0, 3]], I32), np.array([[0, 1, 0]], I32)))
        yield case("scalar-result", static(ramp(2, 2)), static(np.array([1, 0])))
        yield case("negative", data, static(np.array([[0, -1], [1, 0]]), np.array([[-3, 1], [-1, -1]])),
                   **decided("cpu", "the reference cannot run it"))  # fmt: skip
        yield case("batch", data, static(np.array([[1], [0]]), np.array([[2], [1], [0]])), 1)
        yield case("batch-of-several", data, static(np.array([[[1], [0]], [[2], [2]]]), np.array([[[0]], [[1]], [[2]]])), 1)
        indices = static(np.array([[[1], [0], [3]], [[2], [1], [0]]]), np.zeros((3, 3, 1), I64))
        yield case("two-batches", data, indices, 2)
        more = static(np.array([[[[1], [0]]] * 3] * 2), np.zeros((3, 3, 2, 1), I64))
        yield case("two-batches-of-several", data, more, 2)
        yield case("empty", dynamic(ramp(2, 3)), static(np.zeros((0, 1), I64)))
        for dtype in (bool, U8, F16):
            yield case(np.dtype(dtype).name, dynamic(mixed(3, 2, dtype=dtype)), static(np.array([[2, 1], [0, 0]])))


CASES = [*_gather(), *_gather_elements(), *_gather_nd()]
