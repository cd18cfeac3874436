"""If, Loop and TensorIterator. The same rules emit the layers of bodies into nested ONNX graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.onnx_types import data_type
from converters.openvino.reader.graph import Body, Layer, OutputPort, PortMapInput, PortMapOutput
from converters.openvino.reader.shapes import same_dims
from converters.openvino.rule import Context, Departure, rule
from converters.openvino.rules import state
from converters.openvino.rules._indices import INT64_MAX, product
from onnx_specops.building import Builder, DimsLike, Value

_MAX_TRIP_COUNT = np.int64(2**63 - 1)

_START = Departure(
    where="a sliced input whose `start` is not its first element, or with a negative stride its last, or whose size is not "
    "a multiple of a negative stride",
    cpu="counts the slices from `start`, but takes those from the beginning of the axis on, in reverse order with a "
    "negative stride",
    specification="takes the first slice at `start`",
    follows="cpu",
)


@rule("If", since="opset8")
def if_(op: Builder, condition: Value, *inputs: Value, ctx: Context):
    """If-8: both bodies use the inputs of their port maps, and return the variables that either assigns."""
    values = [condition, *inputs]
    then, otherwise = (ctx.layer.bodies[name] for name in ("then_body", "else_body"))
    variables = state.declare(op, [then, otherwise], ctx)

    def branch(body: Body):
        def emit(op: Builder) -> list[Value]:
            inner = state.enter_body(op, variables, outer, ctx)
            results = ctx.convert_body(op, body, _arguments(op, values, body))
            by_result = dict(zip(body.results, results, strict=True))
            by_port = {entry.external: by_result[entry.result] for entry in body.outputs}
            outputs = [_as_vector(op, by_port[port], port) for port in ctx.layer.outputs]
            return [*outputs, *state.leave_body(op, inner, variables, ctx)]

        return emit

    outer = state.current_values(op, variables)
    results = op.if_(_boolean(op, condition, "condition"), branch(then), branch(otherwise))
    results = results if isinstance(results, (tuple, list)) else [results]
    count = len(ctx.layer.outputs)
    state.assign_all(variables, results[count:])
    return results[:count]


def _as_vector(op: Builder, value: Value, port: OutputPort) -> Value:
    """Return a branch's result. A scalar becomes a vector of one element if the other branch returns a vector."""
    return op.Reshape(value, [-1]) if port.dims is not None and len(port.dims) == 1 and value.rank != 1 else value


@rule(
    "TensorIterator",
    departs=[
        _START,
        Departure(
            where="a body of one LSTMCell, GRUCell or RNNCell that concatenates the cell states, exchanges both states, or "
            "concatenates along another axis, or in another order, than the steps",
            cpu="computes a sequence: the hidden states, concatenated like the steps",
            specification="computes the body",
            follows="specification",
        ),
    ],
)
def tensor_iterator(op: Builder, *inputs: Value, ctx: Context):
    """TensorIterator-1: one iteration for each slice of the sliced inputs; one if there are none."""
    body = ctx.layer.bodies["body"]
    counts = [_slice_count(op, _fed(inputs, entry), entry) for entry in body.inputs if entry.axis is not None]
    known = {int(count.constant) for count in counts if count.constant is not None}
    for entry in body.outputs:
        if entry.axis is not None and entry.external is not None:
            joined, part = (_size(port, entry.axis) for port in (entry.external, entry.result.inputs[0].source))
            known |= {joined // part} if joined and part else set()
    if len(known) > 1:
        raise Malformed(
            f"its inputs and outputs have {' and '.join(map(str, sorted(known)))} slices; the numbers must be equal"
        )
    if not counts:
        counts = [op.const(next(iter(known), 1))]
    # An input with fewer slices than others is an error at run time.
    count = counts[0] if len(counts) == 1 else op.Max(*counts)
    return _iterate(op, inputs, body, count, op.const(np.bool_(True)), ctx)


@rule("Loop", since="opset5", departs=[_START])
def loop(op: Builder, trip_count: Value, condition: Value, *inputs: Value, ctx: Context):
    """Loop-5: a negative trip count means no limit."""
    body = ctx.layer.bodies["body"]
    count = _single(op, op.Cast(trip_count, to=ir.DataType.INT64), "trip count")
    count = op.Where(op.Less(count, 0), op.const(_MAX_TRIP_COUNT), count)
    condition = _single(op, _boolean(op, condition, "condition"), "condition")
    return _iterate(op, [trip_count, condition, *inputs], body, count, condition, ctx)


_GCD = (
    "OpenVINO cannot run this Loop either. Its frontend for PyTorch writes such a Loop for torch.gcd of tensors with "
    "several dimensions: in the PyTorch model, flatten the inputs of torch.gcd and reshape its result"
)


def _single(op: Builder, value: Value, what: str, remedy: str = "") -> Value:
    """Return a value of one element as a scalar."""
    if value.is_static and (count := math.prod(dim or 0 for dim in value.dims or [])) != 1:
        raise Malformed(f"its {what} has {count} elements; it must have one", remedy)
    return op.Reshape(value, np.array([], np.int64))


def _boolean(op: Builder, condition: Value, what: str) -> Value:
    """Return a condition as a boolean. OpenVINO reads the lowest byte of an integer; of a float, it has no meaning."""
    if condition.dtype in (None, ir.DataType.BOOL):
        return condition
    if condition.dtype.is_floating_point():
        raise Malformed(f"its {what} is {condition.dtype}; it must be boolean", "convert it to boolean before")
    return op.Cast(op.Cast(condition, to=ir.DataType.UINT8), to=ir.DataType.BOOL)


def _iterate(op: Builder, values: Sequence[Value], body: Body, count: Value, condition: Value, ctx: Context):
    """Emit a Loop: the values of back edges and those of the last iteration are carried, concatenated ones are scanned."""
    _check_shapes(body)
    recurrent = {edge.parameter: edge.result for edge in body.back_edges}
    entries = {entry.parameter: entry for entry in body.inputs}
    carried = [parameter for parameter in body.parameters if parameter in recurrent]
    last = [entry for entry in body.outputs if entry.axis is None and entry.external is not None]
    joined = [entry for entry in body.outputs if entry.axis is not None and entry.external is not None]
    continues = next((entry.result for entry in body.outputs if entry.purpose == "execution_condition"), None)
    # Values of the last iteration without a back edge. Their initial values do not matter.
    extra = [entry.result for entry in last if entry.result not in [recurrent[p] for p in carried]]

    start = [_fed(values, entries[parameter]) for parameter in carried]
    start += [_placeholder(op, result.inputs[0].source) for result in extra]
    dims: list[DimsLike] = [
        _carried_dims(parameter.outputs[0], recurrent[parameter].inputs[0].source) for parameter in carried
    ]
    dims += [None] * len(extra)
    variables = state.declare(op, [body], ctx)
    before = len(start)  # the variables are carried after these
    start += state.current_values(op, variables)
    dims += state.current_dims(variables)

    def emit(op: Builder, iteration: Value, running: Value, *values_so_far: Value):
        inner = state.enter_body(op, variables, values_so_far[before:], ctx)
        current = dict(zip(carried, values_so_far, strict=False))
        arguments = [
            current[p] if p in current else _argument(op, p, entries.get(p), values, iteration) for p in body.parameters
        ]
        results = dict(zip(body.results, ctx.convert_body(op, body, arguments), strict=True))
        goes_on = op.const(np.bool_(True))
        if continues is not None:
            what = "condition after an iteration"
            goes_on = _single(op, _boolean(op, results[continues], what), what, _GCD)
        following = [results[recurrent[parameter]] for parameter in carried] + [results[result] for result in extra]
        following += state.leave_body(op, inner, variables, ctx)
        return [goes_on, *following, *(results[entry.result] for entry in joined)]

    finals = op.loop(count, condition, emit, *start, carried_dims=dims) if start or joined else ()
    finals = finals if isinstance(finals, tuple) else (finals,)
    state.assign_all(variables, finals[before : len(start)])
    by_result = dict(zip([*(recurrent[p] for p in carried), *extra], finals, strict=False))
    scanned = dict(zip([id(entry) for entry in joined], finals[len(start) :], strict=True))
    outputs = {entry.external: by_result[entry.result] for entry in last}
    joint = {entry.external: _join(op, scanned[id(entry)], entry) for entry in joined}
    if _is_zero(condition):
        outputs = _without_iterations(op, outputs)
    if _is_zero(condition) or _is_zero(count):
        joint = _without_iterations(op, joint)
    outputs |= joint
    return [outputs[port] for port in ctx.layer.outputs]


def _argument(op: Builder, parameter: Layer, entry: PortMapInput | None, values: Sequence[Value], iteration: Value) -> Value:
    """Return the value of a Parameter of a loop's body in one iteration, unless it has a back edge."""
    if entry is None:
        return _unused(op, parameter)
    if entry.purpose == "current_iteration":
        return _counter(op, iteration, parameter)
    value = _fed(values, entry)
    return value if entry.axis is None else _slice(op, value, entry, iteration)


def _is_zero(x: Value) -> bool:
    return x.constant is not None and not x.constant.any()


def _arguments(op: Builder, values: Sequence[Value], body: Body) -> list[Value]:
    """Return the values of the body's Parameters. Unused Parameters need no value."""
    entries = {entry.parameter: entry for entry in body.inputs}
    return [_fed(values, entries[p]) if p in entries else _unused(op, p) for p in body.parameters]


def _unused(op: Builder, parameter: Layer) -> Value:
    if parameter.outputs[0].consumers:
        raise Malformed(f'nothing is connected to the Parameter "{parameter.name}" of its body')
    return _placeholder(op, parameter.outputs[0])


def _fed(values: Sequence[Value], entry: PortMapInput) -> Value:
    if entry.external is None:
        raise Malformed(f'nothing is connected to the Parameter "{entry.parameter.name}" of its body')
    return values[entry.external.index]


def _placeholder(op: Builder, port: OutputPort) -> Value:
    """Return a value of the port's type and, as far as possible, of its shape."""
    shape = [dim or 0 for dim in port.dims or ()]
    return op.Expand(op.Cast(0, to=data_type(port.element_type)), np.array(shape, np.int64))


def _without_iterations(op: Builder, outputs: dict[OutputPort | None, Value]) -> dict[OutputPort | None, Value]:
    """Return OpenVINO's results without iterations: empty values, if the file states such shapes."""
    return {
        port: op.Expand(op.Cast(0, to=data_type(port.element_type)), np.array(port.dims, np.int64))
        if port is not None and port.dims is not None and 0 in port.dims and None not in port.dims
        else value
        for port, value in outputs.items()
    }


def _carried_dims(target: OutputPort, source: OutputPort) -> DimsLike:
    """Return the dimensions that a carried value has in all iterations.

    OpenVINO's TensorFlow frontend initializes lists of tensors with tensors of one element.
    """
    if target.dims is None or source.dims is None or same_dims(target.dims, source.dims):
        return target.dims
    return [None if before == 1 != after else before for before, after in zip(target.dims, source.dims, strict=True)]


def _is_extended(target: OutputPort, source: OutputPort) -> bool:
    """Return whether dimensions of 1 get other sizes after the first iteration, as OpenVINO allows."""
    if target.dims is None or source.dims is None or len(target.dims) != len(source.dims):
        return False
    return same_dims([None if dim == 1 else dim for dim in target.dims], source.dims)


def _check_shapes(body: Body) -> None:
    """Check that the file's shapes of a body's values are compatible with those of their destinations."""
    for edge in body.back_edges:
        source, target = edge.result.inputs[0].source, edge.parameter.outputs[0]
        if source.dims is None or target.dims is None or same_dims(source.dims, target.dims):
            continue
        if not _is_extended(target, source):
            raise Malformed(
                f'a back edge updates "{edge.parameter.name}" of the shape {list(target.dims)} with the shape '
                f"{list(source.dims)}"
            )
    for entry in body.inputs:
        part = None if entry.axis is None else _size(entry.parameter.outputs[0], entry.axis)
        if part is not None and part != entry.part_size:
            raise Malformed(f'it passes slices of {entry.part_size} elements to "{entry.parameter.name}", which has {part}')
    for output in body.outputs:
        source, port = output.result.inputs[0].source, output.external
        if output.axis is None or port is None or source.dims is None or port.dims is None:
            continue
        dims = source.dims or (1,)  # scalars are concatenated to a vector
        axis = output.axis + len(dims) if output.axis < 0 else output.axis
        if port.dims != (0,) and not same_dims([None if i == axis else d for i, d in enumerate(dims)], port.dims):
            raise Malformed(
                f"its slices of the shape {list(source.dims)}, concatenated along axis {output.axis}, cannot have the shape "
                f"{list(port.dims)}"
            )


def _size(port: OutputPort, axis: int) -> int | None:
    """Return the port's size along an axis; ``None`` if unknown."""
    if port.dims is None or not -len(port.dims) <= axis < len(port.dims):
        return None
    return port.dims[axis]


def _counter(op: Builder, iteration: Value, parameter: Layer) -> Value:
    port = parameter.outputs[0]
    counter = op.Cast(iteration, to=data_type(port.element_type))
    return op.Reshape(counter, np.array([1], np.int64)) if port.dims is not None and len(port.dims) == 1 else counter


def _slice_count(op: Builder, value: Value, entry: PortMapInput) -> Value:
    """Return the number of slices between ``start`` and ``end``. Negative ones count from one past the end."""
    assert entry.axis is not None
    if entry.stride == 0 or entry.part_size < 1:
        raise Malformed(f"its stride={entry.stride} or part_size={entry.part_size} is out of range")
    size = op.Gather(op.Shape(value), entry.axis)
    start = op.Add(size, entry.start + 1) if entry.start < 0 else op.const(np.int64(entry.start))
    end = op.Add(size, entry.end + 1) if entry.end < 0 else op.const(np.int64(entry.end))
    length = op.Sub(end, start) if entry.stride > 0 else op.Sub(start, end)
    stride = abs(entry.stride)
    if length.constant is not None and (length.constant < 0 or length.constant % stride):
        raise Malformed(f"it cannot slice {length.constant} elements with stride={entry.stride}")
    return op.Div(length, stride)


def _slice(op: Builder, value: Value, entry: PortMapInput, iteration: Value) -> Value:
    """Return the iteration's slice. ``start`` has no effect on it.

    Slices are counted from the beginning of the axis. With a negative stride, the first one is the last whole one.
    """
    assert entry.axis is not None
    place = op.Mul(iteration, np.int64(entry.stride))
    if entry.stride < 0:
        place = op.Sub(place, np.int64(entry.part_size))
    begin = op.Reshape(place, np.array([1], np.int64))
    if entry.part_size == 1:  # unlike Slice, Gather fails if the slice does not exist
        return op.Gather(value, begin, axis=entry.axis)
    if entry.stride < 0:
        size = op.Slice(op.Shape(value), [entry.axis], [entry.axis + 1 or INT64_MAX])
        stride = np.int64(-entry.stride)
        begin = op.Add(begin, op.Mul(op.Div(size, stride), stride))
    return op.Slice(value, begin, op.Add(begin, np.int64(entry.part_size)), [entry.axis], [1])


def _join(op: Builder, scanned: Value, entry: PortMapOutput) -> Value:
    """Concatenate the stacked values of all iterations along the axis, in reverse order with a negative stride."""
    assert entry.axis is not None
    if entry.stride < 0:
        scanned = op.Slice(scanned, [-1], [-(2**62)], [0], [-1])
    axis, behind = entry.axis, entry.axis + 1 or INT64_MAX
    count, dims = op.Shape(scanned, end=1), op.Shape(scanned, start=1)
    before, after = op.Slice(dims, [0], [axis]), op.Slice(dims, [behind], [INT64_MAX])
    size = product(op, op.Slice(dims, [axis], [behind]))  # 1 for scalars
    if axis:
        blocks = op.Concat(count, product(op, before), size, product(op, after), axis=0)
        scanned = op.Transpose(op.Reshape(scanned, blocks, allowzero=1), perm=[1, 0, 2, 3])
    return op.Reshape(scanned, op.Concat(before, op.Mul(count, size), after, axis=0), allowzero=1)
