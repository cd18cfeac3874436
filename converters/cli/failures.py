"""Error messages and exit codes.

0: success. 1: a difference or an unsupported layer. 2: incorrect usage or input. 3: an error in onnx-specops itself. 130:
interrupted.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import NoReturn

import typer

from converters.cli.console import err, print_json
from converters.errors import REPORT, ConversionError, Fault, Problem, not_enough_memory
from onnx_specops.runtime.errors import MissingKernelError, as_missing_extra

DIFFERENCE, BAD_INPUT, MISTAKE, INTERRUPTED = 1, 2, 3, 130
CLOSED_PIPE = 141
"""The exit code of a process that SIGPIPE ended."""
_CODES = {
    Fault.UNSUPPORTED: DIFFERENCE, Fault.MALFORMED: BAD_INPUT, Fault.USAGE: BAD_INPUT, Fault.INTERNAL: MISTAKE,
}  # fmt: skip


@contextlib.contextmanager
def failures(as_json: bool, debug: bool) -> Iterator[None]:
    """Report errors without a traceback, unless requested, and exit with a code."""
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except BrokenPipeError:
        _leave_closed_pipe()
    except KeyboardInterrupt:
        report_problems([Problem("interrupted")], as_json)
        raise typer.Exit(INTERRUPTED) from None
    except (Exception, SystemExit) as error:  # rules and their imports may try to exit
        if isinstance(error.__context__, BrokenPipeError):  # rich then raises SystemExit
            _leave_closed_pipe()
        problems = problems_of(error)
        causes = [problem.cause for problem in problems if problem.cause is not None] or [error]
    else:
        return
    if debug:
        for cause in causes:
            traceback.print_exception(cause)
    report_problems(problems, as_json)
    raise typer.Exit(exit_code(problems))


def _leave_closed_pipe() -> NoReturn:
    """Exit because the program that reads the output, such as ``head``, has ended."""
    # Otherwise Python reports at exit that it cannot write its buffers.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(CLOSED_PIPE) from None


def report_problems(problems: Sequence[Problem], as_json: bool) -> None:
    """Report all problems, as one JSON object on standard output or as text on standard error."""
    if as_json:
        from converters.cli import data

        print_json({"problems": [data.problem(problem) for problem in problems]})
    else:
        print_problems(problems)


def exit_code(problems: Sequence[Problem]) -> int:
    """Return the exit code of the worst problem."""
    return max((_CODES[problem.fault] for problem in problems), default=0)


def problems_of(error: BaseException) -> list[Problem]:
    """Return the problems that an exception represents."""
    if isinstance(error, ConversionError):
        return list(error.problems)
    if isinstance(error, MemoryError):
        return [Problem(not_enough_memory(error))]
    if isinstance(error, ImportError) and (missing := as_missing_extra(error, "this")) is not None:
        return [Problem(str(missing))]
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return [Problem(error.strerror, str(error.filename))]
    if isinstance(error, (OSError, ValueError, MissingKernelError)):
        return [Problem(str(error))]
    return [Problem(f"internal error: {type(error).__name__}: {error}", remedy=REPORT, fault=Fault.INTERNAL, cause=error)]


def print_problems(problems: Sequence[Problem]) -> None:
    """Print all problems with their places. Equal problems of several layers are printed once."""
    from converters.cli import text

    text.print_problems(err, problems)
