"""Recurrent layers and Loops with a known number of steps as a node for each operation of each step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.passes.copied_nodes import emitted
from converters.passes.loops import iterations
from converters.passes.recurrent_nodes import BACKWARD, GATES, functions_of, lstm_states
from converters.passes.workaround import InnerFirst, Workaround
from converters.targets.limits import Limit
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array, nested

_STEPS = 1024
"""The largest number of steps, of both directions together. Each has about ten nodes."""

_NODES = 10_000
"""The largest number of nodes of an unrolled Loop."""


class UnrolledRecurrence(Workaround):
    """Convert GRU, LSTM and RNN with a known number of steps to the operators of each step.

    TVM (0.27), tinygrad (0.14) and onnx2torch (1.5.15) lack them. Conditions: a known shape of the sequences, at most 1,024
    steps, the activation functions Sigmoid, Tanh and Relu, no coupled gates, and the default layout.
    """

    operators = frozenset(GATES)
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        attributes = attributes_of(node)
        x = node.inputs[0]
        if not isinstance(x, Value) or not x.is_static or not x.dims or 0 in x.dims:
            return None
        backward, functions = BACKWARD[attributes.get("direction", "forward")], functions_of(node)
        if functions is None or (x.dims[0] or 0) * len(backward) > _STEPS:
            return None
        states: list[tuple[Value, ...]] = []
        joined: list[Value] = []
        for direction, (reverse, own) in enumerate(zip(backward, functions, strict=True)):
            every, *last = _Layer.of(op, node, direction, own, attributes).outputs(reverse)
            joined.append(every)
            states.append(tuple(last))
        found = [joined[0] if len(joined) == 1 else op.Concat(*joined, axis=1)]
        found += [last[0] if len(last) == 1 else op.Concat(*last, axis=0) for last in zip(*states, strict=True)]
        return found[: len(node.outputs)]


class UnrolledForms(UnrolledRecurrence):
    """Convert the forms of GRU, LSTM and RNN that the program lacks or computes incorrectly to the operators of each step.

    The table below lists these forms. OpenCV (5.0.0, 4.14.0), QNN (2.7) and WebGPU (0.4) have no RNN. OpenCV, MNN (3.6),
    ncnn and tract (0.23.9) support the others only partially. tract silently ignores other activations, ``clip``,
    ``input_forget`` and a reverse direction.

    Attributes:
        limits: the limits of the target.
        lacks: the operators that it does not have.
    """

    def __init__(self, limits: Sequence[Limit] = (), lacks: Collection[str] = ()) -> None:
        super().__init__()
        self.limits, self.lacks = limits, lacks

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        if node.op_type in self.lacks or any(
            node.op_type in limit.operators and limit.applies(node) for limit in self.limits
        ):
            return super().replacement(op, node)
        return None


@dataclass(frozen=True)
class _Layer:
    """One direction of a recurrent layer.

    Attributes:
        op: the builder.
        kind: its operator.
        inputs: the matrix product of each step's input, with biases: ``[steps, batch, gates * hidden]``.
        recurrence: ``[hidden, gates * hidden]``.
        recurrent_bias: the bias of the last gate of a GRU that multiplies before it resets; ``None`` if there is none.
        peepholes: the factors of the cell state in the gates i, o and f; none if there are none.
        lengths: the number of steps of each sequence, ``[batch, 1]``; ``None`` if all steps belong to each.
        starts: the first states, ``[batch, hidden]``; 0 for a sequence without steps.
        functions: the operators of its functions.
        clip: the limit of the functions' inputs, or 0.
        before: whether a GRU multiplies before it resets.
    """

    op: Builder
    kind: str
    inputs: Value
    recurrence: Value
    recurrent_bias: Value | None
    peepholes: Sequence[Value]
    lengths: Value | None
    starts: Sequence[Value]
    functions: Sequence[str]
    clip: float
    before: bool

    @classmethod
    def of(cls, op: Builder, node: ir.Node, direction: int, functions: Sequence[str], attributes: dict[str, Any]) -> _Layer:
        """Return one direction of a node."""
        given: list[ir.Value | None] = [*node.inputs, *[None] * (8 - len(node.inputs))]
        x, weights, recurrence, bias, lengths, *rest = given
        assert isinstance(x, Value) and x.dims and isinstance(weights, Value) and isinstance(recurrence, Value)
        steps, batch, size = (dim or 0 for dim in x.dims)
        hidden, gates = attributes["hidden_size"], GATES[node.op_type]
        before = bool(attributes.get("linear_before_reset", 0))

        def own(value: ir.Value, *dims: int) -> Value:
            return op.Reshape(op.Slice(value, [direction], [direction + 1], [0]), list(dims))

        addend = recurrent_bias = None
        if bias is not None:
            of_input, of_state = op.Split(own(bias, 2 * gates * hidden), [gates * hidden] * 2, axis=0, outputs=2)
            if before and node.op_type == "GRU":
                recurrent_bias = op.Slice(of_state, [2 * hidden], [3 * hidden], [0])
                zeros = op.const(np.zeros(hidden), x.dtype)
                of_state = op.Concat(op.Slice(of_state, [0], [2 * hidden], [0]), zeros, axis=0)
            addend = op.Add(of_input, of_state)
        matrix = op.Transpose(own(weights, gates * hidden, size), perm=[1, 0])
        inputs = op.MatMul(x, matrix)
        peepholes: Sequence[Value] = ()
        if rest[2] is not None:
            peepholes = op.Split(own(rest[2], 3 * hidden), [hidden] * 3, axis=0, outputs=3)
        zeros = op.const(np.zeros((batch, hidden)), x.dtype)
        starts = [zeros if first is None else own(first, batch, hidden) for first in rest[:2]]
        whole = constant_array(lengths)
        if lengths is not None and not (whole is not None and (whole == steps).all()):
            lengths = op.Reshape(lengths, [batch, 1])
            if whole is None or not whole.all():  # the last states of an empty sequence are 0
                has_steps = op.Greater(lengths, op.const([0], lengths.dtype))
                starts = [start if start is zeros else op.Where(has_steps, start, zeros) for start in starts]
        else:
            lengths = None
        return cls(
            op,
            node.op_type,
            inputs if addend is None else op.Add(inputs, addend),
            op.Transpose(own(recurrence, gates * hidden, hidden), perm=[1, 0]),
            recurrent_bias,
            peepholes,
            lengths,
            starts if node.op_type == "LSTM" else starts[:1],
            functions,
            float(attributes.get("clip", 0.0)),
            before,
        )

    def outputs(self, reverse: bool) -> list[Value]:
        """Emit all steps; return the hidden states ``[steps, 1, batch, hidden]`` and the last states."""
        op = self.op
        assert self.inputs.dims is not None
        steps, batch, width = (dim or 0 for dim in self.inputs.dims)
        parts = [self.inputs] if steps == 1 else op.Split(self.inputs, [1] * steps, axis=0, outputs=steps)
        states = list(self.starts)
        every: dict[int, Value] = {}
        for step in reversed(range(steps)) if reverse else range(steps):
            given = op.Reshape(parts[step], [batch, width])
            after = self._step(given, *states)
            if self.lengths is None:
                states, result = after, after[0]
            else:
                inside = op.Greater(self.lengths, op.const([step], self.lengths.dtype))
                result = op.Where(inside, after[0], op.const([0], after[0].dtype))
                states = [op.Where(inside, new, old) for new, old in zip(after, states, strict=True)]
            every[step] = op.Reshape(result, [1, 1, *_sizes(result)])
        ordered = [every[step] for step in range(steps)]
        joined = ordered[0] if steps == 1 else op.Concat(*ordered, axis=0)
        return [joined, *(op.Reshape(state, [1, *_sizes(state)]) for state in states)]

    def _step(self, given: Value, hidden: Value, cell: Value | None = None) -> list[Value]:
        """Return the states after a step."""
        op, functions = self.op, self.functions
        size = _sizes(hidden)[-1]
        if self.kind == "RNN":
            return [self._function(functions[0], op.Add(given, op.MatMul(hidden, self.recurrence)))]
        if self.kind == "LSTM":
            assert cell is not None
            gates = op.Add(given, op.MatMul(hidden, self.recurrence))
            return lstm_states(
                op,
                gates,
                cell,
                size,
                self.peepholes,
                lambda index, x: self._function(functions[index], x) if index < 2 else op.node(functions[index], x),
            )
        if self.before:
            z, r, h = op.Split(given, [size] * 3, axis=1, outputs=3)
            own = op.Split(op.MatMul(hidden, self.recurrence), [size] * 3, axis=1, outputs=3)
            z, r = (self._function(functions[0], op.Add(a, b)) for a, b in ((z, own[0]), (r, own[1])))
            last = own[2] if self.recurrent_bias is None else op.Add(own[2], self.recurrent_bias)
            new = op.Add(h, op.Mul(r, last))
        else:
            gates, last = op.Split(self.recurrence, [2 * size, size], axis=1, outputs=2)
            first, h = op.Split(given, [2 * size, size], axis=1, outputs=2)
            both = self._function(functions[0], op.Add(first, op.MatMul(hidden, gates)))
            z, r = op.Split(both, [size] * 2, axis=1, outputs=2)
            new = op.Add(h, op.MatMul(op.Mul(r, hidden), last))
        new = self._function(functions[1], new)
        return [op.Add(new, op.Mul(z, op.Sub(hidden, new)))]

    def _function(self, name: str, x: Value) -> Value:
        op = self.op
        limits = (op.const(bound, x.dtype) for bound in (-self.clip, self.clip))
        return op.node(name, op.Clip(x, *limits) if self.clip else x)


def _sizes(value: Value) -> list[int]:
    """Return the dimensions of a value, all of which are known."""
    return [dim or 0 for dim in value.dims or ()]


class UnrolledLoops(InnerFirst):
    """Unroll a Loop with a known number of iterations.

    Most programs other than ONNX Runtime do not support control flow. Conditions: a constant number of iterations, or a
    condition that depends only on counters and constants; a body without If; and a result of at most 10,000 nodes.
    """

    operators = frozenset(("Loop",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        body = node.attributes["body"].as_graph()
        if any(nested(inner) for inner in body):
            return None
        count = iterations(node, _NODES // max(len(body), 1))
        if count is None:
            return None
        carried: list[Any] = list(node.inputs[2:])
        scanned: list[list[Value]] = []
        for iteration in range(count):
            start = [op.const(iteration, ir.DataType.INT64), op.const(True, ir.DataType.BOOL), *carried]
            _, *results = emitted(op, body, start)
            carried = results[: len(carried)]
            scanned.append([op.Unsqueeze(value, [0]) for value in results[len(carried) :]])
        joined = [values[0] if len(values) == 1 else op.Concat(*values, axis=0) for values in zip(*scanned, strict=True)]
        return [*carried, *joined]
