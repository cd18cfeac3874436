"""Smaller variants of a model, with the names that Transformers.js uses.

For 8 and 4 bits, ONNX Runtime quantizes the weights. The results are approximations of the model's results.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import onnx


class Variant(StrEnum):
    fp16 = "fp16"
    q8 = "q8"
    q4 = "q4"


_SUFFIXES = {Variant.fp16: "_fp16", Variant.q8: "_quantized", Variant.q4: "_q4"}
_BLOCK = 32
_EMBEDDED_BYTES = 1 << 30
_EIGHT_BITS = ("MatMul", "Gemm", "Gather")  # Attention of the domain differs from ONNX Runtime's operator
_OF_INTEGERS = ("MatMulInteger", "MatMulNBits", "DequantizeLinear")


def place(model: Path, variant: Variant) -> Path:
    """Return the path of a model's variant."""
    return model.with_name(f"{model.stem}{_SUFFIXES[variant]}.onnx")


def quantize(model: Path, variant: Variant) -> int:
    """Write a model with weights of 8 or 4 bits at its `place`.

    Args:
        model: an .onnx, whose weights may be in a file next to it.
        variant: with ``q8``, each output channel has a scale, and matrix multiplications use integers. With ``q4``, each
            block of 32 weights has a scale.

    Returns:
        The number of nodes with such weights.

    Raises:
        OSError: a file cannot be written.
    """
    target = place(model, variant)
    known = onnx.load(model, load_external_data=False)
    large = model.stat().st_size + sum(path.stat().st_size for path in _external(known, model.parent)) > _EMBEDDED_BYTES
    with _quiet(), tempfile.TemporaryDirectory(prefix=".specops-", dir=model.parent) as folder:
        written = Path(folder) / target.name
        (_eight_bits if variant is Variant.q8 else _four_bits)(model, written, large)
        count = _of_integers(onnx.load(written, load_external_data=False)) - _of_integers(known)
        for path in sorted(Path(folder).iterdir(), key=lambda path: path.suffix == ".onnx"):  # the weights first
            path.replace(target.with_name(path.name))
    return count


def _eight_bits(model: Path, target: Path, large: bool) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        model,
        target,
        op_types_to_quantize=list(_EIGHT_BITS),
        nodes_to_exclude=_batched(onnx.load(model, load_external_data=False)),
        per_channel=True,
        weight_type=QuantType.QUInt8,
        use_external_data_format=large,
        extra_options={"MatMulConstBOnly": True},
    )


def _batched(model: onnx.ModelProto) -> list[str]:
    """Return the MatMuls whose constant is several matrices. ONNX Runtime's quantizer writes a scale for each column of each
    matrix, which its kernel rejects.
    """
    ranks = {tensor.name: len(tensor.dims) for tensor in model.graph.initializer}
    return [node.name for node in model.graph.node if node.op_type == "MatMul" and ranks.get(node.input[1], 2) > 2]


def _four_bits(model: Path, target: Path, large: bool) -> None:
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(model), block_size=_BLOCK, is_symmetric=True)
    quantizer.process()
    quantizer.model.save_model_to_file(str(target), large)


def _of_integers(model: onnx.ModelProto) -> int:
    return sum(node.op_type in _OF_INTEGERS for node in model.graph.node)


def _external(model: onnx.ModelProto, folder: Path) -> set[Path]:
    """Return the files of a model's weights."""
    names = {entry.value for tensor in model.graph.initializer for entry in tensor.external_data if entry.key == "location"}
    return {folder / name for name in names}


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the quantizers' log messages for each node."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
