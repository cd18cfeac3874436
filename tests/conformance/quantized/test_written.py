"""Random networks in forms that NNCF does not write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest

import onnx_specops
from converters.openvino import convert
from tests.conformance.models.noise import relative_l2
from tests.conformance.quantized.test_quantized import EXACT
from tests.conformance.quantized.written import written


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("quantized", ["integer", "float"])
def test_written_networks_agree_with_openvino(seed: int, quantized: str, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    ov.save_model(written(seed), path, compress_to_fp16=False)
    convert(path, tmp_path / "model.onnx", quantized=quantized)
    compiled = ov.Core().compile_model(path, "CPU", EXACT)
    port = compiled.inputs[0]
    given = np.random.default_rng(0).standard_normal(list(port.shape)).astype(port.element_type.to_dtype())
    expected = list(compiled([given]).values())
    got = onnx_specops.InferenceSession(tmp_path / "model.onnx").run(None, {"x0": given})
    allowed = 0.02 if port.element_type == ov.Type.f16 else 0.002
    for one, other in zip(got, expected, strict=True):
        assert relative_l2(one.astype(np.float32), other.astype(np.float32)) <= allowed
