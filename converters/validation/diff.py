"""Comparison of two ONNX files, value by value, on the same inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import onnx

from converters.validation.arrays import check_inputs, guessed_inputs, random_inputs
from converters.validation.compare import DEFAULT, Comparison, Tolerance, compare
from converters.validation.distributions import Distribution, distribution, worst
from converters.validation.inputs import ModelInputs, load_samples
from converters.validation.onnx_model import OnnxModel
from converters.validation.runtimes import Arrays, cpu_session, infer
from converters.validation.times.repeating import median_seconds

Kernels = Literal["auto", "native", "python", "none"]


@dataclass(frozen=True)
class ValueDifference:
    """The comparison of a value of the second model with that of the first.

    Attributes:
        name: its name in the first model.
        operators: the operators that compute it in both models; empty for an input.
        place: the position of its node in the first model's graph, from 0.
        comparison: the difference.
    """

    name: str
    operators: tuple[str, str]
    place: int
    comparison: Comparison


@dataclass
class Diff:
    """The result of `diff`.

    Attributes:
        paths: the two models.
        outputs: the models' own outputs.
        values: the inner values with the same name in both, in the first model's order.
        seconds: the median time of an inference of each.
        nodes: the number of nodes of each.
        worst: the distributions of the values with the largest differences.
        guessed: the random inputs with a guessed size, which the models may not support.
        samples: the samples, if there are several. The comparisons of outputs are the worst of all of them.
        sample: the sample whose inner values were compared: the first one that differs, or the first one if none differs.
        samples_apart: the samples with differing outputs.
        by_place: ``"inputs"`` and ``"outputs"`` if their names differ and they were matched by order.
    """

    paths: tuple[Path, Path]
    outputs: list[ValueDifference]
    values: list[ValueDifference]
    seconds: tuple[float, float]
    nodes: tuple[int, int]
    worst: list[Distribution[ValueDifference]] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)
    by_place: list[str] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)
    sample: str = ""
    samples_apart: list[str] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether the outputs of the models agree. Inner values may differ if the models compute the outputs differently."""
        return all(output.comparison.agrees for output in self.outputs)

    @property
    def first(self) -> ValueDifference | None:
        """The first value, in the first model's order, that differs."""
        apart = [value for value in (*self.values, *self.outputs) if not value.comparison.agrees]
        return min(apart, key=lambda value: value.place, default=None)


def diff(
    first: str | Path,
    second: str | Path,
    *,
    inputs: str | Path | Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    tolerance: Tolerance = DEFAULT,
    kernels: Kernels = "auto",
    progress: Callable[[str], None] = lambda step: None,
) -> Diff:
    """Run two ONNX models in ONNX Runtime with the same inputs, and compare their outputs and inner values.

    Inputs and outputs are matched by name or, if the names differ, by order.

    Args:
        first, second: the .onnx files; the first has the expected values.
        inputs: samples for `converters.validation.inputs.load_samples`, or arrays by the first model's input names; random
            inputs for ``None``.
        seed: the seed of random inputs.
        shapes: the shapes of random inputs by name. Other dynamic dimensions get the size 2.
        tolerance: the allowed difference of floats.
        kernels: the plugin's kernels, see `onnx_specops.InferenceSession`.
        progress: receives the name of each step.

    Raises:
        ValueError: a file is not a model that ONNX Runtime runs, or the numbers of inputs or outputs differ.
    """
    one, other = OnnxModel.load(Path(first)), OnnxModel.load(Path(second))
    by_place: list[str] = []
    their_inputs = _matched([spec.name for spec in one.inputs], [spec.name for spec in other.inputs], "inputs", by_place)
    their_outputs = _matched(one.outputs, other.outputs, "outputs", by_place)
    samples, guessed = _arrays(inputs, one, seed, shapes or {})
    for arrays in samples.values():
        arrays.update(_rounded(arrays, their_inputs, other))
    pairs = {
        sample: (arrays, check_inputs({their_inputs[n]: array for n, array in arrays.items()}, other.inputs, str(second)))
        for sample, arrays in samples.items()
    }
    makers, others = _producers(one), _producers(other)
    common = [name for name in makers if name in others and name not in their_outputs]
    random = one.random | other.random

    def compared(name: str, theirs_name: str, first_values: Arrays, second_values: Arrays) -> ValueDifference:
        place, operator = makers.get(name, (-1, ""))
        operators = operator, others.get(theirs_name, (-1, ""))[1]
        is_random = kernels == "none" and name in random
        found = compare(second_values[theirs_name], first_values[name], tolerance, random=is_random, widths=True)
        return ValueDifference(name, operators, place, found)

    narrow = _narrowest(one), _narrowest(other)
    if narrow[0] != narrow[1]:
        tolerance = replace(tolerance, rounding=max(tolerance.rounding, *narrow))
    farthest: list[ValueDifference] = []
    samples_apart: list[str] = []
    chosen = next(iter(pairs))
    if len(pairs) > 1:
        results = [
            _outputs_of(model, [pair[place] for pair in pairs.values()], names, kernels, progress)
            for place, (model, names) in enumerate(((one, one.outputs), (other, list(their_outputs.values()))))
        ]
        rows = [[compared(name, their_outputs[name], *both) for name in one.outputs] for both in zip(*results, strict=True)]
        samples_apart = [
            sample for sample, row in zip(pairs, rows, strict=True) if not all(value.comparison.agrees for value in row)
        ]
        chosen = next(iter(samples_apart), chosen)
        farthest = [max(of_output, key=_distance) for of_output in zip(*rows, strict=True)]
    arrays, renamed = pairs[chosen]
    with tempfile.TemporaryDirectory(prefix="specops-") as folder:
        first_values, seconds = _run(one, arrays, one.outputs, common, kernels, Path(folder), progress)
        second_values, other_seconds = _run(
            other, renamed, list(their_outputs.values()), common, kernels, Path(folder), progress
        )
    result = Diff(
        (one.path, other.path),
        farthest or [compared(name, their_outputs[name], first_values, second_values) for name in one.outputs],
        [
            compared(name, name, first_values, second_values)
            for name in common
            if name in first_values and name in second_values
        ],
        (seconds, other_seconds),
        (len(one.proto.graph.node), len(other.proto.graph.node)),
        guessed=guessed,
        by_place=by_place,
        samples=list(pairs) if len(pairs) > 1 else [],
        sample=chosen if len(pairs) > 1 else "",
        samples_apart=samples_apart,
    )
    for row in worst([*result.values, *result.outputs], lambda row: row.name):
        got = second_values[their_outputs.get(row.name, row.name)]
        result.worst.append(distribution(row, got, first_values[row.name]))
    return result


def _matched(first: Sequence[str], second: Sequence[str], kind: str, by_place: list[str]) -> dict[str, str]:
    """Match the second model's names with the first's."""
    if set(first) == set(second):
        return dict(zip(first, first, strict=True))
    if len(first) != len(second):
        raise ValueError(f"the models have {len(first)} and {len(second)} {kind}: {', '.join(first)}; {', '.join(second)}")
    by_place.append(kind)
    return dict(zip(first, second, strict=True))


def _arrays(
    inputs: str | Path | Mapping[str, np.ndarray] | None,
    model: OnnxModel,
    seed: int,
    shapes: Mapping[str, Sequence[int]],
) -> tuple[dict[str, Arrays], list[str]]:
    """Return the samples by name, and the random inputs with guessed sizes."""
    if inputs is not None and shapes:
        raise ValueError("shapes apply to random inputs only, but inputs are given")
    if isinstance(inputs, Mapping):
        return {"": check_inputs(inputs, model.inputs, "the inputs")}, []
    if inputs is not None:
        return load_samples(inputs, ModelInputs.by_onnx(model.proto, model.inputs)), []
    return {"": random_inputs(model.inputs, seed, shapes)}, guessed_inputs(model.inputs, shapes)


def _rounded(arrays: Arrays, names: Mapping[str, str], other: OnnxModel) -> Arrays:
    """Round the floats whose type in the other model is narrower."""
    types = {spec.name: spec.dtype for spec in other.inputs}
    found = {}
    for name, array in arrays.items():
        narrow = types[names[name]]
        if "float" in narrow.name and "float" in array.dtype.name and narrow.itemsize < array.dtype.itemsize:
            found[name] = array.astype(narrow).astype(array.dtype)
    return found


# Operators that only change the type, or return their input.
_NOT_COMPUTED = frozenset(("Cast", "CastLike", "Constant", "DequantizeLinear", "Identity"))


def _narrowest(model: OnnxModel) -> float:
    """Return the distance from 1 to the next number of the narrowest type that a model computes in, if it has 16 bits; else
    0.
    """
    try:
        typed = onnx.shape_inference.infer_shapes(model.proto).graph
    except Exception:  # ONNX may reject a model that ONNX Runtime accepts
        typed = model.proto.graph
    types = {value.name: value.type.tensor_type.elem_type for value in (*typed.value_info, *typed.output)}
    computed = {types.get(name) for node in typed.node if node.op_type not in _NOT_COMPUTED for name in node.output}
    if onnx.TensorProto.BFLOAT16 in computed:
        return 2.0**-7
    return 2.0**-10 if onnx.TensorProto.FLOAT16 in computed else 0.0


def _producers(model: OnnxModel) -> dict[str, tuple[int, str]]:
    """Return for each value of the outermost graph the position and the operator of its node."""
    return {
        name: (place, f"{node.domain}.{node.op_type}" if node.domain else node.op_type)
        for place, node in enumerate(model.proto.graph.node)
        for name in node.output
        if name
    }


def _run(
    model: OnnxModel,
    arrays: Arrays,
    outputs: Sequence[str],
    within: Sequence[str],
    kernels: Kernels,
    folder: Path,
    progress: Callable[[str], None],
) -> tuple[Arrays, float]:
    """Return the outputs of the unchanged model, and inner values from another session, which fuses less."""
    progress(str(model.path))
    try:
        values, seconds = _run_outputs(model, arrays, outputs, kernels)
        if within:
            progress(f"{model.path}, value by value")
            values |= _within(model, arrays, within, kernels, folder)
    except ImportError:
        raise
    except Exception as error:  # ONNX Runtime's exceptions have no common base class
        raise ValueError(f"{model.path}: {error} (--shape and --inputs set other inputs)") from None
    return values, seconds


def _distance(row: ValueDifference) -> tuple[bool, float, float]:
    found = row.comparison
    return not found.agrees, found.relative_l2 or 0.0, 1 - found.exact


def _outputs_of(
    model: OnnxModel, samples: Sequence[Arrays], outputs: Sequence[str], kernels: Kernels, progress: Callable[[str], None]
) -> list[Arrays]:
    """Return the model's outputs for each sample, in one session, from its initial state each time."""
    progress(f"{model.path}, {len(samples)} samples")
    try:
        session = cpu_session(model.path, kernels)
        results = []
        for arrays in samples:
            session.reset_state()
            results.append(infer(session, arrays, outputs))
    except ImportError:
        raise
    except Exception as error:  # ONNX Runtime's exceptions have no common base class
        raise ValueError(f"{model.path}: {error}") from None
    return results


def _run_outputs(model: OnnxModel, arrays: Arrays, outputs: Sequence[str], kernels: Kernels) -> tuple[Arrays, float]:
    session = cpu_session(model.path, kernels)
    values = infer(session, arrays, outputs)
    return values, median_seconds(lambda: infer(session, arrays, outputs))


def _within(model: OnnxModel, arrays: Arrays, names: Sequence[str], kernels: Kernels, folder: Path) -> Arrays:
    file = model.with_outputs(names, folder)
    try:
        session = cpu_session(file, kernels)
        tensors = {value.name for value in session.get_outputs() if value.type.startswith("tensor")}
        wanted = [name for name in names if name in tensors]
        return infer(session, arrays, wanted)
    finally:
        file.unlink()
