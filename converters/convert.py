"""The driver: convert a model of any source format into one ONNX model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassError, PassResult

from converters.errors import REPORT, ConversionError, Fault, Problem
from converters.formats import open_model
from converters.garbage import no_collection
from converters.metadata_keys import INTERFACE, MODEL_API, SIGNATURE
from converters.options import (
    Activations,
    Arrays,
    Channels,
    Form,
    KvCache,
    LogitsOf,
    Options,
    Precision,
    Quantized,
    TargetName,
    Tiles,
    Variables,
    Weights,
)
from converters.outputs import reject_inputs
from converters.passes.attention import Decoder, ExposeCaches, ExtendCachesInPlace, NotACache
from converters.passes.finish import Finished, finish, finish_for
from converters.passes.valid_nodes import CheckNodes, InvalidNodes
from converters.passes.verification import NotEvaluated, Verifier
from converters.report import Report, report
from converters.saving import save
from converters.source import Emitted, Source
from converters.targets import Target, find_target
from converters.targets.fitting import TargetError
from converters.variables import complete
from onnx_specops.bodies import BodyError
from onnx_specops.building import OPSET
from onnx_specops.lowering import LoweringError, check_opset
from onnx_specops.replacing import checked_by

if TYPE_CHECKING:
    import openvino


class Conversion(NamedTuple):
    """The result of `convert`."""

    model: onnx.ModelProto
    report: Report


@no_collection()  # collecting garbage while the graph is built finds nothing
def convert_with(
    model: str | Path | bytes | openvino.Model,
    onnx_path: str | Path | None,
    options: Options,
    *,
    adapt: Callable[[Emitted], Decoder | None] | None = None,
) -> Conversion:
    """Convert a model with the keywords of `convert` as one object.

    Args:
        model, onnx_path: see `convert`.
        options: the keywords.
        adapt: changes the emitted model before the passes. The form ``"genai"`` applies to its result; the form
            ``"openvino"`` does not, so that ``adapt`` can change variables. A folder of several models uses it to give each
            the form in which they fit together. It may raise `NotACache`.
    """
    started = time.perf_counter()
    aim = find_target(options.target)
    if aim.has_kernels:
        options = replace(options, opset=options.opset or OPSET)
    elif options.opset is not None and not aim.opsets[0] <= options.opset <= aim.opsets[1]:
        raise ValueError(f"{aim.title} supports opset {aim.opsets[0]} to {aim.opsets[1]}, not {options.opset}")
    if options.opset is not None:
        check_opset(options.opset)
    if options.weights == "reference" and not isinstance(model, (str, Path)):
        raise ValueError("a model in memory has no .bin file to reference: weights must be 'auto', 'embed' or 'copy'")
    target = None if onnx_path is None else Path(onnx_path)
    with open_model(model, options.bin, options.signature) as source:
        # The file can refer to the source's weights only if their type is unchanged.
        weights = source.weights(unchanged=options.precision == "model")
        if target is not None:
            reject_inputs([target], weights.files)
        source.reshape(options.input_shapes or {})
        outputs = [options.outputs] if isinstance(options.outputs, str) else options.outputs
        source.choose(outputs, options.rename or {})
        emitted = source.emit()
        if options.model_api is not None:
            _embed(emitted.model, source, options.model_api, options.model_api_tiles)
        if options.strict and len(source.remarks):
            raise ConversionError.of(source.remarks.problems())
        with _report_internal_errors(source):
            caches = _caches(emitted, options, aim, adapt)
            verifier = None if options.verify is False else Verifier()
            note = _RecordNames(emitted, verifier, options.verify)
            try:
                with nullcontext() if verifier is None else checked_by(verifier):
                    finished = _run_passes(emitted, options, aim, [*caches, note])
                complete(emitted.model, emitted.variables, options.variables)
                CheckNodes()(emitted.model)
            except NotACache as error:
                remedy = "convert it without --genai: onnx_specops.InferenceSession then keeps its variables"
                message = f"it is not a decoder with a cache: {error}"
                problem = Problem(message, str(source.path), remedy=remedy, fault=Fault.UNSUPPORTED)
                raise ConversionError.of(problem) from error
            except (BodyError, LoweringError, InvalidNodes, TargetError) as error:
                raise ConversionError.of(source.problems_of(error, options.opset or aim.opsets[1])) from error
        source.describe(emitted.model, values=options.model_api is None)
        if options.model_api is not None:
            emitted.model.metadata_props[MODEL_API] = options.model_api
        if options.signature is not None:
            emitted.model.metadata_props[SIGNATURE] = options.signature
        if options.outputs or options.rename:
            emitted.model.metadata_props[INTERFACE] = source.chosen()
        saved = save(emitted.model, target, options.weights, weights, with_weights=options.with_weights)
        placed = (saved.weights, saved.size, time.perf_counter() - started)
        decoders = [step.decoder for step in caches if not isinstance(step, ExtendCachesInPlace)]
        decoder = next((found for found in decoders if found is not None), None)
        done = report(source, emitted, note.names, finished, finished.opset, *placed, decoder, verifier)
        return Conversion(saved.proto, done)


# -- generated by docs/make.py from converters/options.py ----------------------------------------------------------------


def convert(
    model: str | Path | bytes | openvino.Model,
    onnx_path: str | Path | None = None,
    *,
    bin: str | Path | bytes | None = None,
    signature: str | None = None,
    weights: Weights = "auto",
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    strict: bool = False,
    target: TargetName = "onnxruntime",
    opset: int | None = None,
    precision: Precision = "model",
    with_weights: bool = True,
    contrib: bool = True,
    quantized: Quantized = "integer",
    activations: Activations = "float",
    form: Form = "openvino",
    variables: Variables = "defaults",
    positions: int | None = None,
    kv_cache: KvCache | None = None,
    logits: LogitsOf | None = None,
    outputs: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    model_api: Channels | None = None,
    model_api_tiles: Tiles = "stated",
    verify: bool | Arrays = False,
) -> Conversion:
    """Convert a model to an ONNX model that computes the same results as the model's own runtime.

    For an OpenVINO IR, this runtime is OpenVINO's CPU plugin in float32. Inputs and outputs keep their order, names, element
    types and dynamic dimensions, unless ``outputs`` and ``rename`` specify others.

    Args:
        model: the path of a model file, such as the .xml of an OpenVINO IR; the content of an .xml as bytes; or an
            ``openvino.Model``.
        onnx_path: the file to write. If ``None``, no file is written.
        bin: the file that contains the IR's weights. The default is the .bin with the same name as the .xml. If ```model```
            is the content of an .xml, this is the content of the .bin.
        signature: the signature of a TensorFlow SavedModel. The default is ``serving_default``, or the only signature.
        weights: the location of the weights. ``"embed"`` stores them in the .onnx, and ``"copy"`` in a separate file next to
            it. With ``"reference"``, the .onnx refers to the IR's .bin. ``"auto"`` embeds up to 1 GiB. For larger weights,
            ``"auto"`` selects ``"reference"`` if the .bin is in the same folder as the .onnx, and ``"copy"`` otherwise.
            ``"reference"`` requires the .bin in that folder. If the .bin is a link to another folder, the converter adds a
            hard link to the file, ``.onnx.data``, because runtimes do not follow links out of the folder.
        input_shapes: new shapes for inputs, as in OpenVINO's ``Model.reshape``. The keys are tensor names or friendly names;
            -1 is a dynamic dimension.
        strict: treat parts of the file that OpenVINO ignores as errors. By default, the report lists them.
        target: the program that will load the .onnx. ``"standard"`` uses only standard ONNX, without functions, at the
            oldest opset that can represent the model. If the target does not support the model, the conversion fails before
            it writes anything. docs/targets.md lists the requirements of each target.
        opset: the ONNX opset of the .onnx, from 11 to the newest opset of the installed onnx package. The default is 21. For
            a target, the default is the oldest supported opset that can represent the model. Below 21, bodies replace the
            custom operators, so the plugin's kernels are not used.
        precision: the floating-point type of weights and computation: the model's own type (``"model"``), ``"float32"``, or
            ``"float16"`` where it is accurate enough. ``"float32"`` also converts 16-bit weights to float32. Inputs and
            outputs keep OpenVINO's types.
        with_weights: whether the returned model contains the embedded weights. The file always does. Without them, a
            conversion to a file never loads the weights into memory.
        contrib: also use ONNX Runtime's own operators (``com.microsoft``), each with a function body for other runtimes. If
            this is disabled, the function bodies replace these operators.
        quantized: the arithmetic of quantized networks (FakeQuantize). ``"integer"`` computes in integers, as OpenVINO does
            by default. ``"float"`` emulates each FakeQuantize exactly in floating point.
        activations: the type of the activations in matrix multiplications with weights of 8 bits or fewer. ``"int8"``
            quantizes them in blocks of 32, which is faster. By default, OpenVINO quantizes these activations, too. Its
            property ``DYNAMIC_QUANTIZATION_GROUP_SIZE=0`` disables this.
        form: the representation of a language model's key-value cache. ``"openvino"`` keeps OpenVINO's variables.
            ``"genai"`` uses inputs and outputs that GroupQueryAttention extends, as onnxruntime-genai requires.
        variables: the kind of inputs that represent the variables of a stateful model. ``"defaults"`` creates optional
            inputs, whose defaults are the initial values. ``"inputs"`` creates required inputs, for ONNX Runtime in
            JavaScript and Java, and for Triton. ``"inputs"`` creates two inputs for each variable. NAME is the value of the
            variable, and the boolean NAME.is_set determines whether the run uses it. If NAME.is_set is false, the run starts
            with the initial value, and NAME can have any value of the right shape.
        positions: the maximum number of tokens that the model supports, if it is known.
        kv_cache: with ``form="genai"``: the element type of the key-value cache. The default is ``"float32"``, or
            ``"float16"`` with ``target="cuda"``. A smaller type speeds up the generation of long texts. ``"uint8"``
            quantizes each head of each token to 256 levels between its smallest and largest value, as OpenVINO does by
            default (``KV_CACHE_PRECISION``).
        logits: with ``form="genai"``: the tokens for which logits are computed. ``"last"`` computes the logits of the last
            token of each sequence, which are sufficient to generate text. ``"all"`` computes the logits of all tokens, as in
            the IR. The default is ``"last"``.
        outputs: the outputs of the .onnx, in this order. Specify outputs of the IR or of any layer, by tensor name or
            friendly name. To select one of several outputs of a layer, append ``.0``, ``.1``, ... to its friendly name.
            Layers and inputs that do not affect these outputs are removed. ``specops validate`` compares the outputs with
            the same values of the IR.
        rename: new names for inputs and outputs. The keys are the old names.
        model_api: add the preprocessing and postprocessing of Model API to the graph. The input is then an image of any
            size, and the outputs are the final results, such as boxes and labels. The value specifies the channel order of
            the image. The model's runtime information (``model_info``) must name a Model API wrapper, as in models from
            Geti, Anomalib, OTX and the Open Model Zoo.
        model_api_tiles: with ``model_api``: the tiling of the image. ``"stated"`` uses the ``tile_size`` of the model, and
            ``"none"`` ignores it. With ``"stated"``, the network runs in a loop on each tile. It also runs on the whole
            image, unless the model disables this.
        verify: check each rewrite of the graph by running the nodes before and after it on the same inputs. A rewrite that
            changes a result is rejected and reported. The inputs include ordinary numbers, zeros, tiny and large numbers,
            infinities and NaN. The conversion takes several times as long. To determine the shapes of the tensors, pass
            inputs of the model by name. With true, several sizes are tried.

    Returns:
        A named tuple: ``model``, an ``onnx.ModelProto`` with the same external data as the file, and ``report``, a `Report`.

    Raises:
        ConversionError: the model has problems. The error lists all of them, each with its file, line, layer and remedy.
        ValueError: an option is invalid, options contradict each other, or the output would overwrite an input.
        OSError: a file cannot be written. Existing files remain unchanged.
    """
    options = Options(
        bin=bin,
        signature=signature,
        weights=weights,
        input_shapes=input_shapes,
        strict=strict,
        target=target,
        opset=opset,
        precision=precision,
        with_weights=with_weights,
        contrib=contrib,
        quantized=quantized,
        activations=activations,
        form=form,
        variables=variables,
        positions=positions,
        kv_cache=kv_cache,
        logits=logits,
        outputs=outputs,
        rename=rename,
        model_api=model_api,
        model_api_tiles=model_api_tiles,
        verify=verify,
    )
    return convert_with(model, onnx_path, options)


# -- end of the generated part -------------------------------------------------------------------------------------------


class _AdaptCaches(InPlacePass):
    """Give the caches the form that ``adapt`` of `convert_with` selects."""

    def __init__(self, emitted: Emitted, adapt: Callable[[Emitted], Decoder | None]) -> None:
        self.emitted, self.adapt = emitted, adapt
        self.decoder: Decoder | None = None

    def call(self, model: ir.Model) -> PassResult:
        self.decoder = self.adapt(self.emitted)
        return PassResult(model, modified=True)


class _RecordNames(InPlacePass):
    """Record the graph from which the passes after the caches start; change nothing.

    Attributes:
        names: the names of the emitted values. A pass that replaces a value keeps its name.
    """

    def __init__(self, emitted: Emitted, verifier: Verifier | None, verify: bool | Arrays) -> None:
        self.emitted, self.verifier, self.verify = emitted, verifier, verify
        self.names: dict[tuple[int, int], str] = {}

    def call(self, model: ir.Model) -> PassResult:
        self.names = {key: value.name or "" for key, value in self.emitted.values.items()}
        if self.verifier is not None and isinstance(self.verify, Mapping):
            _observe(self.verifier, self.emitted, self.verify)
        return PassResult(model, modified=False)


def _caches(
    emitted: Emitted,
    options: Options,
    target: Target,
    adapt: Callable[[Emitted], Decoder | None] | None,
) -> list[ExposeCaches | ExtendCachesInPlace | _AdaptCaches]:
    """Return the passes that give a language model's cache the requested form."""
    steps: list[ExposeCaches | ExtendCachesInPlace | _AdaptCaches] = []
    if adapt is not None:
        steps.append(_AdaptCaches(emitted, adapt))
    if options.form != "genai":
        if adapt is None and target.has_kernels:
            steps.append(ExtendCachesInPlace(emitted.variables))
        return steps
    exposed = ExposeCaches(
        emitted.variables,
        positions=options.positions,
        contrib=options.contrib and options.opset == OPSET,
        cache=options.kv_cache or target.cache,
        own=(options.kv_cache or target.cache) == target.cache,
        logits=options.logits or "last",
    )
    return [*steps, exposed]


def _run_passes(emitted: Emitted, options: Options, target: Target, first: Sequence[InPlacePass]) -> Finished:
    """Run the passes for the target."""
    model = emitted.model
    floats: dict[str, Any] = {"keep_float32": emitted.keep_float32, "converted_unrounded": emitted.converted_unrounded}
    floats["first"] = first
    if not target.has_kernels:
        return finish_for(
            model, target, opset=options.opset, precision=options.precision, quantized=options.quantized, **floats
        )
    return finish(
        model,
        fold=options.weights != "reference",
        opset=options.opset or OPSET,
        precision=options.precision,
        contrib=options.contrib,
        quantized=options.quantized,
        activations=options.activations,
        target=target,
        few_rows=bool(emitted.variables) and options.form != "genai",
        **floats,
    )


def _embed(model: ir.Model, source: Source, channels: Channels, tiles: Tiles) -> None:
    """Add the Model API wrapper that the model names to the graph."""
    from converters.model_api import ModelApiError, embed

    images = [port for port in source.inputs if len(port.dims or ()) in (4, 6)]
    try:
        embed(model, source.information, channels, images[0].layout if images else "", tiles)
    except ModelApiError as error:
        problem = Problem(str(error), str(source.path), remedy="convert it without --model-api", fault=error.fault)
        raise ConversionError.of(problem) from error


def _observe(verifier: Verifier, emitted: Emitted, arrays: Arrays) -> None:
    """Run the unchanged model to learn the shapes of its values."""
    names = {value: value.name or "" for value in emitted.model.graph.inputs}
    feeds = {value: np.asarray(arrays[name]) for value, name in names.items() if name in arrays}
    for variable in (exposed.variable for exposed in emitted.variables):
        feeds.setdefault(variable.value, variable.initial.numpy())
        if variable.is_set is not None:
            feeds.setdefault(variable.is_set, np.array(False))
    try:
        verifier.observe(emitted.model, feeds)
    except NotEvaluated as error:
        verifier.skipped[f"the complete model: {error}"] += 1


@contextmanager
def _report_internal_errors(source: Source) -> Iterator[None]:
    """Report any exception of the passes except `ConversionError` as an internal error."""
    try:
        yield
    except (ConversionError, OSError, MemoryError):
        raise
    except Exception as error:
        cause = error.__cause__ if isinstance(error, PassError) and error.__cause__ is not None else error
        text = f"internal error: {type(cause).__name__}: {cause}"
        problem = Problem(text, str(source.path), remedy=REPORT, fault=Fault.INTERNAL, cause=error)
        raise ConversionError.of(problem) from error
