"""The pass that says a quantised network in integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.quantized import ranges
from converters.passes.quantized.affine import Affine, affine
from converters.passes.quantized.weights import Weights, array, weights
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.domain import DOMAIN
from onnx_specops.graphs import all_nodes, all_values
from onnx_specops.replacing import take_place

D = ir.DataType

_MOVES = frozenset(("Flatten", "Identity", "MaxPool", "Reshape", "Squeeze", "Transpose", "Unsqueeze"))
"""Operators that only move or choose numbers: they take integers as they take floats."""

_BIGGEST_BIAS = 2**30


@dataclass(frozen=True)
class _Quantized:
    """The integers of a value that a DequantizeLinear gives."""

    integers: ir.Value
    affine: Affine


class InIntegers(InPlacePass):
    """FakeQuantize with constant limits becomes QuantizeLinear and DequantizeLinear, and what lies between is arranged so
    that ONNX Runtime computes it in integers. What does not fit stays a FakeQuantize.

    Args:
        opset: the opset that the model will be in.
        contrib: whether it may hold ONNX Runtime's own operators.
    """

    def __init__(self, opset: int, *, contrib: bool = True) -> None:
        self.opset, self.contrib = opset, contrib

    def call(self, model: ir.Model) -> PassResult:
        nodes = [node for node in all_nodes(model.graph) if _is(node, "FakeQuantize", DOMAIN)]
        if not nodes:
            return PassResult(model, modified=False)
        root = Builder(model.graph)
        root.reserve(value.name for value in all_values(model.graph))
        work = _Arranging(root, self.opset, self.contrib)
        for node in nodes:
            work.quantize(node)
        for node in list(all_nodes(model.graph)):
            work.arrange(node)
        return PassResult(model, modified=True)


class _Arranging:
    """A graph on its way to integers.

    Attributes:
        quantized: the values that are a DequantizeLinear's, with their integers.
    """

    def __init__(self, root: Builder, opset: int, contrib: bool) -> None:
        self.root, self.opset, self.contrib = root, opset, contrib
        self.quantized: dict[ir.Value, _Quantized] = {}

    def before(self, node: ir.Node) -> Builder:
        assert isinstance(node.graph, ir.Graph)
        op = Builder(node.graph, root=self.root, before=node)
        op.scope = node.name or node.op_type
        return op

    # -- FakeQuantize -------------------------------------------------------------------------------------------

    def quantize(self, node: ir.Node) -> None:
        """A FakeQuantize of what is computed, as QuantizeLinear and DequantizeLinear."""
        data, *limits = node.inputs
        low, high, start, end = (array(limit) for limit in limits)
        if data is None or array(data) is not None or data.dtype != D.FLOAT or node.outputs[0].is_graph_output():
            return
        if low is None or high is None or start is None or end is None or _is_of_constant(data):
            return
        levels = node.attributes.get_int("levels")
        if levels == 2**16 and self.opset < 21:
            return
        rank = None if data.shape is None else len(data.shape)
        inner, outer = affine(low, high, levels, rank), affine(start, end, levels, rank)
        if levels == 2**4 or inner is None or outer is None or (inner.is_whole != outer.is_whole):
            return
        op = self.before(node)
        self._dequantized(op, node.outputs[0], inner.quantize(op, data), outer)
        _remove(node)

    def _dequantized(self, op: Builder, value: ir.Value, integers: Value, affine: Affine) -> Value:
        """Let integers stand for a value."""
        result = affine.dequantize(op, integers)
        take_place(value, result)
        self.quantized[result] = _Quantized(integers, affine)
        return result

    # -- what lies between ---------------------------------------------------------------------------------------

    def arrange(self, node: ir.Node) -> None:
        """Arrange one node, whose inputs are arranged, and what follows it at once."""
        if node.domain or node.graph is None or not node.inputs or (first := node.inputs[0]) is None:
            return
        if node.op_type == "MatMul":
            self._product(node)
        elif (quantized := self.quantized.get(first)) is None:
            return
        elif node.op_type == "Conv":
            self._convolution(node, quantized)
        elif not quantized.affine.is_whole:
            return
        elif node.op_type in _MOVES and len(node.outputs) == 1 and not node.outputs[0].is_graph_output():
            op = self.before(node)
            attributes = {name: attribute.value for name, attribute in node.attributes.items()}
            moved = op.node(node.op_type, quantized.integers, *node.inputs[1:], **attributes)
            moved.shape = node.outputs[0].shape
            self._dequantized(op, node.outputs[0], moved, quantized.affine)
            _remove(node)
        elif node.op_type == "ReduceMean":
            self._mean(node)

    def _mean(self, node: ir.Node) -> None:
        """ReduceMean over all but batch and channels as GlobalAveragePool, which ONNX Runtime computes in integers."""
        x, axes = node.inputs[0], None if len(node.inputs) < 2 else array(node.inputs[1])
        if x is None or x.shape is None or axes is None or not node.attributes.get_int("keepdims", 1):
            return
        rank = len(x.shape)
        if sorted(int(axis) % rank for axis in axes.reshape(-1)) != list(range(2, rank)) or not _quantizers(node.outputs[0]):
            return
        op = self.before(node)
        pooled = op.GlobalAveragePool(x)
        pooled.shape = node.outputs[0].shape
        take_place(node.outputs[0], pooled)
        _remove(node)

    # -- convolutions -------------------------------------------------------------------------------------------

    def _convolution(self, node: ir.Node, x: _Quantized) -> None:
        found = weights(node.inputs[1], axis=0)
        shape = node.inputs[1].shape if node.inputs[1] is not None else None
        if found is None or shape is None or (found.affine.zero_point.dtype == np.int8 and found.affine.zero_point.any()):
            return
        channels = int(shape[0])
        scales = np.broadcast_to(found.affine.scale, [channels])
        integers, behind = x.integers, x.affine
        if not behind.is_whole:  # of each channel: part of the weights, where each has its own
            is_depthwise = node.attributes.get_int("group", 1) == channels and int(shape[1]) == 1
            if not is_depthwise or behind.axis != 1 or len(set(behind.zero_point.tolist())) > 1:
                return
            scales = scales * behind.scale
            behind = Affine(np.ones([], np.float32), behind.zero_point[0])
        bias, tail = np.zeros(channels, np.float64), node.outputs[0]
        if len(node.inputs) > 2:
            given = array(node.inputs[2])
            if given is None:
                return
            bias = given.astype(np.float64)
        tail, bias = _with_bias(tail, bias)
        end = self._end(tail)
        if end is None:
            return
        op = self.before(node)
        product = scales * behind.scale
        bias = bias + end.shift
        if not end.affine.is_whole:  # ONNX Runtime has one scale for all results: those of channels go into the weights
            scales, product, bias = scales / end.affine.scale, product / end.affine.scale, bias / end.affine.scale
            whole = Affine(np.ones([], np.float32), end.affine.zero_point[0])
        else:
            whole = end.affine
        whole_bias = np.rint(bias / product)
        if (np.abs(whole_bias) > _BIGGEST_BIAS).any():
            return
        kept = replace(found.affine, scale=scales.astype(np.float32), zero_point=np.broadcast_to(
            found.affine.zero_point, [channels]), axis=0)
        if found.affine.is_whole and len(set(kept.scale.tolist())) == 1:
            kept = Affine(kept.scale[0], kept.zero_point[0])
        inputs = [behind.dequantize(op, integers), kept.dequantize(op, found.emit(op))]
        if bias.any():
            terms = Affine(product.astype(np.float32), np.zeros(channels, np.int32), 0)
            if len(set(terms.scale.tolist())) == 1 and kept.is_whole:
                terms = Affine(terms.scale[0], terms.zero_point[0])
            inputs.append(terms.dequantize(op, constant_value(whole_bias.astype(np.int32))))
        attributes = {name: attribute.value for name, attribute in node.attributes.items()}
        result = op.Conv(*inputs, **attributes)
        result.shape = tail.shape
        self._finish(op, end, whole, result)

    def _finish(self, op: Builder, end: _End, whole: Affine, result: Value) -> None:
        """Quantise the result of a convolution, and let that stand for what the end names."""
        integers = whole.quantize(op, result)
        if end.quantizers:
            for quantizer in end.quantizers:
                take_place(quantizer.outputs[0], integers)
                for dequantizer in list(quantizer.outputs[0].consumers()) or list(integers.consumers()):
                    known = self.quantized.get(dequantizer.outputs[0])
                    if known is not None:
                        self.quantized[dequantizer.outputs[0]] = replace(known, integers=integers)
        else:
            take_place(end.value, whole.dequantize(op, integers))

    def _end(self, tail: ir.Value) -> _End | None:
        """Where and how the result of a convolution is quantised; ``None`` where it has to be in floats."""
        if tail.is_graph_output():
            return None
        users = list(tail.consumers())
        if (quantizers := _quantizers(tail)) and len(quantizers) == 1:
            found = _affine_of(quantizers[0])
            return None if not self._fits(found, quantizers[0]) else _End(tail, found, quantizers)
        if len(users) == 1:
            (user,) = users
            result = user.outputs[0]
            behind = [] if result.is_graph_output() else _quantizers(result)
            if not behind:
                return None
            affines = [_affine_of(quantizer) for quantizer in behind]
            if len(behind) == 1 and self._fits(affines[0], behind[0]):
                if _keeps_above_zero(user, affines[0]):
                    return _End(result, affines[0], behind)
                if (slope := _clipped_line(user, affines[0])) is not None:
                    alpha, beta = slope
                    return _End(result, affines[0].scaled(1 / alpha), behind, shift=beta / alpha)
            known = ranges.function(user)
        elif len(users) == 2 and (result_node := _swish(tail, users)) is not None:
            result = result_node.outputs[0]
            behind = [] if result.is_graph_output() else _quantizers(result)
            affines, known = [_affine_of(quantizer) for quantizer in behind], ranges.swish
        else:
            return None
        if known is None or not affines:
            return None
        enough = [ranges.before(known, one) for one in _each(affines)]
        if any(one is None for one in enough):
            return None
        return _End(tail, _widest([one for one in enough if one is not None]), [])

    def _fits(self, found: Affine, quantizer: ir.Node) -> bool:
        """Whether a convolution can give these integers: those of a tensor; those of channels where all that takes them can
        do without their scale."""
        if found.zero_point.dtype.itemsize != 1:
            return False
        if found.is_whole:
            return True
        if found.axis != 1 or len(set(found.zero_point.tolist())) > 1:
            return False
        source = quantizer.inputs[0]
        producer = None if source is None else source.producer()
        linear = producer is not None and producer.op_type in ("Add", "Conv", "Relu")
        return linear and int(found.zero_point[0]) == 0 or (producer is not None and producer.op_type in ("Add", "Conv"))

    # -- products -----------------------------------------------------------------------------------------------

    def _product(self, node: ir.Node) -> None:
        a, b = node.inputs
        assert a is not None and b is not None
        first = self.quantized.get(a)
        if first is None or not first.affine.is_whole or first.affine.zero_point.dtype.itemsize != 1:
            return
        second = self.quantized.get(b)
        found: Weights | None = None
        if second is None:
            found = weights(b, axis=-1) if b.shape is not None and len(b.shape) == 2 else None
            if found is None:
                return
        elif not second.affine.is_whole or second.affine.zero_point.dtype.itemsize != 1:
            return
        op = self.before(node)
        right = second.affine if second is not None else found.affine if found is not None else None
        assert right is not None
        integers = second.integers if second is not None else found.emit(op) if found is not None else None
        if found is None and not self.contrib:
            return  # it stands between DequantizeLinear already
        assert integers is not None
        if not self.contrib:
            result = op.MatMul(a, right.dequantize(op, integers))
            result.shape = node.outputs[0].shape
            take_place(node.outputs[0], result)
            _remove(node)
            return
        tail, bias = node.outputs[0], None
        if found is not None:
            tail, bias = _with_last_bias(tail, int(b.shape[-1]))  # type: ignore[index]
        result = op.contrib.MatMulIntegerToFloat(
            first.integers,
            integers,
            constant_value(first.affine.scale),
            constant_value(right.scale),
            constant_value(first.affine.zero_point),
            constant_value(right.zero_point),
            None if bias is None else constant_value(bias),
        )
        result.shape = tail.shape
        take_place(tail, result)
        _remove(node)


@dataclass(frozen=True)
class _End:
    """Where the result of a convolution is quantised.

    Attributes:
        value: the value that the integers stand for.
        affine: as what.
        quantizers: the QuantizeLinear that give these integers today; where there are none, floats follow.
        shift: what is added to the result before.
    """

    value: ir.Value
    affine: Affine
    quantizers: Sequence[ir.Node]
    shift: float = 0.0


def _is(node: ir.Node, op_type: str, domain: str = "") -> bool:
    return (node.domain, node.op_type) == (domain, op_type)


def _is_of_constant(value: ir.Value) -> bool:
    """Whether a value is a cast of a constant."""
    node = value.producer()
    return node is not None and _is(node, "Cast") and array(node.inputs[0]) is not None


def _quantizers(value: ir.Value) -> list[ir.Node]:
    """The QuantizeLinear that take a value, where nothing else does."""
    users = list(value.consumers())
    return users if users and not value.is_graph_output() and all(_is(user, "QuantizeLinear") for user in users) else []


def _affine_of(quantizer: ir.Node) -> Affine:
    scale, zero = (array(value) for value in quantizer.inputs[1:])
    assert scale is not None and zero is not None
    return Affine(scale, zero, quantizer.attributes.get_int("axis", 1))


def _with_bias(tail: ir.Value, bias: np.ndarray) -> tuple[ir.Value, np.ndarray]:
    """A convolution's result with the constant of each channel that is added to it alone."""
    users = list(tail.consumers())
    if len(users) != 1 or tail.is_graph_output() or not _is(users[0], "Add") or tail.shape is None:
        return tail, bias
    other = next((array(value) for value in users[0].inputs if value is not tail), None)
    rank = len(tail.shape)
    if other is None or other.ndim > rank:
        return tail, bias
    shape = [1] * (rank - other.ndim) + list(other.shape)
    if any(size != 1 for axis, size in enumerate(shape) if axis != 1) or shape[1] not in (1, len(bias)):
        return tail, bias
    return users[0].outputs[0], bias + np.broadcast_to(other.astype(np.float64).reshape(-1), bias.shape)


def _with_last_bias(tail: ir.Value, size: int) -> tuple[ir.Value, np.ndarray | None]:
    """A product's result with the constant of each column that is added to it alone."""
    users = list(tail.consumers())
    if len(users) != 1 or tail.is_graph_output() or not _is(users[0], "Add") or tail.shape is None:
        return tail, None
    other = next((array(value) for value in users[0].inputs if value is not tail), None)
    if other is None or other.ndim > len(tail.shape) or other.size != size or other.shape[-1] != size:
        return tail, None
    return users[0].outputs[0], np.ascontiguousarray(other.astype(np.float32).reshape(-1))


def _keeps_above_zero(node: ir.Node, behind: Affine) -> bool:
    """Whether a node cuts off only what the quantisation cuts off as well."""
    if not behind.starts_at_zero:
        return False
    if _is(node, "Relu"):
        return True
    if not _is(node, "Clip"):
        return False
    low, high = ([array(value) for value in node.inputs[1:]] + [None, None])[:2]
    top = float((behind.scale * 255).max())
    return (low is None or float(low) <= 0) and (high is None or float(high) >= top)


def _clipped_line(node: ir.Node, behind: Affine) -> tuple[float, float] | None:
    """Slope and shift of a HardSigmoid whose ends are those of the quantisation."""
    if not _is(node, "HardSigmoid") or not behind.starts_at_zero or not behind.is_whole:
        return None
    alpha, beta = node.attributes.get_float("alpha", 0.2), node.attributes.get_float("beta", 0.5)
    return (alpha, beta) if alpha > 0 and np.rint(1 / float(behind.scale)) >= 255 else None


def _swish(x: ir.Value, users: Sequence[ir.Node]) -> ir.Node | None:
    """The Mul of x and its Sigmoid."""
    gate = next((user for user in users if _is(user, "Sigmoid")), None)
    product = next((user for user in users if _is(user, "Mul")), None)
    if gate is None or product is None or [*gate.outputs[0].consumers()] != [product]:
        return None
    return product if {*product.inputs} == {x, gate.outputs[0]} else None


def _each(affines: Sequence[Affine]) -> list[Affine]:
    """The quantisations of whole tensors among these, those of channels one by one."""
    found: list[Affine] = []
    for one in affines:
        scales, zeros = np.atleast_1d(one.scale), np.atleast_1d(one.zero_point)
        pairs = sorted({(float(s), int(z)) for s, z in zip(scales, zeros, strict=True)})
        # The widest and the finest: those between reach no farther.
        found += [Affine(np.float32(s)[()] * np.ones([], np.float32), np.asarray(z, zeros.dtype)) for s, z in (pairs[0], pairs[-1])]
    return found


def _widest(affines: Sequence[Affine]) -> Affine:
    low = min(float(one.scale) * -int(one.zero_point) for one in affines)
    high = max(float(one.scale) * (255 - int(one.zero_point)) for one in affines)
    step = (high - low) / 255
    return Affine(np.asarray(step, np.float32), np.asarray(np.rint(-low / step), np.uint8))


def _remove(node: ir.Node) -> None:
    if node.graph is not None and not any(value.uses() or value.is_graph_output() for value in node.outputs):
        node.graph.remove(node, safe=True)
