"""If, Loop and TensorIterator: the bodies' layers go through the same rules, inside ONNX's nested graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.openvino.graph import Body, Layer, PortMapInput, PortMapOutput
from converters.openvino.onnx_types import data_type
from converters.openvino.rule import Context, Unsupported, rule
from onnx_specops.building import Builder, Value

_FOREVER = np.int64(2**63 - 1)


@rule("If", since="opset8")
def if_(op: Builder, condition: Value, *inputs: Value, ctx: Context):
    """If-8: both bodies see the inputs that their port maps name."""
    values = [condition, *inputs]

    def branch(body: Body):
        def emit(op: Builder) -> list[Value]:
            results = ctx.convert_body(op, body, [_fed(values, entry, body) for entry in _by_parameter(body)])
            by_result = dict(zip(body.results, results, strict=True))
            by_port = {entry.external: by_result[entry.result] for entry in body.outputs}
            return [by_port[port] for port in ctx.layer.outputs]

        return emit

    then, otherwise = (ctx.layer.bodies[name] for name in ("then_body", "else_body"))
    return op.if_(condition, branch(then), branch(otherwise))


@rule("TensorIterator")
def tensor_iterator(op: Builder, *inputs: Value, ctx: Context):
    """TensorIterator-1: as many iterations as the sliced inputs have slices."""
    body = ctx.layer.bodies["body"]
    sliced = [entry for entry in body.inputs if entry.axis is not None]
    if not sliced:
        raise Unsupported("none of its inputs is sliced, so that the number of iterations is unknown")
    count = _slice_count(op, _fed(inputs, sliced[0], body), sliced[0])
    return _iterate(op, inputs, body, count, op.const(np.bool_(True)), ctx)


@rule("Loop", since="opset5")
def loop(op: Builder, trip_count: Value, condition: Value, *inputs: Value, ctx: Context):
    """Loop-5: a negative trip count means no limit."""
    body = ctx.layer.bodies["body"]
    count = op.Reshape(op.Cast(trip_count, to=ir.DataType.INT64), np.array([], np.int64))
    count = op.Where(op.Less(count, 0), op.const(_FOREVER), count)
    condition = op.Reshape(condition, np.array([], np.int64))
    return _iterate(op, [trip_count, condition, *inputs], body, count, condition, ctx)


def _iterate(op: Builder, values: Sequence[Value], body: Body, count: Value, condition: Value, ctx: Context):
    """A Loop: what back edges hand on and what only the last iteration gives is carried, what is joined is scanned."""
    recurrent = {edge.parameter: edge.result for edge in body.back_edges}
    entries = {entry.parameter: entry for entry in body.inputs}
    carried = [parameter for parameter in body.parameters if parameter in recurrent]
    last = [entry for entry in body.outputs if entry.axis is None and entry.external is not None]
    joined = [entry for entry in body.outputs if entry.axis is not None and entry.external is not None]
    continues = next((entry.result for entry in body.outputs if entry.purpose == "execution_condition"), None)
    # The last iteration's values that no back edge carries: what they are before the first iteration does not matter.
    extra = [entry.result for entry in last if entry.result not in [recurrent[p] for p in carried]]

    start = [_fed(values, entries[parameter], body) for parameter in carried]
    start += [_nothing(op, result) for result in extra]
    dims = [parameter.outputs[0].dims for parameter in carried] + [None] * len(extra)

    def emit(op: Builder, iteration: Value, running: Value, *state: Value):
        current = dict(zip(carried, state, strict=False))
        arguments = []
        for parameter in body.parameters:
            entry = entries.get(parameter)
            if parameter in current:
                arguments.append(current[parameter])
            elif entry is not None and entry.purpose == "current_iteration":
                arguments.append(_counter(op, iteration, parameter))
            elif entry is None:
                raise Unsupported(f'nothing feeds the Parameter "{parameter.name}" of its body')
            else:
                value = _fed(values, entry, body)
                arguments.append(value if entry.axis is None else _slice(op, value, entry, iteration))
        results = dict(zip(body.results, ctx.convert_body(op, body, arguments), strict=True))
        goes_on = op.const(np.bool_(True)) if continues is None else op.Reshape(results[continues], np.array([], np.int64))
        following = [results[recurrent[parameter]] for parameter in carried] + [results[result] for result in extra]
        return [goes_on, *following, *(results[entry.result] for entry in joined)]

    finals = op.loop(count, condition, emit, *start, carried_dims=dims) if start or joined else ()
    finals = finals if isinstance(finals, tuple) else (finals,)
    by_result = dict(zip([*(recurrent[p] for p in carried), *extra], finals, strict=False))
    scanned = dict(zip([id(entry) for entry in joined], finals[len(start) :], strict=True))
    outputs = {entry.external: by_result[entry.result] for entry in last}
    outputs |= {entry.external: _join(op, scanned[id(entry)], entry) for entry in joined}
    return [outputs[port] for port in ctx.layer.outputs]


def _by_parameter(body: Body) -> list[PortMapInput]:
    entries = {entry.parameter: entry for entry in body.inputs}
    if missing := [parameter.name for parameter in body.parameters if parameter not in entries]:
        raise Unsupported(f'nothing feeds the Parameter "{missing[0]}" of its body')
    return [entries[parameter] for parameter in body.parameters]


def _fed(values: Sequence[Value], entry: PortMapInput, body: Body) -> Value:
    if entry.external is None:
        raise Unsupported(f'nothing feeds the Parameter "{entry.parameter.name}" of its body')
    return values[entry.external.index]


def _nothing(op: Builder, result: Layer) -> Value:
    """A value of the result's type and as far as possible of its shape."""
    port = result.inputs[0].source
    shape = [dim or 0 for dim in port.dims or ()]
    return op.Expand(op.Cast(0, to=data_type(port.element_type)), np.array(shape, np.int64))


def _counter(op: Builder, iteration: Value, parameter: Layer) -> Value:
    port = parameter.outputs[0]
    counter = op.Cast(iteration, to=data_type(port.element_type))
    return op.Reshape(counter, np.array([1], np.int64)) if port.dims == (1,) else counter


def _bounds(op: Builder, value: Value, entry: PortMapInput) -> tuple[Value, Value]:
    """Where the slices begin and end along the axis; negative positions count from one past the end."""
    assert entry.axis is not None
    size = op.Gather(op.Shape(value), entry.axis)
    start = op.Add(size, entry.start + 1) if entry.start < 0 else op.const(np.int64(entry.start))
    end = op.Add(size, entry.end + 1) if entry.end < 0 else op.const(np.int64(entry.end))
    return start, end


def _slice_count(op: Builder, value: Value, entry: PortMapInput) -> Value:
    if entry.stride == 0 or entry.part_size < 1:
        raise Unsupported(f"it slices its input with stride={entry.stride} and part_size={entry.part_size}")
    start, end = _bounds(op, value, entry)
    length = op.Sub(end, start) if entry.stride > 0 else op.Sub(start, end)
    return op.Div(length, abs(entry.stride))


def _slice(op: Builder, value: Value, entry: PortMapInput, iteration: Value) -> Value:
    """The iteration's slice: strides lead forward from ``start``, negative ones backward from it."""
    assert entry.axis is not None
    start, _ = _bounds(op, value, entry)
    first = op.Add(start, op.Mul(iteration, np.int64(entry.stride)))
    if entry.stride < 0:
        first = op.Sub(first, np.int64(entry.part_size))
    begin = op.Reshape(first, np.array([1], np.int64))
    return op.Slice(value, begin, op.Add(begin, np.int64(entry.part_size)), [entry.axis], [1])


def _join(op: Builder, scanned: Value, entry: PortMapOutput) -> Value:
    """The iterations' values, stacked in front, joined along the axis; negative strides join backwards."""
    assert entry.axis is not None and entry.external is not None
    port = entry.result.inputs[0].source
    if port.dims is None:
        raise Unsupported("it joins values whose number of dimensions is unknown")
    rank = len(port.dims)
    axis = entry.axis + rank if entry.axis < 0 else entry.axis
    if entry.stride < 0:
        scanned = op.Slice(scanned, [-1], [-(2**62)], [0], [-1])
    moved = op.Transpose(scanned, perm=[*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]) if axis else scanned
    shape = op.Shape(moved)
    joined = op.ReduceProd(op.Slice(shape, [axis], [axis + 2]), keepdims=1)
    parts = [op.Slice(shape, [0], [axis])] if axis else []
    parts.append(joined)
    if axis + 2 <= rank:
        parts.append(op.Slice(shape, [axis + 2], [rank + 1]))
    return op.Reshape(moved, op.Concat(*parts, axis=0) if len(parts) > 1 else joined, allowzero=1)
