"""Rules for the layers of IR 2 to 7: as those of `converters.openvino.rule`, in a table of their own.

A layer type of these versions has one rule, whatever the file's version: where versions spell attributes differently, it
takes all spellings. Blobs of a layer are its last inputs, called ``weights`` and ``biases``; they have one dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from converters.errors import Malformed, Unsupported
from converters.inference_engine.translate import VERSIONS, version_name
from converters.openvino.rule import Context, Rule, register_versions
from onnx_specops.building import Builder, Value

_rules: dict[str, LayerRule] = {}
_BLOBS = ("weights", "biases")
_NOT_IMPLEMENTED = ("SpatialTransformer", "Upsampling")  # it infers the shapes of their outputs only


class LayerRule(Rule):
    """A rule with what its signature says. Its inputs are float32, except blobs, and integers where the layer takes them."""

    integers = False

    def __call__(self, op: Builder, inputs: Sequence[Value], context: Context) -> list[Value]:
        names = [*self.input_names, *[""] * len(inputs)]
        return super().__call__(op, [self._input(op, *pair) for pair in zip(names, inputs, strict=False)], context)

    def _input(self, op: Builder, name: str, value: Value) -> Value:
        if name in _BLOBS or value.dtype in (None, ir.DataType.FLOAT):
            return value
        if self.integers and value.dtype is not None and not value.dtype.is_floating_point():
            return value
        return op.Cast(value, to=ir.DataType.FLOAT)


def layer(*types: str, integers: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function for layer types, which are not told apart by capitals.

    Args:
        types: the types.
        integers: whether the layer takes integers as they are. Others compute in float32.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for kind in types:
            found = LayerRule(function, kind, "IR 2 to 7")
            found.integers = integers
            _rules[kind.lower()] = found
        return function

    return register


def layer_rules() -> dict[str, LayerRule]:
    """The rules by layer type, as the Inference Engine spells it."""
    return {found.operation: found for found in sorted(_rules.values(), key=lambda rule: rule.operation)}


def find_layer_rule(layer_type: str) -> LayerRule:
    """The rule for a layer type; raises `Unsupported` where there is none."""
    found = _rules.get(layer_type.lower())
    if layer_type in _NOT_IMPLEMENTED:
        raise Unsupported(
            f"the Inference Engine has no implementation of {layer_type} for the CPU: there is nothing to compare with",
            "convert the original model",
        )
    if found is None:
        raise Unsupported(
            f"no rule converts {layer_type} of IR 2 to 7",
            "'specops inspect' lists what converts; layers of an extension need the extension's source",
        )
    return found


register_versions([version_name(version) for version in VERSIONS], find_layer_rule)


def shaped(op: Builder, blob: Value, dims: Sequence[int]) -> Value:
    """A blob in float32, with other dimensions; raises `Malformed` where it has another number of elements."""
    try:
        value = op.Reshape(blob, list(dims))
    except Exception as error:
        raise Malformed(f"its blob of {blob.dims} elements does not make {list(dims)}") from error
    return value if value.dtype == ir.DataType.FLOAT else op.Cast(value, to=ir.DataType.FLOAT)
