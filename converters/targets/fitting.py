"""The parts of a graph that a target does not support, node by node, with reasons and remedies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from converters.targets.target import CONTROL_FLOW, Target
from onnx_specops.domain import CONTRIB_DOMAIN, DOMAIN
from onnx_specops.graphs import all_nodes, origin
from onnx_specops.kernel_types import type_name

_ELSEWHERE = "convert it for another target, or without --target"


@dataclass(frozen=True)
class UnsupportedItem:
    """A node or input that a target does not support.

    Attributes:
        node_name: the name of the node, or of an input of the model.
        operator: its operator; ``""`` for an input.
        reason: the missing feature of the target.
        remedy: an instruction for the user.
        origin: the layer or object that the node was emitted for.
    """

    node_name: str
    operator: str
    reason: str
    remedy: str = _ELSEWHERE
    origin: object | None = None


class TargetError(ValueError):
    """A target does not support a graph.

    Attributes:
        target: the target.
        untaken: everything that is not supported.
        taken: operator -> the number of supported nodes.
    """

    def __init__(self, target: Target, untaken: Sequence[UnsupportedItem], taken: Mapping[str, int]) -> None:
        self.target, self.untaken, self.taken = target, tuple(untaken), dict(taken)
        super().__init__(f"{target.title} does not support it: " + "; ".join(u.reason for u in untaken))


def check(model: ir.Model, target: Target) -> None:
    """Raise `TargetError` with everything in a finished graph that the target does not support.

    If ONNX Runtime loads the file, its CPU provider computes the operators that a device lacks, but not the forms that it
    computes incorrectly.
    """
    if target.onnxruntime:
        target = replace(target, operators=None, lacks={}, types=None, control_flow=CONTROL_FLOW)
    if untaken := list(unsupported_by(model, target)):
        raise TargetError(target, untaken, supported_by(model, target))


def unsupported_by(model: ir.Model, target: Target) -> Iterator[UnsupportedItem]:
    """Yield everything in a graph that a target does not support."""
    if target.static:
        yield from _open_inputs(model, target)
    for node in all_nodes(model.graph):
        if (reason := why_unsupported(node, target)) is not None:
            yield UnsupportedItem(node.name or "", node.op_type, *reason, origin=origin(node))


def why_unsupported(node: ir.Node, target: Target) -> tuple[str, str] | None:
    """Return the reason why a target does not support a node, and the remedy; ``None`` if it supports the node."""
    operator = node.op_type
    if node.domain == DOMAIN:
        return (
            None
            if target.domain
            else (f"the operator onnx_specops.{operator}, which has no equivalent in standard ONNX", _ELSEWHERE)
        )
    if node.domain == CONTRIB_DOMAIN:
        return None if target.contrib else (f"ONNX Runtime's own operator {operator}", _ELSEWHERE)
    if node.domain and target.operators is not None and f"{node.domain}.{operator}" not in target.operators:
        return f"the operator {node.domain}.{operator}", _ELSEWHERE
    if operator in target.lacks:
        return f"the operator {operator}", target.lacks[operator] or _ELSEWHERE
    if operator in CONTROL_FLOW - target.control_flow:
        return (
            f"the operator {operator}: it does not support {_missing_flow(operator, target)}",
            _ELSEWHERE,
        )
    if not node.domain and target.operators is not None and operator not in target.operators:
        return f"the operator {operator}", _ELSEWHERE
    for limit in target.limits:
        if not node.domain and operator in limit.operators and limit.applies(node):
            return f"{operator} {limit.reason}{', which it computes incorrectly' if limit.silent else ''}", _ELSEWHERE
    if target.types is not None:
        for value in (*node.inputs, *node.outputs):
            if value is not None and value.dtype is not None and type_name(value.dtype)[7:-1] not in target.types:
                return f"{operator} of the type {type_name(value.dtype)[7:-1]}", _ELSEWHERE
    return None


def _missing_flow(operator: str, target: Target) -> str:
    if not target.control_flow:
        return "control flow"
    return "this kind of loop" if "Loop" in target.control_flow else "loops"


def _open_inputs(model: ir.Model, target: Target) -> Iterator[UnsupportedItem]:
    for value in model.graph.inputs:
        if value.is_initializer():
            continue
        if value.shape is None:
            yield UnsupportedItem(
                value.name or "", "", "inputs of unknown rank", f"set its shape: --input-shape {value.name}=..."
            )
        elif not all(isinstance(dim, int) for dim in value.shape):
            dims = "x".join(str(dim) if isinstance(dim, int) else "N" for dim in value.shape)
            remedy = f"set its shape: --input-shape {value.name}={dims}, with a number for each N"
            yield UnsupportedItem(value.name or "", "", "inputs with dynamic dimensions", remedy)


def supported_by(model: ir.Model, target: Target) -> Counter[str]:
    """Return the number of nodes of each operator that a target supports."""
    return Counter(node.op_type for node in all_nodes(model.graph) if why_unsupported(node, target) is None)


def left_by(model: ir.Model, target: Target) -> Counter[str]:
    """Return the number of nodes of each operator that a target leaves to ONNX Runtime's CPU provider."""
    return Counter(node.op_type for node in all_nodes(model.graph) if why_unsupported(node, target) is not None)
