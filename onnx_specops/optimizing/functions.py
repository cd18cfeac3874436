"""Elu and Gelu. In ONNX Runtime 1.32, Elu takes ten times as long as one pass of Elementwise, and Gelu twice as long."""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto, TensorProto

from onnx_specops.optimizing.graph import Graph
from onnx_specops.optimizing.nodes import attributes_of, is_a

_PROGRAMS = {"Elu": "elu 0", "Gelu": "gelu 0"}
_LEAST_SIZE = 2048
"""With fewer elements, calling a kernel takes longer than the computation."""


def use_elementwise(graph: Graph) -> None:
    """Replace Elu and Gelu by the domain's Elementwise.

    Conditions:

    - The elements are float32. There are at least `_LEAST_SIZE` elements, or their number is unknown.
    - Elu's alpha is 1.
    - Gelu is exact, and its input is not a sum: ONNX Runtime computes Gelu of a sum in one pass.
    """
    for node in graph.nodes:
        if is_a(node, *_PROGRAMS) and len(node.input) == 1 and _is_supported(graph, node):
            graph.become(node, "Elementwise", node.input[0], np.zeros([], np.float32), program=_PROGRAMS[node.op_type])


def _is_supported(graph: Graph, node: NodeProto) -> bool:
    given, stated = graph.type_of(node.input[0]), attributes_of(node)
    if given.element_type != TensorProto.FLOAT or given.dims is None:
        return False
    if all(given.dims) and math.prod(given.dims) < _LEAST_SIZE:
        return False
    if stated.get("alpha", 1.0) != 1 or stated.get("approximate", b"none") != b"none":
        return False
    return node.op_type != "Gelu" or not _is_sum(graph, node)


def _is_sum(graph: Graph, node: NodeProto) -> bool:
    """Return whether ONNX Runtime adds a bias and computes Gelu in one pass."""
    added = graph.producer(node, 0)
    return added is not None and is_a(added, "Add") and any(graph.constant(added, index) is not None for index in (0, 1))
