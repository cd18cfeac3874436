"""What each subcommand of ``specops`` does. Exit codes: 0 good, 1 a difference or an unsupported layer, 2 bad usage or input."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import onnx_specops
from converters.openvino.cli import report
from converters.openvino.errors import ConversionError, IRError

app = typer.Typer(
    name="specops",
    help="OpenVINO IR to ONNX: convert, run, validate, inspect.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console()
err = Console(stderr=True)

DIFFERENCE, BAD_INPUT = 1, 2


class Weights(StrEnum):
    auto = "auto"
    embed = "embed"
    copy = "copy"
    reference = "reference"


class Kernels(StrEnum):
    auto = "auto"
    native = "native"
    python = "python"
    none = "none"


ModelXml = Annotated[Path, typer.Argument(metavar="MODEL.xml", help="The OpenVINO IR; its .bin lies beside it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Inputs = Annotated[
    Path | None,
    typer.Option(help="Inputs by name (.npz); by default inputs.npz beside the model, else random ones.", show_default=False),
]
Seed = Annotated[int, typer.Option(help="Seed of random inputs.")]
RelativeTolerance = Annotated[float, typer.Option("--rtol", min=0, help="Largest relative error of floats.")]
AbsoluteTolerance = Annotated[float, typer.Option("--atol", min=0, help="Largest absolute error of floats.")]


@contextlib.contextmanager
def _errors(as_json: bool) -> Iterator[None]:
    """Errors that a user can mend, told without a traceback, with the exit code that they deserve."""
    try:
        yield
    except ConversionError as error:
        if as_json:
            typer.echo(json.dumps({"problems": [report.problem(problem) for problem in error.problems]}))
        else:
            for problem in error.problems:
                err.print(str(problem), style="red", highlight=False, markup=False, soft_wrap=True)
        raise typer.Exit(BAD_INPUT if isinstance(error, IRError) else DIFFERENCE) from None
    except (OSError, ValueError, ModuleNotFoundError) as error:
        if as_json:
            typer.echo(json.dumps({"error": str(error)}))
        else:
            err.print(f"specops: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        raise typer.Exit(BAD_INPUT) from None


@app.command()
def convert(
    model: ModelXml,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="OUT.onnx", help="By default beside the IR.", show_default=False)
    ] = None,
    weights: Annotated[Weights, typer.Option(help="Where the weights go.")] = Weights.auto,
    check: Annotated[bool, typer.Option("--check", help="Run OpenVINO and ONNX Runtime and compare the results.")] = False,
    inputs: Inputs = None,
    seed: Seed = 0,
    rtol: RelativeTolerance = 1e-3,
    atol: AbsoluteTolerance = 1e-4,
    as_json: Json = False,
) -> None:
    """Convert an OpenVINO IR into one ONNX file."""
    from converters.openvino import convert as convert_model

    target = output or model.with_suffix(".onnx")
    with _errors(as_json):
        with _progress(as_json) as step:
            step("converting")
            converted = convert_model(model, target, weights=weights.value)
        if not as_json:
            report.print_conversion(out, converted.report, target)
        validation = None
        if check:
            validation = _validate(model, target, inputs, seed, rtol, atol, False, as_json)
            if not as_json:
                report.print_validation(out, validation)
        if as_json:
            document = {"output": str(target), **report.conversion(converted.report)}
            if validation is not None:
                document["check"] = report.validation(validation)
            typer.echo(json.dumps(document))
        if validation is not None and not validation.agrees:
            raise typer.Exit(DIFFERENCE)


@app.command()
def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The ONNX model.")],
    inputs: Annotated[
        Path | None, typer.Option(metavar="IN.npz", help="Inputs by name; random ones by default.", show_default=False)
    ] = None,
    outputs: Annotated[
        Path | None, typer.Option(metavar="OUT.npz", help="Where to write the outputs.", show_default=False)
    ] = None,
    kernels: Annotated[Kernels, typer.Option(help="Which kernels of the plugin to use.")] = Kernels.auto,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Run an ONNX model in ONNX Runtime with the plugin."""
    import numpy as np
    import onnxruntime as ort

    from converters.openvino.validation.inputs import load_inputs, random_inputs, session_specs

    with _errors(as_json):
        if not model.is_file():
            raise ValueError(f"{model} is not a file")
        options = ort.SessionOptions()
        options.log_severity_level = 3
        try:
            session = onnx_specops.InferenceSession(str(model), options, kernels=kernels.value)
            specs = session_specs(session.get_inputs())
            arrays = random_inputs(specs, seed) if inputs is None else load_inputs(inputs, specs)
            results = report.run_session(session, arrays)
        except (OSError, ValueError, ModuleNotFoundError):
            raise
        except Exception as error:  # ONNX Runtime's exceptions have no common base but Exception
            raise ValueError(str(error)) from None
        if outputs is not None:
            np.savez(outputs, **{name: report.storable(array) for name, array in results.items()})  # type: ignore[arg-type]
        if as_json:
            typer.echo(json.dumps({"outputs": {name: report.array(a) for name, a in results.items()}}))
        else:
            report.print_arrays(out, results)


@app.command()
def validate(
    model: ModelXml,
    onnx_model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL.onnx]", help="Its conversion; made anew by default.", show_default=False)
    ] = None,
    inputs: Inputs = None,
    seed: Seed = 0,
    rtol: RelativeTolerance = 1e-3,
    atol: AbsoluteTolerance = 1e-4,
    per_layer: Annotated[
        bool, typer.Option("--per-layer", help="Compare every layer's output and name the first that differs.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run the same inputs through OpenVINO, ONNX Runtime and ONNX's reference evaluator, and compare."""
    with _errors(as_json):
        if onnx_model is not None and not onnx_model.is_file():
            raise ValueError(f"{onnx_model} is not a file")
        validation = _validate(model, onnx_model, inputs, seed, rtol, atol, per_layer, as_json)
    if as_json:
        typer.echo(json.dumps(report.validation(validation)))
    else:
        report.print_validation(out, validation)
    if not validation.agrees:
        raise typer.Exit(DIFFERENCE)


@app.command()
def inspect(model: ModelXml, as_json: Json = False) -> None:
    """Show what an IR's layers become, and which cannot be converted, without writing anything."""
    from converters.openvino.conversion import inspect as inspect_model

    with _errors(as_json):
        inspection = inspect_model(model)
    if as_json:
        typer.echo(json.dumps(report.inspection(inspection)))
    else:
        report.print_inspection(out, inspection)
    if inspection.problems:
        raise typer.Exit(DIFFERENCE)


@app.command()
def ops(as_json: Json = False) -> None:
    """List the domain's operators, and which forms of each this installation has."""
    from onnx_specops.forms import forms

    table = [forms_of.as_dict() for forms_of in forms()]
    if as_json:
        typer.echo(json.dumps({"domain": onnx_specops.DOMAIN, "version": onnx_specops.OPSET_VERSION, "operators": table}))
    else:
        report.print_ops(out, forms())


def _validate(
    model: Path,
    onnx_model: Path | None,
    inputs: Path | None,
    seed: int,
    rtol: float,
    atol: float,
    per_layer: bool,
    as_json: bool,
) -> Any:
    from converters.openvino.validation import Tolerance
    from converters.openvino.validation import validate as validate_model

    with _progress(as_json) as step:
        return validate_model(
            model,
            onnx_model,
            inputs=inputs,
            seed=seed,
            tolerance=Tolerance(rtol, atol),
            per_layer=per_layer,
            progress=step,
        )


@contextlib.contextmanager
def _progress(as_json: bool) -> Iterator[Any]:
    """A function that shows which step is under way, on a terminal that a person reads."""
    if as_json or not err.is_terminal:
        yield lambda step: None
        return
    with err.status("") as status:
        yield lambda step: status.update(f"{step} ...")
