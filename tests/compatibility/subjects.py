"""The models of the compatibility tests: the repository's own, and one for each kind of rule."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from converters.errors import UnsupportedError
from converters.openvino import convert
from tests.conformance.check import decide
from tests.conformance.operations.cases import CASES
from tests.conformance.oracle import Oracle

MODELS = Path(__file__).parents[2] / "models"

# For each family of rules, a case with high demands on the opset: run-time axes, new types, bodies.
CHOSEN = (
    "AvgPool-14-",
    "BitwiseAnd-13-",
    "Bucketize-3-",
    "Col2Im-15-",
    "ConvolutionBackpropData-1-",
    "DeformableConvolution-8-",
    "DFT-7-",
    "Einsum-7-",
    "EmbeddingBagOffsetsSum-3-",
    "FakeConvert-13-",
    "FakeQuantize-1-",
    "GatherND-8-",
    "Gelu-7-",
    "GridSample-9-",
    "GroupNormalization-12-",
    "Interpolate-11-",
    "LSTMSequence-5-",
    "Loop-5-",
    "MatMul-1-",
    "Maximum-1-",
    "MVN-6-",
    "NonMaxSuppression-9-",
    "Pad-12-",
    "ReduceL2-4-",
    "ROIAlign-9-",
    "ScaledDotProductAttention-13-",
    "ScatterNDUpdate-15-",
    "Softmax-8-",
    "Split-1-",
    "TopK-11-",
)


@dataclass(frozen=True)
class Subject:
    """A model with inputs and OpenVINO's results.

    Attributes:
        name: its name in the table.
        path: its .xml.
        data: an .npz with ``run0``, ``expected0``, ``run1``, ...: lists of arrays.
        rtol, atol: the tolerances of floats.
        values: whether to compare values; otherwise only shapes, for random values.
    """

    name: str
    path: Path
    data: Path
    rtol: float
    atol: float
    values: bool

    def at(self, opset: int, folder: Path) -> dict[str, object] | list[str]:
        """Return the manifest entry for the model at an opset, or the reasons why it cannot be converted."""
        target = folder / f"{self.name}-{opset}.onnx"
        try:
            _, report = convert(self.path, target, opset=opset)
        except UnsupportedError as error:
            return sorted({problem.message for problem in error.problems})
        if report.without_body:
            return [f"{name}, which has no equivalent in standard ONNX" for name in report.without_body]
        return {
            "key": f"{self.name}@{opset}",
            "model": str(target),
            "data": str(self.data),
            "rtol": self.rtol,
            "atol": self.atol,
            "values": self.values,
        }


def subjects(folder: Path) -> list[Subject]:
    """Return every subject with OpenVINO's results."""
    oracle = Oracle()
    try:
        return [*_models(oracle, folder), *_cases(oracle, folder)]
    finally:
        oracle.close()


def _models(oracle: Oracle, folder: Path) -> list[Subject]:
    found = []
    for path in sorted(MODELS.glob("*/model.xml")):
        inputs = np.load(path.with_name("inputs.npz"), allow_pickle=False)
        names = [value.name for value in convert(path).model.graph.input]
        runs = [[inputs[name].astype(object) if inputs[name].dtype.kind in "US" else inputs[name] for name in names]]
        answers = oracle.run(path, runs, names=("cpu",))["cpu"]
        if not isinstance(answers, list):
            raise RuntimeError(f"{path}: {answers}")
        random = any(layer in path.read_text() for layer in ('type="Multinomial"',))
        data = _saved(folder / f"{path.parent.name}.npz", runs, answers)
        found.append(Subject(path.parent.name, path, data, 1e-3, 1e-4, not random))
    return found


def _cases(oracle: Oracle, folder: Path) -> list[Subject]:
    found = []
    for prefix in CHOSEN:
        case = next(case for case in CASES if case.id.startswith(prefix) and not case.state and case.seeded_body)
        place = folder / case.id
        place.mkdir(parents=True, exist_ok=True)
        path, runs = case.save(place), [list(arrays) for arrays in case.inputs]
        expected = decide(case, oracle.run(path, runs, names={"expected": ()}.get(case.oracle, ("cpu", "evaluate"))))
        data = _saved(folder / f"{case.id}.npz", runs, expected)
        found.append(Subject(case.id, path, data, case.rtol, case.atol, True))
    return found


def _saved(path: Path, runs: list[list[np.ndarray]], expected: list[list[np.ndarray]]) -> Path:
    arrays = {}
    for number, (inputs, outputs) in enumerate(zip(runs, expected, strict=True)):
        for name, values in (("run", inputs), ("expected", outputs)):
            whole = np.empty(len(values), object)
            whole[:] = values
            arrays[f"{name}{number}"] = whole
    np.savez(path, **arrays)
    return path


def write_manifest(path: Path, entries: list[dict[str, object]]) -> Path:
    """Write the file that `runner` reads."""
    path.write_text(json.dumps(entries))
    return path
