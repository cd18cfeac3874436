"""Nodes whose results ONNX Runtime (1.32) gives other dimensions than ONNX's shape inference (1.23)."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto

from onnx_specops.inlining import nested_graphs
from onnx_specops.optimizing.nodes import attributes_of, is_a

_SAME = (b"SAME_UPPER", b"SAME_LOWER")
_PARTS = 64
"""Products of at most 2**18 and of a scale that is a multiple of 1/64 are exact in float32."""


def may_differ(node: NodeProto, scales: np.ndarray | None, has_scales: bool) -> bool:
    """Return whether the inferred dimensions of a node's results may be wrong.

    - Nodes with nested graphs, whose stated types ONNX Runtime does not check.
    - Pooling with ``ceil_mode``, if a window may start in the padding at the end or after it, or with ``auto_pad``. LpPool
      ignores ``ceil_mode``.
    - ``auto_pad`` of dilated windows, and with ``output_padding``.
    - Resize by scales whose products are rounded: ONNX Runtime computes them in float32, and shape inference does not.
    - STFT.

    Args:
        node: the node.
        scales: those of a Resize if they are constant.
        has_scales: whether a Resize has an input of scales.
    """
    if is_a(node, "STFT") or any(True for _ in nested_graphs(node)):
        return True
    if is_a(node, "MaxPool", "AveragePool", "LpPool"):
        stated = attributes_of(node)
        return _pads_dilated_windows(stated) or (bool(stated.get("ceil_mode", 0)) and _may_start_outside(node, stated))
    if is_a(node, "ConvTranspose"):
        stated = attributes_of(node)
        return stated.get("auto_pad") in _SAME and any(stated.get("output_padding", ()))
    if is_a(node, "Resize") and not has_scales:
        return False
    return is_a(node, "Resize", "Upsample") and (scales is None or bool((scales * _PARTS % 1 != 0).any()))


def _pads_dilated_windows(stated: dict[str, Any]) -> bool:
    return stated.get("auto_pad") in _SAME and any(step != 1 for step in stated.get("dilations", ()))


def _may_start_outside(node: NodeProto, stated: dict[str, Any]) -> bool:
    if node.op_type == "LpPool" or stated.get("auto_pad", b"NOTSET") != b"NOTSET" or any(stated.get("pads", ())):
        return True
    window = stated.get("kernel_shape", [])
    return any(step > size for step, size in zip(stated.get("strides", ()), window, strict=False))
