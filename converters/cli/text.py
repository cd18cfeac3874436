"""Results as text and tables for terminals with 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from converters.errors import SHOWN_PLACES, Problem, Remark, grouped, short

if TYPE_CHECKING:
    from converters.cli.batch import Outcome
    from converters.inspection import Inspection
    from converters.passes.verification import Verifier
    from converters.report import Report
    from converters.source import CoveredOperation
    from converters.targeting import TargetSupport
    from converters.validation.compare import Comparison
    from converters.validation.validate import Validation
    from onnx_specops.forms import Forms


def _line(console: Console, text: str, style: str = "") -> None:
    """Print one line without wrapping or highlighting."""
    console.print(Text(text, style=style), soft_wrap=True)


# -- problems --------------------------------------------------------------------------------------------------------------


def print_problems(console: Console, problems: Iterable[Problem]) -> None:
    """Print all problems: the message, its places, the remedy. Equal problems of several layers are printed once."""
    for (message, remedy), problems_alike in grouped(problems).items():
        layers = [problem.layer_name for problem in problems_alike]
        headline = message if None in layers else _without_pronoun(message)
        console.print(Text.assemble(("error", "bold red"), (": ", "bold"), (headline, "bold")), soft_wrap=True)
        places = list(filter(None, map(_place, problems_alike)))
        for place in places[:SHOWN_PLACES]:
            console.print(Text.assemble(("  --> ", "blue"), place), soft_wrap=True)
        if len(places) > SHOWN_PLACES:
            console.print(Text.assemble(("  --> ", "blue"), f"and {len(places) - SHOWN_PLACES} more"), soft_wrap=True)
        if remedy:
            console.print(Text.assemble(("  help", "bold cyan"), f": {remedy}"), soft_wrap=True)


def _without_pronoun(message: str) -> str:
    """Return the message about a layer without a leading pronoun, because the layer's name follows it."""
    for pronoun, noun in (("its ", ""), ("it ", "the layer ")):
        if message.startswith(pronoun):
            return noun + message.removeprefix(pronoun)
    return message


def _place(problem: Problem) -> str:
    place = problem.file or ""
    if problem.line is not None:
        place += f":{problem.line}"
    if problem.layer_name is not None:
        details = [problem.layer_type or "", "" if problem.layer_id is None else f"id {problem.layer_id}"]
        place += f' layer "{short(problem.layer_name)}" ({short(", ".join(filter(None, details)))})'
    return place


# -- conversion ------------------------------------------------------------------------------------------------------------


def print_conversion(console: Console, report: Report, target: Path) -> None:
    """Print one line about the written file, and one for each further fact."""
    nodes, layers = sum(report.nodes.values()), sum(report.layers.values())
    size, placement = _bytes(report.weights_bytes), _PLACEMENTS[report.weights]
    _line(
        console,
        f"{target}: {layers} layers became {nodes} nodes, {size} of weights ({placement}), {report.seconds:.2f} s",
    )
    if report.custom_operators:
        _line(console, f"  custom operators: {', '.join(report.custom_operators)}")
    if report.without_body:
        _line(console, f"  requires the plugin, because standard ONNX cannot represent {', '.join(report.without_body)}")
    if report.contrib_operators:
        _line(console, f"  ONNX Runtime operators, with function bodies: {', '.join(report.contrib_operators)}")
    if report.inlined:
        names = ", ".join(report.inlined)
        _line(
            console,
            f"  replaced by their function bodies at opset {report.opset}, so the plugin's kernels are not used: {names}",
        )
    if report.without_kernel:
        from converters.targets.onnxruntime import FIRST_WITHOUT_KERNEL, RELEASE

        names = ", ".join(report.without_kernel)
        older = min(FIRST_WITHOUT_KERNEL[name] for name in report.without_kernel) - 1
        reason = f"it does not implement {names} of opset {report.opset}"
        _line(console, f"  ONNX Runtime {RELEASE} cannot load this file: {reason}; use opset {older} or older", "yellow")
    if report.clamped:
        _line(console, f"  constants out of float16's range, replaced by ±65504: {', '.join(map(short, report.clamped))}")
    _print_assumptions(console, report.assumptions)
    for name in map(short, report.unranked):
        _line(
            console, f"  {name} has an unknown rank, which onnx.checker rejects; set its shape with --input-shape {name}=..."
        )
    if report.verified is not None:
        _print_verified(console, report.verified)
    print_remarks(console, report.passed_over)


def _print_assumptions(console: Console, assumptions: Mapping[str, str]) -> None:
    """Print each condition with the values that it applies to."""
    for text in sorted(set(assumptions.values())):
        names = ", ".join(short(name) for name, found in assumptions.items() if found == text)
        _line(console, f"  correct on the target only if {text}: {names}", "yellow")


def _print_verified(console: Console, verifier: Verifier) -> None:
    """Print the number of evaluated rewrites, and each rejected one."""
    agree, refused, skipped = verifier.verified.total(), len(verifier.differences), verifier.skipped.total()
    not_evaluated = f", {skipped} could not be checked" if skipped else ""
    _line(console, f"  checked {agree + refused} rewrites: {agree} agree, {refused} were rejected{not_evaluated}")
    for difference in verifier.differences:
        _line(console, f"  rejected: {difference}", "yellow")
    for reason, count in verifier.skipped.most_common(_SHOWN_PROBLEMS):
        _line(console, f"  not checked: {reason}" + (f" ({count} times)" if count > 1 else ""))


def print_remarks(console: Console, remarks: Iterable[Remark]) -> None:
    """Print a line for everything that OpenVINO ignores, with its count and first place."""
    for remark in remarks:
        times = f"{remark.count} times, first " if remark.count > 1 else ""
        _line(console, f"  ignored, as in OpenVINO: {remark.message} ({times}{_place(remark.first)})")


_PLACEMENTS = {"embed": "embedded", "copy": "in a separate file", "reference": "in the IR's .bin"}


def print_batch(console: Console, outcomes: Sequence[Outcome]) -> None:
    """Print a line for each model, the problems of those that failed, and the totals."""
    for outcome in outcomes:
        document = outcome.document
        if not outcome.failed:
            nodes, size = sum(document["nodes"].values()), _bytes(document["weights_bytes"])
            _line(console, f"{outcome.target}: {nodes} nodes, {size} of weights, {document['seconds']:.2f} s")
            for remark in document["passed_over"]:
                _line(console, f"  ignored, as in OpenVINO: {remark['message']} ({remark['count']} times)")
            if "check" in document:
                _print_check(console, outcome)
            continue
        problems = document["problems"]
        _line(console, f"{outcome.model}: {len(problems)} problem{'s' * (len(problems) != 1)}", "red")
        messages = Counter(problem["message"] for problem in problems)
        for message, count in messages.most_common(_SHOWN_PROBLEMS):
            _line(console, f"  {message}" + (f" ({count} layers)" if count > 1 else ""))
        if len(messages) > _SHOWN_PROBLEMS:
            _line(
                console, f"  and {len(messages) - _SHOWN_PROBLEMS} more; to list them, run specops convert {outcome.model}"
            )
    failed = sum(outcome.failed for outcome in outcomes)
    _line(console, f"{len(outcomes) - failed} of {len(outcomes)} models converted", "red" if failed else "green")
    if any("check" in outcome.document for outcome in outcomes):
        differ = sum(outcome.differs for outcome in outcomes)
        agree = len(outcomes) - failed - differ
        _line(console, f"{agree} of {len(outcomes) - failed} models agree with OpenVINO", "red" if differ else "green")


def _print_check(console: Console, outcome: Outcome) -> None:
    """Print whether one of several models agrees with OpenVINO, and its largest difference."""
    from converters.validation.runtimes import NAMES

    check = outcome.document["check"]
    ran = [result for result in check["runtimes"] if result["outputs"] and result["runtime"] != check["baseline"]]
    errors = [
        NAMES.get(result["runtime"], result["runtime"]) + ": " + result["error"]
        for result in check["runtimes"]
        if result["error"]
    ]
    largest = max((c["relative_l2"] for r in ran for c in r["outputs"].values()), key=float, default=None)
    said = (
        "agrees with OpenVINO"
        if check["agrees"]
        else f"differs from OpenVINO; for details, run specops validate {outcome.model}"
    )
    _line(console, f"  {said}" + ("" if largest is None else f" (relative L2 error {float(largest):.1e})"))
    for error in errors:
        _line(console, f"  {error}", "red")


# The number of problems shown for each of several models.
_SHOWN_PROBLEMS = 5


# -- inspection ------------------------------------------------------------------------------------------------------------


def print_inspection(console: Console, inspection: Inspection) -> None:
    """Print the layer types and the operators that they become."""
    table = Table(title=escape(str(inspection.path)), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("layer", "version", "count", "becomes"):
        table.add_column(heading, justify="right" if heading == "count" else "left", overflow="fold")
    for row in inspection.rows:
        known = ", ".join(row.becomes) or ("standard ONNX" if inspection.weights_missing else "")
        becomes = escape(known) if row.convertible else "[red]cannot be converted[/]"
        table.add_row(escape(row.type), escape(row.version), str(row.count), becomes)
    console.print(table)
    total = sum(row.count for row in inspection.rows)
    problems = len(inspection.problems)
    good = "each has a rule" if inspection.weights_missing else "all can be converted"
    verdict = f"{problems} problem{'s' * (problems != 1)}" if problems else good
    _line(console, f"{total} layers: {verdict}")
    if inspection.weights_missing:
        weights = inspection.path.with_suffix(".bin")
        _line(console, f"  {weights} is missing, so only the types of the layers were checked", "yellow")
    print_remarks(console, inspection.passed_over)


def print_support(console: Console, taken: TargetSupport) -> None:
    """Print the nodes that a target supports, and those that it does not."""
    title = taken.target.title if taken.opset is None else f"{taken.target.title}, opset {taken.opset}"
    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("operator", "supported", "unsupported"):
        table.add_column(heading, justify="left" if heading == "operator" else "right")
    for operator in sorted({*taken.taken, *taken.untaken}):
        missing = taken.untaken.get(operator, 0)
        table.add_row(escape(operator), str(taken.taken.get(operator, 0)), f"[red]{missing}[/]" if missing else "")
    console.print(table)
    good, bad = sum(taken.taken.values()), sum(taken.untaken.values())
    fate = "run on the CPU" if taken.opset is not None else "are unsupported"
    _line(console, f"{good + bad} nodes: {f'{bad} {fate}' if bad else 'all supported'}")
    _print_assumptions(console, taken.assumptions)


def print_coverage(console: Console, covered: Sequence[CoveredOperation], release: str) -> None:
    """Print OpenVINO's operations, the operators that they become, and how many have a rule and pass their cases."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("operation", "version", "becomes", "custom operators", "cases passed"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "cases passed" else "left")
    for row in covered:
        becomes = row.becomes if row.has_rule else "[red]no rule[/]"
        passed = f"{row.passed} of {row.cases}"
        table.add_row(
            str(row.operation),
            row.operation.version,
            becomes,
            ", ".join(row.custom),
            passed if row.passes else f"[red]{passed}[/]",
        )
    console.print(table)
    kinds = Counter(row.becomes for row in covered)
    passing, cases = sum(row.passes for row in covered), sum(row.cases for row in covered)
    _line(
        console,
        f"{sum(row.has_rule for row in covered)} of {len(covered)} operations have a rule: {kinds['standard']} become "
        f"standard ONNX, {kinds['custom']} custom operators, and {kinds['both']} either of the two",
    )
    _line(
        console,
        f"{passing} of {len(covered)} pass all of their test cases ({cases} in total), compared with {release}",
    )
    for row in covered:
        if row.restrictions:
            _line(console, f"{row.operation}: {row.restrictions}")


# -- validation ------------------------------------------------------------------------------------------------------------

_SHORT = {
    "native": "ORT native",
    "python": "ORT Python",
    "none": "ORT plain",
    "reference": "ONNX reference",
}
_SHIPPED = "OpenVINO low"


def print_validation(console: Console, validation: Validation) -> None:
    """Print a row for each output and runtime, notes, and the verdict."""
    _line(console, f"{validation.path}, compared with {validation.names[validation.baseline]}")
    ran = [result for result in validation.results if result.outputs]
    rows = [(r, name, comparison) for r in ran for name, comparison in r.outputs.items()]
    shapes = max([len(_shape(comparison.shape)) for _, _, comparison in rows] + [len("shape")])
    types = max([len(comparison.element_type) for _, _, comparison in rows] + [len("type")])

    def row(runtime: str, shape: str, kind: str, *numbers: str) -> str:
        absolute, relative, exact, time = numbers
        columns = (f"{runtime:<14}", f"{shape:<{shapes}}", f"{kind:<{types}}", f"{absolute:>7}", f"{relative:>7}")
        return "  ".join(["", *columns, f"{exact:>6}", f"{time:>9}"]).rstrip()

    if ran:
        _line(console, row("", "shape", "type", "abs err", "rel err", "exact", "time"), "bold")
    labelled = [(_short_name(validation, result.runtime), result) for result in ran]
    if validation.shipped is not None:
        labelled.insert(1, (_SHIPPED, validation.shipped))
    for name in ran[0].outputs if ran else ():
        _line(console, short(name), "bold")
        for label, result in labelled:
            comparison = result.outputs.get(name)
            if comparison is None:
                continue
            numbers = ["", "", ""] if label == _short_name(validation, validation.baseline) else _errors(comparison)
            shown = row(label, _shape(comparison.shape), comparison.element_type, *numbers, _time(result.seconds))
            _line(console, shown, "" if comparison.agrees or result is validation.shipped else "red")
    _print_remarks(console, validation)
    _print_verdict(console, validation)


def _short_name(validation: Validation, runtime: str) -> str:
    return _SHORT.get(runtime) or validation.names[runtime].partition(",")[0]


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print notes about the inputs."""
    for note in notes:
        _line(console, f"note: {note}")


def _print_remarks(console: Console, validation: Validation) -> None:
    print_notes(console, validation.notes)
    if validation.shipped is not None:
        _line(
            console, f"{_SHIPPED}: OpenVINO on the CPU with its default settings, which compute quantized layers in integers"
        )
    for result in validation.results:
        name = validation.names[result.runtime]
        notes: dict[tuple[str, bool], list[str]] = {}
        for output, comparison in result.outputs.items():
            if comparison.note:
                notes.setdefault((comparison.note, comparison.agrees), []).append(short(output))
        for (note, agrees), outputs in notes.items():
            _line(console, f"{name}: {note}: {', '.join(outputs)}", "" if agrees else "red")
        if result.skipped:
            _line(console, f"{name}: not run: {result.skipped}")
        if result.error:
            _line(console, f"{name}: {result.error.strip()}", "red")
    for difference in validation.first_differences:
        found = difference.comparison
        why = found.note or f"abs err {_number(found.max_absolute)}, rel err {_number(found.max_relative)}"
        _line(
            console,
            f"{validation.names[difference.runtime]}: first difference at {validation.path}:{difference.line} layer "
            f'"{short(difference.layer_name)}" ({short(difference.layer_type)}, id {difference.layer_id}), '
            f"output {difference.output}: {why}",
            "red",
        )
    if validation.guessed and any(result.error for result in validation.results):
        names = ", ".join(map(short, validation.guessed))
        _line(console, f"The shapes of these random inputs are guesses: {names}. Set them with --shape or --inputs.")
    for sample, runtimes in validation.samples_apart.items():
        _line(console, f"{sample}: {', '.join(validation.names[runtime] for runtime in runtimes)}", "red")
    if validation.samples:
        _line(console, f"{len(validation.samples)} samples; the table shows the largest errors over all samples")
    if validation.layers_compared:
        _line(console, f"compared {validation.layers_compared} layer outputs")


def _print_verdict(console: Console, validation: Validation) -> None:
    ran = [result for result in validation.results if not result.skipped]
    apart = {result.runtime for result in ran if not result.agrees}
    if validation.agrees:
        names = "; ".join(validation.names[result.runtime] for result in ran)
        console.print(Text.assemble(("agree", "bold green"), f": {names}"), soft_wrap=True)
    elif apart:
        names = "; ".join(validation.names[result.runtime] for result in ran if result.runtime in apart)
        failed = all(result.error for result in ran if result.runtime in apart)
        console.print(Text.assemble(("fail" if failed else "differ", "bold red"), f": {names}"), soft_wrap=True)
    else:
        _line(console, "nothing to compare, because fewer than two runtimes ran", "bold red")


def _errors(comparison: Comparison) -> list[str]:
    exact = f"{comparison.exact:.1%}"
    if exact == "100.0%" and comparison.exact < 1:
        exact = "99.9%"
    return [_number(comparison.max_absolute), _number(comparison.max_relative), exact]


# -- arrays and operators --------------------------------------------------------------------------------------------------


def print_arrays(console: Console, arrays: Mapping[str, np.ndarray]) -> None:
    """Print a row for each array: its shape, type and first values."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("output", "shape", "type", "values"):
        table.add_column(heading, overflow="fold")
    for name, values in arrays.items():
        kind = "string" if values.dtype.kind in "OUS" else str(values.dtype)
        table.add_row(escape(short(name)), _shape(values.shape), kind, escape(_first_values(values)))
    console.print(table)


def _first_values(values: np.ndarray) -> str:
    flat = values.reshape(-1)[:6]
    if values.dtype.kind in "OUS":
        shown = [repr(short(v)) for v in flat]
    else:
        shown = [str(v) if values.dtype.kind in "biu" else f"{float(v):.6g}" for v in flat]
    return ", ".join(shown) + (", ..." if values.size > len(flat) else "")


def print_operators(console: Console, table: Sequence[Forms]) -> None:
    """Print a row for each operator of the domain, and the reasons for missing forms."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("operator", "body", "Python kernel", "native kernel"):
        shown.add_column(heading, overflow="fold")
    reasons: dict[tuple[str, str], list[str]] = {}
    for forms in table:
        missing = {"no body": forms.body, "no Python kernel": forms.python, "no native kernel": forms.native}
        for form, reason in missing.items():
            if reason:
                reasons.setdefault((form, reason), []).append(forms.operator)
        shown.add_row(forms.operator, *("[yellow]no[/]" if reason else "yes" for reason in missing.values()))
    console.print(shown)
    for (form, reason), operators in reasons.items():
        names = "any operator" if len(operators) == len(table) > 1 else ", ".join(operators)
        _line(console, f"{form} of {names}: {reason}")


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
