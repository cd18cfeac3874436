"""Sums of matrix multiplications and biases that are computed together for several gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import constant_list

_MAX_DEPTH = 16


@dataclass(frozen=True)
class Columns:
    """Columns of a matrix outside of a Loop, or elements of a bias of one row.

    Attributes:
        value: the matrix.
        start: the first column.
        stop: the one after the last.
    """

    value: ir.Value
    start: int
    stop: int

    @property
    def count(self) -> int:
        return self.stop - self.start

    @property
    def rows(self) -> int | str | None:
        """The number of rows of a matrix."""
        assert self.value.shape is not None
        size = self.value.shape[0]
        return size if isinstance(size, int) else None

    def emit(self, op: Builder) -> Value:
        """Emit the columns."""
        assert isinstance(self.value, Value)
        if (self.start, self.stop) == (0, _width(self.value)):
            return self.value
        result: Value = op.Slice(self.value, [self.start], [self.stop], [-1])
        return result


@dataclass(frozen=True)
class Product:
    """A product of a matrix and columns of another.

    Attributes:
        source: the first matrix.
        columns: the columns.
    """

    source: ir.Value
    columns: Columns


@dataclass(frozen=True)
class Sum:
    """A sum of products and biases."""

    products: Sequence[Product] = ()
    biases: Sequence[Columns] = ()


def is_outside(value: ir.Value, body: ir.Graph) -> bool:
    """Return whether a value is computed outside of a Loop's body."""
    node = value.producer()
    return value not in body.inputs and (node is None or node.graph is not body)


def sum_of(value: ir.Value, body: ir.Graph) -> Sum | None:
    """Return a matrix of a Loop's body as a sum; ``None`` if other operators compute it."""
    width = _width(value)
    return None if width is None else _sum(value, body, 0, width, _MAX_DEPTH)


def _width(value: ir.Value) -> int | None:
    """Return the size of the last dimension."""
    size = value.shape[-1] if value.shape is not None and len(value.shape) else None
    return size if isinstance(size, int) else None


def _sum(value: ir.Value, body: ir.Graph, start: int, stop: int, depth: int) -> Sum | None:
    """Return columns of a matrix as a sum."""
    if is_outside(value, body):
        is_row = value.shape is not None and all(dim == 1 for dim in list(value.shape)[:-1]) and len(value.shape) <= 2
        return Sum((), [Columns(value, start, stop)]) if is_row and value.dtype == ir.DataType.FLOAT else None
    node = value.producer()
    if node is None or node.domain or not depth or value.shape is None or len(value.shape) != 2:
        return None
    first = node.inputs[0]
    if first is None:
        return None
    if node.op_type == "Add":
        return _added(node, body, start, stop, depth)
    if node.op_type == "MatMul":
        matrix = node.inputs[1]
        is_matrix = matrix is not None and is_outside(matrix, body) and matrix.shape is not None and len(matrix.shape) == 2
        if matrix is None or not is_matrix or matrix.dtype != ir.DataType.FLOAT or is_outside(first, body):
            return None
        return Sum([Product(first, Columns(matrix, start, stop))])
    moved = _first_column(node, value)
    return None if moved is None else _sum(first, body, start + moved, stop + moved, depth - 1)


def _added(add: ir.Node, body: ir.Graph, start: int, stop: int, depth: int) -> Sum | None:
    """Return the sum of two sums. Neither repeats a column."""
    products: list[Product] = []
    biases: list[Columns] = []
    for given in add.inputs:
        if given is None or _width(given) != _width(add.outputs[0]):
            return None
        part = _sum(given, body, start, stop, depth - 1)
        if part is None:
            return None
        products += part.products
        biases += part.biases
    return Sum(products, biases)


def _first_column(node: ir.Node, value: ir.Value) -> int | None:
    """Return the column of the input at which a part begins, for a Split or Slice of columns."""
    given = node.inputs[0]
    width = None if given is None else _width(given)
    own = _width(value)
    if width is None or own is None:
        return None
    if node.op_type == "Split":
        if node.attributes.get_int("axis", 0) not in (1, -1):
            return None
        widths = [_width(output) for output in node.outputs[: node.outputs.index(value)]]
        return None if None in widths else sum(size or 0 for size in widths)
    if node.op_type != "Slice":
        return None
    starts, ends, axes, steps = [*(constant_list(one) for one in node.inputs[1:]), None, None][:4]
    has_steps = len(node.inputs) > 4 and node.inputs[4] is not None
    if starts is None or ends is None or axes not in ([1], [-1]) or (has_steps and steps != [1]):
        return None
    first, end = (min(max(place + width if place < 0 else place, 0), width) for place in (starts[0], ends[0]))
    return first if end - first == own else None
