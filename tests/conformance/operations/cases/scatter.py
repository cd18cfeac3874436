"""Elements and slices written or reduced by index."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, mixed, ramp, static

I8, I32, I64, U8, F16, F32, F64 = np.int8, np.int32, np.int64, np.uint8, np.float16, np.float32, np.float64
NAN = np.nan

_FLOORS = decided(
    "evaluate", "the CPU plugin truncates the mean of integers where the specification and the reference floor it"
)
_NOWHERE = decided("cpu", "the reference looks the indices up, though there are no elements")
_NO_KERNEL = decided("cpu", "the reference has no kernel of the type")


def _elements():
    def case(version, name, inputs, attributes=None, **settings):
        make = "scatter_elements_update"
        return layer_case("ScatterElementsUpdate", version, make, name, inputs, attributes, **settings)

    indices = np.array([[2, 0, -1], [0, 0, 2]])
    for version in ("opset3", "opset12"):
        data, updates = dynamic(ramp(3, 4)), dynamic(-ramp(2, 3) - 1)
        for axis in (0, -1):
            yield case(version, f"axis{axis}", [data, dynamic(indices), updates, np.array(axis)])
        yield case(version, "constant-indices", [data, indices.astype(I32), updates, np.array([1], I32)])
        yield case(version, "u8-indices", [data, dynamic(abs(indices).astype(U8)), updates, np.array(0)])
        yield case(version, "axis-at-run-time", [data, dynamic(indices.astype(I32)), updates, static(np.array([1]))])
        yield case(version, "empty-data", [dynamic(ramp(3, 0, 4), ramp(2, 2, 3)), dynamic(np.zeros((1, 0, 4), I64), np.ones((1, 1, 2), I64)),
                   dynamic(ramp(1, 0, 4), -ramp(1, 1, 2) - 1), static(np.array(2), np.array(0))])  # fmt: skip
        yield case(version, "empty-static-data", [static(ramp(1, 0)), np.array([[2, 0]]), static(ramp(1, 2)), np.array(0)])
        yield case(version, "empty", [data, dynamic(np.zeros((0, 4), I64)), dynamic(ramp(0, 4)), np.array(0)])
        for dtype in (bool, I8, U8, I32, I64, F16, F64):
            inputs = [
                dynamic(mixed(3, 4, dtype=dtype)),
                dynamic(indices),
                dynamic(mixed(2, 3, dtype=dtype, seed=1)),
                np.array(0),
            ]
            settings = _NO_KERNEL if dtype is F64 else {}
            yield case(version, np.dtype(dtype).name, inputs, **settings)
    for reduction in ("sum", "prod", "min", "max", "mean"):
        for use_init_val in (True, False):
            attributes = {"reduction": reduction, "use_init_val": use_init_val}
            suffix = reduction if use_init_val else f"{reduction}-without-initial"
            for dtype in (F32, F16, I32, I64, U8, bool):
                if reduction == "mean" and dtype is bool:
                    continue
                settings = _FLOORS if reduction == "mean" and dtype in (I32, I64) else {}
                settings = _NO_KERNEL if reduction == "mean" and dtype is U8 else settings
                inputs = [
                    dynamic(mixed(3, 4, dtype=dtype)),
                    dynamic(indices),
                    dynamic(mixed(2, 3, dtype=dtype, seed=1)),
                    np.array(1),
                ]
                yield case("opset12", f"{suffix}-{np.dtype(dtype).name}", inputs, attributes, **settings)
        inputs = [dynamic(ramp(3, 4)), dynamic(indices), dynamic(ramp(2, 3)), static(np.array(0))]
        yield case("opset12", f"{reduction}-axis-at-run-time", inputs, {"reduction": reduction})


def _update():
    def case(name, *inputs, **settings):
        return layer_case("ScatterUpdate", "opset3", "scatter_update", name, inputs, **settings)

    data = dynamic(ramp(4, 3))
    for axis, updates in ((0, -ramp(2, 3)), (1, -ramp(4, 2)), (-1, -ramp(4, 2))):
        yield case(f"axis{axis}", data, dynamic(np.array([2, 0])), dynamic(updates), np.array(axis))
    yield case("constant", data, np.array([3, 1], I32), -ramp(2, 3), np.array([0], I32))
    yield case("axis-at-run-time", dynamic(ramp(4, 3), ramp(4, 3)), dynamic(np.array([2, 0], I32), np.array([1, 2], I32)),
               dynamic(-ramp(2, 3), -ramp(4, 2)), static(np.array(0), np.array(1)))  # fmt: skip
    yield case("equal-indices", data, dynamic(np.array([2, 0, 2, 2])), dynamic(-ramp(4, 3)), np.array(0))
    yield case("equal-indices-axis-1", data, dynamic(np.array([2, 0, 2])), dynamic(-ramp(4, 3)), np.array(1))
    yield case(
        "indices-of-rank-2",
        dynamic(ramp(4, 3, 2)),
        dynamic(np.array([[2, 0], [1, 2]])),
        dynamic(-ramp(4, 2, 2, 2)),
        np.array(1),
    )
    yield case("scalar-index", data, static(np.array(2)), dynamic(-ramp(3)), np.array(0),
               **decided("evaluate", "the CPU plugin does not support scalar indices"))  # fmt: skip
    yield case("empty", data, dynamic(np.zeros(0, I64)), dynamic(ramp(0, 3)), np.array(0))
    yield case("empty-data", static(ramp(0, 2)), static(np.array([1])), static(ramp(1, 2)), np.array(0), **_NOWHERE)
    yield case("empty-rows", static(ramp(3, 4, 0)), static(np.array([2, 0])), static(ramp(3, 2, 0)), np.array(1))
    for dtype in (bool, U8, F16, I64):
        yield case(np.dtype(dtype).name, dynamic(mixed(4, 3, dtype=dtype)), dynamic(np.array([3, 1])),
                   dynamic(mixed(2, 3, dtype=dtype, seed=1)), np.array(0))  # fmt: skip


def _nd_update():
    def case(version, name, data, indices, updates, attributes=None, **settings):
        indices = indices if isinstance(indices, np.ndarray) else dynamic(
            *indices.arrays, dims=(*[-1] * (indices.arrays[0].ndim - 1), indices.arrays[0].shape[-1])
        )  # fmt: skip
        inputs = [data, indices, updates]
        return layer_case("ScatterNDUpdate", version, "ScatterNDUpdate", name, inputs, attributes, **settings)

    wrapped = np.array([[1], [1], [-1]], I32)
    for version in ("opset4", "opset15"):  # version 3 of the operation is written as of opset4
        data = dynamic(ramp(4, 3))
        yield case(version, "slices", data, dynamic(np.array([[2], [0]])), dynamic(-ramp(2, 3)))
        yield case(version, "equal-slices", data, dynamic(wrapped), dynamic(-ramp(3, 3) - 1))
        yield case(version, "elements", data, dynamic(np.array([[2, 0], [0, 1], [2, 0]], I32)), dynamic(-ramp(3) - 1))
        yield case(version, "constant-indices", data, np.array([[[2], [0]]]), dynamic(-ramp(1, 2, 3)))
        yield case(version, "one", data, static(np.array([2, 1])), static(np.array(-5, F32)))
        yield case(
            version, "blocks", dynamic(ramp(3, 2, 2)), dynamic(np.array([[[1, 0]], [[0, 1]]])), dynamic(-ramp(2, 1, 2))
        )
        yield case(version, "empty", data, dynamic(np.zeros((0, 1), I64)), dynamic(ramp(0, 3)))
        yield case(version, "empty-data", static(ramp(0, 2)), static(np.array([[1]])), static(ramp(1, 2)), **_NOWHERE)
        for dtype in (bool, F16, I64):
            yield case(
                version,
                np.dtype(dtype).name,
                dynamic(mixed(4, 3, dtype=dtype)),
                dynamic(wrapped),
                dynamic(mixed(3, 3, dtype=dtype, seed=1)),
            )
    for reduction in ("sum", "sub", "prod", "min", "max"):
        attributes = {"reduction": reduction}
        for dtype in (F32, F16, I32, I64, bool, U8):
            only = _NO_KERNEL if dtype is U8 else {}
            data, updates = mixed(4, 3, dtype=dtype), mixed(3, 3, dtype=dtype, seed=1)
            yield case(
                "opset15",
                f"{reduction}-{np.dtype(dtype).name}",
                dynamic(data),
                dynamic(wrapped),
                dynamic(updates),
                attributes,
                **only,
            )
        rows = static(np.array([[1], [2], [1]]))
        yield case("opset15", f"{reduction}-empty-rows", static(ramp(3, 0)), rows, static(ramp(3, 0)), attributes)
        indices = np.array([[2, 0], [0, 1], [2, 0], [-1, -1]], I32)
        yield case(
            "opset15", f"{reduction}-elements", dynamic(ramp(4, 3)), dynamic(indices), dynamic(ramp(4) + 2), attributes
        )
    few = np.array([[0], [1], [2], [2], [3], [3]])
    for reduction in ("min", "max"):
        for dtype in (F32, F16):
            data, updates = (np.array(x, dtype) for x in ([NAN, 1, NAN, 1, 2, NAN], [-1, NAN, NAN, 5, NAN, 0]))
            name = f"{reduction}-nan-{np.dtype(dtype).name}"
            yield case("opset15", name, dynamic(data), dynamic(few), dynamic(updates), {"reduction": reduction})


CASES = [*_elements(), *_update(), *_nd_update()]
