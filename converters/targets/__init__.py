"""Targets: each place that models are converted for, and what a file for it may have."""

from collections.abc import Mapping

from converters.targets.engines import ENGINES
from converters.targets.onnxruntime import ONNXRUNTIME, RUNTIMES
from converters.targets.target import Target

TARGETS: Mapping[str, Target] = {target.name: target for target in (*RUNTIMES, *ENGINES)}
"""All targets by name."""

__all__ = ["ONNXRUNTIME", "TARGETS", "Target", "find_target"]


def find_target(name: str) -> Target:
    """The target of a name.

    Raises:
        ValueError: there is none.
    """
    if name not in TARGETS:
        raise ValueError(f"target is one of {', '.join(TARGETS)}, not {name!r}")
    return TARGETS[name]
