"""Sessions of in-memory models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_specops
from onnx_specops.runtime import models
from tests.onnx_specops.runtime.graphs import TABLE, sum_of_rows
from tests.onnx_specops.runtime.test_session import INDICES, KERNELS, SUM

X = np.linspace(-1, 1, 32, dtype=np.float32)


@pytest.mark.parametrize("kernels", KERNELS)
def test_proto(kernels: str) -> None:
    made = onnx_specops.add_bodies(sum_of_rows())
    before = made.SerializeToString()
    np.testing.assert_array_equal(onnx_specops.InferenceSession(made, kernels=kernels).run(None, INDICES)[0], SUM)
    assert made.SerializeToString() == before


@pytest.mark.parametrize("type_", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize("kernels", KERNELS)
def test_proto_larger_than_the_limit_of_protobuf(kernels: str, type_: type, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = (np.arange(32 * 64).reshape(32, 64) % 5 - 2).astype(type_)
    nodes = [
        helper.make_node("Cast", ["w"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
        helper.make_node("Reshape", ["y", "shape"], ["z"]),
    ]
    x, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xz")
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(np.array([8, 8]), "shape")]
    made = helper.make_model(
        helper.make_graph(nodes, "g", [x], [z], constants), opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )
    monkeypatch.setattr(models, "LARGEST", 1500)
    assert made.ByteSize() > models.LARGEST
    (got,) = onnx_specops.InferenceSession(made, kernels=kernels).run(None, {"x": X})
    np.testing.assert_allclose(got, (X @ weights.astype(np.float32)).reshape(8, 8), rtol=1e-5)


def test_proto_that_is_too_large_without_its_initializers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "LARGEST", 10)
    with pytest.raises(ValueError, match="no runtime can load it"):
        onnx_specops.InferenceSession(sum_of_rows())


def test_external_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """External weights are relative to the working directory, as for models from bytes in ONNX Runtime."""
    path = tmp_path / "model.onnx"
    onnx.save(sum_of_rows(TABLE), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    made = onnx.load(path, load_external_data=False)
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(onnx_specops.InferenceSession(made).run(None, INDICES)[0], SUM)
