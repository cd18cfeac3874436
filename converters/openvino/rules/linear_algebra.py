"""Matrix multiplications, sums of products (Einsum) and inverses."""

from __future__ import annotations

import math
import re
import string
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.reader.shapes import same_dims
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._precision import INTEGERS_IN_FLOAT32, saturating_8_bits
from converters.openvino.rules._shapes import match_shapes
from onnx_specops.building import Builder, Value

_FLOATS = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)
_INTEGERS = replace(INTEGERS_IN_FLOAT32, reference="", specification="computes in their type", follows="specification")


@rule(
    "MatMul",
    departs=[
        Departure(
            where="an empty dimension to sum over, of data of unknown dimensions",
            cpu="fails",
            reference="gives zeros",
            follows="reference",
        ),
        Departure(
            where="an empty dimension to sum over, with a constant",
            cpu="leaves the result uninitialized",
            reference="gives zeros",
            follows="reference",
        ),
        Departure(
            where="constants of 8 bits and less with scales in bf16",
            cpu="rounds them to bf16 when they are scaled",
            specification="does not define the precision; the scaled constants stay in float32",
            follows="specification",
        ),
        Departure(
            where="constants of 8 bits with scales or zero points that differ along the dimension to sum over and not along "
            "the other one",
            cpu="uses those of other elements, or crashes",
            reference="uses those of each element",
            follows="reference",
        ),
        Departure(
            where="constants of 4 bits with a scale or zero point for each element of the dimension to sum over",
            cpu="uses those of other elements, or crashes",
            reference="uses those of each element",
            follows="reference",
        ),
        INTEGERS_IN_FLOAT32,
    ],
)
def mat_mul(op: Builder, a: Value, b: Value, *, transpose_a: bool = False, transpose_b: bool = False):
    """MatMul-1: ONNX's MatMul of the transposed operands. Those of rank 1 are never transposed.

    A vector times a transposed matrix is the matrix times the vector, without a Transpose. Sums of 8-bit integers saturate.
    """
    return saturating_8_bits(op, lambda a, b: _product(op, a, b, transpose_a, transpose_b), a, b)


def _product(op: Builder, a: Value, b: Value, transpose_a: bool, transpose_b: bool) -> Value:
    if (transpose_a and b.rank == 1 and a.rank != 1) or (transpose_b and a.rank == 1 and b.rank != 1):
        return op.MatMul(b, a)
    return op.MatMul(_transposed(op, a, transpose_a), _transposed(op, b, transpose_b))


def _transposed(op: Builder, x: Value, transpose: bool) -> Value:
    """Swap the last two dimensions of ``x`` if it has them."""
    if not transpose or x.rank == 1:
        return x
    if x.rank is not None:
        return op.Transpose(x, perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2])

    def swap(op: Builder) -> Value:
        shape = op.Shape(x)
        rows, columns = op.Shape(x, start=-2, end=-1), op.Shape(x, start=-1)
        matrices = op.Reshape(x, op.Concat([-1], rows, columns, axis=0))
        return op.Reshape(
            op.Transpose(matrices, perm=[0, 2, 1]), op.Concat(op.Slice(shape, [0], [-2]), columns, rows, axis=0)
        )

    return op.if_(op.Equal(op.Size(op.Shape(x)), 1), lambda op: x, swap)


@rule("GroupedMatMul", since="opset17")
def grouped_mat_mul(op: Builder, mat_a: Value, mat_b: Value, offsets: Value | None = None):
    """GroupedMatMul-17: ``mat_b`` is ``[groups, N, K]``."""
    match_shapes(mat_a=(mat_a, "G M K" if offsets is None else "T K"), mat_b=(mat_b, "G N K"), offsets=(offsets, "G"))
    if offsets is None:
        return op.MatMul(mat_a, op.Transpose(mat_b, perm=[0, 2, 1]))
    return op.specops.GroupedMatMul(mat_a, mat_b, offsets)


@rule("Inverse", since="opset14")
def inverse(op: Builder, data: Value, *, adjoint: bool = False):
    """Inverse-14."""
    if data.dims is not None and (len(data.dims) < 2 or not same_dims(data.dims[-1:], data.dims[-2:-1])):
        raise Malformed(f"its input of the shape {data.dims} does not contain square matrices")
    return op.specops.Inverse(data, adjoint=int(adjoint))


@rule(
    "Einsum",
    since="opset7",
    departs=[
        Departure(
            name="ellipsis",
            where="an ellipsis in operands without a common letter, without a sum, such as `...i,...j->...ij`",
            cpu="multiplies other elements, or fails if the dimensions do not allow it",
            specification="multiplies elements at equal positions in the ellipsis",
            follows="specification",
        ),
        _INTEGERS,
        Departure(
            name="integers",
            where="i8 and u8 of three or more operands, if the product of some is beyond the range of the type",
            cpu="saturates it, too",
            specification="does not define it; only the result is expected to saturate",
            follows="specification",
        ),
    ],
)
def einsum(op: Builder, *inputs: Value, equation: str):
    """Einsum-7: in explicit form with lowercase letters, which all runtimes support. In the implicit form, uppercase letters
    precede lowercase letters. The result of 8-bit integers saturates.
    """
    if not inputs:
        raise Malformed(f"its equation {equation!r} has no operands")
    return saturating_8_bits(op, lambda *wide: _einsum(op, wide, equation.replace(" ", "")), *inputs)


def _einsum(op: Builder, inputs: tuple[Value, ...], equation: str) -> Value:
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(inputs):
        raise Malformed(f"its equation {equation!r} has {len(terms)} operands, but the layer has {len(inputs)} inputs")
    if any(not re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", term) for term in (*terms, right)):
        raise Malformed(f"its equation {equation!r} is not well-formed")
    letters = left.replace(".", "").replace(",", "")
    if not arrow:
        right = "..." * ("..." in left) + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if not set(right.replace(".", "")) <= set(letters):
        raise Malformed(f"the output of its equation {equation!r} names a dimension that no operand has")
    # ONNX needs ellipses of equal rank; letters in their place may differ.
    known = list(string.ascii_lowercase + string.ascii_uppercase)
    names = {c: known.pop(0) for c in dict.fromkeys(letters)}
    if ranked := all(operand.rank is not None for operand in inputs):
        hidden = [(x.rank or 0) - len(t.replace(".", "")) for x, t in zip(inputs, terms, strict=True)]
        surplus = any(count and "..." not in term for count, term in zip(hidden, terms, strict=True))
        if surplus or min(hidden) < 0 or max(hidden) > len(known):
            raise Malformed(f"its equation {equation!r} does not fit the ranks of its inputs")
        widest = max(hidden)
        dots = ["".join(known[widest - count : widest]) for count in hidden] + ["".join(known[:widest])]
    else:
        dots = ["..."] * (len(terms) + 1)
    renamed = [
        re.sub(r"[A-Za-z]", lambda match: names[match[0]], term.replace("...", "\0")).replace("\0", hidden_letters)
        for term, hidden_letters in zip((*terms, right), dots, strict=True)
    ]
    result = _as_sum(op, inputs, renamed)
    inputs, renamed = _summed(op, inputs, renamed)
    if result is None:
        result = _as_mat_mul(op, inputs, renamed)
    if result is None:
        result = _as_product(op, inputs, renamed)
    if result is not None:
        return result
    types = None
    if ranked:  # ONNX's inference ignores that dimensions of 1 broadcast
        sizes = _letter_sizes(inputs, renamed)
        types = [(inputs[0].dtype, [sizes[letter] for letter in renamed[-1]])]
    return op.Einsum(*inputs, equation=",".join(renamed[:-1]) + "->" + renamed[-1], types=types)


def _letter_sizes(inputs: Sequence[Value], terms: Sequence[str]) -> dict[str, int | None]:
    """Return the size of each letter's dimension; raise `Malformed` if operands disagree."""
    known: dict[str, set[int | None]] = defaultdict(set)
    for operand, term in zip(inputs, terms, strict=False):
        for letter, size in zip(term, operand.dims or [None] * len(term), strict=True):
            known[letter].add(size)
    for sizes in known.values():
        if len(sizes - {None, 1}) > 1:
            raise Malformed(f"its operands have {sorted(s for s in sizes if s is not None)} elements along one dimension")
    return {letter: next(iter(sizes - {None, 1}), None if None in sizes else 1) for letter, sizes in known.items()}


def _as_sum(op: Builder, inputs: Sequence[Value], terms: Sequence[str]) -> Value | None:
    """Return an equal sum and transposition of one operand without a diagonal. Some runtimes do not support its Einsum."""
    if len(inputs) != 1 or "." in terms[0] or len(set(terms[0])) != len(terms[0]) or inputs[0].dtype not in _FLOATS:
        return None
    term, result = terms
    summed = [axis for axis, letter in enumerate(term) if letter not in result]
    left = "".join(letter for letter in term if letter in result)
    return _ordered(op, op.ReduceSum(inputs[0], summed, keepdims=0) if summed else inputs[0], left, result)


def _summed(op: Builder, inputs: tuple[Value, ...], terms: list[str]) -> tuple[tuple[Value, ...], list[str]]:
    """Sum each of several operands over the dimensions that no other term has, as OpenVINO does. OpenCV (5.0.0) fails for an
    Einsum with such dimensions. Diagonals, integers, and operands that only have such dimensions stay.
    """
    if len(inputs) < 2 or any("." in term for term in terms):
        return inputs, terms
    operands, left = list(inputs), list(terms)
    for index, (x, term) in enumerate(zip(inputs, terms, strict=False)):
        others = "".join(terms[:index] + terms[index + 1 :])
        alone = [axis for axis, letter in enumerate(term) if letter not in others and term.count(letter) == 1]
        if alone and len(alone) < len(term) and x.dtype in _FLOATS:
            operands[index] = op.ReduceSum(x, alone, keepdims=0)
            left[index] = "".join(letter for letter in term if letter in others or term.count(letter) > 1)
    return tuple(operands), left


def _as_mat_mul(op: Builder, inputs: Sequence[Value], terms: Sequence[str]) -> Value | None:
    """Return an equal MatMul for a sum of two operands, if it exists."""
    if len(inputs) != 2 or "." in terms[-1] or len(terms[0]) < 2 or len(set(terms[0])) != len(terms[0]):
        return None
    left, right, result = terms
    batch, row, inner, column = left[:-2], left[-2], left[-1], result[-1:]
    if column in left or inner not in right or result != batch + row + column:
        return None
    sizes = [
        dict(zip(term, x.dims, strict=True)).get(inner) for term, x in zip(terms, inputs, strict=False) if x.dims is not None
    ]
    if len(set(sizes) - {None}) > 1:  # a dimension of 1 broadcasts
        return None
    if right == batch + inner + column:
        return op.MatMul(*inputs)
    if right == batch + column + inner:
        axes = range(len(right))
        return op.MatMul(inputs[0], op.Transpose(inputs[1], perm=[*axes[:-2], axes[-1], axes[-2]]))
    return None


@dataclass(frozen=True)
class _Product:
    """A matrix multiplication that equals a sum of products of two operands.

    Attributes:
        left, right: the letters of the operands, as ``[*leading, row, *inner]`` and ``[*shared, *inner, *columns]``.
        leading: the letters of the product's leading dimensions.
        shared: those of them that the right operand has.
        inner: the letters of the dimensions that are summed over.
        columns: the letters that only the right operand has.
        swapped: whether the right operand is the first one of the equation.
    """

    left: str
    right: str
    leading: str
    row: str
    inner: str
    columns: str
    swapped: bool

    @property
    def shared(self) -> str:
        return "".join(letter for letter in self.leading if letter in self.right)

    @property
    def letters(self) -> str:
        """The letters of the product."""
        return self.leading + self.row + self.columns


def _products(terms: Sequence[str]) -> Iterator[_Product]:
    """Iterate over the products that equal an equation, for each order of the operands."""
    *operands, result = terms
    if len(operands) != 2 or any("." in term or len(set(term)) != len(term) for term in terms):
        return
    for swapped in (False, True):
        left, right = reversed(operands) if swapped else operands
        inner = "".join(letter for letter in left if letter in right and letter not in result)
        rows = [letter for letter in result if letter not in right]
        columns = "".join(letter for letter in result if letter not in left)
        if not inner or not rows or not columns or set(left + right) != set(result + inner):
            continue
        leading = "".join(letter for letter in result if letter in left and letter != rows[-1])
        yield _Product(left, right, leading, rows[-1], inner, columns, swapped)


def _as_product(op: Builder, inputs: Sequence[Value], terms: Sequence[str]) -> Value | None:
    """Return an equal MatMul of transposed and reshaped operands, if it exists.

    Conditions: each dimension over which the sum runs has the same known size in both operands, or an unknown one in both if
    it is the only one. Merged dimensions have known sizes other than 0. If an unknown size is 1 in one operand only, MatMul
    fails at run time, where OpenVINO broadcasts.
    """
    if any(x.dims is None or x.dtype not in _FLOATS for x in inputs):
        return None
    sizes = [dict(zip(term, x.dims or (), strict=True)) for term, x in zip(terms, inputs, strict=False)]
    possible = []
    for product in _products(terms):
        of_left, of_right = reversed(sizes) if product.swapped else sizes
        merged = product.columns if len(product.columns) > 1 else ""
        if len(product.inner) > 1 or of_right[product.inner] is not None:
            merged += product.inner
        if all(of_left[letter] == of_right[letter] for letter in product.inner) and all(
            of_right[letter] for letter in merged
        ):
            possible.append(product)
    if not possible:
        return None

    def cost(product: _Product) -> tuple[bool, bool, bool]:
        weights = inputs[product.swapped].const_value is not None
        return weights, product.letters != terms[-1], len(product.columns) > 1

    product = min(possible, key=cost)
    left, right = reversed(inputs) if product.swapped else inputs
    of_right = sizes[not product.swapped]
    inner = math.prod(of_right[letter] or 0 for letter in product.inner)
    columns = [of_right[letter] or 0 for letter in product.columns]
    a = _ordered(op, left, product.left, product.leading + product.row + product.inner)
    if len(product.inner) > 1:
        a = op.Reshape(a, [*[0] * (len(product.leading) + 1), inner])
    b = _ordered(op, right, product.right, product.shared + product.inner + product.columns)
    if len(product.inner) > 1 or len(columns) > 1:
        whole = columns if len(columns) == 1 else [math.prod(columns)]
        b = op.Reshape(b, [*[0] * len(product.shared), inner, *(whole if whole[0] else [-1])])
    first = product.leading.find(product.shared[0]) if product.shared else len(product.leading)
    if missing := [i - first for i, letter in enumerate(product.leading) if i > first and letter not in product.shared]:
        b = op.Unsqueeze(b, missing)
    result = op.MatMul(a, b)
    if len(columns) > 1:
        result = op.Reshape(result, [*[0] * (len(product.leading) + 1), *columns])
    return _ordered(op, result, product.letters, terms[-1])


def _ordered(op: Builder, x: Value, letters: str, order: str) -> Value:
    """Return a tensor with its dimensions in another order."""
    return x if letters == order else op.Transpose(x, perm=[letters.index(letter) for letter in order])
