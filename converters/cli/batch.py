"""Several models in one call of ``specops convert``: each in its turn or side by side, a summary, one exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from converters.cli.console import err, out, print_json
from converters.cli.failures import BAD_INPUT, MISTAKE, exit_code, problems_of
from converters.errors import REPORT, Fault, Problem
from converters.folders.companions import copy_companions, is_model_folder, places
from converters.outputs import refuse_inputs

if TYPE_CHECKING:
    from converters.cli.convert import Settings

_SNIFFED = 4096  # bytes of a file in which <net stands, if it is an IR


@dataclass(frozen=True)
class Outcome:
    """What became of one model.

    Attributes:
        model: the .xml.
        target: the .onnx.
        code: the exit code that it would have had alone.
        document: what ``--json`` says of it: a conversion, or problems.
    """

    model: Path
    target: Path
    code: int
    document: dict[str, Any]


def convert_all(models: Sequence[Path], output: Path | None, settings: Settings, jobs: int, as_json: bool) -> int:
    """Convert every model; returns the exit code.

    Raises:
        ValueError: where there is nothing to convert, two files would become one, or one would take an input's place.
    """
    targets = _targets(models, output)
    copies = _companions(models, output)
    inputs = [*targets, *(model.with_suffix(".bin") for model in targets), *settings.files, *copies]
    refuse_inputs([*targets.values(), *copies.values()], inputs)
    outcomes: dict[Path, Outcome] = {}
    for outcome in _shown(_converted(targets, settings, jobs), len(targets), as_json):
        outcomes[outcome.model] = outcome
    ordered = [outcomes[model] for model in targets]
    copy_companions(copies)
    if as_json:
        failed = sum(outcome.code > 0 for outcome in ordered)
        print_json(
            {
                "conversions": [outcome.document for outcome in ordered],
                "converted": len(ordered) - failed,
                "failed": failed,
                "copied": [str(path) for path in copies.values()],
            }
        )
    else:
        from converters.cli import text

        text.print_batch(out, ordered)
        if copies:
            out.print(f"{len(copies)} files came along: configurations, tokenizer files and the like", highlight=False)
    return max(outcome.code for outcome in ordered)


def _targets(models: Sequence[Path], output: Path | None) -> dict[Path, Path]:
    """The .onnx that each .xml becomes; those of a folder stand under ``output`` as they stand in the folder."""
    targets: dict[Path, Path] = {}
    for given in models:
        found = sorted(filter(_is_ir, given.rglob("*.xml"))) if given.is_dir() else [given]
        if not found:
            raise ValueError(f"{given} holds no IR")
        for model in found:
            place = model.relative_to(given) if given.is_dir() else Path(model.name)
            targets[model] = (model if output is None else output / place).with_suffix(".onnx")
    _refuse_two_of_one_place(targets)
    if output is not None and output.is_file():
        raise ValueError(f"{output} is a file: several models need a folder")
    return targets


def _companions(models: Sequence[Path], output: Path | None) -> dict[Path, Path]:
    """What belongs to the models whose folders were given, and where it goes."""
    if output is None:
        return {}
    copies: dict[Path, Path] = {}
    for folder in models:
        if folder.is_dir() and is_model_folder(folder):
            copies |= places(folder, output)
    _refuse_two_of_one_place(copies)
    return copies


def _refuse_two_of_one_place(targets: Mapping[Path, Path]) -> None:
    """Raises ``ValueError`` where two files would become one."""
    taken: dict[str, Path] = {}
    for path, target in targets.items():
        if (other := taken.setdefault(os.path.normcase(os.path.realpath(target)), path)) is not path:
            raise ValueError(f"{other} and {path} would both become {target}")


def _is_ir(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b"<net" in file.read(_SNIFFED)
    except OSError:
        return False


def _converted(targets: dict[Path, Path], settings: Settings, jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        for model, target in targets.items():
            yield _convert(model, target, settings)
        return
    # A process for each: what one does to itself, or to memory, does not reach the others.
    pool = ThreadPoolExecutor(jobs)
    try:
        futures = [pool.submit(_convert_apart, model, target, settings) for model, target in targets.items()]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)  # interrupted, the rest is not begun


def _convert(model: Path, target: Path, settings: Settings) -> Outcome:
    from converters.cli import data

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        report = settings.convert(model, target).report
    except Exception as error:
        return _failed(model, target, problems_of(error))
    return Outcome(model, target, 0, {"output": str(target), **data.conversion(report)})


def _failed(model: Path, target: Path, problems: Sequence[Problem]) -> Outcome:
    from converters.cli import data

    document = {"model": str(model), "problems": [data.problem(problem) for problem in problems]}
    return Outcome(model, target, exit_code(problems), document)


def _convert_apart(model: Path, target: Path, settings: Settings) -> Outcome:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return _in_a_process(model, target, settings)
    except Exception as error:
        return _failed(model, target, problems_of(error))


def _in_a_process(model: Path, target: Path, settings: Settings) -> Outcome:
    command = [sys.executable, "-m", "converters.cli", "convert", "-o", str(target), "--json"]
    command += ["--weights", settings.weights, "--opset", str(settings.opset), *(["--strict"] if settings.strict else [])]
    command += {"float16": ["--fp16"], "float32": ["--fp32"]}.get(settings.precision, [])
    command += ["--activations", settings.activations, "--variables", settings.variables]
    command += ["--quantized", settings.quantized, *([] if settings.contrib else ["--no-contrib"])]
    command += [part for rules in settings.rules for part in ("--rules", rules)]
    done = subprocess.run([*command, "--", str(model)], capture_output=True, text=True)
    try:
        document = json.loads(done.stdout)
    except ValueError:
        if done.returncode == -9:  # as the system ends what takes too much memory
            return _failed(model, target, [Problem("its process was killed: was there enough memory?", str(model))])
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        message = f"the process that converted it ended with {last}"
        return _failed(model, target, [Problem(message, str(model), remedy=REPORT, fault=Fault.INTERNAL)])
    code = done.returncode if done.returncode in range(MISTAKE + 1) else MISTAKE
    return Outcome(model, target, code or (BAD_INPUT if "problems" in document else 0), {"model": str(model), **document})


def _shown(outcomes: Iterable[Outcome], total: int, as_json: bool) -> Iterator[Outcome]:
    """The outcomes, with a bar on a terminal that a person reads."""
    if as_json or not err.is_terminal:
        yield from outcomes
        return
    from rich.progress import track

    yield from track(outcomes, description="converting", total=total, console=err, transient=True)
