"""Convert a network, run it in every form, and compare it with OpenVINO."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from converters.openvino import convert
from converters.validation.compare import Tolerance, compare
from tests.conformance import providers
from tests.conformance.check import run_model
from tests.conformance.models.noise import distance_from_itself, relative_l2
from tests.conformance.oracle import Oracle, OracleError, Outputs

TOLERANCE = Tolerance(relative=1e-3, absolute=1e-4)


@dataclass
class Result:
    """The result of a network.

    Attributes:
        layers, nodes: the numbers of layers in the IR and of nodes in the ONNX model.
        custom: the domain's operators in the model.
        error: the largest relative error (L2 norm) of any output in any run and form.
        allowed: the limit for `error` if the network amplifies rounding: OpenVINO's own sensitivity.
        problems: why it does not agree.
        seconds: the time of the conversion.
    """

    layers: int = 0
    nodes: int = 0
    custom: list[str] = field(default_factory=list)
    error: float = 0.0
    allowed: float | None = None
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


def check_ir(path: Path, runs: Sequence[dict[str, np.ndarray]], oracle: Oracle, *, amplifies: bool = False) -> Result:
    """Convert an IR once and run it with each of ``runs``.

    Args:
        path: the .xml.
        runs: the inputs by name, in the model's order.
        oracle: the process with OpenVINO.
        amplifies: whether outputs may differ as much as OpenVINO's do after changing inputs or weights by 1e-6.
    """
    arrays = [list(run.values()) for run in runs]
    started = time.perf_counter()
    _, report = convert(path, path.with_suffix(".onnx"))
    result = Result(sum(report.layers.values()), sum(report.nodes.values()), report.custom_operators)
    result.seconds = time.perf_counter() - started
    expected = oracle.run(path, arrays, names=("cpu",))["cpu"]
    if isinstance(expected, OracleError):
        result.problems.append(f"OpenVINO: {expected}")
        return result
    if silent := [i for i, outputs in enumerate(zip(*expected, strict=True)) if all(_is_constant(o) for o in outputs)]:
        result.problems.append(f"the network is unsuitable: the outputs {silent} have one number each")
    if amplifies:
        result.allowed = distance_from_itself(path, arrays, expected, oracle)
    for kernels in ("native", "none") if report.custom_operators and providers.is_cpu() else ("none",):
        try:
            got = run_model(path.with_suffix(".onnx"), arrays, kernels)
        except Exception as error:  # any exception of a runtime is the result
            result.problems.append(f"kernels={kernels!r}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            continue
        _compare(got, expected, kernels, result)
    return result


def _is_constant(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" and array.size > 1 and bool((array == array.reshape(-1)[0]).all())


def _compare(got: Outputs, expected: Outputs, kernels: str, result: Result) -> None:
    for run, (some, others) in enumerate(zip(got, expected, strict=True)):
        for index, (a, b) in enumerate(zip(some, others, strict=True)):
            found, error = compare(a, b, TOLERANCE), relative_l2(a, b)
            result.error = max(result.error, error)
            if found.agrees or (result.allowed is not None and error <= result.allowed):
                continue
            result.problems.append(
                f"kernels={kernels!r}, run {run}, output {index}: {found.note or 'its values'} "
                f"(largest error {found.max_absolute}, relative L2 {error:.2g})"
            )
