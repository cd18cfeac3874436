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


@dataclass(frozen=True)
class Report:
    """The report of a conversion.

    Attributes:
        path: the source's file.
        layers: the number of layers of each type, including those of nested bodies.
        becomes: layer type -> its ONNX operators, with the prefix ``onnx_specops.`` for those of the domain.
        nodes: the number of nodes of each operator in the ONNX model.
        custom_operators: the domain's operators that the model uses.
        without_body: those custom operators that need a kernel, because standard ONNX cannot represent them.
        contrib_operators: ONNX Runtime's own operators that the model uses, with their bodies.
        opset: the model's opset.
        inlined: the domain's operators that are inlined as standard ONNX, because files of this opset cannot contain their
            bodies. The plugin's kernels do not apply to them.
        clamped: constants with numbers beyond float16's range, which became ±65504.
        assumptions: the name of a value -> what must be true for the target to compute the same.
        without_kernel: standard operators that ONNX Runtime does not have at this opset, so that it does not load the file.
        unranked: inputs of unknown rank. Runtimes accept them, ``onnx.checker`` does not.
        values: ``(layer id, output index)`` -> the name of the ONNX value of a top-level layer's output, if it exists.
            Values that are 16-bit floats in the source may be float32.
        weights: the place of the weights: ``"embed"``, ``"copy"`` or ``"reference"``.
        weights_bytes: the size of the weights in bytes.
        seconds: the duration of the conversion.
        decoder: the form of a language model's attention, if its cache is inputs and outputs.
        verified: the result of evaluating the rewrites, if requested.
        passed_over: content of the file that OpenVINO ignores, or understands differently, each kind once.
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
        opset: the model's opset.
        placement, size: the place and the bytes of the weights.
        seconds: the duration of the conversion.
        decoder: the form of a language model's attention.
        verified: the result of evaluating the rewrites.
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
