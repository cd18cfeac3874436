"""Converted models in onnx's unmodified reference evaluator, against ONNX Runtime.

A third of the networks runs by default, and all of them with ``--conformance=all``.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
import pytest
from onnx.reference import ReferenceEvaluator

import onnx_specops
from converters.openvino import convert
from tests.comparison import assert_close
from tests.conformance.models import kept
from tests.conformance.models.table import NETWORKS

ROOT = Path(__file__).parents[2]
OVERLOADS = "treats functions that differ in `overload` as one, the last of the name"
INLINED = {
    "embedding_bag_offsets_sum": OVERLOADS,  # too many bodies for one dispatcher
    "multinomial": OVERLOADS,
    "SegformerForSemanticSegmentation": OVERLOADS,  # bodies of ONNX Runtime's attention for 1, 2, 3 and 4 heads
}
"""Models whose functions are inlined first, with the defect of onnx 1.23's evaluator that requires it."""
FAILING = {"TapasModel": ("cannot reshape array", "GatherElements by numpy.choose")}
"""The evaluator's exceptions, with their defects."""
BODILESS = {"recommender", "vocabulary_table"}
"""Models of operators that standard ONNX cannot represent."""
RANDOM = {"multinomial"}
"""Models whose bodies draw random numbers, which differ between runtimes."""
NAMED = {network.name: network for network in NETWORKS if network.kept}


def compare(name: str, ir: Path, feeds: dict[str, np.ndarray], opset: int = 21) -> None:
    converted = ir.with_name(f"{ir.stem}-plain.onnx")
    convert(ir, converted, opset=opset)
    session = onnx_specops.InferenceSession(str(converted), kernels="none")
    # networks use other names
    feeds = dict(zip((value.name for value in session.get_inputs()), feeds.values(), strict=True))
    names = [output.name for output in session.get_outputs()]
    expected = session.run(names, feeds)
    model = onnx.load(converted)
    if name in INLINED:
        model = onnx.inliner.inline_local_functions(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's warnings about overflow
        got = ReferenceEvaluator(model).run(names, feeds)
    for one, other in zip(got, expected, strict=True):
        assert_close(np.asarray(one), other, 1e-3, 1e-4, values=name not in RANDOM)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "network" in metafunc.fixturenames:
        step = 1 if metafunc.config.getoption("--conformance") == "all" else 3
        metafunc.parametrize("network", sorted({*sorted(NAMED)[::step], *FAILING}))


@pytest.mark.parametrize("name", sorted({path.parent.name for path in ROOT.glob("models/*/model.xml")} - BODILESS))
def test_examples(name: str, tmp_path: Path) -> None:
    folder = ROOT / "models" / name
    for file in ("model.xml", "model.bin"):
        (tmp_path / file).symlink_to(folder / file)
    compare(name, tmp_path / "model.xml", dict(np.load(folder / "inputs.npz")))


def test_networks(network: str, tmp_path: Path) -> None:
    found = NAMED[network]
    ir, feeds = kept.unpack(found, tmp_path), found.runs()[0]
    if network not in FAILING:
        compare(network, ir, feeds)
        return
    with pytest.raises(ValueError, match=FAILING[network][0]):
        compare(network, ir, feeds)
