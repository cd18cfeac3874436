"""Inspection of how an IR's layers would be converted, without writing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from converters.errors import LayerError, Problem
from converters.inspection import InspectedType, Inspection
from converters.openvino.contents import contents
from converters.openvino.coverage.table import coverage
from converters.openvino.reader.graph import Model
from converters.openvino.reader.read import read
from converters.openvino.rule import find_rule
from converters.openvino.walk import STRUCTURAL, all_layers, layer_problem, walk
from converters.plugins import load_installed
from onnx_specops.domain import DOMAIN


def inspect(model_path: str | Path, bin_path: str | Path | None = None, *, name: str = "") -> Inspection:
    """Inspect how an IR's layers would be converted, without writing anything.

    Args:
        model_path: the .xml.
        bin_path: the .bin; by default the one of the same name next to the .xml. Without it, the result depends only on the
            types of the layers, not on values.
        name: the name of the model in problems; by default its path.

    Raises:
        MalformedError: the files are not a readable IR.
    """
    source = read(model_path, bin_path, without_weights=True, name=name)
    missing = source.weights_path is None and any(layer.constant and layer.constant.size for layer in all_layers(source))
    becomes, problems = _by_type(source) if missing else _by_walk(source)
    counts = Counter((layer.type, layer.version) for layer in all_layers(source))
    bad = {(problem.layer_type, problem.layer_id) for problem in problems}
    failing = {(layer.type, layer.version) for layer in all_layers(source) if (layer.type, layer.id) in bad}
    rows = [
        InspectedType(*kind, count, sorted(becomes.get(kind, ())), kind not in failing)
        for kind, count in sorted(counts.items())
    ]
    files = [source.path, *([source.weights_path] if source.weights_path else [])]
    return Inspection(files, rows, problems, list(source.remarks), contents(source), missing)


_Becomes = Mapping[tuple[str, str], Iterable[str]]


def _by_walk(source: Model) -> tuple[_Becomes, list[Problem]]:
    """Return the ONNX operators of each layer type, and everything that cannot be converted."""
    emitted = walk(source)
    return emitted.becomes, emitted.problems


def _by_type(source: Model) -> tuple[_Becomes, list[Problem]]:
    """Return the domain's operators that each layer type may become, and the unsupported types."""
    load_installed()
    known = {(c.operation.name, c.operation.version): c.custom for c in coverage()}
    becomes, problems = {}, []
    for layer in all_layers(source):
        if layer.type in STRUCTURAL:
            continue
        try:
            find_rule(layer.type, layer.version)
        except LayerError as error:
            problems.append(layer_problem(str(source.path), layer, error))
        becomes[layer.type, layer.version] = [f"{DOMAIN}.{name}" for name in known.get((layer.type, layer.version), ())]
    return becomes, problems
