"""Comparison of runtimes, shared by subcommands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from converters.cli.console import progress
from onnx_specops.runtime.errors import MissingExtraError

if TYPE_CHECKING:
    import onnx

    from converters.validation.compare import Tolerance
    from converters.validation.inputs import Arrays
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
    bin: str | Path | None = None,
) -> Validation:
    """Call `converters.validation.validate.validate` and show its progress."""
    from converters.validation.validate import validate as validate_model

    with progress(as_json) as step:
        return validate_model(
            model,
            onnx_model,
            bin=bin,
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


@dataclass(frozen=True)
class Checking:
    """The comparison of ``specops convert --check``.

    Attributes:
        tolerance: the allowed difference of floats.
        seed: the seed of random inputs.
        inputs: the inputs; for a single model only.
        shapes: the shapes of random inputs by name. Each of several models uses those of its own inputs.
        extensions: the extensions that OpenVINO needs to run the model.
    """

    tolerance: Tolerance
    seed: int = 0
    inputs: Path | None = None
    shapes: Mapping[str, list[int]] = field(default_factory=dict)
    extensions: Sequence[str] = ()

    def compare(self, model: Path, target: Path, as_json: bool, bin: str | Path | None = None) -> Validation:
        """Compare OpenVINO and ONNX Runtime on one model."""
        from converters.cli.options import Runtime

        runtimes = [runtime.value for runtime in Runtime if runtime is not Runtime.reference]
        return compare_runtimes(
            model,
            target,
            as_json,
            self.inputs,
            dict(self.shapes),
            self.seed,
            self.tolerance,
            runtimes,
            extensions=self.extensions,
            bin=bin,
        )


@dataclass(frozen=True)
class Sampling:
    """The source of inputs: a file, ``inputs.npz`` next to the model, or random numbers.

    Attributes:
        inputs: a file of inputs, or a folder of samples, whose first sample is used.
        shapes: the shapes of random inputs by name.
        seed: the seed of random inputs.
    """

    inputs: Path | None = None
    shapes: Mapping[str, list[int]] = field(default_factory=dict)
    seed: int = 0

    def inputs_of(self, model: Path, converted: onnx.ModelProto) -> Arrays:
        """Return the inputs of a model by name, as a check uses them."""
        from converters.validation.arrays import random_inputs
        from converters.validation.inputs import ModelInputs, load_samples
        from converters.validation.onnx_model import input_specs

        specs = input_specs(converted)
        beside = model.with_name("inputs.npz")
        found = self.inputs or (beside if beside.is_file() and not self.shapes else None)
        if found is None:
            return random_inputs(specs, self.seed, self.shapes)
        return next(iter(load_samples(found, ModelInputs.by_onnx(converted, specs)).values()))


def require_openvino() -> None:
    """Raise an error if OpenVINO, which checks compare with, is not installed."""
    import importlib.util

    if importlib.util.find_spec("openvino") is None:
        raise MissingExtraError("openvino", "--check", "openvino")
