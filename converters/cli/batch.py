"""Several models in one call of ``specops convert``: each in its turn or side by side, a summary, one exit code."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from converters.cli.checking import Checking, require_openvino
from converters.cli.console import err, out, print_json
from converters.cli.failures import DIFFERENCE, exit_code, problems_of
from converters.cli.processes import ProcessFailure, call_in_processes
from converters.errors import REPORT, ConversionError, Fault, Problem
from converters.folders import layouts
from converters.folders.agreement import check_folder
from converters.folders.companions import copy_companions, is_model_folder, places
from converters.folders.layouts import Layout
from converters.folders.tokenizers import DETOKENIZER, TOKENIZER
from converters.folders.variants import Variant, place, quantize
from converters.formats import find_models, format_of
from converters.outputs import reject_inputs
from converters.suggestions import did_you_mean

if TYPE_CHECKING:
    from converters.cli.convert import Settings

_TOKENIZERS = (TOKENIZER, DETOKENIZER)


@dataclass(frozen=True)
class Outcome:
    """What became of one model.

    Attributes:
        model: the .xml.
        target: the .onnx.
        code: the exit code that it would have had alone.
        document: what ``--json`` says of it: a conversion, with its check where one was asked for, or problems.
    """

    model: Path
    target: Path
    code: int
    document: dict[str, Any]

    @property
    def failed(self) -> bool:
        """Whether there is no .onnx."""
        return "problems" in self.document

    @property
    def differs(self) -> bool:
        """Whether a check found a difference."""
        return not self.failed and not self.document.get("check", {"agrees": True})["agrees"]


@dataclass(frozen=True)
class Folders:
    """How models' folders are written.

    Attributes:
        layout: the names of their models.
        variants: what is written beside each onnx/model.onnx.
    """

    layout: Layout
    variants: Sequence[Variant] = ()


@dataclass(frozen=True)
class _Task:
    """What to do with one model: shapes that its inputs get, and how to check it."""

    model: Path
    target: Path
    input_shapes: Mapping[str, Sequence[int]]
    checking: Checking | None


def convert_all(
    models: Sequence[Path],
    output: Path | None,
    settings: Settings,
    jobs: int,
    as_json: bool,
    checking: Checking | None,
    folders: Folders,
) -> int:
    """Convert every model; returns the exit code.

    Args:
        models: IR files, and folders of them.
        output: the folder of the .onnx files; by default each is beside its IR.
        settings: what concerns each model alike; shapes of inputs are for each model that has such an input.
        jobs: how many models are converted at a time.
        as_json: whether one JSON object is printed, for programs.
        checking: how each is compared with OpenVINO; ``None`` compares none.
        folders: how models' folders are written.

    Raises:
        ConversionError: the files of a model's folder do not belong together.
        ValueError: where there is nothing to convert, two files would become one, one would take an input's place, or no
            model has an input that a shape is for.
    """
    targets = _targets(models, output, folders.layout)
    encoders = _with_variants(targets, folders.variants)
    copies = _companions(models, output)
    extra = [place(path, variant) for path in encoders.values() for variant in folders.variants]
    inputs = [*targets, *(model.with_suffix(".bin") for model in targets), *settings.files, *copies]
    reject_inputs([*targets.values(), *extra, *copies.values()], inputs)
    if checking is not None:
        require_openvino()
    tasks = _tasks(targets, settings.options.input_shapes or {}, checking)
    existing = {target for target in targets.values() if target.exists()}
    outcomes: dict[Path, Outcome] = {}
    for outcome in _shown(_converted(tasks, settings, jobs), len(targets), as_json):
        outcomes[outcome.model] = outcome
    for folder in models:
        if folder.is_dir() and folders.layout == "hosts" and is_model_folder(folder):
            given = {model: outcome for model, outcome in outcomes.items() if folder in model.parents}
            if together := _all_or_none(folder, given, existing, output):
                outcomes |= together
                copies = {path: to for path, to in copies.items() if folder not in path.parents}
    ordered = [outcomes[model] for model in targets]
    copy_companions(copies)
    whole = [task for task in tasks if task.model in encoders and not outcomes[task.model].failed]
    made = _write_variants(whole, folders.variants, settings)
    if as_json:
        failed = sum(outcome.failed for outcome in ordered)
        print_json(
            {
                "conversions": [outcome.document for outcome in ordered],
                "converted": len(ordered) - failed,
                "failed": failed,
                "differ": sum(outcome.differs for outcome in ordered),
                "copied": [str(path) for path in copies.values()],
                "variants": made,
            }
        )
    else:
        from converters.cli import text

        text.print_batch(out, ordered)
        if copies:
            out.print(f"{len(copies)} files came along: configurations, tokenizer files and the like", highlight=False)
        for variant in made:
            out.print(f"{variant['output']}{variant['remark']}", highlight=False, soft_wrap=True, markup=False)
    return max(outcome.code for outcome in ordered)


def _targets(models: Sequence[Path], output: Path | None, layout: Layout) -> dict[Path, Path]:
    """The .onnx that each .xml becomes; those of a model's folder by its layout, others as they stand in their folder."""
    targets: dict[Path, Path] = {}
    for given in models:
        found = find_models(given) if given.is_dir() else [given]
        if not found:
            raise ValueError(f"{given} holds no IR")
        if given.is_dir() and layout == "hosts" and is_model_folder(given):
            check_folder(given, found)
            chosen = layouts.places(given, found, layout)
            targets |= {model: (given if output is None else output) / chosen[model] for model in found}
            continue
        for model in found:
            place = model.relative_to(given) if given.is_dir() else Path(model.name)
            targets[model] = (model if output is None else output / place).with_suffix(".onnx")
    _reject_duplicate_outputs(targets)
    if output is not None and output.is_file():
        raise ValueError(f"{output} is a file: several models need a folder")
    return targets


def _all_or_none(
    folder: Path, outcomes: Mapping[Path, Outcome], existing: Container[Path], output: Path | None
) -> dict[Path, Outcome]:
    """What became of a folder's models where one of them cannot be converted: no host loads the others, and none is kept.

    Args:
        folder: a model's folder.
        outcomes: what became of each of its models.
        there: the files that were there before, which are kept.
        output: the folder that was written to.
    """
    parts = {model: outcome for model, outcome in outcomes.items() if model.name not in _TOKENIZERS}
    failed = [model for model, outcome in parts.items() if outcome.failed]
    if not failed:
        return {}
    outcomes = {model: outcome for model, outcome in outcomes.items() if not outcome.failed}
    for outcome in outcomes.values():
        if outcome.target in existing:
            continue
        for path in (outcome.target, outcome.target.with_name(f"{outcome.target.name}.data")):
            path.unlink(missing_ok=True)
    for target in {*(outcome.target for outcome in outcomes.values()), *(parts[model].target for model in failed)}:
        for parent in target.parents:
            if parent in (output, folder) or not parent.is_dir() or any(parent.iterdir()):
                break
            parent.rmdir()
    message = f"it converts, but it is of no use without {failed[0].relative_to(folder)}, which does not"
    return {
        model: _failed(model, outcome.target, [Problem(message, str(model), fault=Fault.UNSUPPORTED)])
        for model, outcome in outcomes.items()
    }


def _with_variants(targets: Mapping[Path, Path], variants: Sequence[Variant]) -> dict[Path, Path]:
    """The models that variants are written of, and their places."""
    if not variants:
        return {}
    found = {
        model: target for model, target in targets.items() if target.parts[-2:] == (layouts.ONNX, f"{layouts.MODEL}.onnx")
    }
    if not found:
        raise ValueError("--variant is for folders of encoders, whose model becomes onnx/model.onnx: there is none")
    return found


def _write_variants(tasks: Sequence[_Task], variants: Sequence[Variant], settings: Settings) -> list[dict[str, Any]]:
    """Other files of the same models; what ``--json`` says of each."""
    made = []
    kept = settings.options.weights  # 16-bit weights are nowhere to be referred to
    weights = "auto" if kept == "reference" else kept
    for task in tasks:
        target = task.target
        for variant in dict.fromkeys(variants):
            remark = ""
            if variant is Variant.fp16:
                more = {"precision": "float16", "weights": weights, "input_shapes": task.input_shapes}
                settings.convert(task.model, place(target, variant), **more)
            elif not quantize(target, variant):
                remark = ": no weights that ONNX Runtime could quantise"
            made.append({"variant": variant.value, "output": str(place(target, variant)), "remark": remark})
    return made


def _companions(models: Sequence[Path], output: Path | None) -> dict[Path, Path]:
    """What belongs to the models whose folders were given, and where it goes."""
    if output is None:
        return {}
    copies: dict[Path, Path] = {}
    for folder in models:
        if folder.is_dir() and is_model_folder(folder):
            copies |= places(folder, output)
    _reject_duplicate_outputs(copies)
    return copies


def _reject_duplicate_outputs(targets: Mapping[Path, Path]) -> None:
    """Raises ``ValueError`` where two files would become one."""
    taken: dict[str, Path] = {}
    for path, target in targets.items():
        if (other := taken.setdefault(os.path.normcase(os.path.realpath(target)), path)) is not path:
            raise ValueError(f"{other} and {path} would both become {target}")


def _tasks(
    targets: Mapping[Path, Path], input_shapes: Mapping[str, Sequence[int]], checking: Checking | None
) -> list[_Task]:
    """What to do with each model, of the shapes those that are for an input that it has."""
    shapes = {} if checking is None else checking.shapes
    names = {model: _input_names(model) if input_shapes or shapes else set() for model in targets}
    if absent := sorted({*input_shapes, *shapes}.difference(*names.values())):
        meant = did_you_mean(absent[0], set().union(*names.values()))
        raise ValueError(f"no model has an input that is called {absent[0]}{f': {meant}' if meant else ''}")
    tasks = []
    for model, target in targets.items():
        own = {name: dims for name, dims in shapes.items() if name in names[model]}
        fixed = {name: dims for name, dims in input_shapes.items() if name in names[model]}
        tasks.append(_Task(model, target, fixed, None if checking is None else replace(checking, shapes=own)))
    return tasks


def _input_names(model: Path) -> set[str]:
    """All names of a model's inputs; none where it cannot be read, which its conversion tells."""
    try:
        with format_of(model).open(model) as source:
            return {name for port in source.inputs for name in port.aliases}
    except ConversionError:
        return set()


def _converted(tasks: Sequence[_Task], settings: Settings, jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        for task in tasks:
            yield _convert(task, settings)
        return
    # A process for each: what one does to itself, or to memory, does not reach the others.
    for (task, _), answer in call_in_processes(_convert, [(task, settings) for task in tasks], jobs):
        yield answer if isinstance(answer, Outcome) else _process_failed(task, answer)


def _convert(task: _Task, settings: Settings) -> Outcome:
    from converters.cli import data

    try:
        task.target.parent.mkdir(parents=True, exist_ok=True)
        report = settings.convert(task.model, task.target, input_shapes=task.input_shapes).report
        document = {"output": str(task.target), **data.conversion(report)}
        if task.checking is None:
            return Outcome(task.model, task.target, 0, document)
        # A check's steps on standard error would come between the bars of the whole.
        validation = task.checking.compare(task.model, task.target, as_json=True)
    except (Exception, SystemExit) as error:  # rules, and what they import, may try to end the program
        return _failed(task.model, task.target, problems_of(error))
    code = 0 if validation.agrees else DIFFERENCE
    return Outcome(task.model, task.target, code, {**document, "check": data.validation(validation)})


def _failed(model: Path, target: Path, problems: Sequence[Problem]) -> Outcome:
    from converters.cli import data

    document = {"model": str(model), "problems": [data.problem(problem) for problem in problems]}
    return Outcome(model, target, exit_code(problems), document)


def _process_failed(task: _Task, failure: ProcessFailure) -> Outcome:
    """What became of a model whose process ended."""
    if failure.killed:  # as the system ends what takes too much memory
        problem = Problem("its process was killed: was there enough memory?", str(task.model))
    else:
        message = f"the process that converted it ended with {failure.reason}"
        problem = Problem(message, str(task.model), remedy=REPORT, fault=Fault.INTERNAL)
    return _failed(task.model, task.target, [problem])


def _shown(outcomes: Iterable[Outcome], total: int, as_json: bool) -> Iterator[Outcome]:
    """The outcomes, with a bar on a terminal that a person reads."""
    if as_json or not err.is_terminal:
        yield from outcomes
        return
    from rich.progress import track

    yield from track(outcomes, description="converting", total=total, console=err, transient=True)
