"""Einstein's sums, inverses, images out of columns."""

from __future__ import annotations

import math
import re
import string
from collections import defaultdict
from collections.abc import Sequence

import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.reader.shapes import same_dims
from converters.openvino.rule import rule
from converters.openvino.rules._indices import dim, flat_range, product, vector
from onnx_specops.building import Builder, Value


@rule("Inverse", since="opset14")
def inverse(op: Builder, data: Value, *, adjoint: bool = False):
    """Inverse-14."""
    if data.dims is not None and (len(data.dims) < 2 or not same_dims(data.dims[-1:], data.dims[-2:-1])):
        raise Malformed(f"its input of the shape {data.dims} does not hold square matrices")
    return op.specops.Inverse(data, adjoint=int(adjoint))


@rule("Einsum", since="opset7")
def einsum(op: Builder, *inputs: Value, equation: str):
    """Einsum-7: written out and in small letters, which every runtime knows; in the implicit form capitals go first."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(inputs):
        raise Malformed(f"its equation {equation!r} has {len(terms)} operands, the layer {len(inputs)} inputs")
    if any(not re.fullmatch(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*", term) for term in (*terms, right)):
        raise Malformed(f"its equation {equation!r} is not well-formed")
    letters = left.replace(".", "").replace(",", "")
    if not arrow:
        right = "..." * ("..." in left) + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if not set(right.replace(".", "")) <= set(letters):
        raise Malformed(f"the output of its equation {equation!r} names what no operand has")
    # ONNX wants all ellipses to stand for as many dimensions; letters in their place need not.
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
    if (result := _product(op, inputs, renamed)) is not None:
        return result
    types = None
    if ranked:  # ONNX's inference overlooks that dimensions of 1 are broadcast
        sizes = _sizes(inputs, renamed)
        types = [(inputs[0].dtype, [sizes[letter] for letter in renamed[-1]])]
    return op.Einsum(*inputs, equation=",".join(renamed[:-1]) + "->" + renamed[-1], types=types)


def _sizes(inputs: Sequence[Value], terms: Sequence[str]) -> dict[str, int | None]:
    """The size of each letter's dimension; raises `Malformed` where operands do not agree on it."""
    known: dict[str, set[int | None]] = defaultdict(set)
    for operand, term in zip(inputs, terms, strict=False):
        for letter, size in zip(term, operand.dims or [None] * len(term), strict=True):
            known[letter].add(size)
    for sizes in known.values():
        if len(sizes - {None, 1}) > 1:
            raise Malformed(f"its operands have {sorted(s for s in sizes if s is not None)} elements along one dimension")
    return {letter: next(iter(sizes - {None, 1}), None if None in sizes else 1) for letter, sizes in known.items()}


def _product(op: Builder, inputs: Sequence[Value], terms: Sequence[str]) -> Value | None:
    """The MatMul that a sum of two operands is, where it is one."""
    if len(inputs) != 2 or "." in terms[-1] or len(terms[0]) < 2 or len(set(terms[0])) != len(terms[0]):
        return None
    left, right, result = terms
    batch, row, inner, column = left[:-2], left[-2], left[-1], result[-1:]
    if column in left or result != batch + row + column:
        return None
    if right == batch + inner + column:
        return op.MatMul(*inputs)
    if right == batch + column + inner:
        axes = range(len(right))
        return op.MatMul(inputs[0], op.Transpose(inputs[1], perm=[*axes[:-2], axes[-1], axes[-2]]))
    return None


@rule("Col2Im", since="opset15")
def col2im(
    op: Builder,
    data: Value,
    output_size: Value,
    kernel_size: Value,
    *,
    strides: tuple[int, ...] = (1, 1),
    dilations: tuple[int, ...] = (1, 1),
    pads_begin: tuple[int, ...] = (0, 0),
    pads_end: tuple[int, ...] = (0, 0),
):
    """Col2Im-15: with or without a batch."""
    for name, given in (("strides", strides), ("dilations", dilations), ("pads_begin", pads_begin), ("pads_end", pads_end)):
        if len(given) != 2 or min(given) < (0 if name.startswith("pads") else 1) or max(given) >= 2**31:
            raise Malformed(f"its {name} are {list(given)}")
    image, block = vector(op, output_size), vector(op, kernel_size)
    _check_columns(data, image, block, strides, dilations, list(zip(pads_begin, pads_end, strict=True)))
    # Without a batch it is one of one.
    columns = data if data.rank == 3 else op.Reshape(data, op.Concat([-1], op.Shape(data, start=-2), axis=0))
    if data.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
        pads = [*pads_begin, *pads_end]
        images = op.Col2Im(columns, image, block, strides=strides, dilations=dilations, pads=pads)
    else:
        images = _added_up(op, columns, image, block, strides, dilations, pads_begin, pads_end)
    if data.rank == 3:
        return images
    return op.Reshape(images, op.Concat(op.Shape(data, end=-2), op.Shape(images, start=1), axis=0), allowzero=1)


def _check_columns(data: Value, image: Value, block: Value, strides, dilations, pads) -> None:
    """Refuse columns of another number or size than the images have."""
    if image.dims not in (None, [2], [None]) or block.dims not in (None, [2], [None]):
        raise Malformed(f"its output_size has the shape {image.dims}, its kernel_size {block.dims}: each has two elements")
    if data.dims is None or block.constant is None:
        return
    if len(data.dims) not in (2, 3):
        raise Malformed(f"its input has the rank {len(data.dims)} instead of 2 or 3")
    kernel, (rows, columns) = block.constant.tolist(), data.dims[-2:]
    if rows is not None and (min(kernel) < 1 or rows % math.prod(kernel)):
        raise Malformed(f"its columns of {rows} elements do not hold blocks of {kernel}")
    if columns is None or image.constant is None:
        return
    reach = [dilation * (size - 1) + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    padded = [size + sum(pad) for size, pad in zip(image.constant.tolist(), pads, strict=True)]
    places = [(size - part) // stride + 1 for size, part, stride in zip(padded, reach, strides, strict=True)]
    if columns != math.prod(places):
        raise Malformed(f"it has {columns} columns where {places} blocks fit into an image")


def _added_up(op: Builder, data: Value, image: Value, block: Value, strides, dilations, pads_begin, pads_end) -> Value:
    """Col2Im of types that ONNX Runtime's own would round: every column's element is added where it belongs."""
    batch, columns = dim(op, data, 0), dim(op, data, 1)
    height, width = (op.Slice(image, [axis], [axis + 1]) for axis in (0, 1))
    at, inside = [], []
    for axis, size in enumerate((height, width)):
        kernel = op.Slice(block, [axis], [axis + 1])
        room = op.Sub(op.Add(size, pads_begin[axis] + pads_end[axis]), op.Mul(op.Sub(kernel, 1), dilations[axis]))
        blocks = op.Add(op.Div(op.Sub(room, 1), strides[axis]), 1)
        within = op.Mul(flat_range(op, kernel), dilations[axis])
        starts = op.Sub(op.Mul(flat_range(op, blocks), strides[axis]), pads_begin[axis])
        places = op.Add(op.Unsqueeze(within, [1]), op.Unsqueeze(starts, [0]))
        # Kernel and block of this axis, with room for those of the other one.
        places = op.Unsqueeze(places, [1, 3] if axis == 0 else [0, 2])
        at.append(places)
        inside.append(op.And(op.GreaterOrEqual(places, 0), op.Less(places, size)))
    area = op.Mul(height, width)
    positions = op.Where(op.And(*inside), op.Add(op.Mul(at[0], width), at[1]), area)
    channels = op.Div(columns, product(op, block))
    maps = op.Concat(op.Mul(batch, channels), op.Mul(product(op, block), dim(op, data, 2)), axis=0)
    values = op.Reshape(data, maps, allowzero=1)
    positions = op.Expand(op.Reshape(positions, [1, -1]), op.Shape(values))
    # What falls outside meets in one more element, which is then cut off.
    empty = op.Expand(op.CastLike(0, data), op.Concat(op.Slice(maps, [0], [1]), op.Add(area, 1), axis=0))
    images = op.Slice(op.ScatterElements(empty, positions, values, axis=1, reduction="add"), [0], area, [1])
    return op.Reshape(images, op.Concat(batch, channels, image, axis=0), allowzero=1)
