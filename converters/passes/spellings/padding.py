"""The padding of convolutions and poolings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from converters.passes.workaround import Workaround, again
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import attributes_of, constant_list


def constant_pads(node: ir.Node) -> tuple[list[int], ir.Value | None] | None:
    """Return the pads of a Pad of all axes with a number, if they are constant and not negative, and the number's input."""
    _, pads, *others = node.inputs
    number, axes = [*others, None, None][:2]
    ends = constant_list(pads)
    if node.attributes.get_string("mode", "constant") != "constant" or not ends or min(ends) < 0 or axes is not None:
        return None
    return ends, number


class GatheredPads(Workaround):
    """Convert some Pads that repeat elements of the data to a Gather of each padded axis."""

    operators = frozenset(("Pad",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, pads = node.inputs[0], constant_list(node.inputs[1])
        mode = node.attributes.get_string("mode", "constant")
        if not isinstance(x, Value) or x.dims is None or not pads or min(pads) < 0 or mode not in ("edge", "reflect"):
            return None
        if len(node.inputs) > 3 and node.inputs[3] is not None:
            return None
        rank = len(x.dims)
        padded = [axis for axis in range(rank) if pads[axis] or pads[axis + rank]]
        if not self.converted(mode, rank, padded) or any(not x.dims[axis] for axis in padded):
            return None
        result = x
        for axis in padded:
            around = (pads[axis], pads[axis + rank])
            places = np.pad(np.arange(x.dims[axis] or 0), around, mode="edge" if mode == "edge" else "reflect")
            result = op.Gather(result, places.astype(np.int64), axis=axis)
        return [result]

    def converted(self, mode: str, rank: int, padded: Sequence[int]) -> bool:
        """Return whether Gather replaces a Pad of some axes."""
        raise NotImplementedError


class GatheredReflection(GatheredPads):
    """Convert Pad with the mode reflect to Gather.

    IREE (3.13) does not compile 16 or more elements of padding along a single axis. Conditions: known dimensions, and
    constant pads that are not negative.
    """

    def converted(self, mode: str, rank: int, padded: Sequence[int]) -> bool:
        return mode == "reflect"


class GatheredEdges(GatheredPads):
    """Convert Pad with the mode edge along the last axis to Gather.

    QNN's HTP (2.7) pads with wrong numbers. Conditions: known dimensions, and constant pads that are not negative.
    """

    def converted(self, mode: str, rank: int, padded: Sequence[int]) -> bool:
        return mode == "edge" and rank - 1 in padded


class ExplicitPads(Workaround):
    """Convert ``output_shape`` to the equivalent ``pads`` and ``output_padding`` if the sizes are known.

    OpenCV (5.0.0), tract (0.23) and MNN (3.6) ignore the attribute, or distribute the padding differently.
    """

    operators = frozenset(("ConvTranspose",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, w = node.inputs[0], node.inputs[1]
        if "output_shape" not in node.attributes or not isinstance(x, Value) or not isinstance(w, Value):
            return None
        if not x.is_static or not w.is_static:
            return None
        sizes, kernel = [dim or 0 for dim in (x.dims or [])[2:]], [dim or 0 for dim in (w.dims or [])[2:]]
        count = len(sizes)
        wanted = list(node.attributes.get_ints("output_shape", ()))[-count:]
        strides, dilations = _steps(node, count)
        more = list(node.attributes.get_ints("output_padding", ()) or [0] * count)
        totals = [
            stride * (size - 1) + extra + (k - 1) * dilation + 1 - result
            for stride, size, extra, k, dilation, result in zip(strides, sizes, more, kernel, dilations, wanted, strict=True)
        ]
        extras = [extra + max(0, -total) for extra, total in zip(more, totals, strict=True)]
        if any(extra >= max(stride, dilation) for extra, stride, dilation in zip(extras, strides, dilations, strict=True)):
            return None
        pads = _halves([max(0, total) for total in totals], upper=_auto_pad(node) == "SAME_UPPER")
        changes = {"output_shape": None, "auto_pad": None, "pads": pads} | (
            {"output_padding": extras} if any(extras) else {}
        )
        return [again(op, node, *node.inputs, **changes)]


class SymmetricPads(Workaround):
    """Move the asymmetric padding of a pooling operator to a Pad before it.

    MNN (3.6) supports only equal padding at both ends. pnnx (2026) uses the padding at the beginning for both ends.
    """

    operators = frozenset(("AveragePool", "MaxPool"))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        x, pads = node.inputs[0], list(node.attributes.get_ints("pads", ()) or ())
        is_automatic = _auto_pad(node).startswith("SAME")
        if not isinstance(x, Value):
            return None
        if is_automatic:
            found = _same(node, x)
            if found is None:
                return None
            pads = found
        half = len(pads) // 2
        if pads[:half] == pads[half:] and (half < 3 or not any(pads)) and not is_automatic:
            return None
        if node.attributes.get_int("ceil_mode", 0) or len(node.outputs) > 1 or x.dtype != ir.DataType.FLOAT:
            return None
        if node.op_type == "MaxPool":
            return [_padded(op, node, pads, float(np.finfo(np.float32).min))]
        if node.attributes.get_int("count_include_pad", 0) or not any(pads):
            return [_padded(op, node, pads, 0.0)]
        factors = _factors(node, x, pads)
        if factors is None:
            return None
        return [op.Mul(_padded(op, node, pads, 0.0, count_include_pad=None), op.const(factors))]


def _factors(node: ir.Node, x: Value, pads: list[int]) -> np.ndarray | None:
    """Return the factors that make means of windows with padding those of the elements without padding."""
    kernel, half = list(node.attributes.get_ints("kernel_shape", ())), len(pads) // 2
    result = node.outputs[0]
    if not x.is_static or not isinstance(result, Value) or not result.is_static:
        return None
    strides, dilations = _steps(node, half)
    factors = np.ones(1, np.float32)
    sizes, counts = (list((value.dims or [])[2:]) for value in (x, result))
    for size, count, begin, k, step, apart in zip(sizes, counts, pads, kernel, strides, dilations, strict=False):
        places = np.arange(count or 0)[:, None] * step - begin + np.arange(k) * apart
        within = ((places >= 0) & (places < (size or 0))).sum(1)
        if not within.all():
            return None
        factors = factors[..., None] * np.float32(k) / within.astype(np.float32)
    return factors[None]


def _padded(op: Builder, node: ir.Node, pads: list[int], *number: float, **changes: None) -> Value:
    """Emit a node with a Pad of its first input, with the given number or 0, instead of its own padding."""
    half = len(pads) // 2
    x = op.Pad(node.inputs[0], [0, 0, *pads[:half], 0, 0, *pads[half:]], *number)
    return again(op, node, x, *node.inputs[1:], pads=[0] * len(pads), auto_pad=None, **changes)


def _auto_pad(node: ir.Node) -> str:
    return node.attributes.get_string("auto_pad", "NOTSET")


def _steps(node: ir.Node, count: int) -> tuple[list[int], list[int]]:
    """Return the strides and dilations along a number of dimensions."""
    strides, dilations = (list(node.attributes.get_ints(name, ()) or [1] * count) for name in ("strides", "dilations"))
    return strides, dilations


def _halves(totals: list[int], *, upper: bool) -> list[int]:
    """Return the pads of a total along each dimension; of an odd one, the end has more if ``upper``."""
    less, greater = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return [*less, *greater] if upper else [*greater, *less]


def _same(node: ir.Node, x: Value) -> list[int] | None:
    """Return the pads that are equivalent to ``auto_pad``."""
    kernel = list(node.attributes.get_ints("kernel_shape", ()))
    strides, dilations = _steps(node, len(kernel))
    if not x.is_static:
        return None
    totals = [
        max(0, (-(-(size or 0) // step) - 1) * step + (k - 1) * apart + 1 - (size or 0))
        for size, k, step, apart in zip((x.dims or [])[2:], kernel, strides, dilations, strict=True)
    ]
    return _halves(totals, upper=_auto_pad(node) == "SAME_UPPER")


class CountedPads(Workaround):
    """Move the padding of an AveragePool with ``count_include_pad`` to a Pad before it. OpenCV 4.14 does not count it."""

    operators = frozenset(("AveragePool",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        pads = list(node.attributes.get_ints("pads", ()) or ())
        counted = node.attributes.get_int("count_include_pad", 0) and not node.attributes.get_int("ceil_mode", 0)
        return [_padded(op, node, pads, count_include_pad=None)] if counted and any(pads) else None


class SymmetricPads1D(Workaround):
    """Move asymmetric padding of a one-dimensional Conv to a Pad before it. OpenCV 4.14 pads both ends by the padding at
    the beginning."""

    operators = frozenset(("Conv",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        pads = list(node.attributes.get_ints("pads", ()) or ())
        return [_padded(op, node, pads)] if len(pads) == 2 and pads[0] != pads[1] else None


class UnpaddedPointwise(Workaround):
    """Move the padding of a Conv whose kernel has one element to a Pad before it.

    For such padding, OpenCV 5.0.0 reads out of bounds, and OpenCV 4.14.0 pads the wrong end.
    """

    operators = frozenset(("Conv",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        pads, w = list(node.attributes.get_ints("pads", ()) or ()), node.inputs[1]
        is_pointwise = isinstance(w, Value) and bool(w.dims) and all(dim == 1 for dim in (w.dims or ())[2:])
        return [_padded(op, node, pads)] if is_pointwise and any(pads) else None


class SlicedConvTranspose(Workaround):
    """Slice the result of a ConvTranspose whose padding at the end is different. OpenCV 4.14 and
    pnnx (2026) reject such padding.
    """

    operators = frozenset(("ConvTranspose",))

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        pads = list(node.attributes.get_ints("pads", ()) or ())
        count = len(pads) // 2
        first, last = pads[:count], pads[count:]
        if first == last or "output_shape" in node.attributes:
            return None
        if node.attributes.get_string("auto_pad", "NOTSET") != "NOTSET":
            return None
        both = [min(pair) for pair in zip(first, last, strict=True)]
        whole = op.ConvTranspose(*node.inputs, **(attributes_of(node) | {"pads": both * 2}))
        starts = [pad - common for pad, common in zip(first, both, strict=True)]
        ends = [common - pad or 2**31 - 1 for pad, common in zip(last, both, strict=True)]
        return [op.Slice(whole, starts, ends, list(range(2, 2 + count)))]
