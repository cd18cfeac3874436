"""A model whose nodes are replaced: its constants, its types and the users of its values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnx_specops.domain import DOMAIN, OPSET_VERSION
from onnx_specops.inlining import inputs_with_defaults, nested_graphs, without_weights
from onnx_specops.optimizing.inference import may_differ
from onnx_specops.optimizing.nodes import attributes_of, is_a


@dataclass(frozen=True)
class Type:
    """The type of a value.

    Attributes:
        element_type: of ``TensorProto.DataType``; 0 if unknown.
        dims: the dimensions, with 0 for unknown ones; ``None`` if the rank is unknown.
    """

    element_type: int
    dims: tuple[int, ...] | None


UNKNOWN = Type(TensorProto.UNDEFINED, None)
_FIRST_WITH_ROI = 11
"""The first opset in which the scales are the third input of Resize."""


class Graph:
    """The outermost graph of a model, without its nested graphs and functions.

    Attributes:
        nodes: the original nodes. `become` and `fuse` change them.
        opset: the version of ONNX's operators.

    Raises:
        TypeError, ValueError: attributes have values of other types than ONNX's.
    """

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self.nodes = list(model.graph.node)
        self.opset = next((opset.version for opset in model.opset_import if opset.domain == ""), 0)
        defaults = inputs_with_defaults(model)
        self._outputs = {value.name for value in model.graph.output}
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer if tensor.name not in defaults}
        self._producers: dict[str, NodeProto] = {}
        self._users: dict[str, list[int]] = {}  # the positions of nodes
        for index, node in enumerate(self.nodes):
            self._producers |= dict.fromkeys(node.output, node)
            if (constant := self._constant_of(node)) is not None:
                self._constants |= dict.fromkeys(node.output, constant)
            for name in {*node.input, *(name for nested in nested_graphs(node) for name in _names(nested))}:
                self._users.setdefault(name, []).append(index)
        self._stated = _types(*model.graph.input, *model.graph.value_info, *model.graph.output)
        self._inferred: dict[str, Type] | None = None
        self._fused: set[int] = set()
        self._added: list[NodeProto] = []
        self._is_changed = False

    def _constant_of(self, node: NodeProto) -> TensorProto | None:
        """Return the value of a node that is a constant: a Constant, or a Cast that ONNX Runtime folds when it loads the
        model.
        """
        if is_a(node, "Constant"):
            tensor = attributes_of(node).get("value")
            return tensor if isinstance(tensor, TensorProto) else None
        if is_a(node, "Cast") and (tensor := self.constant(node, 0)) is not None:
            data_type = attributes_of(node).get("to", TensorProto.UNDEFINED)
            return TensorProto(data_type=data_type, dims=tensor.dims, data_location=TensorProto.EXTERNAL)
        return None

    def constant(self, node: NodeProto, index: int) -> TensorProto | None:
        """Return an input that no caller can replace, even if its elements are unknown; ``None`` for other inputs."""
        return self._constants.get(node.input[index]) if index < len(node.input) else None

    def array(self, node: NodeProto, index: int) -> np.ndarray | None:
        """Return the elements of an input if they are constant and known."""
        tensor = self.constant(node, index)
        return None if tensor is None or tensor.data_location == TensorProto.EXTERNAL else numpy_helper.to_array(tensor)

    def producer(self, node: NodeProto, index: int) -> NodeProto | None:
        """Return the node that computes an input; ``None`` if there is none."""
        return self._producers.get(node.input[index]) if index < len(node.input) else None

    def only_user(self, node: NodeProto) -> NodeProto | None:
        """Return the only user of the first output of a node; ``None`` if there are several, or if it is an output."""
        users = self._users.get(node.output[0], [])
        return self.nodes[users[0]] if len(users) == 1 and node.output[0] not in self._outputs else None

    def type_of(self, name: str) -> Type:
        """Return the type of a value. It is inferred if the model does not specify it.

        ONNX Runtime does not check the dimensions that a model specifies for other values than inputs. See `proven_type_of`.
        """
        return self._stated.get(name) or self.proven_type_of(name)

    def proven_type_of(self, name: str) -> Type:
        """Return the type of a value that follows from constants and from the types of inputs, which ONNX Runtime checks."""
        if self._inferred is None:
            try:
                inferred = onnx.shape_inference.infer_shapes(self._with_types_of_inputs(), data_prop=True).graph
            except Exception:  # an invalid model: ONNX Runtime reports it
                inferred = GraphProto()
            self._inferred = _types(*inferred.input, *inferred.value_info)
        return self._inferred.get(name, UNKNOWN)

    def _with_types_of_inputs(self) -> ModelProto:
        """Return the model without types of other values, and without nodes whose inferred dimensions may be wrong."""
        light = without_weights(self._model)
        light.graph.ClearField("value_info")
        light.graph.ClearField("output")
        for index in reversed(range(len(self.nodes))):
            if index in self._fused or self._may_differ(self.nodes[index]):
                del light.graph.node[index]
        for value in light.graph.input:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value < 0:  # unknown for ONNX Runtime
                    dim.Clear()
        return light

    def _may_differ(self, node: NodeProto) -> bool:
        index = 1 if self.opset < _FIRST_WITH_ROI else 2
        return may_differ(node, self.array(node, index), any(node.input[index : index + 1]))

    def become(self, node: NodeProto, operator: str, *inputs: str | np.ndarray, **attributes: Any) -> None:
        """Turn a node into one of the domain's operators. Arrays among the inputs become constants."""
        names = [name if isinstance(name, str) else self._add(node, index, name) for index, name in enumerate(inputs)]
        node.domain, node.op_type = DOMAIN, operator
        del node.input[:], node.attribute[:]
        node.input.extend(names)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        if not any(opset.domain == DOMAIN for opset in self._model.opset_import):
            self._model.opset_import.append(helper.make_opsetid(DOMAIN, OPSET_VERSION))
        self._is_changed = True

    def fuse(self, node: NodeProto) -> None:
        """Remove the only user of a node, and give the node its output: the node computes both operators from now on."""
        (position,) = self._users[node.output[0]]
        node.output[0] = self.nodes[position].output[0]
        self._fused.add(position)

    def _add(self, node: NodeProto, index: int, array: np.ndarray) -> str:
        name = f"{node.output[0]}/{DOMAIN}/{index}"
        while name in self._producers or name in self._constants or name in self._users:
            name += "_"
        added = helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
        self._producers[name] = added
        self._added.append(added)
        return name

    def finish(self) -> bool:
        """Apply the changes to the model; return whether there are any."""
        nodes = self._model.graph.node
        for position in sorted(self._fused, reverse=True):
            del nodes[position]
        for added in self._added:
            nodes.insert(0, added)
        return self._is_changed


def _names(graph: GraphProto) -> Iterator[str]:
    """Iterate over the names that a nested graph may use, including those of its own values."""
    pending = [graph]
    while pending:
        one = pending.pop()
        yield from (value.name for value in one.output)
        for node in one.node:
            yield from node.input
            pending.extend(nested_graphs(node))


def _types(*values: ValueInfoProto) -> dict[str, Type]:
    """Return the types of the values whose rank is known."""
    return {
        value.name: Type(
            value.type.tensor_type.elem_type, tuple(max(dim.dim_value, 0) for dim in value.type.tensor_type.shape.dim)
        )
        for value in values
        if value.type.tensor_type.HasField("shape")
    }
