"""The report of a conversion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx_specops
from converters.errors import Remark
from converters.passes.attention import Decoder
from converters.passes.finish import Finished
from converters.passes.verification import Verifier
from converters.saving import Weights
from converters.source import Emitted, Source, operator_name
from converters.targets.onnxruntime import without_kernel
from onnx_specops.domain import CONTRIB_DOMAIN
from onnx_specops.graphs import all_nodes


@dataclass(frozen=True)
class Report:
    """The report of a conversion.

    Attributes:
        path: the file of the source model.
        layers: layer type -> number of layers, including layers in nested bodies.
        becomes: layer type -> the ONNX operators that its layers become. The names of custom operators begin with
            ``onnx_specops.``.
        nodes: ONNX operator -> number of nodes.
        custom_operators: the custom operators (domain ``onnx_specops``) in the model.
        without_body: the custom operators that standard ONNX cannot represent. With any of these, the model requires the
            plugin.
        contrib_operators: ONNX Runtime's own operators (``com.microsoft``) in the model. Each has a function body.
        opset: the ONNX opset of the model.
        inlined: below opset 21: the custom operators that were replaced by their bodies, because files of these opsets
            cannot contain several bodies of one operator. The plugin's kernels are not used for them.
        clamped: with float16: the constants with values out of float16's range, which were replaced by ±65504.
        assumptions: name of a value -> the condition under which the target computes correct results.
        without_kernel: the standard operators that ONNX Runtime does not implement at this opset. With any of these, it
            cannot load the file.
        unranked: the inputs of unknown rank. Runtimes accept them, but ``onnx.checker`` rejects the model.
        values: ``(layer id, output index)`` -> the name of the ONNX value that contains this output, for the layers outside
            nested bodies whose outputs still exist. The type of the value may be float32 if that of the output is a 16-bit
            float.
        weights: the location of the weights: ``"embed"``, ``"copy"`` or ``"reference"``.
        weights_bytes: the size of the weights in bytes.
        seconds: the duration of the conversion in seconds.
        decoder: a description of the language model's decoder, if its key-value cache consists of inputs and outputs.
        verified: with ``verify``: the results of the checks.
        passed_over: the parts of the file that OpenVINO ignores or reads differently, one entry per kind.
    """

    path: Path
    layers: dict[str, int]
    becomes: dict[str, list[str]]
    nodes: dict[str, int]
    custom_operators: list[str]
    without_body: list[str]
    contrib_operators: list[str]
    opset: int
    inlined: list[str]
    clamped: list[str]
    assumptions: dict[str, str]
    without_kernel: list[str]
    unranked: list[str]
    values: dict[tuple[int, int], str]
    weights: Weights
    weights_bytes: int
    seconds: float
    passed_over: list[Remark]
    decoder: Decoder | None = None
    verified: Verifier | None = None


def report(
    source: Source,
    emitted: Emitted,
    names: Mapping[tuple[int, int], str],
    finished: Finished,
    opset: int,
    placement: Weights,
    size: int,
    seconds: float,
    decoder: Decoder | None = None,
    verified: Verifier | None = None,
) -> Report:
    """Return the report of a conversion.

    Args:
        source: the converted source.
        emitted: the model that the source emitted.
        names: the names of the values before the passes.
        finished: the result of the passes.
        opset: the ONNX opset of the model.
        placement: the location of the weights.
        size: the size of the weights in bytes.
        seconds: the duration of the conversion in seconds.
        decoder: a description of the language model's decoder.
        verified: the results of the checks of rewrites.
    """
    graph = emitted.model.graph
    nodes = list(all_nodes(graph))
    operators = {(node.domain, node.op_type) for node in nodes}
    becomes: dict[str, list[str]] = {}
    for (type_, _), counter in sorted(emitted.becomes.items()):
        becomes[type_] = sorted({*becomes.get(type_, ()), *counter})
    alive = {value.name for node in graph for value in node.outputs} | {value.name for value in graph.inputs}
    return Report(
        path=source.path,
        layers=dict(sorted(source.layer_types.items())),
        becomes=becomes,
        nodes=dict(sorted(Counter(map(operator_name, nodes)).items())),
        custom_operators=sorted(name for domain, name in operators if domain == onnx_specops.DOMAIN),
        without_body=finished.without_body,
        contrib_operators=sorted(name for domain, name in operators if domain == CONTRIB_DOMAIN),
        opset=opset,
        inlined=finished.inlined,
        clamped=finished.clamped,
        assumptions=dict(finished.assumptions),
        without_kernel=without_kernel(emitted.model, opset),
        unranked=[value.name or "" for value in graph.inputs if value.shape is None],
        values={key: name for key, name in names.items() if name in alive}
        | {key: v.name for key, v in emitted.values.items() if names[key] not in alive and v.name and v.name in alive},
        weights=placement,
        weights_bytes=size,
        seconds=seconds,
        passed_over=list(source.remarks),
        decoder=decoder,
        verified=verified,
    )
