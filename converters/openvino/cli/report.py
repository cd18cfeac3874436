"""Results as tables for a person and as plain data for a program."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from converters.openvino.conversion import Inspection, Report
from converters.openvino.errors import Problem
from converters.openvino.validation import Comparison, Validation
from converters.openvino.validation.validate import NAMES
from onnx_specops.forms import Forms

# -- conversion ----------------------------------------------------------------------------------------------------------


def print_conversion(console: Console, report: Report, target: Path) -> None:
    """One line that says what was written, and one for each thing to know about it."""
    nodes, layers = sum(report.nodes.values()), sum(report.layers.values())
    console.print(
        f"[bold]{escape(str(target))}[/]: {layers} layers became {nodes} nodes, "
        f"{_bytes(report.weights_bytes)} of weights ({_PLACEMENTS[report.weights]}), {report.seconds:.2f} s",
        soft_wrap=True,
    )
    if report.custom_operators:
        console.print(f"  operators of the plugin: {', '.join(report.custom_operators)}", soft_wrap=True)
    if report.without_body:
        console.print(f"  needs the plugin for: {', '.join(report.without_body)}", soft_wrap=True)


_PLACEMENTS = {"embed": "embedded", "copy": "in a file beside it", "reference": "in the IR's own .bin"}


def conversion(report: Report) -> dict[str, Any]:
    """A conversion's report as plain data."""
    return {
        "model": str(report.path),
        "layers": report.layers,
        "nodes": report.nodes,
        "custom_operators": report.custom_operators,
        "without_body": report.without_body,
        "weights": report.weights,
        "weights_bytes": report.weights_bytes,
        "seconds": report.seconds,
    }


def problem(found: Problem) -> dict[str, Any]:
    """A problem as plain data."""
    return {name: getattr(found, name) for name in Problem.__dataclass_fields__}


# -- inspection ----------------------------------------------------------------------------------------------------------


def print_inspection(console: Console, inspection: Inspection) -> None:
    """The layers by type, what they become, and everything that cannot be converted."""
    table = Table(title=escape(str(inspection.path)), title_justify="left")
    for heading in ("layer", "version", "count", "becomes"):
        table.add_column(heading, justify="right" if heading == "count" else "left")
    for row in inspection.rows:
        becomes = ", ".join(row.becomes) if row.convertible else "[red]cannot be converted[/]"
        table.add_row(escape(row.type), escape(row.version), str(row.count), becomes)
    console.print(table)
    for found in inspection.problems:
        console.print(str(found), style="red", highlight=False, markup=False, soft_wrap=True)
    verdict = f"{len(inspection.problems)} problems" if inspection.problems else "every layer converts"
    console.print(f"{sum(row.count for row in inspection.rows)} layers: {verdict}")


def inspection(inspection: Inspection) -> dict[str, Any]:
    """An inspection as plain data."""
    return {
        "model": str(inspection.path),
        "layers": [
            {"type": r.type, "version": r.version, "count": r.count, "becomes": r.becomes, "convertible": r.convertible}
            for r in inspection.rows
        ],
        "problems": [problem(found) for found in inspection.problems],
    }


# -- validation ----------------------------------------------------------------------------------------------------------


def print_validation(console: Console, validation: Validation) -> None:
    """A row for each output and runtime, then the verdict."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("output and runtime", overflow="fold")
    for heading in ("shape", "type", "max abs err", "max rel err", "exact", "time"):
        table.add_column(heading, justify="left" if heading in ("shape", "type") else "right", no_wrap=True)
    ran = [result for result in validation.results if result.outputs]
    for name in ran[0].outputs if ran else []:
        table.add_row(f"[bold]{escape(name)}[/]")
        for result in ran:
            comparison = result.outputs[name]
            table.add_row(
                "  " + _SHORT[result.runtime],
                "x".join(map(str, comparison.shape)) or "scalar",
                comparison.element_type,
                *(["", "", ""] if result.runtime == validation.baseline else _errors(comparison)),
                _milliseconds(result.seconds),
                style=None if comparison.agrees else "red",
            )
    console.print(f"{escape(str(validation.path))}, compared with {NAMES[validation.baseline]}", soft_wrap=True)
    console.print(table)
    for result in validation.results:
        for name, comparison in result.outputs.items():
            if comparison.note:
                console.print(f"  {NAMES[result.runtime]}, {escape(name)}: {escape(comparison.note)}", soft_wrap=True)
        if result.skipped:
            console.print(f"  {NAMES[result.runtime]}: not run, {escape(result.skipped)}", soft_wrap=True)
        if result.error:
            console.print(f"  {NAMES[result.runtime]}: {escape(result.error)}", style="red", soft_wrap=True)
    for difference in validation.first_differences:
        console.print(
            f'  {NAMES[difference.runtime]} parts first at layer "{escape(difference.layer_name)}" '
            f"({difference.layer_type}, id {difference.layer_id}, line {difference.line}), output {difference.output}: "
            f"max abs error {_number(difference.comparison.max_absolute)} {escape(difference.comparison.note)}",
            style="red",
            soft_wrap=True,
        )
    if validation.layers_compared:
        console.print(f"  {validation.layers_compared} layer outputs compared")
    names = [NAMES[result.runtime] for result in validation.results if not result.skipped and not result.error]
    if validation.agrees:
        console.print(f"[green]agree[/]: {'; '.join(names)}", soft_wrap=True)
    elif len(names) < 2:
        console.print("[red]nothing to compare with[/]")
    else:
        apart = [NAMES[result.runtime] for result in validation.results if not result.agrees]
        console.print(f"[red]differ[/]: {'; '.join(apart)}", soft_wrap=True)


_SHORT = {"openvino": "OpenVINO", "native": "ORT native", "python": "ORT Python", "none": "ORT plain", "reference": "ONNX reference"}


def _errors(comparison: Comparison) -> list[str]:
    return [_number(comparison.max_absolute), _number(comparison.max_relative), f"{comparison.exact:.1%}"]


def validation(validation: Validation) -> dict[str, Any]:
    """A validation as plain data."""
    return {
        "model": str(validation.path),
        "baseline": validation.baseline,
        "agrees": validation.agrees,
        "runtimes": [
            {
                "runtime": result.runtime,
                "agrees": result.agrees,
                "skipped": result.skipped,
                "error": result.error,
                "seconds": result.seconds,
                "outputs": {name: _comparison(c) for name, c in result.outputs.items()},
            }
            for result in validation.results
        ],
        "first_differences": [
            {
                "runtime": d.runtime,
                "layer_id": d.layer_id,
                "layer_name": d.layer_name,
                "layer_type": d.layer_type,
                "line": d.line,
                "output": d.output,
                **_comparison(d.comparison),
            }
            for d in validation.first_differences
        ],
        "layers_compared": validation.layers_compared,
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "shape": list(comparison.shape),
        "type": comparison.element_type,
        "max_absolute_error": _finite(comparison.max_absolute),
        "max_relative_error": _finite(comparison.max_relative),
        "exact": comparison.exact,
        "agrees": comparison.agrees,
        "note": comparison.note,
    }


# -- arrays and operators ------------------------------------------------------------------------------------------------


def run_session(session: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The session's outputs by name."""
    from converters.openvino.validation.runtimes import infer

    return infer(session, arrays, [output.name for output in session.get_outputs()])


def print_arrays(console: Console, arrays: Mapping[str, np.ndarray]) -> None:
    """A row for each array: shape, type and its first values."""
    table = Table()
    for heading in ("output", "shape", "type", "values"):
        table.add_column(heading)
    for name, values in arrays.items():
        shape = "x".join(map(str, values.shape)) or "scalar"
        kind = "string" if values.dtype.kind in "OUS" else str(values.dtype)
        table.add_row(escape(name), shape, kind, escape(_first_values(values)))
    console.print(table)


def _first_values(values: np.ndarray) -> str:
    flat = values.reshape(-1)[:6]
    if values.dtype.kind in "OUS":
        shown = [repr(str(v)) for v in flat]
    else:
        shown = [f"{float(v):.6g}" if values.dtype.kind not in "biu" else str(v) for v in flat]
    return ", ".join(shown) + (", ..." if values.size > len(flat) else "")


def array(values: np.ndarray) -> dict[str, Any]:
    """An array as plain data; numbers that JSON cannot say are null."""
    listed = values.astype(str) if values.dtype.kind in "OUS" else values.astype(np.float64) if values.dtype.kind == "V" else values
    plain = listed.reshape(-1).tolist()
    plain = [None if isinstance(v, float) and not math.isfinite(v) else v for v in plain]
    return {"shape": list(values.shape), "type": "string" if values.dtype.kind in "OUS" else str(values.dtype), "values": plain}


def storable(values: np.ndarray) -> np.ndarray:
    """The array in a form that .npz holds without pickling."""
    if values.dtype.kind in "OUS":
        return values.astype(str)
    return values.astype(np.float32) if values.dtype.kind == "V" else values


def print_ops(console: Console, table: Sequence[Forms]) -> None:
    """A row for each operator of the domain."""
    shown = Table()
    for heading in ("operator", "body", "Python kernel", "native kernel"):
        shown.add_column(heading)
    for forms in table:
        shown.add_row(forms.operator, *(_form(reason) for reason in (forms.body, forms.python, forms.native)))
    console.print(shown)


def _form(reason: str) -> str:
    return "[green]yes[/]" if not reason else f"no: {escape(reason)}"


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:.2f} ms"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError
