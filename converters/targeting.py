"""What a target takes of a model, without writing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """What a target takes of a model.

    Attributes:
        target: the target.
        opset: the opset that the file would be in; ``None`` where the target does not take the model.
        taken: how many nodes of each operator the target takes.
        untaken: how many it does not; those of a device that ONNX Runtime feeds run on the CPU.
        problems: why not, layer by layer, with the remedies.
    """

    target: Target
    opset: int | None
    taken: Mapping[str, int]
    untaken: Mapping[str, int]
    problems: Sequence[Problem] = ()


def inspect_for(
    model: str | Path,
    target: str,
    *,
    bin: str | Path | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> TargetSupport:
    """See which nodes of a model's ONNX form a target takes.

    Args:
        model: a file of a source format.
        target: the target's name.
        bin, input_shapes: as of `converters.convert.convert`.

    Raises:
        ConversionError: when the model cannot be converted for any target.
        ValueError: there is no such target.
    """
    aim = find_target(target)
    chosen: Any = target
    options = Options(target=chosen, bin=bin, input_shapes=input_shapes, with_weights=False)
    try:
        proto, report = convert_with(model, None, options)
    except ConversionError as error:
        cause = error.__cause__
        if not isinstance(cause, TargetError):
            raise
        untaken = Counter(one.operator for one in cause.untaken if one.operator)
        return TargetSupport(aim, None, dict(cause.taken), dict(untaken), error.problems)
    graph = ir.from_proto(proto)
    return TargetSupport(aim, report.opset, supported_by(graph, aim), left_by(graph, aim))
