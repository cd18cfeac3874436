"""What an IR's layers would become, without writing anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from converters.errors import Problem, Remark
from converters.openvino.contents import Contents, contents
from converters.openvino.reader.read import read
from converters.openvino.walk import all_layers, walk


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
    """

    files: list[Path]
    rows: list[InspectedType]
    problems: list[Problem]
    passed_over: list[Remark]
    contents: Contents

    @property
    def path(self) -> Path:
        """The .xml."""
        return self.files[0]


def inspect(model_path: str | Path) -> Inspection:
    """See what an IR's layers would become, without writing anything.

    Raises:
        MalformedError: when the files are no readable IR.
    """
    source = read(model_path)
    held = contents(source)
    emitted = walk(source)
    counts: Counter[tuple[str, str]] = Counter()
    for layer in all_layers(source):
        counts[layer.type, layer.version] += 1
    bad = {(problem.layer_type, problem.layer_id) for problem in emitted.problems}
    failing = {(layer.type, layer.version) for layer in all_layers(source) if (layer.type, layer.id) in bad}
    rows = [
        InspectedType(
            type_, version, count, sorted(emitted.becomes.get((type_, version), ())), (type_, version) not in failing
        )
        for (type_, version), count in sorted(counts.items())
    ]
    files = [source.path, *([source.weights_path] if source.weights_path else [])]
    return Inspection(files, rows, emitted.problems, list(source.remarks), held)
