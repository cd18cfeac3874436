"""What an IR's layers would become, without writing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from converters.errors import LayerError, Problem, Remark
from converters.openvino.contents import Contents, contents
from converters.openvino.coverage.table import coverage
from converters.openvino.plugins import load_installed
from converters.openvino.reader.graph import Model
from converters.openvino.reader.read import read
from converters.openvino.rule import find_rule
from converters.openvino.walk import STRUCTURAL, all_layers, layer_problem, walk
from onnx_specops.domain import DOMAIN


@dataclass(frozen=True)
class InspectedType:
    """The layers of one type and version in an IR, and what they become.

    Attributes:
        type: the layer type.
        version: its opset.
        count: how many layers there are.
        becomes: the ONNX operators that they become (``onnx_specops.`` before those of the domain).
        convertible: whether all of them convert.
    """

    type: str
    version: str
    count: int
    becomes: list[str]
    convertible: bool


@dataclass(frozen=True)
class Inspection:
    """What `inspect` found.

    Attributes:
        files: the .xml and, where it has one, its .bin.
        rows: the layer types and versions.
        problems: all that cannot be converted.
        passed_over: all that is passed over.
        contents: what the IR holds.
        weights_missing: whether there is no .bin, although constants have their values in one. Then the layers' types are
            looked up alone: what they become also depends on values.
    """

    files: list[Path]
    rows: list[InspectedType]
    problems: list[Problem]
    passed_over: list[Remark]
    contents: Contents
    weights_missing: bool = False

    @property
    def path(self) -> Path:
        """The .xml."""
        return self.files[0]


def inspect(model_path: str | Path, bin_path: str | Path | None = None) -> Inspection:
    """See what an IR's layers would become, without writing anything.

    Args:
        model_path: the .xml.
        bin_path: the .bin; by default the one of the same name beside the .xml. Without one the types of the layers are
            looked up, and nothing is known of what depends on values.

    Raises:
        MalformedError: when the files are no readable IR.
    """
    source = read(model_path, bin_path, valueless=True)
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
    """What each type of layer becomes, and what cannot be converted."""
    emitted = walk(source)
    return emitted.becomes, emitted.problems


def _by_type(source: Model) -> tuple[_Becomes, list[Problem]]:
    """The domain's operators that each type of layer may become, and the types that cannot be converted."""
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
