"""Comparing runtimes, for the subcommands that do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from converters.cli.console import progress
from onnx_specops.runtime.errors import MissingExtraError

if TYPE_CHECKING:
    from converters.validation.compare import Tolerance
    from converters.validation.validate import Validation


def compare_runtimes(
    model: Path,
    onnx_model: Path | None,
    as_json: bool,
    inputs: Path | None,
    shapes: dict[str, list[int]],
    seed: int,
    tolerance: Tolerance,
    runtimes: list[str],
    per_layer: bool = False,
    extensions: Sequence[str] = (),
    times: bool = False,
) -> Validation:
    """`converters.validation.validate.validate`, with its steps shown."""
    from converters.validation.validate import validate as validate_model

    with progress(as_json) as step:
        return validate_model(
            model,
            onnx_model,
            inputs=inputs,
            seed=seed,
            shapes=shapes,
            tolerance=tolerance,
            per_layer=per_layer,
            times=times,
            runtimes=runtimes,
            extensions=extensions,
            progress=step,
        )


def require_openvino() -> None:
    """Checking means comparing with OpenVINO: without it that cannot be had."""
    import importlib.util

    if importlib.util.find_spec("openvino") is None:
        raise MissingExtraError("openvino", "--check", "openvino")
