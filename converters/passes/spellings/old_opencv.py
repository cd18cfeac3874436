"""Forms that OpenCV 4 computes with floats of two or more dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from converters.passes.spellings.padding import GatheredPads
from converters.passes.spellings.scalars import BROADCASTING
from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_array, constant_list, producer_of


class ComparedBooleans(Workaround):
    """Convert a Cast to booleans to a comparison with 0. OpenCV (4.14.0) does not convert the elements."""

    operators = frozenset(("Cast",))
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, result = node.inputs[0], node.outputs[0]
        if not isinstance(x, Value) or x.dtype is None or x.dtype == ir.DataType.BOOL or result.dtype != ir.DataType.BOOL:
            return None
        if constant_array(x) is not None or not (x.dtype.is_floating_point() or x.dtype.is_integer()):
            return None
        if _is_logic(x.producer()):
            return None
        zero = op.const([0] if x.rank else 0, x.dtype)
        return [op.Greater(op.Abs(x), zero)]


class TruncatedQuotients(Workaround):
    """Truncate the quotients of integers. OpenCV (4.14.0) computes integers as floats, and keeps the fraction."""

    operators = frozenset(("Div",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        a, b = node.inputs
        if not isinstance(a, Value) or not isinstance(b, Value) or a.dtype is None or not a.dtype.is_integer():
            return None
        quotient = op.Div(op.Cast(a, to=ir.DataType.FLOAT), op.Cast(b, to=ir.DataType.FLOAT))
        return [op.Cast(op.Mul(op.Sign(quotient), op.Floor(op.Abs(quotient))), to=a.dtype)]


class IndicesOfRows(Workaround):
    """Convert one-dimensional computed indices of a Gather to a row. OpenCV 4.14 has no one-dimensional tensors."""

    operators = frozenset(("Gather",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, indices, result = node.inputs[0], node.inputs[1], node.outputs[0]
        if not isinstance(x, Value) or not isinstance(indices, Value) or not isinstance(result, Value):
            return None
        if indices.rank != 1 or constant_array(indices) is not None or not result.is_static or not indices.is_static:
            return None
        found = op.Gather(x, _row(op, indices), axis=node.attributes.get_int("axis", 0))
        return [op.Reshape(found, [dim or 0 for dim in result.dims or ()])]


class IndicesInShape(Workaround):
    """Reshape the constant indices of a Gather instead of its result.

    OpenCV (4.14.0) rejects the Reshape. Such constants are, for example, indices of relative positions.
    """

    operators = frozenset(("Reshape",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        gather, result = producer_of(node.inputs[0], "Gather"), node.outputs[0]
        if gather is None or not isinstance(result, Value) or not result.is_static:
            return None
        data, indices = gather.inputs
        table, places = constant_array(data), constant_array(indices)
        if data is None or table is None or places is None or places.ndim != 1:
            return None
        axis = gather.attributes.get_int("axis", 0) % table.ndim
        dims, before, after = [dim or 0 for dim in result.dims or ()], table.shape[:axis], table.shape[axis + 1 :]
        shape = dims[axis : len(dims) - len(after)]
        if dims != [*before, *shape, *after] or not shape:
            return None
        return [op.Gather(data, places.reshape(shape), axis=axis)]


_OF_ONE = frozenset((
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Elu", "Erf", "Exp",
    "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round",
    "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu",
))  # fmt: skip
"""Functions of one element."""


class OperandsOfRows(Workaround):
    """Convert one-dimensional operands of arithmetic, and inputs of functions, Concat, Softmax and TopK, to rows.

    OpenCV (4.14.0) stores some vectors as columns and others as rows. It broadcasts them to a matrix, or rejects them.
    Softmax of a column is 1, and TopK of a column crashes.
    """

    operators = BROADCASTING | _OF_ONE | {"Concat", "Softmax", "TopK"}

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        result = node.outputs[0]
        if node.op_type == "Concat":
            return self._joined(op, node)
        if node.op_type not in BROADCASTING:
            return self._of_one(op, node)
        if not isinstance(result, Value) or not result.is_static or not result.rank:
            return None
        operands = [value for value in node.inputs if isinstance(value, Value) and value.is_static]
        computed = [value for value in operands if constant_array(value) is None]
        if len(operands) != len(node.inputs) or all(value.rank != 1 for value in computed):
            return None
        rows = [_row(op, value) if value.rank == 1 and value in computed else value for value in operands]
        row = op.node(node.op_type, *rows, **attributes_of(node))
        return [op.Reshape(row, [dim or 0 for dim in result.dims or ()]) if result.rank == 1 else row]

    def _joined(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        values = [value for value in node.inputs if isinstance(value, Value) and value.is_static and value.rank == 1]
        if len(values) != len(node.inputs) or all(constant_array(value) is not None for value in values):
            return None
        arrays = [constant_array(value) for value in values]
        rows = [
            _row(op, value) if array is None else op.const(array[None]) for value, array in zip(values, arrays, strict=True)
        ]
        return [op.Reshape(op.Concat(*rows, axis=1), [-1])]

    def _of_one(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or not x.is_static or x.rank != 1 or constant_array(x) is not None:
            return None
        attributes = attributes_of(node) | ({"axis": 1} if node.op_type == "Softmax" else {})
        if node.op_type == "TopK":
            rows = op.TopK(_row(op, x), *node.inputs[1:], **(attributes | {"axis": 1}), outputs=2)
            return [op.Reshape(row, [-1]) for row in rows]
        row = op.node(node.op_type, _row(op, x), *node.inputs[1:], **attributes)
        return [op.Reshape(row, [dim or 0 for dim in x.dims or ()])]


class ClippedNumbers(Workaround):
    """Clip integers as floats. OpenCV (4.14.0) interprets the bits of the limits as floats."""

    operators = frozenset(("Clip",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x = node.inputs[0]
        if not isinstance(x, Value) or x.dtype is None or not x.dtype.is_integer():
            return None
        numbers = [None if value is None else op.Cast(value, to=ir.DataType.FLOAT) for value in node.inputs]
        return [op.Cast(op.Clip(*numbers), to=x.dtype)]


class SingleUnsqueezes(Workaround):
    """Convert an Unsqueeze along several axes to a Reshape. OpenCV 4.14 supports only one axis."""

    operators = frozenset(("Unsqueeze",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, result = node.inputs[0], node.outputs[0]
        if not isinstance(x, Value) or not isinstance(result, Value) or not result.is_static:
            return None
        if constant_array(x) is not None or not x.rank or (result.rank or 0) - x.rank < 2:
            return None
        return [op.Reshape(x, [dim or 0 for dim in result.dims or ()])]


class ReflectedImages(Workaround):
    """Convert a three-dimensional tensor to an image with one row for a Pad with the mode reflect or edge.

    OpenCV 4.14 pads images only.
    """

    operators = frozenset(("Pad",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, pads = node.inputs[0], constant_list(node.inputs[1])
        mode = node.attributes.get_string("mode", "constant")
        if not isinstance(x, Value) or x.rank != 3 or pads is None or mode not in ("edge", "reflect"):
            return None
        if len(node.inputs) > 3 and node.inputs[3] is not None:
            return None
        if len(pads) != 6 or any(pads[:2]) or any(pads[3:5]):
            return None
        images = op.Pad(op.Unsqueeze(x, [2]), [0, 0, 0, pads[2], 0, 0, 0, pads[5]], mode=mode)
        return [op.Squeeze(images, [2])]


class TransposedConvolutionsOfImages(Workaround):
    """Convert a one-dimensional ConvTranspose to a ConvTranspose of an image with one row. OpenCV 4.14 computes a wrong
    size.
    """

    operators = frozenset(("ConvTranspose",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, weights = node.inputs[0], constant_array(node.inputs[1])
        if not isinstance(x, Value) or x.rank != 3 or weights is None or "output_shape" in node.attributes:
            return None
        if node.attributes.get_string("auto_pad", "NOTSET") != "NOTSET":
            return None
        attributes = attributes_of(node)
        for name, fill in (("strides", 1), ("dilations", 1), ("kernel_shape", 1), ("output_padding", 0)):
            if name in attributes:
                attributes[name] = [fill, *attributes[name]]
        if "pads" in attributes:
            first, last = attributes["pads"]
            attributes["pads"] = [0, first, 0, last]
        constant = op.const(weights[:, :, None])
        images = op.ConvTranspose(op.Unsqueeze(x, [2]), constant, *node.inputs[2:], **attributes)
        return [op.Squeeze(images, [2])]


class GatheredReflections(GatheredPads):
    """Convert Pad with the mode reflect or edge to Gather if it pads volumes, channels or batches. OpenCV 4.14 pads
    images only."""

    def converted(self, mode: str, rank: int, padded: Sequence[int]) -> bool:
        return rank > 4 or any(axis < 2 for axis in padded)


def _is_logic(node: ir.Node | None) -> bool:
    """Return whether a node computes with booleans as 0 and 1, as `ArithmeticLogic` does."""
    if node is None or node.domain or node.op_type not in ("Max", "Mul"):
        return False
    casts = [None if value is None else value.producer() for value in node.inputs]
    sources = [cast.inputs[0] for cast in casts if cast is not None and cast.op_type == "Cast"]
    return len(sources) == len(casts) and all(one is not None and one.dtype == ir.DataType.BOOL for one in sources)


def _row(op: Builder, line: Value) -> Value:
    result: Value = op.Reshape(line, [1, *(dim or 0 for dim in line.dims or ())])
    return result


class ExpandedScalars(Workaround):
    """Convert a Reshape of a scalar to Expand, and a Reshape to a scalar to a Reshape to one dimension.

    OpenCV 4.14 has no scalars and rejects both. Arithmetic operators broadcast the vector of one element. Scalar outputs of
    the model become one-dimensional.
    """

    operators = frozenset(("Reshape", "Squeeze", "Unsqueeze"))
    equal = False

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, result = node.inputs[0], node.outputs[0]
        if not isinstance(x, Value) or not isinstance(result, Value) or x.const_value is not None or not result.is_static:
            return None
        if x.rank == 0 and result.rank:
            return [op.Expand(x, [1] * result.rank)]
        if result.rank != 0 or not x.rank or (scalars := _scalars_from(result)) is None:
            return None
        for value in scalars:
            value.shape = ir.Shape([1])
        return [op.Reshape(x, [1])]


def _scalars_from(value: ir.Value) -> list[ir.Value] | None:
    """Return a scalar and those that are computed from it; ``None`` if a node does not broadcast them."""
    found = [value]
    for scalar in found:
        for use in scalar.uses():
            result = use.node.outputs[0]
            if use.node.domain or use.node.op_type not in BROADCASTING or result.shape is None:
                return None
            if not len(result.shape) and result not in found:
                found.append(result)
    return found


class ScatteredColumns(Workaround):
    """Convert the data of one-dimensional ScatterElements and ScatterND to a column. OpenCV 4.14 has no vectors."""

    operators = frozenset(("ScatterElements", "ScatterND"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        data, indices, updates = node.inputs
        if not all(isinstance(value, Value) and value.is_static for value in (data, indices, updates)):
            return None
        assert isinstance(data, Value) and isinstance(indices, Value) and isinstance(updates, Value)
        if data.rank != 1:
            return None
        column = op.Reshape(data, [*(data.dims or ()), 1])
        attributes = attributes_of(node)
        if node.op_type == "ScatterND":
            written = op.ScatterND(column, indices, op.Reshape(updates, [*(updates.dims or ()), 1]), **attributes)
        else:
            rows, values = (op.Reshape(value, [*(value.dims or ()), 1]) for value in (indices, updates))
            written = op.ScatterElements(column, rows, values, **(attributes | {"axis": 0}))
        return [op.Reshape(written, [*(data.dims or ())])]
