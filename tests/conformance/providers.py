"""The execution provider that the conformance suites use: ``pytest tests/conformance --provider CUDAExecutionProvider``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CPU = "CPUExecutionProvider"
OPTIONS: Mapping[str, Mapping[str, str]] = {
    # TF32 has the precision of float16. An exhaustive search of convolutions takes seconds for each shape.
    "CUDAExecutionProvider": {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"},
}
"""The options of providers that results in float32 need."""

_current = [CPU]


def choose(name: str) -> None:
    """Use a provider in this process, with the CPU provider for the nodes that it does not support."""
    _current[0] = name


def is_cpu() -> bool:
    """Return whether the CPU provider is chosen, which has the domain's kernels."""
    return _current[0] == CPU


def providers_of(name: str) -> list[Any]:
    """Return ONNX Runtime's list of providers for a provider and the CPU."""
    return [CPU] if name == CPU else [(name, dict(OPTIONS.get(name, {}))), CPU]


def chosen() -> list[Any]:
    """Return ONNX Runtime's list of providers for this process."""
    return providers_of(_current[0])
