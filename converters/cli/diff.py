"""``specops diff``: compare two ONNX files on the same inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from converters.cli import reporting
from converters.cli.console import out, print_json, progress
from converters.cli.failures import DIFFERENCE, failures
from converters.cli.options import AbsoluteTolerance, Debug, Inputs, Json, Kernels, RelativeTolerance, Seed, Shapes
from converters.cli.reporting import Report
from converters.cli.values import shapes

if TYPE_CHECKING:
    from converters.validation.diff import Diff, ValueDifference

# The page and --json have all differing values.
_SHOWN = 10


def diff(
    first: Annotated[Path, typer.Argument(metavar="A.onnx", help="The ONNX model with the expected values.")],
    second: Annotated[Path, typer.Argument(metavar="B.onnx", help="The ONNX model to compare with it.")],
    inputs: Inputs = None,
    shape: Shapes = None,
    seed: Seed = 0,
    rtol: RelativeTolerance = 1e-3,
    atol: AbsoluteTolerance = 1e-4,
    kernels: Annotated[
        Kernels, typer.Option(help="The kernels of the custom operators. none uses the function bodies in the models.")
    ] = Kernels.auto,
    report: Report = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run two ONNX models on the same inputs, and compare their outputs and the inner values with the same names."""
    with failures(as_json, debug):
        from converters.validation.compare import Tolerance
        from converters.validation.diff import diff as diff_models
        from converters.validation.onnx_model import check_is_onnx

        for model in (first, second):
            check_is_onnx(model)
        if report is not None:
            reporting.require(report, [first, second])
        with progress(as_json) as step:
            found = diff_models(
                first,
                second,
                inputs=inputs,
                seed=seed,
                shapes=shapes(shape, "--shape"),
                tolerance=Tolerance(rtol, atol),
                kernels=kernels.value,
                progress=step,
            )
        if report is not None:
            reporting.write_diff(report, found)
        if as_json:
            print_json(as_data(found))
        else:
            _print(out, found)
        if not found.agrees:
            raise typer.Exit(DIFFERENCE)


def as_data(found: Diff) -> dict[str, Any]:
    """Return a diff as plain data; docs/command.md describes all fields."""
    from converters.cli.data import comparison, distribution

    def value(row: ValueDifference) -> dict[str, Any]:
        return {"name": row.name, "operators": list(row.operators), "place": row.place, **comparison(row.comparison)}

    return {
        "models": [str(path) for path in found.paths],
        "agrees": found.agrees,
        "outputs": [value(row) for row in found.outputs],
        "values": [value(row) for row in found.values],
        "first_difference": None if found.first is None else value(found.first),
        "worst": [{"name": one.of.name, **distribution(one)} for one in found.worst],
        "seconds": list(found.seconds),
        "nodes": list(found.nodes),
        "guessed": found.guessed,
        "by_place": found.by_place,
        "samples": found.samples,
        "sample": found.sample,
        "samples_apart": found.samples_apart,
    }


def _print(console: Console, found: Diff) -> None:
    """Print a line for each output, the first differing values, and the verdict."""
    from converters.reports.formats import duration

    def line(text: str, style: str = "") -> None:
        console.print(Text(text, style), soft_wrap=True)

    line(f"{found.paths[1]} ({duration(found.seconds[1])}), compared with {found.paths[0]} ({duration(found.seconds[0])})")
    if found.samples:
        samples_apart = ", ".join(found.samples_apart) or "none"
        line(f"{len(found.samples)} samples; these differ: {samples_apart}. The values below are from {found.sample}")
    for kind in found.by_place:
        line(f"the {kind} of the two models have different names, so they are matched by position")
    for row in found.outputs:
        line(f"  {_description(row)}", "" if row.comparison.agrees else "red")
    apart = [row for row in found.values if not row.comparison.agrees]
    line(f"{len(found.values)} inner values with the same name: {len(found.values) - len(apart)} agree, {len(apart)} differ")
    for row in apart[:_SHOWN]:
        line(f"  {_description(row)}", "red")
    if len(apart) > _SHOWN:
        line(f"  and {len(apart) - _SHOWN} more")
    if found.guessed and not found.agrees:
        line(f"The shapes of these random inputs are guesses: {', '.join(found.guessed)}")
    line("agree" if found.agrees else "differ", "bold green" if found.agrees else "bold red")


def _description(row: ValueDifference) -> str:
    from converters.errors import short
    from converters.reports.formats import difference, number

    operators = " / ".join(dict.fromkeys(filter(None, row.operators)))
    found = row.comparison
    absolute = "" if found.note or found.max_absolute is None else f", abs err {number(found.max_absolute)}"
    return f"{short(row.name)} ({operators}): {difference(found)}{absolute}"
