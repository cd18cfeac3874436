"""Conversion of several models in one call of ``specops convert``, with a summary and one exit code."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
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
from converters.folders.companions import check_companions, copy_companions, is_model_folder, places
from converters.folders.layouts import Layout
from converters.folders.set_aside import SetAside
from converters.folders.tokenizers import DETOKENIZER, TOKENIZER
from converters.folders.variants import Variant, place, quantize
from converters.folders.whole import created
from converters.formats import find_models, format_of
from converters.outputs import reject_inputs
from converters.suggestions import did_you_mean

if TYPE_CHECKING:
    from converters.cli.convert import Settings

_TOKENIZERS = (TOKENIZER, DETOKENIZER)


@dataclass(frozen=True)
class Outcome:
    """The result for one model.

    Attributes:
        model: the .xml.
        target: the .onnx.
        code: the exit code of a conversion of only this model.
        document: the output of ``--json`` for it: the conversion, with its check if requested, or its problems.
    """

    model: Path
    target: Path
    code: int
    document: dict[str, Any]

    @property
    def failed(self) -> bool:
        """Whether the conversion failed."""
        return "problems" in self.document

    @property
    def damaged(self) -> bool:
        """Whether the conversion failed for another reason than an unsupported layer."""
        problems = self.document.get("problems", ())
        return any(problem["fault"] != Fault.UNSUPPORTED.value for problem in problems)

    @property
    def differs(self) -> bool:
        """Whether a check found a difference."""
        return not self.failed and not self.document.get("check", {"agrees": True})["agrees"]


@dataclass(frozen=True)
class Folders:
    """The settings for model folders.

    Attributes:
        layout: the names of the models.
        variants: the additional files for each onnx/model.onnx.
    """

    layout: Layout
    variants: Sequence[Variant] = ()


@dataclass(frozen=True)
class _Task:
    """The conversion of one model, with the shapes of its inputs and its check."""

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
    """Convert all models and return the exit code.

    Args:
        models: IR files, and folders of them.
        output: the folder of the .onnx files; by default, each is next to its IR.
        settings: the settings for all models. The shape of an input applies to each model that has the input.
        jobs: the number of models that are converted in parallel.
        as_json: whether to print one JSON object.
        checking: how to compare each model with OpenVINO; ``None`` skips the comparison.
        folders: the settings for model folders.

    Raises:
        ConversionError: the files in a model folder are inconsistent.
        ValueError: there is nothing to convert, two outputs have the same path, an output would overwrite an input, or no
            model has an input for which a shape is given.
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
    hosted = {
        folder: {model: target for model, target in targets.items() if folder in model.parents}
        for folder in models
        if folder.is_dir() and folders.layout == "hosts" and is_model_folder(folder)
    }
    outcomes: dict[Path, Outcome] = {}
    replaced = [path for group in hosted.values() for target in group.values() for path in _files(target)]
    with nullcontext() if output is None else created(output), SetAside(replaced) as previous:
        for outcome in _shown(_converted(tasks, settings, jobs), len(targets), as_json):
            outcomes[outcome.model] = outcome
        for folder, group in hosted.items():
            if together := _all_or_none(folder, {model: outcomes[model] for model in group}, output):
                outcomes |= together
                previous.restore(path for target in group.values() for path in _files(target))
        for folder in models:  # without a model, the other files are useless
            if all(outcome.failed for model, outcome in outcomes.items() if folder in model.parents):
                copies = {path: to for path, to in copies.items() if folder not in path.parents}
        try:
            copy_companions(copies)
        except BaseException:  # without the other files, no host can load the models
            _remove([target for group in hosted.values() for target in group.values()])
            for folder in hosted:
                _prune([*hosted[folder].values(), *copies.values()], folder, output)
            raise
    ordered = [outcomes[model] for model in targets]
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
            out.print(f"copied {len(copies)} other files, such as configurations and tokenizer files", highlight=False)
        for variant in made:
            out.print(f"{variant['output']}{variant['remark']}", highlight=False, soft_wrap=True, markup=False)
    return max(outcome.code for outcome in ordered)


def _targets(models: Sequence[Path], output: Path | None, layout: Layout) -> dict[Path, Path]:
    """Return the .onnx of each .xml. The layout determines the names in a model folder. Other models keep their path in the
    folder.
    """
    targets: dict[Path, Path] = {}
    for given in models:
        found = _models(given) if given.is_dir() else [given]
        if not found:
            raise ValueError(f"{given} contains no IR")
        is_folder = given.is_dir() and is_model_folder(given)
        if is_folder and (layout == "hosts" or output is not None):
            check_folder(given, found)  # the configurations are copied, or are next to the models
        if is_folder and layout == "hosts":
            chosen = layouts.places(given, found, layout)
            targets |= {model: (given if output is None else output) / chosen[model] for model in found}
            continue
        for model in found:
            place = model.relative_to(given) if given.is_dir() else Path(model.name)
            targets[model] = (model if output is None else output / place).with_suffix(".onnx")
    _reject_duplicate_outputs(targets)
    if output is not None and output.is_file():
        raise ValueError(needs_folder(str(output)))
    return targets


def _models(folder: Path) -> list[Path]:
    """Return the models in a folder. In that of one model, damaged IRs are included, which their conversion reports."""
    exported = folder.rglob(f"{layouts.PREFIX}*.xml") if is_model_folder(folder) else ()
    return sorted({*find_models(folder), *(path for path in exported if path.is_file())})


def needs_folder(output: str) -> str:
    """Return the message for a file name as the output of several models."""
    folder = str(Path(output).with_suffix("")) or "FOLDER"
    return (
        f"{output} is a file, but several models require a folder: use -o {folder} to write all .onnx files to a new "
        "folder, omit -o to write each one next to its model, or convert a single model"
    )


def _files(target: Path) -> tuple[Path, Path]:
    """Return a model, and the file of its external data."""
    return target, target.with_name(f"{target.name}.data")


def _all_or_none(folder: Path, outcomes: Mapping[Path, Outcome], output: Path | None) -> dict[Path, Outcome]:
    """If one model of a folder fails, fail all its models and remove their files, because no library can load the others
    without it. Libraries have their own tokenizers, so an OpenVINO tokenizer may be unsupported, but not damaged.

    Args:
        folder: a model's folder.
        outcomes: the results of its models.
        output: the output folder.
    """
    parts = {model: one for model, one in outcomes.items() if model.name not in _TOKENIZERS or one.damaged}
    failed = [model for model, outcome in parts.items() if outcome.failed]
    if not failed:
        return {}
    outcomes = {model: outcome for model, outcome in outcomes.items() if not outcome.failed}
    converted = [outcome.target for outcome in outcomes.values()]
    _remove(converted)
    _prune([*converted, *(parts[model].target for model in failed)], folder, output)
    message = f"it was converted, but removed again because {failed[0].relative_to(folder)} cannot be converted"
    return {
        model: _failed(model, outcome.target, [Problem(message, str(model), fault=Fault.UNSUPPORTED)])
        for model, outcome in outcomes.items()
    }


def _remove(targets: Iterable[Path]) -> None:
    for target in targets:
        for path in _files(target):
            path.unlink(missing_ok=True)


def _prune(paths: Iterable[Path], folder: Path, output: Path | None) -> None:
    """Remove the empty folders of paths inside a model's folder and the output folder."""
    for path in dict.fromkeys(paths):
        for parent in path.parents:
            if parent in (output, folder) or not parent.is_dir() or any(parent.iterdir()):
                break
            parent.rmdir()


def _with_variants(targets: Mapping[Path, Path], variants: Sequence[Variant]) -> dict[Path, Path]:
    """Return the models for which variants are written, and the paths of the variants."""
    if not variants:
        return {}
    hosted = {place for place in targets.values() if place.parent.name == layouts.ONNX and place.stem in layouts.HOSTED}
    found = {model: target for model, target in targets.items() if target in hosted}
    if not found:
        raise ValueError("--variant requires a folder whose model becomes onnx/model.onnx, such as that of an encoder")
    return found


def _write_variants(tasks: Sequence[_Task], variants: Sequence[Variant], settings: Settings) -> list[dict[str, Any]]:
    """Write the variants of the models. Return the output of ``--json`` for each."""
    made = []
    kept = settings.options.weights  # files with other weights cannot refer to 16-bit weights
    weights = "auto" if kept == "reference" else kept
    for task in tasks:
        target = task.target
        for variant in dict.fromkeys(variants):
            remark = ""
            if variant is Variant.fp16:
                more = {"precision": "float16", "weights": weights, "input_shapes": task.input_shapes}
                settings.convert(task.model, place(target, variant), **more)
            elif not quantize(target, variant):
                remark = ": the model has no weights that ONNX Runtime can quantize"
            made.append({"variant": variant.value, "output": str(place(target, variant)), "remark": remark})
    return made


def _companions(models: Sequence[Path], output: Path | None) -> dict[Path, Path]:
    """Return the companion files of the given folders, and their destinations."""
    if output is None:
        return {}
    copies: dict[Path, Path] = {}
    for folder in models:
        if folder.is_dir() and is_model_folder(folder):
            check_companions(folder)
            copies |= places(folder, output)
    _reject_duplicate_outputs(copies)
    return copies


def _reject_duplicate_outputs(targets: Mapping[Path, Path]) -> None:
    """Raise ``ValueError`` if two outputs have the same path."""
    taken: dict[str, Path] = {}
    for path, target in targets.items():
        if (other := taken.setdefault(os.path.normcase(os.path.realpath(target)), path)) is not path:
            raise ValueError(f"{other} and {path} have the same output file, {target}")


def _tasks(
    targets: Mapping[Path, Path], input_shapes: Mapping[str, Sequence[int]], checking: Checking | None
) -> list[_Task]:
    """Return the conversion of each model, with the shapes of the inputs that it has."""
    shapes = {} if checking is None else checking.shapes
    names = {model: _input_names(model) if input_shapes or shapes else set() for model in targets}
    if absent := sorted({*input_shapes, *shapes}.difference(*names.values())):
        meant = did_you_mean(absent[0], set().union(*names.values()))
        raise ValueError(f"no model has an input named {absent[0]}{f': {meant}' if meant else ''}")
    tasks = []
    for model, target in targets.items():
        own = {name: dims for name, dims in shapes.items() if name in names[model]}
        fixed = {name: dims for name, dims in input_shapes.items() if name in names[model]}
        tasks.append(_Task(model, target, fixed, None if checking is None else replace(checking, shapes=own)))
    return tasks


def _input_names(model: Path) -> set[str]:
    """Return all names of a model's inputs, or none if it cannot be read. Its conversion then reports why."""
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
    # Each model has its own process, so that a crash or a lack of memory does not affect the others.
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
        # Hide the progress of the check, which would interrupt the bar of the whole batch.
        validation = task.checking.compare(task.model, task.target, as_json=True)
    except (Exception, SystemExit) as error:  # rules and their imports may try to exit
        return _failed(task.model, task.target, problems_of(error))
    code = 0 if validation.agrees else DIFFERENCE
    return Outcome(task.model, task.target, code, {**document, "check": data.validation(validation)})


def _failed(model: Path, target: Path, problems: Sequence[Problem]) -> Outcome:
    from converters.cli import data

    document = {"model": str(model), "problems": [data.problem(problem) for problem in problems]}
    return Outcome(model, target, exit_code(problems), document)


def _process_failed(task: _Task, failure: ProcessFailure) -> Outcome:
    """Return the result of a model whose process failed."""
    if failure.killed:  # probably by the system, for lack of memory
        problem = Problem("its process was killed, possibly because the system ran out of memory", str(task.model))
    else:
        message = f"its process ended with {failure.reason}"
        problem = Problem(message, str(task.model), remedy=REPORT, fault=Fault.INTERNAL)
    return _failed(task.model, task.target, [problem])


def _shown(outcomes: Iterable[Outcome], total: int, as_json: bool) -> Iterator[Outcome]:
    """Yield the outcomes, with a progress bar if standard error is a terminal."""
    if as_json or not err.is_terminal:
        yield from outcomes
        return
    from rich.progress import track

    yield from track(outcomes, description="converting", total=total, console=err, transient=True)
