"""Targets: programs and devices that load converted models, and the part of ONNX that they support."""

from collections.abc import Mapping

from converters.targets.engines import ENGINES
from converters.targets.onnxruntime import ONNXRUNTIME, RUNTIMES
from converters.targets.target import Target

TARGETS: Mapping[str, Target] = {target.name: target for target in (*RUNTIMES, *ENGINES)}
"""All targets by name."""

__all__ = ["ONNXRUNTIME", "TARGETS", "Target", "find_target"]


def find_target(name: str) -> Target:
    """Return the target with a name.

    Raises:
        ValueError: the target does not exist.
    """
    if name not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)}, not {name!r}")
    return TARGETS[name]
