"""The padding of convolutions and poolings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes, attributes_of
from onnx_specops.replacing import replace_value


class ExplicitPads(InPlacePass):
    """Convert ``output_shape`` to the equivalent ``pads`` and ``output_padding`` if the sizes are known.

    OpenCV (5.0.0), tract (0.23) and MNN (3.6) ignore the attribute, or distribute the padding differently.
    """

    def call(self, model: ir.Model) -> PassResult:
        found = [
            node
            for node in all_nodes(model.graph)
            if not node.domain and node.op_type == "ConvTranspose" and "output_shape" in node.attributes
        ]
        return PassResult(model, modified=sum(_padded(node) for node in found) > 0)


def _padded(node: ir.Node) -> bool:
    x, w = node.inputs[0], node.inputs[1]
    if not isinstance(x, Value) or not isinstance(w, Value) or not x.is_static or not w.is_static:
        return False
    sizes, kernel = [dim or 0 for dim in (x.dims or [])[2:]], [dim or 0 for dim in (w.dims or [])[2:]]
    count = len(sizes)
    wanted = list(node.attributes.get_ints("output_shape", ()))[-count:]
    strides = list(node.attributes.get_ints("strides", ()) or [1] * count)
    dilations = list(node.attributes.get_ints("dilations", ()) or [1] * count)
    more = list(node.attributes.get_ints("output_padding", ()) or [0] * count)
    upper = node.attributes.get_string("auto_pad", "NOTSET") == "SAME_UPPER"
    totals = [
        stride * (size - 1) + extra + (k - 1) * dilation + 1 - result
        for stride, size, extra, k, dilation, result in zip(strides, sizes, more, kernel, dilations, wanted, strict=True)
    ]
    extras = [extra + max(0, -total) for extra, total in zip(more, totals, strict=True)]
    if any(extra >= max(stride, dilation) for extra, stride, dilation in zip(extras, strides, dilations, strict=True)):
        return False
    totals = [max(0, total) for total in totals]
    less, greater = [total // 2 for total in totals], [total - total // 2 for total in totals]
    for name in ("output_shape", "auto_pad"):
        node.attributes.pop(name, None)
    node.attributes.add(ir.AttrInt64s("pads", [*less, *greater] if upper else [*greater, *less]))
    if any(extras):
        node.attributes.add(ir.AttrInt64s("output_padding", extras))
    return True


class SymmetricPads(InPlacePass):
    """Move asymmetric padding of a pooling to a Pad before it.

    MNN (3.6) has one number for both ends. pnnx (2026) takes the padding at the beginning for both.
    """

    def call(self, model: ir.Model) -> PassResult:
        found = [node for node in all_nodes(model.graph) if not node.domain and node.op_type in ("AveragePool", "MaxPool")]
        root = Builder.of_existing(model.graph)
        return PassResult(model, modified=sum(_even(node, root) for node in found) > 0)


def _even(node: ir.Node, root: Builder) -> bool:
    x, pads = node.inputs[0], list(node.attributes.get_ints("pads", ()) or ())
    half = len(pads) // 2
    auto = node.attributes.get_string("auto_pad", "NOTSET")
    if not isinstance(x, Value) or not isinstance(node.graph, ir.Graph):
        return False
    if auto.startswith("SAME"):
        found = _same(node, x, upper=auto == "SAME_UPPER")
        if found is None:
            return False
        pads, half = found, len(found) // 2
    if (pads[:half] == pads[half:] and (half < 3 or not any(pads))) and not auto.startswith("SAME"):
        return False
    if node.attributes.get_int("ceil_mode", 0) or len(node.outputs) > 1 or x.dtype != ir.DataType.FLOAT:
        return False
    if node.op_type == "MaxPool":
        value = float(np.finfo(np.float32).min)
    elif node.attributes.get_int("count_include_pad", 0) or not any(pads):
        value = 0.0
    else:
        return _divide_again(node, root, x, pads)
    _pad_before(node, root, x, pads, value)
    return True


def _divide_again(node: ir.Node, root: Builder, x: Value, pads: list[int]) -> bool:
    """Multiply the means of windows with padding, so that they are those of the elements without padding."""
    kernel, half = list(node.attributes.get_ints("kernel_shape", ())), len(pads) // 2
    result = node.outputs[0]
    if not x.is_static or not isinstance(result, Value) or not result.is_static or not isinstance(node.graph, ir.Graph):
        return False
    strides = list(node.attributes.get_ints("strides", ()) or [1] * half)
    dilations = list(node.attributes.get_ints("dilations", ()) or [1] * half)
    factors = np.ones(1, np.float32)
    sizes, counts = (list((value.dims or [])[2:]) for value in (x, result))
    for size, count, begin, k, step, apart in zip(sizes, counts, pads, kernel, strides, dilations, strict=False):
        places = np.arange(count or 0)[:, None] * step - begin + np.arange(k) * apart
        within = ((places >= 0) & (places < (size or 0))).sum(1)
        if not within.all():
            return False
        factors = factors[..., None] * np.float32(k) / within.astype(np.float32)
    op = Builder.before_node(node, root)
    attributes = attributes_of(node) | {"pads": [0] * len(pads), "auto_pad": None, "count_include_pad": None}
    padded = op.Pad(x, [0, 0, *pads[:half], 0, 0, *pads[half:]])
    means = op.node("AveragePool", padded, types=[(result.dtype, result.dims)], **attributes)
    if not replace_value(result, op.Mul(means, op.const(factors[None]))):
        return False
    node.graph.remove(node, safe=True)
    return True


def _pad_before(node: ir.Node, root: Builder, x: Value, pads: list[int], *value: float) -> None:
    """Move the padding of a node to a Pad of ``x`` before it, with the given number or 0."""
    half = len(pads) // 2
    op = Builder.before_node(node, root)
    node.replace_input_with(0, op.Pad(x, [0, 0, *pads[:half], 0, 0, *pads[half:]], *value))
    node.attributes.pop("auto_pad", None)
    node.attributes.add(ir.AttrInt64s("pads", [0] * len(pads)))


def _same(node: ir.Node, x: Value, *, upper: bool) -> list[int] | None:
    """Return the pads that are equivalent to ``auto_pad``."""
    kernel = list(node.attributes.get_ints("kernel_shape", ()))
    strides = list(node.attributes.get_ints("strides", ()) or [1] * len(kernel))
    dilations = list(node.attributes.get_ints("dilations", ()) or [1] * len(kernel))
    if not x.is_static:
        return None
    totals = [
        max(0, (-(-(size or 0) // step) - 1) * step + (k - 1) * apart + 1 - (size or 0))
        for size, k, step, apart in zip((x.dims or [])[2:], kernel, strides, dilations, strict=True)
    ]
    less, greater = [total // 2 for total in totals], [total - total // 2 for total in totals]
    return [*less, *greater] if upper else [*greater, *less]


class CountedPads(InPlacePass):
    """Move the padding of an AveragePool that counts it to a Pad before it. OpenCV 4.14 does not count it."""

    def call(self, model: ir.Model) -> PassResult:
        root = Builder.of_existing(model.graph)
        count = 0
        for node in list(all_nodes(model.graph)):
            pads = list(node.attributes.get_ints("pads", ()) or ())
            if node.domain or node.op_type != "AveragePool" or not any(pads) or not isinstance(node.graph, ir.Graph):
                continue
            x = node.inputs[0]
            counted = node.attributes.get_int("count_include_pad", 0) and not node.attributes.get_int("ceil_mode", 0)
            if counted and isinstance(x, Value):
                _pad_before(node, root, x, pads)
                node.attributes.pop("count_include_pad", None)
                count += 1
        return PassResult(model, modified=count > 0)


class SymmetricPads1D(InPlacePass):
    """Move asymmetric padding of a one-dimensional Conv to a Pad before it. OpenCV 4.14 pads both ends as the beginning."""

    def call(self, model: ir.Model) -> PassResult:
        root = Builder.of_existing(model.graph)
        count = 0
        for node in list(all_nodes(model.graph)):
            pads = list(node.attributes.get_ints("pads", ()) or ())
            x = node.inputs[0] if node.inputs else None
            if node.domain or node.op_type != "Conv" or not isinstance(x, Value) or not isinstance(node.graph, ir.Graph):
                continue
            if len(pads) == 2 and pads[0] != pads[1]:
                _pad_before(node, root, x, pads)
                count += 1
        return PassResult(model, modified=count > 0)


class UnpaddedPointwise(InPlacePass):
    """Move the padding of a Conv whose kernel has one element to a Pad before it.

    OpenCV reads out of bounds for such a padding (5.0.0), or pads the wrong end (4.14.0).
    """

    def call(self, model: ir.Model) -> PassResult:
        root = Builder.of_existing(model.graph)
        count = 0
        for node in list(all_nodes(model.graph)):
            pads = list(node.attributes.get_ints("pads", ()) or ())
            if node.domain or node.op_type != "Conv" or not any(pads) or not isinstance(node.graph, ir.Graph):
                continue
            x, w = node.inputs[:2]
            if isinstance(x, Value) and isinstance(w, Value) and w.dims and all(dim == 1 for dim in w.dims[2:]):
                _pad_before(node, root, x, pads)
                count += 1
        return PassResult(model, modified=count > 0)


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
