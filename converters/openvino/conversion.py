"""From an OpenVINO IR to one ONNX model: read, walk over the layers, passes, file."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import onnx
import onnx_ir as ir

from converters.errors import ConversionError
from converters.garbage import no_collection
from converters.openvino.metadata import describe
from converters.openvino.reader.graph import Model
from converters.openvino.reader.reshape import reshape
from converters.openvino.report import Report, report
from converters.openvino.source import is_held, opened
from converters.openvino.walk import body_problem, emit, opset_problems
from converters.outputs import refuse_inputs
from converters.passes.finish import Precision, finish
from converters.saving import Source, save
from converters.variables import complete
from onnx_specops.bodies import BodyError
from onnx_specops.building import OPSET
from onnx_specops.lowering import LoweringError, check_opset

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
    opset: int = OPSET,
    precision: Precision = "model",
    with_weights: bool = True,
) -> Conversion:
    """Convert an OpenVINO model into an ONNX model that computes what OpenVINO's CPU computes.

    Inputs and outputs keep OpenVINO's order, names, element types and dynamic dimensions.

    Args:
        model: the .xml of an IR, or an ``openvino.Model``.
        onnx_path: where to write the model; ``None`` writes nothing.
        bin: the IR's weights; by default the .bin of the same name beside the .xml.
        weights: ``"embed"`` puts the weights into the .onnx file; ``"reference"`` lets it refer to the IR's own .bin, which
            must lie in the same folder (where it is a link that leads out of it, the file gets another name there,
            ``.onnx.data``, since no runtime follows such links); ``"copy"`` puts them into a file of their own beside it;
            ``"auto"`` embeds up to 1 GiB and above that refers to the .bin where it lies beside the .onnx, else copies.
        input_shapes: dimensions of inputs, by tensor name or friendly name, that the ONNX model has fixed.
        strict: whether it is an error where the file holds what OpenVINO passes over; else the report tells of it.
        opset: the ONNX opset that the model is in, 11 to the newest of the installed onnx. Below 21 a file cannot carry the
            domain's operators with their bodies: the bodies stand in their places, and the plugin's kernels no longer apply.
        precision: the type that weights and computation have: the model's own; ``"float32"``, with 16-bit weights stored as
            float32; or ``"float16"``, for GPUs and NPUs, wherever float16 is exact enough. Inputs and outputs keep
            OpenVINO's types.
        with_weights: whether the model that is returned has embedded weights, as the file always has. Without them a
            conversion into a file never has them in memory.

    Returns:
        The model (with external weights as the file has them) and the `Report`; they unpack as a pair.

    Raises:
        ConversionError: with every problem of the model at once: file, line, layer and remedy.
        ValueError: for arguments that no model can be converted with, as an output that is an input.
        OSError: a file cannot be written; what was there before is still there.
    """
    started = time.perf_counter()
    check_opset(opset)
    if precision not in get_args(Precision):
        raise ValueError(f"precision is 'model', 'float16' or 'float32', not {precision!r}")
    if precision != "model" and weights == "reference":
        raise ValueError(f"weights that become {precision} cannot be referred to: weights is 'auto', 'embed' or 'copy'")
    if weights == "reference" and is_held(model):
        raise ValueError("an openvino.Model has no .bin to refer to: weights is 'auto', 'embed' or 'copy'")
    target = None if onnx_path is None else Path(onnx_path)
    with no_collection(), opened(model, bin) as source:
        saved_source = _saved_source(source, is_held(model), precision)
        if target is not None:
            refuse_inputs([target], saved_source.files)
        reshape(source, input_shapes or {})
        emitted = emit(source)
        if strict and len(source.remarks):
            raise ConversionError.of(source.remarks.problems())
        # By name: where a pass takes a value's place, the new one bears its name.
        names = {key: value.name or "" for key, value in emitted.values.items()}
        try:
            # OpenVINO's CPU keeps 16-bit floats in float32 between computations; it converts float16 unrounded as well,
            # but bfloat16 as it is.
            finished = finish(
                emitted.model,
                fold=weights != "reference",
                keep_float32=True,
                converted_unrounded=[ir.DataType.FLOAT16],
                opset=opset,
                precision=precision,
            )
        except BodyError as error:
            raise ConversionError.of(body_problem(source, error)) from error
        except LoweringError as error:
            raise ConversionError.of(opset_problems(source, error, opset)) from error
        complete(emitted.model, emitted.variables)
        describe(emitted.model, source)
        saved = save(emitted.model, target, weights, saved_source, filled=with_weights)
        seconds = time.perf_counter() - started
        done = report(source, emitted, names, finished, opset, saved.weights, saved.size, seconds)
        return Conversion(saved.proto, done)


def _saved_source(source: Model, held: bool, precision: Precision) -> Source:
    """The source, as `converters.saving` looks at it."""
    files = () if held else tuple(path for path in (source.path, source.weights_path) if path is not None)
    # Weights of another type than the .bin's cannot be referred to.
    weights = None if held or precision != "model" else source.weights_path
    return Source(source.path, source.weights, weights, files, source.check)
