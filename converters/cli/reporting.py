"""The option ``--report`` of subcommands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from converters.inspection import Inspection
    from converters.validation.diff import Diff
    from converters.validation.validate import Validation

Report = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        help="Write the results as one HTML page that works offline.",
        show_default=False,
    ),
]


def require(report: Path, inputs: Iterable[Path]) -> None:
    """Check, before any work, that the page can be written: required packages, and files that must be kept."""
    from converters.outputs import reject_inputs
    from converters.reports.page import require as require_packages

    require_packages()
    reject_inputs([report], inputs)
    if not report.parent.is_dir():
        raise ValueError(f"{report.parent} is not a folder")


def write_validation(report: Path, validation: Validation) -> None:
    """Write the page of a validation."""
    from converters.reports.validation_page import write_validation as write

    write(report, validation)


def write_diff(report: Path, diff: Diff) -> None:
    """Write the page of a diff."""
    from converters.reports.diff_page import write_diff as write

    write(report, diff)


def write_inspection(report: Path, inspection: Inspection) -> None:
    """Write the page of an inspection."""
    from converters.reports.inspection_page import write_inspection as write

    write(report, inspection)
