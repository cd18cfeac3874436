"""Variables: ReadValue and Assign, in the main graph and in bodies."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import dynamic, layer_case, ramp, static
from tests.conformance.operations.cases.control_flow import FALSE, TRUE, A, F, always, body, loop_node


def _variable(initial="constant", version="opset6", shape=(2, 3), grow=False):
    def make(ops, x):
        import openvino as ov
        from openvino import opset3

        start = {
            "constant": lambda: [ops.constant(np.full([d if d > 0 else 1 for d in shape], 5, F))],
            "computed": lambda: [ops.multiply(x, ops.constant(F(10)))],
            "none": list,
        }[initial]()
        if version == "opset3":
            read = opset3.read_value(*start, "memory")
        else:
            read = ops.read_value(*start, "memory", ov.Type.f32, ov.PartialShape(list(shape)))
        following = ops.concat([read, x], 0) if grow else ops.add(read, x)
        write = (opset3 if version == "opset3" else ops).assign(following, "memory")
        return [ops.relu(following), write]

    return make


def _variables(operation):
    x = static(A, A + 1, A * 2)
    later = partial(layer_case, operation, "opset6", opset="opset8")
    first = partial(layer_case, operation, "opset3", opset="opset8")
    yield later(_variable(), "constant-initial", [x], state=True)
    yield later(_variable("computed"), "computed-initial", [x], state=True)
    yield later(_variable(), "stateless-runs", [x])
    more = dynamic(A, ramp(1, 3), A, dims=(-1, 3))
    yield later(_variable(shape=(-1, 3), grow=True), "grows", [more], state=True)
    yield later(_variable("none"), "no-initial", [x], state=True)
    yield first(_variable(version="opset3"), "constant-initial", [x], state=True)
    yield first(_variable("computed", "opset3"), "computed-initial", [x], state=True)
    yield first(_variable(version="opset3"), "stateless-runs", [x])
    row = static(ramp(1, 4), ramp(1, 4))
    yield first(_variable(version="opset3", shape=(1, 4)), "one-row", [row], state=True)


# -- in bodies -------------------------------------------------------------------------------------------------------------


def _adding(ops, name="memory", start="constant", factor=1, grow=False):
    """A body that adds ``factor`` times its Parameter to a variable (or appends it), and returns the sum."""
    import openvino as ov

    shape = [-1, 2] if grow else [2]
    x = ops.parameter(shape, F)
    initial = {
        "constant": lambda: [ops.constant(np.array([5, 6], F))],
        "computed": lambda: [ops.multiply(x, ops.constant(F(100)))],
        "none": list,
    }[start]()
    read = ops.read_value(*initial, name, ov.Type.f32, ov.PartialShape(shape))
    following = ops.concat([read, x], 0) if grow else ops.add(read, ops.multiply(x, ops.constant(F(factor))))
    return body(ops, [x], following, always(ops), sinks=[ops.assign(following, name)])


def _repeated(ops, inner, trips, x):
    """Return the last value of a Loop over the body."""
    loop = loop_node(ops, trips, always(ops), inner)
    loop.set_invariant_input(inner.get_parameters()[0], x.output(0))
    return loop.get_iter_value(inner.get_results()[0].output(0), -1)


def _in_loop(start="constant", grow=False, nested=False):
    def make(ops, x, trips):
        inner = _adding(ops, start=start, grow=grow)
        if nested:
            y = ops.parameter([2], F)
            inner = body(ops, [y], _repeated(ops, inner, ops.constant(np.int64(2)), y), always(ops))
        return [_repeated(ops, inner, trips, x)]

    return make


def _in_branch(start="constant", both=False):
    def make(ops, flag, x):
        y = ops.parameter([2], F)
        other = _adding(ops, "other", start, 3) if both else body(ops, [y], ops.relu(y))
        then = _adding(ops, start=start)
        node = ops.if_op(flag.output(0))
        node.set_then_body(then)
        node.set_else_body(other)
        node.set_input(x.output(0), then.get_parameters()[0], other.get_parameters()[0])
        return [node.set_output(then.get_results()[0], other.get_results()[0])]

    return make


_V = np.array([1, 2], F)
_TRIPS = [static(_V, _V * 10, -_V), static(*map(np.array, (3, 1, 2)))]


def _within(operation):
    case = partial(layer_case, operation, "opset6", opset="opset8")
    flags = [static(FALSE, TRUE, TRUE, FALSE, TRUE), static(_V, _V * 2, _V, _V, -_V)]
    for start in ("constant", "computed", "none"):
        yield case(_in_loop(start), f"in-a-loop-{start}", _TRIPS, state=True)
        yield case(_in_branch(start), f"in-a-branch-{start}", flags, state=True)
    yield case(_in_loop(nested=True), "in-nested-loops", _TRIPS, state=True)
    yield case(_in_loop(), "in-a-loop-anew-with-each-run", _TRIPS)
    rows = dynamic(_V[None], _V[None] * 3, dims=(-1, 2))
    inputs = [rows, static(np.array(2), np.array(1))]
    yield case(_in_loop("none", grow=True), "in-a-loop-grows", inputs, state=True)
    yield case(_in_branch("computed", both=True), "in-both-branches", flags, state=True)


def _stays():
    inputs = [static(_V, _V), static(np.array(3), np.array(1))]
    make = _in_loop("computed")
    yield layer_case("Loop", "opset5", make, "no-trips-variable-stays", inputs, opset="opset8", state=True)


CASES = [
    *(case for operation in ("ReadValue", "Assign") for case in (*_variables(operation), *_within(operation))),
    *_stays(),
]
