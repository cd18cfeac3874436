"""The command ``specops`` and its subcommands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from converters.cli import reporting
from converters.cli.checking import compare_runtimes
from converters.cli.commands import Command, Commands
from converters.cli.console import err, out, print_json
from converters.cli.convert import convert
from converters.cli.diff import diff
from converters.cli.failures import DIFFERENCE, exit_code, failures, print_problems
from converters.cli.generate import generate
from converters.cli.optimize import optimize
from converters.cli.options import (
    AbsoluteTolerance,
    AllowedShare,
    Bin,
    Debug,
    Extensions,
    Inputs,
    Json,
    Kernels,
    ModelXml,
    RelativeTolerance,
    Rules,
    Runtime,
    Seed,
    Shapes,
    Signature,
)
from converters.cli.reporting import Report
from converters.cli.values import shapes
from converters.cli.weights import weights

app = typer.Typer(
    name="specops",
    help="Convert OpenVINO IR to ONNX, and run, validate and inspect models.",
    no_args_is_help=True,
    cls=Commands,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import onnx_specops
        from onnx_specops.runtime.library import has_library, remedy

        typer.echo(f"specops {onnx_specops.__version__}")
        if not has_library():  # pip hides the message of a build without a compiler
            typer.echo(f"The native kernels are not built. {remedy()}", err=True)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass


# The help lists the commands in the order of their declaration: models first, then language models.
app.command(cls=Command)(convert)


@app.command(cls=Command)
def run(
    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The ONNX model.")],
    inputs: Annotated[
        Path | None,
        typer.Option(
            metavar="IN",
            help="The inputs: an .npz with arrays by name, an .npy or image for a single input, or a folder of samples. By "
            "default, the inputs are random.",
            show_default=False,
        ),
    ] = None,
    outputs: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.npz",
            help="The .npz file to write the outputs to. For several samples, a folder with one .npz per sample.",
            show_default=False,
        ),
    ] = None,
    kernels: Annotated[
        Kernels,
        typer.Option(help="The kernels of the custom operators. none uses the function bodies in the model."),
    ] = Kernels.auto,
    shape: Shapes = None,
    seed: Seed = 0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run an ONNX model in ONNX Runtime with the plugin."""
    with failures(as_json, debug):
        from converters.cli import data, text
        from converters.outputs import reject_inputs
        from converters.validation.arrays import output_files, write_arrays
        from converters.validation.onnx_model import files_of
        from converters.validation.runtimes import run_samples

        if outputs is not None:
            taken = [*files_of(model), *([] if inputs is None else [inputs])]
            reject_inputs([outputs], taken)
        notes: list[str] = []
        sizes = shapes(shape, "--shape")
        samples = run_samples(model, inputs, kernels=kernels.value, seed=seed, shapes=sizes, note=notes.append)
        if outputs is not None:
            targets = [outputs] if len(samples) == 1 else output_files(outputs, samples)
            for target, results in zip(targets, samples.values(), strict=True):
                write_arrays(target, results, inputs=taken)
        if as_json:
            documents = [{name: data.array(array) for name, array in results.items()} for results in samples.values()]
            if len(samples) == 1:
                print_json({"model": str(model), "outputs": documents[0], "notes": notes})
            else:
                by_sample = dict(zip(samples, documents, strict=True))
                print_json({"model": str(model), "samples": by_sample, "notes": notes})
            return
        text.print_notes(err, notes)
        for sample, results in samples.items():
            if len(samples) > 1:
                out.print(sample, highlight=False, style="bold")
            text.print_arrays(out, results)


@app.command(cls=Command)
def validate(
    model: ModelXml,
    onnx_model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL.onnx",
            help="The converted model. By default, the command converts the IR first.",
            show_default=False,
        ),
    ] = None,
    bin: Bin = None,
    inputs: Inputs = None,
    shape: Shapes = None,
    seed: Seed = 0,
    rtol: RelativeTolerance = 1e-3,
    atol: AbsoluteTolerance = 1e-4,
    share: AllowedShare = 0.0,
    per_layer: Annotated[
        bool, typer.Option("--per-layer", help="Compare the outputs of all layers, and report the first layer that differs.")
    ] = False,
    report: Report = None,
    rules: Rules = None,
    extension: Extensions = None,
    runtime: Annotated[
        list[Runtime] | None,
        typer.Option(
            help="A runtime to compare. Can be given several times. The default is all runtimes.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare the results of OpenVINO, ONNX Runtime and ONNX's reference evaluator on the same inputs."""
    with failures(as_json, debug):
        from converters.cli import data, text
        from converters.plugins import load_all
        from converters.validation.compare import Tolerance
        from converters.validation.onnx_model import check_is_onnx

        if onnx_model is not None:
            check_is_onnx(onnx_model)
        if report is not None:
            reporting.require(report, [model, *([] if bin is None else [bin])])
        load_all(rules)
        runtimes, sizes = [chosen.value for chosen in runtime or Runtime], shapes(shape, "--shape")
        tolerance = Tolerance(rtol, atol, share=share)
        validation = compare_runtimes(
            model,
            onnx_model,
            as_json,
            inputs,
            sizes,
            seed,
            tolerance,
            runtimes,
            per_layer or report is not None,
            extension or (),
            times=report is not None,
            bin=bin,
        )
        if report is not None:
            reporting.write_validation(report, validation)
        if as_json:
            print_json(data.validation(validation))
        else:
            text.print_validation(out, validation)
        if not validation.agrees:
            raise typer.Exit(DIFFERENCE)


app.command(cls=Command)(diff)
app.command(cls=Command)(optimize)


@app.command(cls=Command)
def inspect(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="MODEL.xml", help="The OpenVINO IR, with its .bin in the same folder.", show_default=False),
    ] = None,
    all_operations: Annotated[
        bool, typer.Option("--all-operations", help="List all OpenVINO operations, and the ONNX operators that they become.")
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="NAME",
            help="Count the nodes that a target of specops convert supports, and list why it does not support the others.",
            show_default=False,
        ),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--input-shape",
            metavar="NAME=DxDx...",
            help="With --target: the shape of an input, for example x=1x3x224x224. Can be given several times.",
            show_default=False,
        ),
    ] = None,
    bin: Bin = None,
    signature: Signature = None,
    report: Report = None,
    rules: Rules = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Show which ONNX operators each layer becomes, and which layers cannot be converted. Writes no ONNX file."""
    if (model is None) != all_operations:
        raise typer.BadParameter("specify either MODEL.xml or --all-operations")
    if model is None and report is not None:
        raise typer.BadParameter("it requires MODEL.xml", param_hint="--report")
    if model is None and bin is not None:
        raise typer.BadParameter("it requires MODEL.xml", param_hint="--bin")
    if model is None and signature is not None:
        raise typer.BadParameter("it requires MODEL.xml", param_hint="--signature")
    if target is None and shape:
        raise typer.BadParameter("it requires --target", param_hint="--input-shape")
    if target is not None and (model is None or report is not None):
        raise typer.BadParameter("it requires MODEL.xml, and cannot be combined with --report", param_hint="--target")
    with failures(as_json, debug):
        from converters.cli import data, text

        if model is None:
            from converters.formats import formats

            release, covered = next(found for one in formats() if (found := one.coverage()) is not None)
            if as_json:
                print_json(data.coverage(covered, release))
            else:
                text.print_coverage(out, covered, release)
            return
        from converters.formats import inspect_model
        from converters.plugins import load_all

        if target is not None:
            from converters.targeting import inspect_for

            load_all(rules)
            dimensions = shapes(shape, "--input-shape", with_open=True)
            taken = inspect_for(model, target, bin=bin, signature=signature, input_shapes=dimensions)
            if as_json:
                print_json(data.taken(taken))
            else:
                text.print_support(out, taken)
                print_problems(taken.problems)
            if taken.problems:
                raise typer.Exit(exit_code(taken.problems))
            return

        if report is not None:
            reporting.require(report, [model, *([] if bin is None else [bin])])
        load_all(rules)
        inspection = inspect_model(model, bin, signature)
        if report is not None:
            reporting.write_inspection(report, inspection)
        if as_json:
            print_json(data.inspection(inspection))
        else:
            text.print_inspection(out, inspection)
            print_problems(inspection.problems)
        if inspection.problems:
            raise typer.Exit(exit_code(inspection.problems))


app.command(cls=Command)(generate)
app.command(cls=Command)(weights)


@app.command(cls=Command)
def ops(as_json: Json = False, debug: Debug = False) -> None:
    """List the custom operators and their installed kernels."""
    with failures(as_json, debug):
        from converters.cli import data, text
        from onnx_specops.forms import forms

        table = list(forms())
        if as_json:
            print_json(data.operators(table))
        else:
            text.print_operators(out, table)
