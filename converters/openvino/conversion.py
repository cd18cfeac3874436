"""From an OpenVINO IR to one ONNX model: read, walk over the layers, passes, file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes import PassError

from converters.errors import REPORT, ConversionError, Fault, Problem
from converters.garbage import no_collection
from converters.metadata_keys import INTERFACE
from converters.openvino.metadata import describe
from converters.openvino.reader.graph import Model
from converters.openvino.reader.interface import choose, described
from converters.openvino.reader.reshape import reshape
from converters.openvino.report import Report, report
from converters.openvino.source import is_held, opened
from converters.openvino.walk import Emitted, body_problem, emit, node_problems, opset_problems
from converters.outputs import refuse_inputs
from converters.passes.attention import KvCache, LogitsOf, NotACache, expose_caches, hold_caches
from converters.passes.compressed_weights import Activations
from converters.passes.finish import Precision, Quantized, finish
from converters.passes.valid_nodes import CheckNodes, InvalidNodes
from converters.passes.verification import NotEvaluated, Verifier
from converters.saving import Source, save
from converters.variables import Variables, complete
from onnx_specops.bodies import BodyError
from onnx_specops.building import OPSET
from onnx_specops.lowering import LoweringError, check_opset
from onnx_specops.replacing import checked_by

if TYPE_CHECKING:
    import openvino


Form = Literal["openvino", "genai"]
"""What the keys and values of a language model are."""


class Conversion(NamedTuple):
    """The result of `convert`."""

    model: onnx.ModelProto
    report: Report


@no_collection()  # until what it builds is out of sight: there is nothing to be looked through in vain then
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
    verify: bool | Mapping[str, np.ndarray] = False,
) -> Conversion:
    """Convert an OpenVINO model into an ONNX model that computes what OpenVINO's CPU computes.

    Inputs and outputs keep OpenVINO's order, names, element types and dynamic dimensions, unless ``outputs`` and ``rename``
    state others.

    Args:
        model: the .xml of an IR, or an ``openvino.Model``.
        onnx_path: where to write the model; ``None`` writes nothing.
        bin: the IR's weights; by default the .bin of the same name beside the .xml.
        weights: ``"embed"`` puts the weights into the .onnx file; ``"reference"`` lets it refer to the IR's own .bin, which
            must lie in the same folder (where it is a link that leads out of it, the file gets another name there,
            ``.onnx.data``, since no runtime follows such links); ``"copy"`` puts them into a file of their own beside it;
            ``"auto"`` embeds up to 1 GiB and above that refers to the .bin where it lies beside the .onnx, else copies.
        input_shapes: dimensions of inputs in the ONNX model, by tensor name or friendly name; -1 is an open dimension.
        strict: whether it is an error where the file holds what OpenVINO passes over; else the report tells of it.
        opset: the ONNX opset that the model is in, 11 to the newest of the installed onnx. Below 21 a file cannot carry the
            domain's operators with their bodies: the bodies stand in their places, and the plugin's kernels no longer apply.
        precision: the type that weights and computation have: the model's own; ``"float32"``, with 16-bit weights stored as
            float32; or ``"float16"``, for GPUs and NPUs, wherever float16 is exact enough. Inputs and outputs keep
            OpenVINO's types.
        with_weights: whether the model that is returned has embedded weights, as the file always has. Without them a
            conversion into a file never has them in memory.
        contrib: whether the model may hold operators of ONNX Runtime's own (``com.microsoft``). Each carries its body in
            standard ONNX, which other runtimes take; without them the model is standard ONNX through and through, but for
            the domain's own operators.
        quantized: what quantised networks (FakeQuantize) are computed in: ``"integer"``, where their form allows it, as
            OpenVINO does by default; or ``"float"``, which emulates each FakeQuantize exactly.
        activations: what is multiplied with weights that the model holds in 8 bits or fewer: ``"float"``, as it is; or
            ``"int8"``, rounded to 8 bits in blocks of 32, which is quicker, and what OpenVINO does unless
            ``DYNAMIC_QUANTIZATION_GROUP_SIZE`` is 0.
        form: what a language model's keys and values are: variables, as OpenVINO has them; or ``"genai"``: inputs and
            outputs as ONNX Runtime's generators have them, extended by GroupQueryAttention (see
            `converters.passes.attention`).
        variables: how a caller feeds what the model's variables hold: by inputs that have the initial values as
            ``"defaults"``; or by required ``"inputs"``, two for each, for hosts that cannot feed the others (ONNX Runtime
            for JavaScript and Java, Triton): the value, and whether it counts.
        positions: with ``form="genai"``: the most tokens that the model is made for, where that is known.
        kv_cache: with ``form="genai"``: what the cache of keys and values holds: ``"float32"``, them as they are;
            ``"float16"``; or ``"uint8"``, 256 steps from the least to the greatest of each head of a token, which is what
            OpenVINO does unless ``KV_CACHE_PRECISION`` says otherwise. The less memory there is to read, the quicker are
            tokens that follow many. ``"float32"`` unless told.
        logits: with ``form="genai"``: of which tokens of a run there are logits: the ``"last"`` of each row, [batch, 1,
            vocabulary], which is all that the next token needs; or ``"all"``, as in the IR. ``"last"`` unless told.
        outputs: the values that are the model's outputs, in this order: outputs of the IR, or any layer's, by tensor name,
            friendly name, or that with ".0", ".1", ... of several outputs. Inputs that they do not need are removed.
        rename: new names of inputs and outputs by old ones.
        verify: whether each rewrite of the passes is evaluated: the nodes that it replaces and those that replace them run
            on the same inputs, and where the results differ the rewrite is refused and reported. Inputs of the model, by
            name, tell which sizes the values have; without them sizes are tried.

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
    if quantized not in get_args(Quantized):
        raise ValueError(f"quantized is 'integer' or 'float', not {quantized!r}")
    if precision != "model" and weights == "reference":
        raise ValueError(f"weights that become {precision} cannot be referred to: weights is 'auto', 'embed' or 'copy'")
    if activations not in get_args(Activations):
        raise ValueError(f"activations is 'float' or 'int8', not {activations!r}")
    if form not in get_args(Form):
        raise ValueError(f"form is 'openvino' or 'genai', not {form!r}")
    if kv_cache is not None and kv_cache not in get_args(KvCache):
        raise ValueError(f"kv_cache is 'float32', 'float16' or 'uint8', not {kv_cache!r}")
    if kv_cache is not None and form != "genai":
        raise ValueError("kv_cache is for form='genai': in OpenVINO's form the cache is variables")
    if positions is not None and positions < 1:
        raise ValueError(f"positions is the most tokens that the model is made for, not {positions}")
    if logits is not None and logits not in get_args(LogitsOf):
        raise ValueError(f"logits is 'last' or 'all', not {logits!r}")
    if logits is not None and form != "genai":
        raise ValueError("logits is for form='genai': in OpenVINO's form all of the model's outputs stay as they are")
    if outputs and form == "genai":
        raise ValueError("outputs is not for form='genai': a generator needs the logits and the cache alone")
    if weights == "reference" and is_held(model):
        raise ValueError("an openvino.Model has no .bin to refer to: weights is 'auto', 'embed' or 'copy'")
    if variables not in get_args(Variables):
        raise ValueError(f"variables is 'defaults' or 'inputs', not {variables!r}")
    target = None if onnx_path is None else Path(onnx_path)
    with opened(model, bin) as source:
        saved_source = _saved_source(source, is_held(model), precision)
        if target is not None:
            refuse_inputs([target], saved_source.files)
        reshape(source, input_shapes or {})
        choose(source, [outputs] if isinstance(outputs, str) else outputs, rename)
        emitted = emit(source)
        if strict and len(source.remarks):
            raise ConversionError.of(source.remarks.problems())
        with _mistakes_told(source):
            decoder = None
            if form == "genai":
                try:
                    decoder = expose_caches(
                        emitted.model,
                        emitted.variables,
                        positions=positions,
                        contrib=contrib and opset == OPSET,
                        cache=kv_cache or "float32",
                        logits=logits or "last",
                    )
                except NotACache as error:
                    remedy = "convert it without --genai: its variables are kept by onnx_specops.InferenceSession then"
                    message = f"it is no decoder with a cache: {error}"
                    problem = Problem(message, str(source.path), remedy=remedy, fault=Fault.UNSUPPORTED)
                    raise ConversionError.of(problem) from error
                emitted.variables = []
            else:
                hold_caches(emitted.model, emitted.variables)
            # By name: where a pass takes a value's place, the new one bears its name.
            names = {key: value.name or "" for key, value in emitted.values.items()}
            verifier = _verifier(emitted, verify)
            try:
                # OpenVINO's CPU keeps 16-bit floats in float32 between computations; it converts float16 unrounded as well,
                # but bfloat16 as it is.
                with nullcontext() if verifier is None else checked_by(verifier):
                    finished = finish(
                        emitted.model,
                        fold=weights != "reference",
                        keep_float32=True,
                        converted_unrounded=[ir.DataType.FLOAT16],
                        opset=opset,
                        precision=precision,
                        contrib=contrib,
                        quantized=quantized,
                        activations=activations,
                    )
            except BodyError as error:
                raise ConversionError.of(body_problem(source, error)) from error
            except LoweringError as error:
                raise ConversionError.of(opset_problems(source, error, opset)) from error
        complete(emitted.model, emitted.variables, variables)
        try:
            CheckNodes()(emitted.model)
        except InvalidNodes as error:
            raise ConversionError.of(node_problems(source, error)) from error
        describe(emitted.model, source)
        if outputs or rename:
            emitted.model.metadata_props[INTERFACE] = described(source)
        saved = save(emitted.model, target, weights, saved_source, filled=with_weights)
        seconds = time.perf_counter() - started
        done = report(source, emitted, names, finished, opset, saved.weights, saved.size, seconds, decoder, verifier)
        return Conversion(saved.proto, done)


def _verifier(emitted: Emitted, verify: bool | Mapping[str, np.ndarray]) -> Verifier | None:
    """What evaluates rewrites, if that is asked for."""
    if verify is False:
        return None
    verifier = Verifier()
    if isinstance(verify, Mapping):
        names = {value: value.name or "" for value in emitted.model.graph.inputs}
        feeds = {value: np.asarray(verify[name]) for value, name in names.items() if name in verify}
        for variable in (exposed.variable for exposed in emitted.variables):
            feeds.setdefault(variable.value, variable.initial.numpy())
            if variable.is_set is not None:
                feeds.setdefault(variable.is_set, np.array(False))
        try:
            verifier.observe(emitted.model, feeds)
        except NotEvaluated as error:
            verifier.skipped[f"the whole model: {error}"] += 1
    return verifier


@contextmanager
def _mistakes_told(source: Model) -> Iterator[None]:
    """What else than a `ConversionError` comes out of the passes is the converter's own mistake."""
    try:
        yield
    except (ConversionError, OSError, MemoryError):
        raise
    except Exception as error:
        cause = error.__cause__ if isinstance(error, PassError) and error.__cause__ is not None else error
        text = f"internal error: {type(cause).__name__}: {cause}"
        problem = Problem(text, str(source.path), remedy=REPORT, fault=Fault.INTERNAL, cause=error)
        raise ConversionError.of(problem) from error


def _saved_source(source: Model, held: bool, precision: Precision) -> Source:
    """The source, as `converters.saving` looks at it."""
    files = () if held else tuple(path for path in (source.path, source.weights_path) if path is not None)
    # Weights of another type than the .bin's cannot be referred to.
    weights = None if held or precision != "model" else source.weights_path
    return Source(source.path, source.weights, weights, files, source.check)
