"""The properties of an ONNX model that validation needs before it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from converters.metadata_keys import SHAPE
from converters.suggestions import similar_file
from converters.validation.arrays import InputSpec, Interval
from onnx_specops.domain import DOMAIN
from onnx_specops.runtime.variables import METADATA_KEY, parse_variables


@dataclass(frozen=True)
class OnnxModel:
    """An ONNX model in a file.

    Attributes:
        path: the file.
        proto: its content, without external weights.
        inputs: the required inputs. Inputs for variables start with their defaults.
        outputs: the model's own outputs, without those for variables.
        custom: the operators of the domain that it uses.
        without_body: those of them without a body in the file.
        random: the values that depend on random numbers, which differ between bodies and kernels.
    """

    path: Path
    proto: onnx.ModelProto
    inputs: list[InputSpec]
    outputs: list[str]
    custom: list[str]
    without_body: list[str]
    random: frozenset[str]

    @classmethod
    def load(cls, path: Path) -> OnnxModel:
        """Read the file. Raise ``ValueError`` if it is not an ONNX model."""
        try:
            proto = onnx.load(path, load_external_data=False)
        except DecodeError:
            raise ValueError(f"{path} is not an ONNX model") from None
        if not proto.graph.output:
            raise ValueError(f"{path} is not an ONNX model: it has no outputs")
        nodes = [node for node in all_nodes(proto.graph) if node.domain == DOMAIN]
        bodies = {(f.name, f.overload) for f in proto.functions if f.domain == DOMAIN}
        hidden = _variable_names(proto, "output", "is_set_output")
        return cls(
            path,
            proto,
            input_specs(proto),
            [output.name for output in proto.graph.output if output.name not in hidden],
            sorted({node.op_type for node in nodes}),
            sorted({node.op_type for node in nodes if (node.op_type, node.overload) not in bodies}),
            frozenset(_random_values(proto)),
        )

    def with_outputs(self, names: Sequence[str], folder: Path) -> Path:
        """Write the model with the named values as additional outputs, and return the path of the new file.

        Args:
            names: values of the outermost graph.
            folder: the output folder. A model with weights in other files is written next to it instead.
        """
        extended = onnx.ModelProto()
        extended.CopyFrom(self.proto)
        present = {output.name for output in extended.graph.output}
        extended.graph.output.extend(onnx.ValueInfoProto(name=n) for n in dict.fromkeys(names) if n not in present)
        target = self.variant("per-layer", folder)
        target.write_bytes(extended.SerializeToString())
        return target

    def variant(self, name: str, folder: Path) -> Path:
        """Return the path for a changed copy of the model: in ``folder``, or next to weights in other files."""
        external = any(tensor.external_data for tensor in self.proto.graph.initializer)
        return self.path.with_name(f".{self.path.stem}.{name}.onnx") if external else folder / f"{name}.onnx"


def check_is_onnx(path: Path) -> None:
    """Raise ``ValueError`` if ``path`` is not an ONNX file. A runtime checks its content.

    The most common mistake is an OpenVINO IR.
    """
    if not path.is_file():
        meant = "" if path.exists() else similar_file(path)
        raise ValueError(f"{path} is not a file{f': {meant}' if meant else ''}")
    with path.open("rb") as file:
        start = file.read(64).lstrip()
    if start.startswith((b"<?xml", b"<net")):
        raise ValueError(f"{path} is an OpenVINO IR, not an ONNX model: convert it with specops convert {path}")


def files_of(path: Path) -> list[Path]:
    """Return the model's file and its files of weights; only the file itself if it is not a model."""
    try:
        proto = onnx.load(path, load_external_data=False)
    except (OSError, DecodeError):
        return [path]
    attributes = (attribute.t for node in all_nodes(proto.graph) for attribute in node.attribute)
    locations = (e.value for t in (*proto.graph.initializer, *attributes) for e in t.external_data if e.key == "location")
    return [path, *(path.parent / location for location in dict.fromkeys(locations))]


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of the graph and its nested graphs."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g)


def input_specs(proto: onnx.ModelProto) -> list[InputSpec]:
    """Return the model's required inputs, with the bounds of their dimensions in the IR."""
    hidden = {tensor.name for tensor in proto.graph.initializer} | _variable_names(proto, "input", "is_set")
    return [_spec(value) for value in proto.graph.input if value.name not in hidden]


def _spec(value: onnx.ValueInfoProto) -> InputSpec:
    tensor = value.type.tensor_type
    element_type = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    if not tensor.HasField("shape"):
        return InputSpec(value.name, element_type, None)
    dims = tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)
    stated = next((entry.value for entry in value.metadata_props if entry.key == SHAPE), "")
    bounds = [_bounds(part) for part in stated.strip("[]").split(",")]
    fit = len(bounds) == len(dims) and all(b is not None and d in (None, b[0]) for b, d in zip(bounds, dims, strict=True))
    return InputSpec(value.name, element_type, dims, tuple(b for b in bounds if b is not None) if fit else ())


_DIMENSION = re.compile(r"(\d*)(\.\.)?(\d*)")


def _bounds(text: str) -> Interval | None:
    if text == "?":
        return 0, None
    found = _DIMENSION.fullmatch(text)
    if not text or found is None:
        return None
    low, dots, high = found.groups()
    return int(low or 0), (int(high) if high else None) if dots else int(low)


def variable_blanks(proto: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Return the values of the required inputs that represent the initial values of variables."""
    defaults = {tensor.name for tensor in proto.graph.initializer}
    names = _variable_names(proto, "input", "is_set") if _variable_names(proto, "is_set") else set()
    blanks = {}
    for value in proto.graph.input:
        if value.name in names - defaults:
            tensor = value.type.tensor_type
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            blanks[value.name] = np.zeros([dim.dim_value for dim in tensor.shape.dim], dtype)
    return blanks


def _variable_names(proto: onnx.ModelProto, *keys: str) -> set[str]:
    """Return the inputs or outputs for variables."""
    texts = [entry.value for entry in proto.metadata_props if entry.key == METADATA_KEY]
    variables = [variable for text in texts for variable in parse_variables(text)]
    return {name for variable in variables for key in keys if (name := getattr(variable, key))}


_RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


def _random_values(proto: onnx.ModelProto) -> set[str]:
    """Return the values of the outermost graph that depend on random numbers in the bodies of the domain's operators."""
    functions = {(f.domain, f.name, f.overload): f for f in proto.functions}

    def draws(nodes: Iterator[onnx.NodeProto] | Sequence[onnx.NodeProto]) -> bool:
        for node in nodes:
            if node.domain == "" and node.op_type in _RANDOM:
                return True
            body = functions.get((node.domain, node.op_type, node.overload))
            if body is not None and draws(list(all_nodes(onnx.GraphProto(node=body.node)))):
                return True
        return False

    tainted: set[str] = set()
    for node in proto.graph.node:
        inner = list(all_nodes(onnx.GraphProto(node=[node])))
        if any(name in tainted for n in inner for name in n.input) or draws(inner):
            tainted.update(node.output)
    return tainted
