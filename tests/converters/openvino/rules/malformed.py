"""Layers that violate their specification: the conversion names the layer in an error, or follows OpenVINO."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir
import openvino as ov
import pytest

from converters.errors import ConversionError, Fault
from converters.openvino import convert
from converters.openvino.onnx_types import element_type
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.shapes import same_dims
from tests.converters.openvino.reader import ir_text

# Messages about limits of this release, not about faults of the file.
_LIMITS = (
    "^no rule converts|is newer than opset|which the specification does not define$|^its axis is not a constant$"
    "|determine the type|^it exceeds a limit|element type cannot be converted"
)

F32, I64, U8, BOOL = ("f32", "FP32"), ("i64", "I64"), ("u8", "U8"), ("boolean", "BOOL")


# Messages about facts that OpenVINO does not read or infers itself: shapes, types, attributes.
PASSED_OVER = "in the file|not known|not an integer|neither true nor false|gives 2"


def rows(table: Sequence[tuple]) -> list:
    """Return the rows of a table as test parameters: type, opset, attributes, inputs, outputs, message."""
    return [pytest.param(row, id=f"{row[0]}-{i}") for i, row in enumerate(table)]


def assert_reported(folder: Path, kind: str, version: str, data: str, inputs, outputs, message: str) -> None:
    """Call `assert_named`, or `assert_as_openvino_reads` if the message is one of `PASSED_OVER`."""
    if re.search(PASSED_OVER, message):
        assert_as_openvino_reads(folder, kind, version, data, inputs, outputs)
    else:
        assert_named(folder, kind, version, data, inputs, outputs, message)


def typed(shape):
    """Return ``shape`` with its element type, f32 by default."""
    return shape if len(shape) == 2 and isinstance(shape[0], tuple) else (shape, F32)


def assert_named(folder: Path, kind: str, version: str, data: str, inputs, outputs, message: str) -> None:
    """Convert an IR with one layer called "culprit". The error must name only that layer and match ``message``.

    Args:
        folder: where to write the IR.
        kind, version: the layer's type and opset.
        data: its attributes as XML text.
        inputs: a shape, or a shape and `F32`, `I64`, `U8` or `BOOL`, for a Parameter; an int64 array for a constant.
        outputs: a list of such shapes, or one of them.
        message: a regular expression.
    """
    path = write(folder, kind, version, data, inputs, outputs)
    with pytest.raises(ConversionError, match=message) as caught:
        convert(path)
    assert [problem.layer_name for problem in caught.value.problems] == ["culprit"]
    assert_fault(caught.value)


def assert_fault(error: ConversionError) -> None:
    """Check that every problem is attributed to the file, or to a limit of this release if the message says so."""
    for problem in error.problems:
        limit = re.search(_LIMITS, problem.message)
        assert problem.fault is (Fault.UNSUPPORTED if limit else Fault.MALFORMED), (problem.fault, problem.message)


def assert_as_openvino_reads(folder: Path, kind: str, version: str, data: str, inputs, outputs) -> None:
    """Check that the conversion follows OpenVINO if the file contradicts OpenVINO's inference or has ignored attributes.

    If OpenVINO rejects the layer, an error names it. Otherwise a note reports it, and shapes and types are those that
    OpenVINO infers. See `assert_named` for the arguments.
    """
    path = write(folder, kind, version, data, inputs, outputs)
    try:
        oracle = ov.Core().read_model(path)
    except RuntimeError:
        with pytest.raises(ConversionError) as caught:
            convert(path)
        assert [problem.layer_name for problem in caught.value.problems] == ["culprit"]
        assert_fault(caught.value)
        return
    model, report = convert(path)
    assert report.passed_over
    for value, output in zip(model.graph.output, oracle.outputs, strict=True):
        kind_name = output.get_element_type().to_string()
        assert ElementType.from_name(kind_name) is element_type(ir.DataType(value.type.tensor_type.elem_type))
        shape = output.get_partial_shape()
        if shape.rank.is_static and value.type.tensor_type.HasField("shape"):
            dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in value.type.tensor_type.shape.dim]
            expected = [dim.get_length() if dim.is_static else None for dim in shape]
            assert same_dims(dims, expected), (dims, expected)


def write(folder: Path, kind: str, version: str, data: str, inputs, outputs) -> Path:
    """Write the IR of one layer called "culprit"; see `assert_named` for the arguments."""
    layers, edges, weights = [], [], b""
    for index, given in enumerate(inputs):
        if isinstance(given, np.ndarray):
            layers.append(ir_text.const(index, "i64", given.shape, given.nbytes, len(weights), "I64"))
            weights += given.tobytes()
        else:
            shape, (element_type, precision) = typed(given)
            layers.append(ir_text.parameter(index, shape, element_type, precision))
        edges.append(ir_text.edge(index, 0, 1000, index))
    outputs = outputs if isinstance(outputs, list) else [outputs]
    layers.append(
        ir_text.layer(
            1000,
            kind,
            name="culprit",
            version=version,
            data=data or None,
            inputs=[given.shape if isinstance(given, np.ndarray) else typed(given)[0] for given in inputs],
            outputs=[typed(output)[0] for output in outputs],
            precision=typed(outputs[0])[1][1],
        )
    )
    for index, output in enumerate(outputs):
        layers.append(ir_text.result(1001 + index, typed(output)[0]))
        edges.append(ir_text.edge(1000, len(inputs) + index, 1001 + index, 0))
    return ir_text.write(folder, ir_text.net(layers, edges), weights)
