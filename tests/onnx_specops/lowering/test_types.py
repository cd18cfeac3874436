"""Casts to types that an opset lacks round as those types do."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest

from onnx_specops.building import IR_VERSION, OPSET_IMPORTS, Builder, new_value
from onnx_specops.kernel_types import insert_casts
from onnx_specops.lowering import Lower, Stamp

D = ir.DataType
_EXTREMES = [0.0, -0.0, 448, 464, 465, 57344, 61440, 3.3895e38, 3.3961e38, 3.4e38, 1e-38, 1e-40, 2.0**-133, np.inf, np.nan]
_NUMBERS = np.concatenate([
    np.arange(0, 2**16, 7, np.uint16).view(np.float16).astype(np.float32),
    np.arange(0, 2**31, 2**31 // 40_007, np.int64).astype(np.uint32).view(np.float32),
    np.array(_EXTREMES, np.float32), -np.array(_EXTREMES, np.float32),
])  # fmt: skip


def _computed(numbers: np.ndarray, to: ir.DataType, opset: int) -> np.ndarray:
    """Cast to the type and back to float32."""
    graph = ir.Graph([], [], nodes=[], name="test", opset_imports=dict(OPSET_IMPORTS))
    op = Builder(graph)
    x = new_value(ir.DataType.from_numpy(numbers.dtype), [None], "x")
    graph.inputs.append(x)
    saturate = {} if to == D.BFLOAT16 else {"saturate": 0}
    graph.outputs.append(op.Cast(op.Cast(x, to=to, **saturate), to=D.FLOAT))
    model = ir.Model(graph, ir_version=IR_VERSION)
    Lower(opset)(model)
    insert_casts(model.graph, opset=opset)
    Stamp(opset)(model)
    session = ort.InferenceSession(ir.to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": numbers})[0]


@pytest.mark.parametrize(
    ("to", "expected", "opset"),
    [
        (D.BFLOAT16, ml_dtypes.bfloat16, 11),
        (D.BFLOAT16, ml_dtypes.bfloat16, 12),
        (D.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn, 11),
        (D.FLOAT8E5M2, ml_dtypes.float8_e5m2, 18),
    ],
)
@pytest.mark.parametrize("source", [np.float32, np.float64, np.int32])
def test_casts_round_to_nearest_even(to, expected, opset, source):
    numbers = _NUMBERS if source != np.int32 else np.arange(-70_000, 70_000, 13)
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = numbers.astype(source)
        wanted = numbers.astype(np.float32).astype(expected).astype(np.float32)
    np.testing.assert_array_equal(_computed(numbers, to, opset), wanted)
