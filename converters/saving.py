"""A converted model as a file: its weights embedded, copied beside it, or referred to where they lie already."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import onnx
import onnx_ir as ir

from converters.errors import ConversionError, Fault, Problem

Weights = Literal["embed", "copy", "reference"]
"""Where the weights of a model are."""

EMBEDDED_BYTES = 1 << 30
"""The most bytes of weights that ``"auto"`` embeds."""

COPIED_BYTES = 4096
"""Tensors of less stay in the .onnx where the weights go into a file of their own."""

# A protobuf message cannot be larger than 2 GiB; the graph needs some of that.
_PROTOBUF_BYTES = (1 << 31) - (1 << 26)


def save(
    model: ir.Model, onnx_path: Path | None, weights: str, *, source: Path, source_weights: Path | None
) -> tuple[onnx.ModelProto, Weights, int]:
    """Write the model; ``None`` for ``onnx_path`` writes nothing and embeds.

    Args:
        model: its weights may be external tensors.
        onnx_path: the file to write.
        weights: ``"embed"``, ``"copy"``, ``"reference"``, or ``"auto"``: embed up to `EMBEDDED_BYTES`, above that refer
            where the source's weights lie beside the .onnx, else copy.
        source: the file that the model was made of, for errors to name.
        source_weights: the file that external tensors refer to; ``None`` where there is none.

    Returns:
        The model as the file has it, where the weights are, and how many bytes of them there are.

    Raises:
        ConversionError: the weights cannot be where they should.
    """
    tensors = [value.const_value for value in model.graph.initializers.values() if value.const_value is not None]
    size = sum(tensor.nbytes for tensor in tensors if tensor.dtype != ir.DataType.STRING)
    placement = _placement(weights, size, onnx_path, source, source_weights)
    if placement == "embed":
        if size > _PROTOBUF_BYTES:
            message = f"{size:,} bytes of weights do not fit into one ONNX file"
            raise _refused(message, source, "use weights='reference' or 'copy'")
        for value in model.graph.initializers.values():
            value.const_value = _in_memory(value.const_value)
        proto = ir.to_proto(model)
        if onnx_path is not None:
            onnx_path.write_bytes(proto.SerializeToString())
        return proto, placement, size
    assert onnx_path is not None
    if placement == "copy":
        ir.save(model, onnx_path, external_data=onnx_path.name + ".data", size_threshold_bytes=COPIED_BYTES)
    else:
        ir.save(model, onnx_path)
    return onnx.load(onnx_path, load_external_data=False), placement, size


def _placement(weights: str, size: int, onnx_path: Path | None, source: Path, source_weights: Path | None) -> Weights:
    if weights not in ("auto", *get_args(Weights)):
        raise ValueError(f"weights is 'auto', 'embed', 'copy' or 'reference', not {weights!r}")
    if onnx_path is None:
        return "embed"
    beside = source_weights is not None and source_weights.resolve().parent == onnx_path.resolve().parent
    if weights == "auto":
        return "embed" if size <= EMBEDDED_BYTES else "reference" if beside else "copy"
    if weights == "reference" and not beside and source_weights is not None:
        message = f"{onnx_path} cannot refer to {source_weights}, which lies in another folder"
        raise _refused(message, source, "write the .onnx beside the .bin, or use weights='copy'")
    return weights  # type: ignore[return-value]


def _refused(message: str, source: Path, remedy: str) -> ConversionError:
    return ConversionError.of(Problem(message, str(source), remedy=remedy, fault=Fault.UNSUPPORTED))


def _in_memory(tensor: ir.TensorProtocol | None) -> ir.TensorProtocol | None:
    if not isinstance(tensor, ir.ExternalTensor):
        return tensor
    return ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=tensor.name)
