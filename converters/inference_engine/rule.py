"""Rules for the layers of IR 2 to 7. They are similar to those of `converters.openvino.rule`, but in a separate registry.

A layer type of these versions has one rule for all versions. If versions have different names for an attribute, it accepts
all names. Blobs of a layer are its last inputs, ``weights`` and ``biases``, with one dimension.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.errors import Malformed, Unsupported, short
from converters.inference_engine.translate import VERSIONS, version_name
from converters.openvino.onnx_types import data_type
from converters.openvino.reader.graph import OutputPort
from converters.openvino.reader.shapes import same_dims
from converters.openvino.rule import Context, Rule, register_versions
from onnx_specops.building import Builder, Value

_rules: dict[str, LayerRule] = {}
_BLOBS = ("weights", "biases")
_NOT_IMPLEMENTED = ("SpatialTransformer", "Upsampling")  # it only infers the shapes of their outputs


class LayerRule(Rule):
    """A rule and its parsed signature. Inputs are float32, except blobs, and integers that the layer uses."""

    integers = False

    def __call__(self, op: Builder, inputs: Sequence[Value], context: Context) -> list[Value]:
        names = [*self.input_names, *[""] * len(inputs)]
        values = [self._input(op, *pair) for pair in zip(names, inputs, strict=False)]
        results = super().__call__(op, values, context)
        return [_stated(op, *pair) for pair in zip(results, context.layer.outputs, strict=False)]

    def parse(self, attributes: dict[str, str], remark: Callable[[str], None] = lambda message: None) -> dict[str, Any]:
        """Parse attributes as the Inference Engine does. It reads names literally, and numbers except 0 as true."""
        read: dict[str, str] = {}
        for name, text in attributes.items():
            key = name.replace("-", "_")
            if "-" not in name and key in _HYPHENATED:
                remark(f"the attribute {short(name)} of {self.operation}, which is {name.replace('_', '-')}")
                continue
            if key in read:
                raise Malformed(f"it has the attribute {key!r} twice", "check that the file is intact")
            read[key] = text
            parameter = self.attributes.get(key)
            if parameter is not None and parameter.annotation is bool:
                read[key] = _truth(name, text)
        return super().parse(read, remark)

    def _input(self, op: Builder, name: str, value: Value) -> Value:
        if name in _BLOBS or value.dtype in (None, ir.DataType.FLOAT):
            return value
        if self.integers and value.dtype is not None and not value.dtype.is_floating_point():
            return value
        return op.Cast(value, to=ir.DataType.FLOAT)


_HYPHENATED = (
    "kernel_x", "kernel_y", "stride_x", "stride_y", "pad_x", "pad_y", "pad_r", "pad_b", "dilation_x", "dilation_y",
    "pool_method", "exclude_pad", "out_size",
)  # fmt: skip


_STATED_TYPES = (ir.DataType.FLOAT, ir.DataType.INT32)


def _truth(name: str, text: str) -> str:
    lower = text.strip().lower()
    if lower in ("true", "false"):
        return lower
    number = re.match(r"[+-]?[0-9]{1,10}", lower, re.ASCII)
    if number is None:
        raise Malformed(f"its attribute {name}={text!r} is neither true nor false nor a number")
    return "true" if int(number[0]) else "false"


def _stated(op: Builder, value: Value, port: OutputPort) -> Value:
    """Return a result with the type and the shape in the file. Raise `Malformed` if the shape differs from the computed one.

    Dimensions of 1 do not count.
    """
    kind = data_type(port.element_type)
    if kind in _STATED_TYPES and value.dtype is not None and value.dtype != kind:
        value = op.Cast(value, to=kind)
    stated, dims = port.dims, value.dims
    if stated is None or dims is None or same_dims(dims, stated):
        return value
    if None not in stated and [dim for dim in stated if dim != 1] == [dim for dim in dims if dim != 1]:
        return op.Reshape(value, np.array(stated, np.int64))
    raise Malformed(
        f"its output {port.index} is {list(dims)}, but the file states {list(stated)}", "check that the file is intact"
    )


def layer(*types: str, integers: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function for layer types, ignoring case.

    Args:
        types: the types.
        integers: whether the layer uses integers directly. Others compute in float32.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for kind in types:
            found = LayerRule(function, kind, "IR 2 to 7")
            found.integers = integers
            _rules[kind.lower()] = found
        return function

    return register


def layer_rules() -> dict[str, LayerRule]:
    """Return the rules by layer type, as the Inference Engine spells it."""
    return {found.operation: found for found in sorted(_rules.values(), key=lambda rule: rule.operation)}


def find_layer_rule(layer_type: str) -> LayerRule:
    """Return the rule for a layer type. Raise `Unsupported` if there is none."""
    found = _rules.get(layer_type.lower())
    if layer_type in _NOT_IMPLEMENTED:
        raise Unsupported(
            f"the Inference Engine has no implementation of {layer_type} for the CPU, so there is no reference",
            "convert the original model",
        )
    if found is None:
        raise Unsupported(
            f"no rule converts {layer_type} of IR 2 to 7",
            "'specops inspect' lists the layers that can be converted; layers of an extension need the extension's source",
        )
    return found


register_versions([version_name(version) for version in VERSIONS], find_layer_rule)


def shaped(op: Builder, blob: Value, dims: Sequence[int]) -> Value:
    """Return a blob in float32 with other dimensions. Raise `Malformed` if the number of elements differs."""
    try:
        value = op.Reshape(blob, list(dims))
    except Exception as error:
        raise Malformed(f"its blob of {blob.dims} elements does not fit the shape {list(dims)}") from error
    return value if value.dtype == ir.DataType.FLOAT else op.Cast(value, to=ir.DataType.FLOAT)
