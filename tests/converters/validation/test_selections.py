"""Differences that a selection causes between equals are accepted; errors before, in and after a selection are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from converters.source import Inference
from converters.validation.compare import DEFAULT, compare
from converters.validation.onnx_model import OnnxModel
from converters.validation.selections import SAME_SELECTIONS, Selections, before_selections
from converters.validation.validate import validate

# The second best score leads by the last bit, in the source's runtime only.
SCORES = np.array([[0.5, 1.0, 1.0, 0.25]], np.float32)
THEIRS = np.nextafter(SCORES, SCORES + np.array([[0, 0, 1, 0]], np.float32))
BOXES = np.array([[10, 20, 30, 40]], np.float32)

MODEL = """
<ir_version: 10, opset_import: ["" : 21]>
detect (float[1, 4] image) => (int64[1, 1] best, float[1, 1] box, float[1, 4] scores)
<float one = {1}, int64[1] k = {1}, float[1, 4] boxes = {10, 20, 30, 40}, float two = {2}, float half = {0.5}>
{
    scores = Mul (image, one)
    value, best = TopK <largest = 1> (scores, k)
    chosen = GatherElements <axis = 1> (boxes, best)
    twice = Mul (chosen, two)
    box = Mul (twice, half)
}
"""


class Baseline:
    """A runtime that computes `THEIRS` for the scores."""

    runtime, title, has_low_precision = "openvino", "OpenVINO, CPU", False

    def __init__(self, layers: dict[str, np.ndarray], outputs: list[np.ndarray]) -> None:
        self.layers, self.outputs = layers, outputs

    def run(self, inputs: Sequence[np.ndarray], layers: Sequence[str] = (), *, low_precision: bool = False) -> Inference:
        return Inference([self.outputs], [self.layers.get(layer) for layer in layers])


def verdict(
    folder: Path, change: Callable[[str], str] = lambda text: text, layers: dict[str, np.ndarray] | None = None
) -> dict[str, tuple[bool, str]]:
    """Return the verdict on each output of the changed model, whose source chose the third box, not the second."""
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(change(MODEL)), path)
    model = OnnxModel.load(path)
    outputs = [np.array([[2]]), np.array([[30]], np.float32), THEIRS]
    baseline = Baseline({"scores": THEIRS, "best": outputs[0]} if layers is None else layers, outputs)
    known = {name: name for name in ("scores", "best")}
    selections = Selections(lambda: known, baseline, model, folder, DEFAULT)  # type: ignore[arg-type, return-value]
    image = {"image": SCORES}
    ours = [np.array([[1]]), np.array([[20]], np.float32), SCORES]
    found = {name: compare(*pair, DEFAULT) for name, *pair in zip(model.outputs, ours, outputs, strict=True)}
    judged = selections.judged("none", image, found)
    selections.close()
    assert [file.name for file in folder.iterdir()] == ["model.onnx"]
    return {name: (comparison.agrees, comparison.note) for name, comparison in judged.items()}


def test_a_tie(tmp_path: Path) -> None:
    assert verdict(tmp_path) == {"best": (True, SAME_SELECTIONS), "box": (True, SAME_SELECTIONS), "scores": (True, "")}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("float one = {1}", "float one = {1.01}"),  # before the selection
        ("largest = 1", "largest = 0"),  # the selection
        ("int64[1] k = {1}, float[1, 4] boxes = {10, 20, 30, 40}", "int64[1] k = {1}, float[1, 4] boxes = {10, 20, 31, 40}"),
        ("float half = {0.5}", "float half = {0.51}"),  # after the selection
    ],
)
def test_errors(tmp_path: Path, before: str, after: str) -> None:
    assert before in MODEL
    found = verdict(tmp_path, lambda text: text.replace(before, after))
    assert found["box"] == (False, "")


def test_values_that_the_source_does_not_give(tmp_path: Path) -> None:
    assert verdict(tmp_path, layers={})["box"] == (False, "")


@pytest.mark.parametrize(("theirs", "agrees"), [([[2, 1]], True), ([[1, 2]], True), ([[2, 3]], False)])
def test_equal_elements(tmp_path: Path, theirs: list[list[int]], agrees: bool) -> None:
    """A TopK may choose equal elements in any order, and no other element."""

    text = MODEL.replace("k = {1}", "k = {2}").replace("[1, 1] best, float[1, 1]", "[1, 2] best, float[1, 2]")
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    model = OnnxModel.load(path)
    indices = np.array(theirs)
    outputs = [indices, BOXES[0][indices], SCORES]
    baseline = Baseline({"scores": SCORES, "best": indices}, outputs)
    known = {name: name for name in ("scores", "best")}
    selections = Selections(lambda: known, baseline, model, tmp_path, DEFAULT)  # type: ignore[arg-type, return-value]
    found = {"box": compare(np.array([[0, 0]], np.float32), outputs[1], DEFAULT)}
    assert selections.judged("none", {"image": SCORES}, found)["box"].agrees == agrees


@pytest.mark.parametrize(("theirs", "agrees"), [([[2, 1]], True), ([[1, 2]], True), ([[2, 3]], False)])
def test_equal_integers(tmp_path: Path, theirs: list[list[int]], agrees: bool) -> None:
    """A TopK of integers, such as the experts of a mixture, may choose equal ones in any order, and no other one."""
    text = MODEL.replace("k = {1}", "k = {2}").replace("[1, 1] best, float[1, 1]", "[1, 2] best, float[1, 2]")
    text = text.replace("one = {1}", "one = {4}").replace("(scores, k)", "(whole, k)")
    text = text.replace("    value,", "    whole = Cast <to = 7> (scores)\n    value,")
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    model = OnnxModel.load(path)
    indices = np.array(theirs)
    outputs = [indices, BOXES[0][indices], 4 * SCORES]
    baseline = Baseline({"scores": 4 * SCORES, "whole": (4 * SCORES).astype(np.int64), "best": indices}, outputs)
    known = {name: name for name in ("scores", "whole", "best")}
    selections = Selections(lambda: known, baseline, model, tmp_path, DEFAULT)  # type: ignore[arg-type, return-value]
    found = {"box": compare(np.array([[0, 0]], np.float32), outputs[1], DEFAULT)}
    assert selections.judged("none", {"image": SCORES}, found)["box"].agrees == agrees


def test_the_nearest_known_values() -> None:
    graph = onnx.parser.parse_graph("""
        g (float[4] x, float[4] z) => (float[4] y)
        <float[1] zero = {0}>
        {
            known = Relu (x)
            far = Abs (known)
            near = Neg (far)
            inner = Exp (near)
            mask = Greater (inner, zero)
            other = Relu (z)
            y = Where (mask, other, x)
        }
    """)
    assert before_selections(graph, dict.fromkeys(["known", "near", "other"])) == ["near"]
    assert before_selections(graph, dict.fromkeys(["known"])) == ["known"]
    assert before_selections(graph, {}) == []


def test_selections_in_nested_graphs() -> None:
    graph = onnx.parser.parse_graph("""
        g (bool c, float[4] x) => (float[4] y)
        {
            known = Relu (x)
            y = If (c) <
                then_branch = yes () => (float[4] a) { a = Round (known) },
                else_branch = no () => (float[4] b) { b = Neg (x) }
            >
        }
    """)
    assert before_selections(graph, {"known": None}) == ["known"]


@pytest.mark.parametrize("samples", [1, 2])
def test_a_network(tmp_path: Path, samples: int) -> None:
    """The scores are sums of the same terms in another order. Their last bits decide which is the largest."""
    rng = np.random.default_rng(3)
    terms = rng.standard_normal(500).astype(np.float32)
    weights = np.stack([rng.permutation(terms) for _ in range(64)], 1)
    x = ops.parameter([1, 500], np.float32, name="x")
    scores = ops.matmul(x, ops.constant(weights), False, False, name="scores")
    best = ops.topk(scores, np.int64(3), 1, "max", "value", name="best")
    boxes = ops.gather(ops.constant(np.arange(64, dtype=np.float32)), best.output(1), np.int64(0), name="boxes")
    path = tmp_path / "model.xml"
    ov.save_model(ov.Model([ops.result(boxes)], [x]), path, compress_to_fp16=False)
    if samples > 1:
        folder = tmp_path / "samples"
        folder.mkdir()
        for sample in range(samples):
            np.savez(folder / f"{sample}.npz", x=np.full((1, 500), 1 + sample, np.float32))
        inputs: Path | dict[str, np.ndarray] = folder
    else:
        inputs = {"x": np.ones((1, 500), np.float32)}
    onnx_path = tmp_path / "model.onnx"
    convert(path, onnx_path)
    assert validate(path, onnx_path, inputs=inputs, runtimes=["openvino", "none", "reference"]).agrees
    model = onnx.load(onnx_path)
    for node in model.graph.node:
        if node.op_type == "TopK":
            node.attribute.append(onnx.helper.make_attribute("largest", 0))
    onnx.save(model, onnx_path)
    assert not validate(path, onnx_path, inputs=inputs, runtimes=["openvino", "none"]).agrees
