"""Chains of element-wise nodes as `onnx_specops.Elementwise`, in one pass.

Each node of such a chain reads and writes a complete tensor, which takes longer than the computation. ONNX Runtime fuses few
of these nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.activations import gelu_function
from converters.passes.dequantization import static
from converters.passes.layouts import channels_first, channels_last
from onnx_specops.building import Builder, Value, constant_value
from onnx_specops.graphs import all_nodes, constant_array, producer_of
from onnx_specops.ops.elementwise import MOST_INSTRUCTIONS, MOST_OPERANDS
from onnx_specops.replacing import replace_value, rewriting

D = ir.DataType
_LEAST_SIZE = 2048
"""Calling a node takes as long as computing this many numbers."""

_BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Min": "min", "Max": "max", "PRelu": "prelu"}
_UNARY = {"Relu": "relu", "Sigmoid": "sigmoid", "Mish": "mish"}
_PART_OF_CONV = frozenset(("Clip", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid"))
"""Functions that ONNX Runtime computes in the convolution before them."""

_CONVOLUTIONS = frozenset(("Conv", "ConvTranspose", "Gemm", "MatMul"))
_MOVES = frozenset(("AveragePool", "Concat", "MaxPool", "Pad", "Resize", "Slice", "Split"))
"""Operators through which ONNX Runtime moves a Transpose."""

_FURTHEST = 6


@dataclass
class _Region:
    """Nodes that become one.

    Attributes:
        last: the node whose result is the output.
        nodes: all of them.
    """

    last: ir.Node
    nodes: dict[ir.Node, None] = field(default_factory=dict)

    def ordered(self) -> list[ir.Node]:
        """Return the nodes in topological order."""
        found: dict[ir.Node, None] = {}

        def visit(node: ir.Node) -> None:
            if node in found or node not in self.nodes:
                return
            for value in node.inputs:
                if value is not None and (producer := value.producer()) is not None:
                    visit(producer)
            found[node] = None

        visit(self.last)
        return list(found)

    @property
    def is_quantized(self) -> bool:
        """Whether the last node quantizes."""
        return self.last.op_type == "QuantizeLinear"


class FuseElementwise(InPlacePass):
    """Compute chains of element-wise nodes over floats by the domain's Elementwise.

    Conditions: the shapes are known. The result of the last node has at least `_LEAST_SIZE` elements. The other nodes have
    the same shape and no consumers outside the chain, except DequantizeLinear, which is then computed twice. The chain saves
    a pass over a tensor that ONNX Runtime does not save. RMS normalizations are excluded, because ONNX Runtime fuses them.
    """

    def call(self, model: ir.Model) -> PassResult:
        with rewriting(type(self).__name__, finite=True):  # functions of infinity differ
            return PassResult(model, modified=self._fuse(model) > 0)

    def _fuse(self, model: ir.Model) -> int:
        root, taken, count = Builder.of_existing(model.graph), set[ir.Node](), 0
        for node in reversed(list(all_nodes(model.graph))):
            if node in taken or node.graph is None or not _is_last(node):
                continue
            region = _grown(node, taken)
            if region is not None and _has_kernel(region):
                taken.update(region.nodes)
                continue
            if region is None or not _saves(region):
                continue
            program = _Program(Builder.before_node(node, root), _order_of_channels(region))
            if (result := program.of(region)) is None:
                continue
            old = node.outputs[0]
            level = 1.0 if region.is_quantized else 0.0
            if replace_value(old, result, tolerance=1e-3, level=level):
                taken.update(region.nodes)
                count += 1
        return count


def _is_scalar(value: ir.Value | None, dtype: type) -> bool:
    constant = constant_array(value)
    return constant is not None and constant.ndim == 0 and constant.dtype == dtype


def _is_last(node: ir.Node) -> bool:
    """Return whether a node may be the last one."""
    shape = static(node.outputs[0]) if node.outputs else None
    if shape is None or prod(shape) < _LEAST_SIZE:
        return False
    if node.op_type == "QuantizeLinear" and not node.domain:
        return len(node.inputs) == 3 and _is_scalar(node.inputs[1], np.float32) and _is_scalar(node.inputs[2], np.uint8)
    return _is_elementwise(node)


def _is_dequantizer(node: ir.Node) -> bool:
    """Return whether a node dequantizes 8 bits with one scale."""
    if (
        node.domain
        or node.op_type != "DequantizeLinear"
        or len(node.inputs) != 3
        or constant_array(node.inputs[0]) is not None
    ):
        return False
    return _is_scalar(node.inputs[1], np.float32) and _is_scalar(node.inputs[2], np.uint8)


def _is_elementwise(node: ir.Node) -> bool:
    """Return whether an instruction computes a node in float32."""
    if node.domain or len(node.outputs) != 1 or node.outputs[0].dtype != D.FLOAT:
        return False
    shape = static(node.outputs[0])
    if shape is None or any(value is not None and value.dtype == D.FLOAT and static(value) is None for value in node.inputs):
        return False
    if _is_rms_normalization(node):
        return False
    first = node.inputs[0].producer() if node.inputs and node.inputs[0] is not None else None
    if node.op_type in _PART_OF_CONV and first is not None and not first.domain and first.op_type in _CONVOLUTIONS:
        return False
    stated = node.attributes
    if node.op_type in _BINARY:
        return len(node.inputs) == 2
    match node.op_type:
        case "Elu":
            return stated.get_float("alpha", 1.0) == 1
        case "Pow":
            return _is_square(node)
        case "Clip":
            return all(value is None or constant_array(value) is not None for value in node.inputs[1:])
    return node.op_type in (*_UNARY, "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu")


def _is_square(node: ir.Node) -> bool:
    """Return whether a Pow multiplies numbers by themselves. A square before a ReduceMean, as in normalizations, is
    excluded.
    """
    x, exponent = node.inputs[0], constant_array(node.inputs[1])
    shape = None if x is None else static(x)
    if shape is None or exponent is None or exponent.size != 1 or exponent.ndim > len(shape):
        return False
    return float(exponent.reshape(())) == 2 and not any(user.op_type == "ReduceMean" for user in node.outputs[0].consumers())


def _is_rms_normalization(node: ir.Node) -> bool:
    """Return whether a node is the Div or the Mul of an RMS normalization. ONNX Runtime fuses these with the nodes before.

    `CanonicalizeRMSNormalization` has its only form.
    """
    if node.op_type == "Mul" and not node.domain:
        scale, quotient = constant_array(node.inputs[1]), producer_of(node.inputs[0], "Div")
        return scale is not None and scale.ndim == 1 and quotient is not None and _is_rms_normalization(quotient)
    if node.op_type != "Div" or node.domain or len(node.outputs[0].uses()) != 1:
        return False
    root = producer_of(node.inputs[1], "Sqrt")
    total = None if root is None else producer_of(root.inputs[0], "Add")
    mean = None if total is None else producer_of(total.inputs[0], "ReduceMean")
    square = None if mean is None else producer_of(mean.inputs[0], "Pow")
    return square is not None and square.inputs[0] is node.inputs[0]


def _grown(last: ir.Node, taken: set[ir.Node]) -> _Region | None:
    """Return the chain that ends with a node; ``None`` if it is only that node."""
    region = _Region(last, {last: None})
    shape = static(last.outputs[0])
    changed = True
    while changed:
        changed = False
        for member in list(region.nodes):
            if member.op_type == "DequantizeLinear":
                continue
            for value in member.inputs[: 1 if member.op_type == "QuantizeLinear" else None]:
                node = None if value is None else value.producer()
                if value is None or node is None or node in region.nodes or node in taken or node.graph is not last.graph:
                    continue
                if not _is_dequantizer(node):
                    inside = all(user in region.nodes for user in value.consumers()) and not value.is_graph_output()
                    if not inside or not _is_elementwise(node) or static(value) != shape:
                        continue
                region.nodes[node] = None
                if not _fits(region):
                    del region.nodes[node]
                    continue
                changed = True
    return region if len(region.nodes) > 1 else None


def _fits(region: _Region) -> bool:
    """Return whether the operands and instructions of a chain are few enough."""
    instructions = sum(2 if node.op_type == "HardSwish" else 1 for node in region.nodes) - region.is_quantized
    operands: set[object] = set()
    for node in region.nodes:
        if node.op_type in ("HardSigmoid", "HardSwish", "LeakyRelu"):
            operands |= {(node, 0), (node, 1)}
        for value in node.inputs[: 1 if node.op_type == "QuantizeLinear" else None]:
            if value is not None and value.producer() not in region.nodes:
                operands.add(value)
            elif value is None:
                operands.add((node, 2))
    return instructions <= MOST_INSTRUCTIONS and len(operands) <= MOST_OPERANDS


def _saves(region: _Region) -> bool:
    """Return whether the chain saves a pass over a tensor of its size."""
    size = prod(static(region.last.outputs[0]) or ())
    passes = [node for node in region.nodes if prod(static(node.outputs[0]) or ()) == size]
    computing = [node for node in region.nodes if node.op_type not in ("QuantizeLinear", "DequantizeLinear")]
    return len(passes) > 1 and bool(computing)


def _has_kernel(region: _Region) -> bool:
    """Return whether ONNX Runtime has a kernel for a chain, which is one node between integers.

    ONNX Runtime also removes a Relu if the quantization clips the same numbers.
    """
    if not region.is_quantized:
        return False
    zero = constant_array(region.last.inputs[2])
    computing = [node for node in region.nodes if node.op_type not in ("QuantizeLinear", "DequantizeLinear")]
    before = None if region.last.inputs[0] is None else region.last.inputs[0].producer()
    if before is not None and before.op_type == "Relu" and zero is not None and not zero.any() and len(computing) > 1:
        computing.remove(before)
    if len(computing) != 1 or computing[0].op_type not in ("Add", "Mul", "LeakyRelu", "Sigmoid"):
        return False
    return all(value is not None and value.producer() in region.nodes for value in computing[0].inputs)


# -- the layout ------------------------------------------------------------------------------------------------------------


def _order_of_channels(region: _Region) -> Sequence[int] | None:
    """Return the permutation that moves channels from the last dimension to the second one, if integers before or after the
    chain have them last; otherwise ``None``.

    ONNX Runtime would move a Transpose through the chain, which is now one node. A chain that quantizes inputs of the graph
    stays before the Transpose, which then moves bytes.
    """
    shape = static(region.last.outputs[0]) or ()
    rank = len(shape)
    if not 3 <= rank <= 5:
        return None
    order = channels_first(rank)
    inputs = [value for node in region.nodes for value in node.inputs if value is not None and static(value) == shape]
    outside = [value for value in inputs if value.producer() not in region.nodes]
    inverse = channels_last(rank)
    if region.is_quantized and outside and all(value.is_graph_input() and value.dtype == D.FLOAT for value in outside):
        return None
    is_last = any(has_moved(value, order) for value in outside)
    return order if is_last or _reaches(region.last.outputs[0], inverse, _after) else None


def has_moved(value: ir.Value, order: Sequence[int]) -> bool:
    """Return whether a Transpose of a given order precedes a value, possibly separated by nodes that it can move through."""
    return _reaches(value, order, _before)


def _reaches(
    value: ir.Value, order: Sequence[int], neighbors: Callable[[ir.Value], Iterator[tuple[ir.Node, ir.Value]]]
) -> bool:
    """Return whether a Transpose of a given order precedes or follows a value, possibly separated by nodes that it can move
    through.
    """
    found = [value]
    for _ in range(_FURTHEST):
        following: list[ir.Value] = []
        for one in found:
            for node, other in neighbors(one):
                if node.op_type == "Transpose" and not node.domain:
                    if list(node.attributes.get_ints("perm", ())) == list(order):
                        return True
                elif not node.domain and (
                    node.op_type in _MOVES or node.op_type in ("QuantizeLinear", "DequantizeLinear") or _is_elementwise(node)
                ):
                    following.append(other)
        found = following[:64]
    return False


def _before(value: ir.Value) -> Iterator[tuple[ir.Node, ir.Value]]:
    node = value.producer()
    if node is not None:
        for given in node.inputs:
            if given is not None and constant_array(given) is None:
                yield node, given


def _after(value: ir.Value) -> Iterator[tuple[ir.Node, ir.Value]]:
    for node in value.consumers():
        for result in node.outputs:
            yield node, result


# -- the node --------------------------------------------------------------------------------------------------------------


class _Program:
    """The program of a chain while it is written.

    Args:
        op: emits before the chain's last node.
        order: see `_order_of_channels`.
    """

    def __init__(self, op: Builder, order: Sequence[int] | None) -> None:
        self.op, self.order = op, order
        self.lines: list[str] = []
        self.operands: list[ir.Value] = []
        self.numbers: dict[object, int] = {}
        self.rank = 0

    def of(self, region: _Region) -> Value | None:
        """Emit the node; return its result, or ``None`` if there are too many operands."""
        last = region.last
        shape = static(last.outputs[0])
        assert shape is not None
        self.rank = len(shape)
        scale: ir.Value | None = None
        zero: ir.Value | None = constant_value(np.zeros([], np.float32))
        for node in region.ordered():
            if node.op_type == "QuantizeLinear":
                _, scale, zero = node.inputs
                continue
            for line in self._lines(node):
                self.lines.append(line)
            self.numbers[node.outputs[0]] = MOST_OPERANDS + len(self.lines) - 1
        if len(self.operands) > MOST_OPERANDS or len(self.lines) > MOST_INSTRUCTIONS:
            return None
        first, *rest = self.operands
        result = self.op.specops.Elementwise(first, zero, scale, *rest, program=";".join(self.lines))
        if self.order is None:
            result.shape = ir.Shape(shape)
            return result
        result.shape = ir.Shape([shape[axis] for axis in self._inverse()])
        moved: Value = self.op.Transpose(result, perm=list(self.order))
        moved.shape = ir.Shape(shape)
        return moved

    def _inverse(self) -> list[int]:
        assert self.order is not None
        return [self.order.index(axis) for axis in range(self.rank)]

    def _number(self, value: ir.Value | np.ndarray | float) -> int:
        """Return the number of an operand."""
        if isinstance(value, float):
            value = np.asarray(value, np.float32)
        key = ("constant", value.tobytes()) if isinstance(value, np.ndarray) else value
        if (known := self.numbers.get(key)) is not None:
            return known
        given = constant_value(value) if isinstance(value, np.ndarray) else value
        self.numbers[key] = len(self.operands)
        self.operands.append(self._placed(given))
        return self.numbers[key]

    def _placed(self, value: ir.Value) -> ir.Value:
        """Return an operand in the order of the result."""
        shape = static(value)
        if self.order is None or shape is None or prod(shape) == 1:
            return value
        inverse = self._inverse()
        if (constant := constant_array(value)) is not None:
            whole = constant.reshape((1,) * (self.rank - constant.ndim) + constant.shape)
            return constant_value(np.ascontiguousarray(whole.transpose(inverse)))
        node = value.producer()
        if (
            node is not None
            and node.op_type == "Transpose"
            and list(node.attributes.get_ints("perm", ())) == list(self.order)
        ):
            assert node.inputs[0] is not None
            return node.inputs[0]
        if len(shape) < self.rank:
            moved: Value = self.op.Reshape(value, [*[1] * (self.rank - len(shape)), *shape])
            moved = self.op.Transpose(moved, perm=inverse)
        else:
            moved = self.op.Transpose(value, perm=inverse)
        return moved

    def _lines(self, node: ir.Node) -> Iterator[str]:
        x, *others = node.inputs
        assert x is not None
        stated = node.attributes
        if node.op_type == "DequantizeLinear":
            scale, zero = (self._number(value) for value in others if value is not None)
            yield f"dequantize {self._number(x)} {scale} {zero}"
            return
        first = self._number(x)
        if node.op_type in _BINARY:
            assert others[0] is not None
            yield f"{_BINARY[node.op_type]} {first} {self._number(others[0])}"
            return
        match node.op_type:
            case "Pow":
                yield f"mul {first} {first}"
            case "Clip":
                limits = [*others, None, None][:2]
                low, high = (
                    np.float32(otherwise) if limit is None else constant_array(limit)
                    for limit, otherwise in zip(limits, (-np.inf, np.inf), strict=True)
                )
                assert low is not None and high is not None
                yield f"clip {first} {self._number(np.asarray(low))} {self._number(np.asarray(high))}"
            case "LeakyRelu":
                yield f"prelu {first} {self._number(stated.get_float('alpha', 0.01))}"
            case "HardSigmoid":
                alpha, beta = stated.get_float("alpha", 0.2), stated.get_float("beta", 0.5)
                yield f"hard_sigmoid {first} {self._number(alpha)} {self._number(beta)}"
            case "HardSwish":
                yield f"hard_sigmoid {first} {self._number(1 / 6)} {self._number(0.5)}"
                yield f"mul {first} {MOST_OPERANDS + len(self.lines) - 1}"
            case "Gelu":
                yield f"{gelu_function(node)} {first}"
            case "Elu":
                yield f"elu {first}"
            case other:
                yield f"{_UNARY[other]} {first}"
