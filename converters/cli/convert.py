"""``specops convert``: one model, several, or folders of them."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from converters.cli import batch
from converters.cli.checking import Checking, Sampling, require_openvino
from converters.cli.console import err, out, print_json, progress
from converters.cli.derived import parsed, with_options
from converters.cli.failures import DIFFERENCE, failures
from converters.cli.genai import convert_folder
from converters.cli.options import (
    AbsoluteTolerance,
    AllowedShare,
    Debug,
    Extensions,
    Inputs,
    Json,
    Layout,
    RelativeTolerance,
    Rules,
    Seed,
    Shapes,
)
from converters.cli.values import shapes
from converters.folders.variants import Variant
from converters.formats import format_names, recognized
from converters.options import Options
from converters.options import options as all_options
from converters.outputs import reject_inputs

if TYPE_CHECKING:
    from converters.convert import Conversion

_STDOUT = Path("-")
_FLOAT16_ROUNDING = 2.0**-10


@dataclass(frozen=True)
class Settings:
    """The settings of ``specops convert`` for all models.

    Attributes:
        options: the conversion options.
        rules: files and modules of rules.
        sampling: the inputs for the evaluation of rewrites.
    """

    options: Options
    rules: tuple[str, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)

    def convert(self, model: Path, target: Path | None, *, adapt: Any = None, **more: Any) -> Conversion:
        """Convert one model with further options; ``adapt`` is that of `converters.convert.convert_with`."""
        from converters.convert import convert_with
        from converters.plugins import load_all

        load_all(self.rules)
        options = replace(self.options, with_weights=target is None, **more)
        if options.verify is True:  # the inputs determine the shapes of values
            unverified = convert_with(model, None, replace(options, verify=False, with_weights=True), adapt=adapt).model
            options = replace(options, verify=self.sampling.inputs_of(model, unverified))
        return convert_with(model, target, options, adapt=adapt)

    @property
    def files(self) -> list[Path]:
        """The files that the settings name."""
        return [path for path in map(Path, self.rules) if path.is_file()]


@with_options
def convert(
    context: typer.Context,
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL",
            help=f"Models, or folders of models. Formats: {format_names()}.",
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="The .onnx file to write, an existing folder to write it to, or - for standard output. For several models, "
            "a folder. By default, each .onnx is written next to its model.",
            show_default=False,
        ),
    ] = None,
    *,
    rules: Rules = None,
    layout: Annotated[
        Layout | None,
        typer.Option(
            help="For a model folder, with -o: use the file names that optimum-onnx, sentence-transformers, Transformers.js "
            "and diffusion pipelines load (hosts), or the file names of the IRs (files). The default is hosts.",
            show_default=False,
        ),
    ] = None,
    variants: Annotated[
        list[Variant] | None,
        typer.Option(
            "--variant",
            help="For a model folder: also write a variant of onnx/model.onnx for Transformers.js, in float16 (fp16), or "
            "quantized by ONNX Runtime to 8 bits (q8) or 4 bits (q4). Can be given several times.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="The number of models to convert in parallel.")] = 1,
    check: Annotated[
        bool, typer.Option("--check", help="Compare the results of ONNX Runtime and OpenVINO after the conversion.")
    ] = False,
    extension: Extensions = None,
    inputs: Inputs = None,
    shape: Shapes = None,
    seed: Seed = 0,
    rtol: RelativeTolerance = 1e-3,
    atol: AbsoluteTolerance = 1e-4,
    share: AllowedShare = 0.0,
    as_json: Json = False,
    debug: Debug = False,
    **options: Any,
) -> None:
    """Convert models to ONNX. Each model becomes one .onnx file."""
    with failures(as_json, debug):
        from converters.cli import data, text

        told = parsed(options)
        fixed, random_shapes = dict(told.input_shapes or {}), shapes(shape, "--shape")
        settings = Settings(told, tuple(rules or ()), Sampling(inputs, random_shapes, seed))
        alone = {one.flag: getattr(told, one.name) for one in all_options() if one.description.one_model}
        alone["--inputs"] = inputs
        if told.form == "genai":
            if layout or variants:
                raise typer.BadParameter(
                    "it cannot be combined with --genai", param_hint="--layout" if layout else "--variant"
                )
            _only_for_one(alone | {"--input-shape": fixed, "--check": check, "--shape": random_shapes})
            convert_folder(models, None if output is None else Path(output), settings, as_json)
            return
        checking = None
        if check and told.model_api is not None:
            reason = "it compares the outputs of the network, which the wrapper of --model-api replaces"
            raise typer.BadParameter(reason, param_hint="--check")
        if check:
            from converters.validation.compare import Tolerance

            tolerance = Tolerance(
                rtol, atol, share=share, rounding=_FLOAT16_ROUNDING if told.precision == "float16" else 0.0
            )
            checking = Checking(tolerance, seed, inputs, random_shapes, tuple(extension or ()))
        # a SavedModel is a folder, but one model
        several = len(models) > 1 or (models[0].is_dir() and recognized(models[0]) is None)
        if several:
            _only_for_one(alone)
        _only_for_checks(context, {"--check": check, "--verify": bool(told.verify)})
        if several:
            if output is not None and output.lower().endswith(".onnx") and not Path(output).is_dir():
                raise typer.BadParameter(batch.needs_folder(output), param_hint="--output")
            folder = None if output is None else Path(output)
            chosen = batch.Folders("files" if folder is None else "hosts", variants or ())
            if layout is not None:
                chosen = replace(chosen, layout=layout.value)
            raise typer.Exit(batch.convert_all(models, folder, settings, jobs, as_json, checking, chosen))
        for value, flag in ((layout, "--layout"), (variants, "--variant")):
            if value:
                raise typer.BadParameter("it requires a model folder", param_hint=flag)
        (model,) = models
        if output == str(_STDOUT):
            _to_stdout(model, settings, check, as_json)
            return
        target = _target(model, output)
        reject_inputs([target], [model, *settings.files, *([] if inputs is None else [inputs])])
        if target.suffix.lower() in (".xml", ".bin") and target.resolve() != model.with_suffix(".bin").resolve():
            message = f"{target} has the file name of an IR; the name of an ONNX file ends in .onnx"
            raise typer.BadParameter(message, param_hint="--output")
        if check:
            require_openvino()
        with progress(as_json) as step:
            step("converting and evaluating each rewrite" if told.verify else "converting")
            converted = settings.convert(model, target)
        if not as_json:
            text.print_conversion(out, converted.report, target)
        validation = (
            None
            if checking is None
            else checking.compare(model, target, as_json, None if isinstance(told.bin, bytes) else told.bin)
        )
        if as_json:
            document = {"output": str(target), **data.conversion(converted.report)}
            if validation is not None:
                document["check"] = data.validation(validation)
            print_json(document)
        elif validation is not None:
            text.print_validation(out, validation)
        if validation is not None and not validation.agrees:
            raise typer.Exit(DIFFERENCE)


def _target(model: Path, output: str | None) -> Path:
    """Return the .onnx of a model: in the folder ``output``, or at that path."""
    beside = model.with_suffix(".onnx")
    if output is None:
        return beside
    path = Path(output)
    if path.is_dir():
        return path / beside.name
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "the folder does not exist", str(path.parent))
    if output.endswith(("/", os.sep)):
        raise NotADirectoryError(errno.ENOTDIR, "the folder does not exist", output)
    return path


_CHECKS = {
    "inputs": ("--check", "--verify"),
    "shape": ("--check", "--verify"),
    "seed": ("--check", "--verify"),
    "extension": ("--check",),
    "rtol": ("--check",),
    "atol": ("--check",),
    "share": ("--check",),
}
"""Parameters that have no effect without one of these options."""


def _only_for_checks(context: typer.Context, given: dict[str, bool]) -> None:
    for parameter, options in _CHECKS.items():
        source = context.get_parameter_source(parameter)
        if source is not None and source.name == "COMMANDLINE" and not any(given[option] for option in options):
            raise typer.BadParameter(f"it requires {' or '.join(options)}", param_hint=f"--{parameter}")


def _only_for_one(given: dict[str, Any]) -> None:
    if alone := [option for option, value in given.items() if value]:
        raise typer.BadParameter("it applies to a single model only", param_hint=alone[0])


def _to_stdout(model: Path, settings: Settings, check: bool, as_json: bool) -> None:
    """Write the model to standard output, and everything else to standard error."""
    from converters.cli import text

    if as_json or check:
        raise typer.BadParameter("standard output contains the model", param_hint="--json" if as_json else "--check")
    if settings.options.weights not in ("auto", "embed"):
        raise typer.BadParameter("a model on standard output embeds its weights", param_hint="--weights")
    converted = settings.convert(model, None)
    text.print_conversion(err, converted.report, _STDOUT)
    sys.stdout.buffer.write(converted.model.SerializeToString())
    sys.stdout.buffer.flush()
