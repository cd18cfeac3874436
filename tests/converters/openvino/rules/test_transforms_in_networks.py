"""Fourier transforms whose sizes are computed when the model runs, between other layers: OpenVINO's results."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from converters.openvino import convert

ov = pytest.importorskip("openvino")
ops = pytest.importorskip("openvino.opset13")

_EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def _network(kind: str, sizes, dims):
    """A transform of a value whose memory is free afterwards, so that a result of its size could be stored there."""
    x = ops.parameter(dims, np.float32, name="x")
    before = ops.abs(ops.negative(ops.abs(x)))
    given = [ops.parameter([1], np.int64, name="size")] if sizes is None else [ops.constant(np.array(sizes))]
    transform = {"DFT": ops.dft, "IDFT": ops.idft, "IRDFT": ops.irdft}[kind](before, np.array([2]), given[0])
    after = ops.negative(ops.abs(ops.negative(transform)))
    return ov.Model([after], [x, *(given if sizes is None else [])], "test")


@pytest.mark.parametrize("options", [{}, {"precision": "float16"}, {"target": "standard", "opset": 18}])
@pytest.mark.parametrize(
    ("kind", "dims"),
    [
        ("DFT", (-1, -1, -1, 2)),
        ("IDFT", (-1, -1, -1, 2)),
        ("IRDFT", (-1, -1, -1, 2)),
        ("DFT", (1, 3, 8, 2)),
        ("IDFT", (1, 3, 8, 2)),  # the CPU plugin rejects IRDFT with one size that is unknown
    ],
)
@pytest.mark.parametrize("sizes", [None, [16]])
def test_sizes_at_run_time(tmp_path, sizes, dims, kind, options):
    path = tmp_path / "model.xml"
    ov.save_model(_network(kind, sizes, dims), path, compress_to_fp16=False)
    convert(path, path.with_suffix(".onnx"), **options)
    onnx.checker.check_model(onnx.load(path.with_suffix(".onnx")), full_check=True)
    session = ort.InferenceSession(path.with_suffix(".onnx"))
    reference = ov.Core().compile_model(path, "CPU", _EXACT)
    for size in (16, 8, 4) if sizes is None else sizes:
        if kind == "IRDFT" and size // 2 + 1 > 8:
            continue  # the CPU plugin reads beyond the data
        feeds = [np.random.default_rng(size).normal(size=(1, 3, 8, 2)).astype(np.float32)]
        feeds += [] if sizes else [np.array([size])]
        expected = reference(feeds)[0]
        (found,) = session.run(None, dict(zip((one.name for one in session.get_inputs()), feeds, strict=True)))
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() <= (2e-2 if "precision" in options else 1e-5) * np.abs(expected).max()
