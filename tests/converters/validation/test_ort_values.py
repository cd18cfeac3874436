"""Arrays as OrtValues and back."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from converters.validation.low_precision import loaded, stored
from converters.validation.ort_values import run_session

TYPES = {
    np.float32: TensorProto.FLOAT,
    np.int64: TensorProto.INT64,
    np.bool_: TensorProto.BOOL,
    ml_dtypes.bfloat16: TensorProto.BFLOAT16,
    ml_dtypes.float8_e4m3fn: TensorProto.FLOAT8E4M3FN,
    ml_dtypes.float8_e5m2: TensorProto.FLOAT8E5M2,
    ml_dtypes.int4: TensorProto.INT4,
    ml_dtypes.uint4: TensorProto.UINT4,
}


def passed_on(*inputs: tuple[str, int]) -> ort.InferenceSession:
    """Create a session that returns its inputs in reverse order."""
    nodes = [helper.make_node("Cast", [name], [f"{name}_out"], to=kind) for name, kind in inputs]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, kind, None) for name, kind in inputs],
        [helper.make_tensor_value_info(f"{name}_out", kind, None) for name, kind in inputs[::-1]],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return ort.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0, 3)])
def test_every_type_in_and_out(dtype: type, shape: tuple[int, ...]) -> None:
    array = (np.arange(int(np.prod(shape))) % 7 + 1).reshape(shape).astype(dtype)
    (got,) = run_session(passed_on(("x", TYPES[dtype])), {"x": array})
    assert (got.dtype, got.shape) == (array.dtype, array.shape)
    assert got.tolist() == array.tolist()


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16])
def test_every_code(dtype: type) -> None:
    codes = np.arange(16 if "int4" in np.dtype(dtype).name else 256, dtype=np.uint8)
    array = codes.view(dtype) if np.dtype(dtype).itemsize == 1 else (codes.astype(np.uint16) * 257).view(dtype)
    (got,) = run_session(passed_on(("x", TYPES[dtype])), {"x": array})
    np.testing.assert_array_equal(got.astype(np.float64), array.astype(np.float64))


def test_several_types_and_chosen_outputs() -> None:
    feeds = {"a": np.ones(2, np.float32), "b": np.array([1, 2.5], ml_dtypes.bfloat16), "c": np.array([[3]])}
    session = passed_on(*((name, TYPES[array.dtype.type]) for name, array in feeds.items()))
    assert [output.tolist() for output in run_session(session, feeds)] == [[[3]], [1.0, 2.5], [1.0, 1.0]]
    assert [output.tolist() for output in run_session(session, feeds, ["b_out", "a_out"])] == [[1.0, 2.5], [1.0, 1.0]]


def test_packed_elements_begin_with_the_low_bits() -> None:
    array = np.array([1, -2, 7], ml_dtypes.int4)
    assert stored(array).tolist() == [0xE1, 0x07]
    assert loaded(stored(array), array.dtype, (3,)).tolist() == array.tolist()
