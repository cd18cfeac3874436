"""What a conversion did."""

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
from onnx_specops.domain import CONTRIB_DOMAIN


@dataclass(frozen=True)
class Report:
    """What a conversion did.

    Attributes:
        path: the source's file.
        layers: how many layers of each type the source has, those of nested bodies included.
        becomes: layer type -> the ONNX operators that its layers became (``onnx_specops.`` before those of the domain).
        nodes: how many nodes of each operator the ONNX model has.
        custom_operators: the domain's operators that the model uses.
        without_body: those among them that need a kernel, since standard ONNX cannot represent them.
        contrib_operators: ONNX Runtime's own operators that the model uses, with their bodies.
        opset: the opset that the model is in.
        inlined: the domain's operators that stand in the model as standard ONNX, since the opset lets no file carry them
            with their bodies: the plugin's kernels no longer apply.
        clamped: the constants that held numbers beyond float16's range, which became ±65504.
        unranked: the inputs of no known rank: runtimes take them, ``onnx.checker`` does not.
        values: ``(layer id, output index)`` -> the name of the ONNX value that holds that output of a top-level layer, where
            one does (in float32, where a 16-bit float is an intermediate result only).
        weights: where the weights are: ``"embed"``, ``"copy"`` or ``"reference"``.
        weights_bytes: how many bytes of weights the model has.
        seconds: the time that it took.
        decoder: what became of a language model's attention, where its cache is inputs and outputs.
        verified: what the evaluation of rewrites found, where it was asked for.
        passed_over: what OpenVINO does not read in the file, or takes otherwise than the file says, each kind once.
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
    """The report of a conversion.

    Args:
        source: what was converted.
        emitted: what the walk made of it.
        names: the values' names before the passes.
        finished: what became of the domain's operators.
        opset: the opset that the model is in.
        placement, size: where the weights are, and how many bytes of them there are.
        seconds: the time that it took.
        decoder: what became of a language model's attention.
        verified: what the evaluation of rewrites found.
    """
    graph = emitted.model.graph
    nodes = Counter(map(operator_name, graph.all_nodes()))
    becomes: dict[str, list[str]] = {}
    for (type_, _), counter in sorted(emitted.becomes.items()):
        becomes[type_] = sorted({*becomes.get(type_, ()), *counter})
    alive = {value.name for node in graph for value in node.outputs} | {value.name for value in graph.inputs}
    return Report(
        path=source.path,
        layers=dict(sorted(source.layer_types.items())),
        becomes=becomes,
        nodes=dict(sorted(nodes.items())),
        custom_operators=sorted({n.op_type for n in graph.all_nodes() if n.domain == onnx_specops.DOMAIN}),
        without_body=finished.without_body,
        contrib_operators=sorted({n.op_type for n in graph.all_nodes() if n.domain == CONTRIB_DOMAIN}),
        opset=opset,
        inlined=finished.inlined,
        clamped=finished.clamped,
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
