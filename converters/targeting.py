"""Inspection of the nodes that a target supports, without writing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir

from converters.convert import convert_with
from converters.errors import ConversionError, Problem
from converters.options import Options
from converters.targets import Target, find_target
from converters.targets.fitting import TargetError, left_by, supported_by


@dataclass(frozen=True)
class TargetSupport:
    """The nodes of a model that a target supports.

    Attributes:
        target: the target.
        opset: the opset of the file; ``None`` if the target does not support the model.
        taken: operator -> the number of supported nodes.
        untaken: operator -> the number of unsupported nodes. With a device that ONNX Runtime feeds, these run on the CPU.
        problems: the unsupported layers, with the remedies.
        assumptions: the name of a value -> the condition under which the target computes the same.
    """

    target: Target
    opset: int | None
    taken: Mapping[str, int]
    untaken: Mapping[str, int]
    problems: Sequence[Problem] = ()
    assumptions: Mapping[str, str] = field(default_factory=dict)


def inspect_for(
    model: str | Path,
    target: str,
    *,
    bin: str | Path | None = None,
    signature: str | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> TargetSupport:
    """Inspect which nodes of a model's ONNX form a target supports.

    Args:
        model: a file of a source format.
        target: the name of the target.
        bin, signature, input_shapes: see `converters.convert.convert`.

    Raises:
        ConversionError: the model cannot be converted for any target.
        ValueError: the target does not exist.
    """
    aim = find_target(target)
    chosen: Any = target
    options = Options(target=chosen, bin=bin, signature=signature, input_shapes=input_shapes, with_weights=False)
    try:
        proto, report = convert_with(model, None, options)
    except ConversionError as error:
        cause = error.__cause__
        if not isinstance(cause, TargetError):
            raise
        untaken = Counter(one.operator for one in cause.untaken if one.operator)
        return TargetSupport(aim, None, dict(cause.taken), dict(untaken), error.problems)
    graph = ir.from_proto(proto)
    return TargetSupport(aim, report.opset, supported_by(graph, aim), left_by(graph, aim), assumptions=report.assumptions)
