"""The subcommands of ``specops``.

Exit codes: 0 good, 1 a difference or an unsupported layer, 2 bad usage or input, 3 a mistake in onnx-specops itself.
"""

from __future__ import annotations

import contextlib
import json
import traceback
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from converters.errors import REPORT, ConversionError, Fault, Problem

if TYPE_CHECKING:
    from converters.validation.validate import Validation

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

DIFFERENCE, BAD_INPUT, MISTAKE = 1, 2, 3
_CODES = {Fault.UNSUPPORTED: DIFFERENCE, Fault.MALFORMED: BAD_INPUT, Fault.INTERNAL: MISTAKE}


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


class Runtime(StrEnum):
    openvino = "openvino"
    native = "native"
    python = "python"
    none = "none"
    reference = "reference"


ModelXml = Annotated[Path, typer.Argument(metavar="MODEL.xml", help="The OpenVINO IR; its .bin lies beside it.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show Python's traceback of what went wrong.")]
Inputs = Annotated[
    Path | None,
    typer.Option(
        metavar="IN.npz",
        help="Inputs by name; by default inputs.npz beside the model, else random ones.",
        show_default=False,
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME=DxDx...",
        help="The shape of a random input, as in x=1x3x224x224; may be given several times. Other unknown dimensions are 2.",
        show_default=False,
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of random inputs.")]
RelativeTolerance = Annotated[float, typer.Option("--rtol", min=0, help="Largest relative error of floats.")]
AbsoluteTolerance = Annotated[float, typer.Option("--atol", min=0, help="Largest absolute error of floats.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        import onnx_specops

        typer.echo(f"specops {onnx_specops.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def convert(
    model: ModelXml,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="OUT.onnx", help="By default beside the IR.", show_default=False),
    ] = None,
    weights: Annotated[
        Weights,
        typer.Option(
            help="Where the weights go: into the .onnx (embed), into a file beside it (copy), or nowhere: the .onnx "
            "refers to the IR's own .bin (reference). auto embeds up to 1 GiB."
        ),
    ] = Weights.auto,
    check: Annotated[bool, typer.Option("--check", help="Run OpenVINO and ONNX Runtime and compare the results.")] = False,
    inputs: Inputs = None,
    shape: Shapes = None,
    seed: Seed = 0,
    rtol: RelativeTolerance = 1e-3,
    atol: AbsoluteTolerance = 1e-4,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Convert an OpenVINO IR into one ONNX file."""
    with _errors(as_json, debug):
        from converters.cli import data, text
        from converters.openvino import convert as convert_model

        target = output or model.with_suffix(".onnx")
        shapes = _shapes(shape)
        if check:
            _require_openvino()
        with _progress(as_json) as step:
            step("converting")
            converted = convert_model(model, target, weights=weights.value)
        if not as_json:
            text.print_conversion(out, converted.report, target)
        validation = None
        if check:
            runtimes = [runtime.value for runtime in Runtime if runtime is not Runtime.reference]
            validation = _validate(model, target, as_json, inputs, shapes, seed, rtol, atol, runtimes=runtimes)
        if as_json:
            document = {"output": str(target), **data.conversion(converted.report)}
            if validation is not None:
                document["check"] = data.validation(validation)
            _print_json(document)
        elif validation is not None:
            text.print_validation(out, validation)
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
    kernels: Annotated[
        Kernels,
        typer.Option(help="The plugin's kernels to use; none: the bodies that the model carries."),
    ] = Kernels.auto,
    shape: Shapes = None,
    seed: Seed = 0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run an ONNX model in ONNX Runtime with the plugin."""
    with _errors(as_json, debug):
        from converters.cli import data, text
        from converters.validation.arrays import write_arrays
        from converters.validation.runtimes import run_once

        results = run_once(model, inputs, kernels=kernels.value, seed=seed, shapes=_shapes(shape))
        if outputs is not None:
            write_arrays(outputs, results)
        if as_json:
            _print_json({"model": str(model), "outputs": {name: data.array(a) for name, a in results.items()}})
        else:
            text.print_arrays(out, results)


@app.command()
def validate(
    model: ModelXml,
    onnx_model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL.onnx]", help="Its conversion; made anew by default.", show_default=False),
    ] = None,
    inputs: Inputs = None,
    shape: Shapes = None,
    seed: Seed = 0,
    rtol: RelativeTolerance = 1e-3,
    atol: AbsoluteTolerance = 1e-4,
    per_layer: Annotated[
        bool, typer.Option("--per-layer", help="Compare every layer's output and name the first that differs.")
    ] = False,
    runtime: Annotated[
        list[Runtime] | None,
        typer.Option(help="A runtime to take part; may be given several times. By default all.", show_default=False),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run the same inputs through OpenVINO, ONNX Runtime and ONNX's reference evaluator, and compare."""
    with _errors(as_json, debug):
        from converters.cli import data, text

        if onnx_model is not None and not onnx_model.is_file():
            raise ValueError(f"{onnx_model} is not a file")
        runtimes = [chosen.value for chosen in runtime or Runtime]
        validation = _validate(model, onnx_model, as_json, inputs, _shapes(shape), seed, rtol, atol, runtimes, per_layer)
        if as_json:
            _print_json(data.validation(validation))
        else:
            text.print_validation(out, validation)
        if not validation.agrees:
            raise typer.Exit(DIFFERENCE)


@app.command()
def inspect(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL.xml]", help="The OpenVINO IR; its .bin lies beside it.", show_default=False),
    ] = None,
    all_operations: Annotated[
        bool, typer.Option("--all-operations", help="List OpenVINO's operations instead, and what each becomes.")
    ] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show what an IR's layers become, and which cannot be converted, without writing anything."""
    if (model is None) != all_operations:
        raise typer.BadParameter("give either MODEL.xml or --all-operations")
    with _errors(as_json, debug):
        from converters.cli import data, text

        if model is None:
            from converters.openvino.coverage.table import coverage

            covered = coverage()
            if as_json:
                _print_json(data.coverage(covered))
            else:
                text.print_coverage(out, covered)
            return
        from converters.openvino.conversion import inspect as inspect_model

        inspection = inspect_model(model)
        if as_json:
            _print_json(data.inspection(inspection))
        else:
            text.print_inspection(out, inspection)
            _print_problems(inspection.problems)
        if inspection.problems:
            raise typer.Exit(_code(inspection.problems))


@app.command()
def ops(as_json: Json = False, debug: Debug = False) -> None:
    """List the domain's operators, and which forms of each this installation has."""
    with _errors(as_json, debug):
        from converters.cli import data, text
        from onnx_specops.forms import forms

        table = list(forms())
        if as_json:
            _print_json(data.operators(table))
        else:
            text.print_operators(out, table)


def _validate(
    model: Path,
    onnx_model: Path | None,
    as_json: bool,
    inputs: Path | None,
    shapes: dict[str, list[int]],
    seed: int,
    rtol: float,
    atol: float,
    runtimes: list[str],
    per_layer: bool = False,
) -> Validation:
    from converters.validation.compare import Tolerance
    from converters.validation.validate import validate as validate_model

    with _progress(as_json) as step:
        return validate_model(
            model,
            onnx_model,
            inputs=inputs,
            seed=seed,
            shapes=shapes,
            tolerance=Tolerance(rtol, atol),
            per_layer=per_layer,
            runtimes=runtimes,
            progress=step,
        )


def _shapes(texts: list[str] | None) -> dict[str, list[int]]:
    """``NAME=DxD`` as name and dimensions; ``NAME=`` is a scalar."""
    shapes = {}
    for text in texts or ():
        name, equals, dims = text.rpartition("=")
        sizes = dims.split("x") if dims else []
        if not equals or not name or not all(size.isascii() and size.isdigit() and len(size) < 10 for size in sizes):
            raise typer.BadParameter(f"{text!r} is not of the form x=1x3x224x224", param_hint="--shape")
        shapes[name] = [int(size) for size in sizes]
    return shapes


def _require_openvino() -> None:
    """Checking means comparing with OpenVINO: without it that cannot be had."""
    import importlib.util

    from onnx_specops.runtime.errors import MissingExtraError

    if importlib.util.find_spec("openvino") is None:
        raise MissingExtraError("openvino", "--check", "openvino")


# -- errors and progress ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _errors(as_json: bool, debug: bool) -> Iterator[None]:
    """Errors without a traceback, unless one is asked for, with the exit code that they deserve."""
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        problems = _problems(error)
        causes = [problem.cause for problem in problems if problem.cause is not None] or [error]
    else:
        return
    if debug:
        for cause in causes:
            traceback.print_exception(cause)
    if as_json:
        from converters.cli import data

        _print_json({"problems": [data.problem(problem) for problem in problems]})
    else:
        _print_problems(problems)
    raise typer.Exit(_code(problems))


def _code(problems: list[Problem]) -> int:
    """The exit code that the worst of the problems deserves."""
    return max(_CODES[problem.fault] for problem in problems)


def _problems(error: Exception) -> list[Problem]:
    """What an exception says to a user."""
    if isinstance(error, ConversionError):
        return list(error.problems)
    from onnx_specops.runtime.errors import MissingKernelError, as_missing_extra

    if isinstance(error, ImportError) and (missing := as_missing_extra(error, "this")) is not None:
        return [Problem(str(missing))]
    if isinstance(error, (OSError, ValueError, MissingKernelError)):
        return [Problem(_message(error))]
    return [Problem(f"internal error: {type(error).__name__}: {error}", remedy=REPORT, fault=Fault.INTERNAL, cause=error)]


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _print_problems(problems: list[Problem]) -> None:
    """Every problem with its places; those that say the same of several layers once."""
    from converters.cli import text

    text.print_problems(err, problems)


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, allow_nan=False))


@contextlib.contextmanager
def _progress(as_json: bool) -> Iterator[Callable[[str], None]]:
    """A function that shows which step is under way, on a terminal that a person reads."""
    if as_json or not err.is_terminal:
        yield lambda step: None
        return
    with err.status("") as status:
        yield lambda step: status.update(f"{step} ...")
