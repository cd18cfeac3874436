"""Padding."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, mixed, ramp, static, unranked

I32, I64, U8, F16, F64 = np.int32, np.int64, np.uint8, np.float16, np.float64


def _pad():
    def case(version, name, data, begin, end, mode, value=None, **settings):
        inputs = [data, begin, end] if value is None else [data, begin, end, value]

        def make(o, data, begin, end, value=None):
            return o.pad(data, begin, end, mode, value)

        return layer_case("Pad", version, make, name, inputs, **settings)

    data = dynamic(ramp(3, 4), ramp(4, 3))
    for version in ("opset1", "opset12"):
        for mode in ("constant", "edge", "reflect", "symmetric"):
            yield case(version, mode, data, np.array([0, 1]), np.array([2, 3 if mode != "reflect" else 2]), mode)
            yield case(version, f"{mode}-at-run-time", data, static(np.array([1, 0], I32), np.array([2, 2], I32)),
                       static(np.array([0, 3], I32), np.array([1, 0], I32)), mode)  # fmt: skip
        yield case(version, "value", data, np.array([1, 1]), np.array([0, 2]), "constant", np.array(2.5, np.float32))
        yield case(version, "value-at-run-time", data, np.array([1, 1]), np.array([0, 2]), "constant",
                   static(np.array(2.5, np.float32), np.array(-1, np.float32)))  # fmt: skip
        yield case(version, "value-of-known-dimensions", static(ramp(2, 3)), np.array([1, 1]), np.array([0, 2]), "constant",
                   static(np.array(2.5, np.float32)), **decided("evaluate", "the CPU plugin uses the value 0"))  # fmt: skip
        yield case(version, "empty", dynamic(ramp(0, 3)), np.array([1, 0]), np.array([1, 2]), "constant")
        yield case(version, "nothing", data, np.array([0, 0]), np.array([0, 0]), "symmetric")
        for dtype in (bool, U8, np.int8, I32, I64, F16, F64):
            name, value = np.dtype(dtype).name, np.array(1, dtype)
            yield case(
                version,
                f"{name}-constant",
                dynamic(mixed(2, 3, dtype=dtype)),
                np.array([1, 0]),
                np.array([0, 1]),
                "constant",
                value,
            )
            yield case(
                version, f"{name}-reflect", dynamic(mixed(2, 3, dtype=dtype)), np.array([1, 2]), np.array([0, 1]), "reflect"
            )
    for mode in ("constant", "edge", "reflect", "symmetric"):
        data = dynamic(ramp(3, 4), ramp(4, 3))
        yield case("opset12", f"{mode}-crop", data, np.array([-1, -1]), np.array([-1, -1]), mode)
        yield case("opset12", f"{mode}-crop-and-pad", data, np.array([2, -1]), np.array([-1, 2]), mode)
        yield case("opset12", f"{mode}-crop-at-run-time", data, static(np.array([2, -1]), np.array([-2, 1])),
                   static(np.array([-1, 2]), np.array([2, -1])), mode)  # fmt: skip
        ranks = unranked(ramp(3, 4), ramp(3, 2, 4))
        pads = [dynamic(np.array(a), np.array(b)) for a, b in (([2, -1], [1, 0, 2]), ([-1, 2], [2, -1, 0]))]
        yield case("opset12", f"{mode}-any-rank", ranks, *pads, mode)
    words = np.array([["a", "bb"], ["", "é"]], dtype=object)
    yield case("opset12", "strings", dynamic(words), np.array([1, 0]), np.array([0, 2]), "constant")
    pads = [dynamic(np.array(a), np.array(b)) for a, b in (([0, 1], [1]), ([2, 0], [-1]))]
    yield case("opset12", "strings-any-rank", unranked(words, words[0]), *pads, "constant", np.array("pad", dtype=object))
    yield case("opset12", "strings-empty", dynamic(words[:0]), np.array([1, 0]), np.array([0, 1]), "constant")
    yield case(
        "opset12",
        "strings-crop",
        dynamic(words),
        np.array([-1, 1]),
        np.array([1, -1]),
        "constant",
        np.array("pad", dtype=object),
    )


CASES = [*_pad()]
