"""Networks in every compression of NNCF stay compressed and agree with OpenVINO's CPU plugin."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.external_data_helper import uses_external_data

import onnx_specops
from converters.openvino import convert
from converters.passes import compressed_weights
from converters.validation.compare import relative_l2
from onnx_specops.runtime.library import has_library
from tests.conformance.compressed.record import FILES

NAMES = sorted({name.removesuffix(".xml") for name in zipfile.ZipFile(FILES).namelist() if name.endswith(".xml")})
KERNELS = ["native", "none"] if has_library() else ["none"]
# Networks whose activations OpenVINO rounds to 8 bits.
INTEGERS = [name for name in NAMES if name.startswith(("int8", "int4"))]


@pytest.fixture
def recorded(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, dict[str, np.ndarray]]:
    """Return the .xml of a network, and its inputs and outputs."""
    name = request.param
    with zipfile.ZipFile(FILES) as archive:
        for suffix in (".xml", ".bin"):
            (tmp_path / f"model{suffix}").write_bytes(archive.read(name + suffix))
        arrays = dict(np.load(io.BytesIO(archive.read(f"{name}.npz"))))
    return tmp_path / "model.xml", arrays


@pytest.fixture(autouse=True)
def small_models_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep 16-bit floats in small models, too."""
    monkeypatch.setattr(compressed_weights, "HALVES_BYTES", 0)


def run(path: Path, arrays: dict[str, np.ndarray], kernels: str) -> np.ndarray:
    return onnx_specops.InferenceSession(str(path), kernels=kernels).run(None, {"ids": arrays["ids"]})[0]


@pytest.mark.parametrize("weights", ["embed", "reference"])
@pytest.mark.parametrize("recorded", NAMES, indirect=True)
def test_float_activations(recorded, weights, request) -> None:
    xml, arrays = recorded
    thirds = "int3" in request.node.name  # u3, whose small constants become u8
    path = xml.with_suffix(".onnx")
    proto, _ = convert(xml, path, weights=weights)
    assert [node.op_type for node in proto.graph.node].count("MatMulCompressed") == 2
    assert all(node.op_type != "MatMul" for node in proto.graph.node)
    if thirds:
        pass
    elif weights == "embed":
        assert path.stat().st_size < 1.1 * xml.with_suffix(".bin").stat().st_size + 80_000
    else:
        large = [tensor for tensor in proto.graph.initializer if np.prod(tensor.dims) > 4096]
        assert large and all(uses_external_data(tensor) for tensor in large)
    onnx.checker.check_model(str(path), full_check=True)
    for kernels in KERNELS:
        assert relative_l2(run(path, arrays, kernels), arrays["exact"]) < 2e-6


@pytest.mark.parametrize("recorded", INTEGERS, indirect=True)
def test_8_bit_activations(recorded) -> None:
    """The error is at most OpenVINO's own plus that of another rounding."""
    xml, arrays = recorded
    path = xml.with_suffix(".onnx")
    convert(xml, path, activations="int8")
    allowed = max(1.5 * relative_l2(arrays["shipped"], arrays["exact"]), 5e-3)
    for kernels in KERNELS:
        assert 1e-5 < relative_l2(run(path, arrays, kernels), arrays["exact"]) < allowed


@pytest.mark.parametrize("recorded", ["int4_asym", "nf4"], indirect=True)
@pytest.mark.parametrize("changes", [{"opset": 17}, {"precision": "float32"}])
def test_without_the_operator(recorded, changes) -> None:
    """Without the plugin's operators the file also stays small."""
    xml, arrays = recorded
    path = xml.with_suffix(".onnx")
    proto, _ = convert(xml, path, **changes)
    assert all(node.domain == "" for node in proto.graph.node)
    assert path.stat().st_size < 1.1 * xml.with_suffix(".bin").stat().st_size + 60_000
    assert relative_l2(run(path, arrays, "none"), arrays["exact"]) < 5e-4


def test_the_files_match_the_script() -> None:
    assert {"f16", "int8_asym", "int8_sym", "int4_asym", "int4_sym", "nf4", "fp8_e4m3", "mxfp4", "cb4"} <= set(NAMES)
