"""Keras's recurrent layers, which OpenVINO's frontend wrote as Loops, compared with OpenVINO. `record` made the files."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import openvino as ov
import pytest

from converters.openvino import convert
from tests.converters.passes.test_recurrent_loops import usual_operators
from tests.converters.passes.while_loops.record import FILE

STAY = {"two_cells", "conv_lstm"} | {f"{kind}_masked" for kind in ("lstm", "gru", "gru_reset_before", "rnn")}
"""Layers that remain Loops: two cells, convolutions, and masked steps, which keep the state."""

with zipfile.ZipFile(FILE) as archive:
    NAMES = sorted(name.removesuffix(".xml") for name in archive.namelist() if name.endswith(".xml"))


def fed(name: str, value: ov.Output, batch: int, steps: int | None = None) -> np.ndarray:
    """Return numbers for an input, with zeros for masked steps."""
    sizes = [dim.get_length() if dim.is_static else steps or 7 for dim in list(value.partial_shape)[1:]]
    array = np.random.default_rng(0).standard_normal([batch, *sizes]).astype(np.float32)
    if name.endswith("_masked"):
        array[0, [0, 2]] = array[-1, -2:] = 0
    return array


@pytest.mark.parametrize("name", NAMES)
def test_results(name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(FILE) as archive:
        for suffix in ("xml", "bin"):
            archive.extract(f"{name}.{suffix}", tmp_path)
    made, _ = convert(tmp_path / f"{name}.xml", tmp_path / "model.onnx")
    emitted = list(usual_operators(ir.from_proto(made).graph))
    assert ("Loop" in emitted) == (name in STAY)
    assert name == "conv_lstm" or "ScatterND" not in emitted
    model = ov.Core().read_model(tmp_path / f"{name}.xml")
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    session = ort.InferenceSession(str(tmp_path / "model.onnx"))
    names = [value.name for value in session.get_inputs()]
    for batch in (2, 1, 3):
        given = [fed(name, value, batch) for value in model.inputs]
        variants = [given]
        for number, place in ((np.nan, 1), (np.inf, 2), (-np.inf, 0)):
            changed = given[0].copy()
            changed[(-1, place) + (0,) * (changed.ndim - 2)] = number
            variants.append([changed, *given[1:]])
        for arrays in variants if "_relu" not in name else variants[:1]:
            expected = list(compiled(arrays).values())
            got = session.run(None, dict(zip(names, arrays, strict=True)))
            for one, other in zip(got, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, strict=True)


@pytest.mark.parametrize("rows", [(3, 1, 1), (1, 3, 3), (1, 1, 3)])
def test_states_of_one_row(rows: tuple[int, ...], tmp_path: Path) -> None:
    """OpenVINO repeats data or states of one row."""
    with zipfile.ZipFile(FILE) as archive:
        for suffix in ("xml", "bin"):
            archive.extract(f"given_states.{suffix}", tmp_path)
    convert(tmp_path / "given_states.xml", tmp_path / "model.onnx")
    model = ov.Core().read_model(tmp_path / "given_states.xml")
    arrays = [fed("", value, batch) for value, batch in zip(model.inputs, rows, strict=True)]
    expected = list(ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(arrays).values())
    session = ort.InferenceSession(str(tmp_path / "model.onnx"))
    got = session.run(None, dict(zip((value.name for value in session.get_inputs()), arrays, strict=True)))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, strict=True)


@pytest.mark.parametrize("target", ["coreml", "opencv", "tensorrt", "tract"])
@pytest.mark.parametrize("name", ["lstm_all", "gru_reset_before_backward"])
def test_targets(name: str, target: str, tmp_path: Path) -> None:
    """Other targets have the same nodes, or the steps of them."""
    with zipfile.ZipFile(FILE) as archive:
        for suffix in ("xml", "bin"):
            archive.extract(f"{name}.{suffix}", tmp_path)
    model = ov.Core().read_model(tmp_path / f"{name}.xml")
    model.reshape([2, *(dim.get_length() for dim in list(model.inputs[0].partial_shape)[1:])])
    ov.save_model(model, tmp_path / "static.xml")
    made, _ = convert(tmp_path / "static.xml", tmp_path / "model.onnx", target=target)
    assert "Loop" not in usual_operators(ir.from_proto(made).graph)
    given = fed(name, model.inputs[0], 2)
    expected = list(ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([given]).values())
    session = ort.InferenceSession(str(tmp_path / "model.onnx"))
    got = session.run(None, {session.get_inputs()[0].name: given})
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, strict=True)
