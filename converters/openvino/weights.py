"""The weights of a converted model: views of the IR's .bin while it is built; embedded, copied or referred to when saved."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnx_ir as ir

from converters.openvino.constants import Constant
from converters.openvino.element_types import ElementType
from converters.openvino.errors import ConversionError, Problem
from converters.openvino.graph import Model
from converters.openvino.onnx_types import data_type
from onnx_specops.folding import LIMIT

Weights = Literal["embed", "copy", "reference"]

EMBED_LIMIT = 1 << 30
# A protobuf message cannot be larger than 2 GiB; the graph needs some of that.
_PROTOBUF_LIMIT = (1 << 31) - (1 << 26)

# The types whose bytes stand in the .bin as ONNX would write them.
_SAME_BYTES = {t for t in ElementType if t.bits > 0 and not t.is_packed} - {ElementType.BOOLEAN, ElementType.F8E8M0}
_SAME_BYTES |= {ElementType.I4, ElementType.U4}


def constant_tensor(constant: Constant, source: Model) -> ir.TensorProtocol:
    """A constant of the IR as a tensor that ONNX can carry: by reference where its bytes are ONNX's own, else decoded."""
    dtype = data_type(constant.element_type)
    if constant.element_type is ElementType.STRING:
        strings = constant.numpy()
        return ir.StringTensor(strings, shape=ir.Shape(constant.shape))
    if constant.count > LIMIT and constant.element_type in _SAME_BYTES and source.weights_path is not None:
        return external_tensor(constant, source.weights_path, dtype, constant.shape)
    return ir.Tensor(decoded(constant), dtype=dtype)


def external_tensor(constant: Constant, path: Path, dtype: ir.DataType, shape: tuple[int, ...]) -> ir.ExternalTensor:
    """The constant's bytes in the .bin at ``path``, as a tensor of a type and shape that may differ from its own."""
    return ir.ExternalTensor(
        path.name, constant.offset, constant.size, dtype, shape=ir.Shape(shape), name="", base_dir=path.parent
    )


def decoded(constant: Constant) -> np.ndarray:
    """The constant's values in the NumPy type of its ONNX type."""
    array = constant.numpy()
    target = data_type(constant.element_type).numpy()
    return array if array.dtype == target else array.astype(target)


def save(model: ir.Model, source: Model, onnx_path: Path | None, weights: str) -> tuple[onnx.ModelProto, Weights, int]:
    """Write the model as `weights` says (see `convert`); returns it, the placement and the weights' bytes."""
    tensors = [value.const_value for value in model.graph.initializers.values() if value.const_value is not None]
    size = sum(tensor.nbytes for tensor in tensors if tensor.dtype != ir.DataType.STRING)
    placement = _placement(weights, size, source, onnx_path)
    if placement == "embed":
        if size > _PROTOBUF_LIMIT:
            raise ConversionError(
                Problem(
                    f"{size:,} bytes of weights do not fit into one ONNX file",
                    str(source.path),
                    remedy="use weights='reference' or 'copy'",
                )
            )
        for value in model.graph.initializers.values():
            value.const_value = _in_memory(value.const_value)
        proto = ir.to_proto(model)
        if onnx_path is not None:
            onnx_path.write_bytes(proto.SerializeToString())
        return proto, placement, size
    assert onnx_path is not None
    if placement == "copy":
        data_name = onnx_path.name + ".data"
        ir.save(model, onnx_path, external_data=data_name, size_threshold_bytes=LIMIT)
    else:
        ir.save(model, onnx_path)
    return onnx.load(onnx_path, load_external_data=False), placement, size


def _placement(weights: str, size: int, source: Model, onnx_path: Path | None) -> Weights:
    if weights not in ("auto", "embed", "copy", "reference"):
        raise ValueError(f"weights is 'auto', 'embed', 'copy' or 'reference', not {weights!r}")
    if onnx_path is None:
        return "embed"
    beside = source.weights_path is not None and source.weights_path.resolve().parent == onnx_path.resolve().parent
    if weights == "auto":
        return "embed" if size <= EMBED_LIMIT else "reference" if beside else "copy"
    if weights == "reference" and not beside and source.weights_path is not None:
        raise ConversionError(
            Problem(
                f"{onnx_path} cannot refer to {source.weights_path}, which lies in another folder",
                str(source.path),
                remedy="write the .onnx beside the .bin, or use weights='copy'",
            )
        )
    return weights  # type: ignore[return-value]


def _in_memory(tensor: ir.TensorProtocol | None) -> ir.TensorProtocol | None:
    if not isinstance(tensor, ir.ExternalTensor):
        return tensor
    return ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=tensor.name)
