"""Shapes: querying them, changing them, repeating along them."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, mixed, of_no_bytes, ramp, replaced, static

I32, I64, U8, F16, F64 = np.int32, np.int64, np.uint8, np.float16, np.float64

WIDE = decided("evaluate", "the CPU plugin stores 64-bit integers in 32 bits")
_NO_DYNAMIC_RANK = decided("evaluate", "the CPU plugin does not support a layer of dynamic rank")


def _shape_of():
    for version in ("opset1", "opset3"):
        for name, data in {
            "static": static(ramp(2, 3)),
            "dynamic": dynamic(ramp(2, 3), ramp(0, 5)),
            "scalar": static(np.array(1, I32)),
            "boolean": dynamic(ramp(2, 1, 4, dtype=bool), dims=[-1, 1, 4]),
        }.items():
            yield layer_case("ShapeOf", version, "shape_of", name, [data])
    for kind in ("i32", "i64"):
        data = [dynamic(ramp(2, 3), ramp(0, 5))]
        yield layer_case("ShapeOf", "opset3", "shape_of", f"to-{kind}", data, {"output_type": kind})


def _reshape():
    def case(name, data, pattern, special_zero, **settings):
        attributes = {"special_zero": special_zero}
        return layer_case("Reshape", "opset1", "reshape", name, [data, pattern], attributes, **settings)

    data = dynamic(ramp(2, 3, 4), ramp(0, 3, 4))
    yield case("copied", data, np.array([0, -1, 2]), True)
    yield case("copied-i32", data, np.array([0, -1, 2], I32), True)
    yield case("minus-one-of-what-is-left", data, np.array([0, 0, -1, 2]), True)
    yield case(
        "copied-batch-with-static-rest", dynamic(ramp(2, 3, 4), ramp(0, 3, 4), dims=[-1, 3, 4]), np.array([0, -1]), True
    )
    yield case("copied-twice", dynamic(ramp(2, 5, 6), ramp(0, 5, 6), dims=[-1, -1, 6]), np.array([0, -1, 2, 3]), True)
    yield case("plain-zero", dynamic(ramp(0, 5)), np.array([4, 0]), False)
    yield case("to-scalar", dynamic(ramp(1, 1)), of_no_bytes(I64), False)
    yield case("from-scalar", static(np.array(3.5, F64)), np.array([1, -1]), True)
    yield case("minus-one", dynamic(ramp(2, 3, 4), ramp(3, 0, 2)), np.array([-1]), False)
    yield case("boolean", dynamic(ramp(2, 3, dtype=bool)), np.array([3, 2]), False)
    patterns = dynamic(*map(np.array, ([0, -1, 2], [6, 0, 4], [0, 0, 0], [0, 0, -1])))
    yield case("special-zero-at-run-time", dynamic(ramp(2, 3, 4), ramp(6, 1, 4), ramp(2, 3, 4), ramp(0, 3, 4)), patterns, True,
               **decided("evaluate", "the CPU plugin requires a pattern of known length"))  # fmt: skip
    patterns = static(*map(np.array, ([0, -1, 2], [6, 1, 4], [0, 0, 0], [0, 3, -1])))
    yield case("at-run-time", dynamic(ramp(2, 3, 4), ramp(6, 1, 4), ramp(2, 3, 4), ramp(0, 3, 4)), patterns, True)
    shorter = static(*map(np.array, ([0, -1], [-1, 4])))
    yield case("shorter-at-run-time", dynamic(ramp(2, 3, 4), ramp(0, 3, 4)), shorter, True)
    patterns = static(np.array([4, -1], I32), np.array([-1, 3], I32), np.array([7, 0], I32))
    yield case("plain-at-run-time", dynamic(ramp(2, 3, 4), ramp(2, 3, 4), ramp(2, 0, 4)), patterns, False)


def _squeeze():
    for version in ("opset1", "opset15"):
        make = "squeeze" if version == "opset15" else (lambda o, data, axes=None: o.squeeze(data, axes))

        def case(name, inputs, make=make, version=version, **settings):
            return layer_case("Squeeze", version, make, name, inputs, **settings)

        yield case("static", [static(ramp(1, 3, 1)), np.array([0, 2])])
        yield case("negative", [dynamic(ramp(4, 1, 1), dims=[-1, 1, 1]), np.array([-1])])
        yield case("scalar-axis", [dynamic(ramp(1, 3), dims=[1, -1]), np.array(0, I32)])
        yield case("named-twice", [dynamic(ramp(2, 1, 3), dims=[-1, 1, 3]), np.array([1, -2])])
        yield case("not-one", [static(ramp(2, 1, 3)), np.array([0, 1])])
        yield case("dynamic-one", [dynamic(ramp(1, 5), ramp(1, 0)), np.array([0])])
        yield case("to-scalar", [static(np.array([7], I64)), np.array([0])])
        yield case("of-scalar", [static(np.array(7, I64)), np.array([0])])
        yield case("of-scalar-negative", [static(np.array(7, I64)), np.array([-1])])
        yield case("axes-at-run-time", [dynamic(ramp(1, 1, 3), ramp(2, 1, 3), ramp(1, 4, 1)), dynamic(
            np.array([0], I32), np.array([0, -2], I32), np.array([-1, 0], I32))], **_NO_DYNAMIC_RANK)  # fmt: skip
        no_axes = "Squeeze" if version == "opset1" else "squeeze"
        yield case("no-axes", [static(ramp(1, 2, 1, 3))], make=no_axes)
        yield case("no-axes-dynamic", [dynamic(ramp(1, 2, 1), ramp(3, 1, 2))], make=no_axes, **_NO_DYNAMIC_RANK)
    skip = {"allow_axis_skip": True}
    yield layer_case("Squeeze", "opset15", "squeeze", "axis-skip", [dynamic(ramp(2, 1, 3), ramp(1, 1, 3), dims=[-1, 1, 3]),
                     np.array([0, 1])], skip, **_NO_DYNAMIC_RANK)  # fmt: skip
    yield layer_case("Squeeze", "opset15", "squeeze", "axis-skip-static", [static(ramp(2, 1, 3)), np.array([0, 1])], skip,
                     **decided("evaluate", "the CPU plugin does not implement allow_axis_skip"))  # fmt: skip


def _unsqueeze():
    def case(name, *inputs, **settings):
        return layer_case("Unsqueeze", "opset1", "unsqueeze", name, inputs, **settings)

    yield case("several", dynamic(ramp(2, 3), dims=[-1, 3]), np.array([3, 0]))
    yield case("negative", dynamic(ramp(2, 3)), np.array([-1, 1]))
    yield case("named-twice", dynamic(ramp(2, 3)), np.array([1, 1]))
    yield case("scalar-axis", dynamic(ramp(2, 3, dtype=bool)), np.array(1, I32))
    yield case("scalar-data", static(np.array(2.5, F16)), np.array([0, 1]))
    axes = static(np.array([-1, 0], I32), np.array([0, 1], I32))
    yield case("at-run-time", dynamic(ramp(2, 3), ramp(0, 3)), axes, **_NO_DYNAMIC_RANK)


def _transpose():
    def case(name, *inputs, **settings):
        return layer_case("Transpose", "opset1", "transpose", name, inputs, **settings)

    data = dynamic(ramp(2, 3, 4), ramp(4, 0, 1))
    yield case("constant", data, np.array([2, 0, 1]))
    yield case("u8", dynamic(ramp(2, 3, dtype=U8)), np.array([1, 0], I32))
    yield case("at-run-time", dynamic(ramp(2, 3, 4), ramp(4, 0, 1), ramp(1, 2, 2)),
               static(np.array([2, 0, 1]), np.array([0, 2, 1]), np.array([1, 2, 0])))  # fmt: skip
    yield case("i64-at-run-time", dynamic(ramp(2, 3, dtype=I64) << 40), static(np.array([1, 0], U8)), **WIDE)
    reversed_ = decided("expected", "OpenVINO rejects an empty order or crashes")
    yield case("empty-order", dynamic(ramp(2, 3, 4)), dynamic(np.zeros(0, I64)), expected=[[ramp(2, 3, 4).T]], **reversed_)
    yield case("maybe-empty-order", dynamic(ramp(2, 3, 4), ramp(2, 3, 4)), dynamic(np.zeros(0, I64), np.array([1, 0, 2])),
               expected=[[ramp(2, 3, 4).T], [ramp(2, 3, 4).transpose(1, 0, 2)]], **reversed_)  # fmt: skip


def _between(ops, data, shape):
    """The layer between others, where ONNX Runtime may consider it a no-op."""
    return ops.relu(ops.broadcast(ops.relu(data), shape))


def _broadcast():
    def case(version, name, inputs, mode, **settings):
        keyword = "mode" if version == "opset1" else "broadcast_spec"
        return layer_case("Broadcast", version, "broadcast", name, inputs, {keyword: mode}, **settings)

    for version in ("opset1", "opset3"):
        yield case(version, "numpy", [dynamic(ramp(3, 1), ramp(1, 1)), np.array([2, 3, 4])], "NUMPY")
        yield case(version, "numpy-empty", [dynamic(ramp(3)), np.array([0, 3])], "NUMPY")
        yield case(version, "numpy-scalar", [static(np.array(7, U8)), np.array([2, 2], I32)], "NUMPY")
        yield case(
            version, "numpy-at-run-time", [dynamic(ramp(3), ramp(1)), static(np.array([2, 3]), np.array([4, 2]))], "NUMPY"
        )
        to_none = [static(ramp(4, 1)), np.array([4, 0])]
        yield layer_case("Broadcast", version, _between, "numpy-to-none", to_none)
        mapping = np.array([1])
        yield case(version, "explicit", [dynamic(ramp(3), ramp(1)), np.array([2, 3, 4]), mapping], "EXPLICIT")
        yield case(version, "explicit-two", [dynamic(ramp(2, 3)), np.array([2, 4, 3]), np.array([0, 2])], "EXPLICIT")
        yield case(version, "explicit-scalar", [static(np.array(True)), np.array([2, 3]), of_no_bytes(I64)], "EXPLICIT")
        yield case(version, "explicit-run-time-shape", [dynamic(ramp(2), ramp(3)), static(np.array([2, 4], I32), np.array([3, 1], I32)),
                   np.array([0], I32)], "EXPLICIT")  # fmt: skip
        yield case(version, "explicit-run-time-mapping", [dynamic(ramp(2), ramp(3)), np.array([2, 3]),
                   static(np.array([0]), np.array([1]))], "EXPLICIT")  # fmt: skip
    for name, stated in (("no-mode", ""), ("explicit-without-mapping", ' mode="explicit"')):  # opset3 writes no mapping
        inputs = [dynamic(ramp(3, 1)), np.array([2, 3, 4])]
        later = layer_case("Broadcast", "opset1", "broadcast", name, inputs, opset="opset3")
        unnamed = replaced(later, ' mode="numpy"', stated)
        yield replaced(unnamed, 'type="Broadcast" version="opset3"', 'type="Broadcast" version="opset1"')
    yield case("opset3", "bidirectional", [dynamic(ramp(3, 1), ramp(1, 1)), np.array([2, 1, 4])], "BIDIRECTIONAL")
    yield case("opset3", "bidirectional-longer-data", [dynamic(ramp(2, 3, 1)), np.array([4])], "BIDIRECTIONAL")
    yield case("opset3", "bidirectional-at-run-time", [dynamic(ramp(3, 1), ramp(2, 4)), static(np.array([1, 4], I32), np.array([2, 1], I32))],
               "BIDIRECTIONAL")  # fmt: skip


def _tile():
    def case(name, *inputs, **settings):
        return layer_case("Tile", "opset1", "tile", name, inputs, **settings)

    yield case("same-rank", dynamic(ramp(2, 3), ramp(0, 3)), np.array([2, 3]))
    yield case("fewer-repeats", dynamic(ramp(2, 3)), np.array([2]))
    yield case("more-repeats", dynamic(mixed(2, 3, dtype=I64)), np.array([2, 1, 3], I32))
    yield case("zero", dynamic(ramp(2, 3, dtype=bool)), np.array([2, 0]))
    yield case("negative", dynamic(ramp(2, 3)), np.array([1, -1]))
    yield case("scalar", static(np.array(3, F16)), np.array([2, 2]))
    yield case("at-run-time", dynamic(ramp(2, 3), ramp(1, 2)), static(np.array([2, 1]), np.array([0, 3])))
    yield case("more-at-run-time", dynamic(ramp(2), ramp(3)), static(np.array([2, 1]), np.array([1, 3])))


def _concat():
    def case(name, inputs, axis):
        return layer_case("Concat", "opset1", lambda o, *v, axis: o.concat(list(v), axis), name, inputs, {"axis": axis})

    yield case("rows", [dynamic(ramp(2, 3), ramp(0, 3)), static(ramp(1, 3), ramp(1, 3)), ramp(2, 3)], 0)
    yield case("last", [dynamic(mixed(2, 3, dtype=I32)), dynamic(mixed(2, 1, dtype=I32))], -1)
    yield case("one", [dynamic(ramp(2, 3, dtype=bool))], 1)
    yield case("f16", [static(ramp(2, dtype=F16)), static(ramp(3, dtype=F16))], 0)
    yield case("empty", [dynamic(ramp(0)), dynamic(ramp(0))], 0)


def _split():
    def case(name, data, axis, count, **settings):
        return layer_case("Split", "opset1", "split", name, [data, axis], {"num_splits": count}, **settings)

    yield case("static", static(ramp(2, 6)), np.array(1), 3)
    yield case("dynamic", dynamic(ramp(2, 6), ramp(0, 2)), np.array(-1, I32), 2)
    yield case("one", dynamic(ramp(2, 6, dtype=U8)), np.array(0), 1)
    yield case("empty", dynamic(ramp(2, 0)), np.array(1), 2)
    yield case("empty-static", static(ramp(0, 3)), np.array(-2), 3)
    yield case("axis-at-run-time", dynamic(ramp(4, 6), ramp(2, 4)), static(np.array(0), np.array(-1)), 2)

    def variadic(name, data, axis, lengths, **settings):
        make = lambda o, data, axis, lengths: o.variadic_split(data, axis, lengths)  # noqa: E731
        return layer_case("VariadicSplit", "opset1", make, name, [data, axis, lengths], **settings)

    yield variadic("plain", static(ramp(2, 6)), np.array(1), np.array([1, 2, 3]))
    yield variadic("rest", dynamic(ramp(2, 6), ramp(2, 3)), np.array(-1), np.array([1, -1, 2], I32))
    yield variadic("rest-of-nothing", dynamic(ramp(3, 2)), np.array([0], I32), np.array([3, -1]))
    yield variadic("lengths-at-run-time", dynamic(ramp(6, 2), ramp(4, 2)), np.array(0),
                   static(np.array([2, 4]), np.array([3, -1])))  # fmt: skip
    yield variadic("all-at-run-time", dynamic(ramp(4, 4, dtype=I64), ramp(6, 3, dtype=I64)), static(np.array(1), np.array(-2)),
                   static(np.array([1, 3], I32), np.array([-1, 2], I32)))  # fmt: skip
    floats = np.array([1, 3], np.float32)
    yield variadic("floats", dynamic(ramp(2, 4)), np.array(1, np.float32), floats)
    yield variadic("floats-at-run-time", dynamic(ramp(2, 4)), np.array(1), static(floats))
    yield variadic("one", dynamic(ramp(3, dtype=bool)), np.array(0), np.array([-1]))


CASES = [
    *_shape_of(), *_reshape(), *_squeeze(), *_unsqueeze(), *_transpose(), *_broadcast(), *_tile(), *_concat(), *_split(),
]  # fmt: skip
