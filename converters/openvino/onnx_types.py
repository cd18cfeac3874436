"""The ONNX types of OpenVINO's element types."""

from __future__ import annotations

import onnx_ir as ir

from converters.openvino.reader.element_types import ElementType

_T, _D = ElementType, ir.DataType

# u1, u3 and u6 have no ONNX type. Their values become uint8, and those of nf4 float32, all exactly.
_DATA_TYPES = {
    _T.BOOLEAN: _D.BOOL,
    _T.U1: _D.UINT8,
    _T.U2: _D.UINT8,
    _T.U3: _D.UINT8,
    _T.U4: _D.UINT4,
    _T.U6: _D.UINT8,
    _T.U8: _D.UINT8,
    _T.U16: _D.UINT16,
    _T.U32: _D.UINT32,
    _T.U64: _D.UINT64,
    _T.I4: _D.INT4,
    _T.I8: _D.INT8,
    _T.I16: _D.INT16,
    _T.I32: _D.INT32,
    _T.I64: _D.INT64,
    _T.NF4: _D.FLOAT,
    _T.F4E2M1: _D.FLOAT,
    _T.F8E4M3: _D.FLOAT8E4M3FN,
    _T.F8E5M2: _D.FLOAT8E5M2,
    _T.F8E8M0: _D.FLOAT,
    _T.BF16: _D.BFLOAT16,
    _T.F16: _D.FLOAT16,
    _T.F32: _D.FLOAT,
    _T.F64: _D.DOUBLE,
    _T.STRING: _D.STRING,
}


# The inverse. If several types share an ONNX type, it maps to the one that is used in computations.
_ELEMENT_TYPES = {
    _D.BOOL: _T.BOOLEAN,
    _D.UINT4: _T.U4,
    _D.UINT8: _T.U8,
    _D.UINT16: _T.U16,
    _D.UINT32: _T.U32,
    _D.UINT64: _T.U64,
    _D.INT4: _T.I4,
    _D.INT8: _T.I8,
    _D.INT16: _T.I16,
    _D.INT32: _T.I32,
    _D.INT64: _T.I64,
    _D.FLOAT8E4M3FN: _T.F8E4M3,
    _D.FLOAT8E5M2: _T.F8E5M2,
    _D.BFLOAT16: _T.BF16,
    _D.FLOAT16: _T.F16,
    _D.FLOAT: _T.F32,
    _D.DOUBLE: _T.F64,
    _D.STRING: _T.STRING,
}


def element_type(dtype: ir.DataType | None) -> ElementType:
    """Return OpenVINO's type for an ONNX type; the dynamic type if there is none."""
    return _T.DYNAMIC if dtype is None else _ELEMENT_TYPES.get(dtype, _T.DYNAMIC)


def data_type(element_type: ElementType) -> ir.DataType:
    """Return the ONNX type for the values of ``element_type``. Raise ``ValueError`` for the dynamic type."""
    try:
        return _DATA_TYPES[element_type]
    except KeyError:
        raise ValueError(f"ONNX has no type for {element_type.value!r}") from None
