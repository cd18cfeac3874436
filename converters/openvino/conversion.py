"""From an OpenVINO IR to one ONNX model: read, walk over the layers, passes, file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import onnx
import onnx_ir as ir

from converters.errors import ConversionError
from converters.openvino.metadata import describe
from converters.openvino.reader.reshape import reshape
from converters.openvino.report import Report, report
from converters.openvino.source import is_held, opened
from converters.openvino.walk import body_problem, emit
from converters.passes.finish import finish
from converters.saving import save
from converters.variables import complete
from onnx_specops.bodies import BodyError

if TYPE_CHECKING:
    import openvino


class Conversion(NamedTuple):
    """The result of `convert`."""

    model: onnx.ModelProto
    report: Report


def convert(
    model: str | Path | openvino.Model,
    onnx_path: str | Path | None = None,
    *,
    bin: str | Path | None = None,
    weights: Literal["auto", "embed", "copy", "reference"] = "auto",
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    strict: bool = False,
) -> Conversion:
    """Convert an OpenVINO model into an ONNX model that computes what OpenVINO's CPU computes.

    Inputs and outputs keep OpenVINO's order, names, element types and dynamic dimensions.

    Args:
        model: the .xml of an IR, or an ``openvino.Model``.
        onnx_path: where to write the model; ``None`` writes nothing.
        bin: the IR's weights; by default the .bin of the same name beside the .xml.
        weights: ``"embed"`` puts the weights into the .onnx file; ``"reference"`` lets it refer to the IR's own .bin, which
            must lie in the same folder; ``"copy"`` puts them into a file of their own beside it; ``"auto"`` embeds up to
            1 GiB and above that refers to the .bin where it lies beside the .onnx, else copies.
        input_shapes: dimensions of inputs, by tensor name or friendly name, that the ONNX model has fixed.
        strict: whether it is an error where the file holds what OpenVINO passes over; else the report tells of it.

    Returns:
        The model (with external weights as the file has them) and the `Report`; they unpack as a pair.

    Raises:
        ConversionError: with every problem of the model at once: file, line, layer and remedy.
    """
    started = time.perf_counter()
    if weights == "reference" and is_held(model):
        raise ValueError("an openvino.Model has no .bin to refer to: weights is 'auto', 'embed' or 'copy'")
    with opened(model, bin) as source:
        reshape(source, input_shapes or {})
        emitted = emit(source)
        if strict and len(source.remarks):
            raise ConversionError.of(source.remarks.problems())
        # By name: where a pass takes a value's place, the new one bears its name.
        names = {key: value.name or "" for key, value in emitted.values.items()}
        try:
            # OpenVINO's CPU keeps 16-bit floats in float32 between computations; it converts float16 unrounded as well,
            # but bfloat16 as it is.
            without_body = finish(
                emitted.model,
                fold=weights != "reference",
                keep_float32=True,
                converted_unrounded=[ir.DataType.FLOAT16],
            )
        except BodyError as error:
            raise ConversionError.of(body_problem(source, error)) from error
        complete(emitted.model, emitted.variables)
        describe(emitted.model, source)
        target = None if onnx_path is None else Path(onnx_path)
        source_weights = None if is_held(model) else source.weights_path
        proto, placement, size = save(emitted.model, target, weights, source=source.path, source_weights=source_weights)
        seconds = time.perf_counter() - started
        return Conversion(proto, report(source, emitted, names, without_body, placement, size, seconds))
