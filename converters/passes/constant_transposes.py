"""Transposition of constants at conversion instead of run time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import PassResult

from converters.passes.running import OperatorPass
from onnx_specops.building import Value
from onnx_specops.graphs import all_nodes
from onnx_specops.naming import Names
from onnx_specops.replacing import replace_value


class FoldConstantTransposes(OperatorPass):
    """Replace each Transpose of an initializer by a transposed initializer.

    If the initializer is cast first (weights stored as float16), the transposition moves before the cast. Strings stay: they
    have no lazy tensors.
    """

    operators = frozenset(("Transpose",))

    def call(self, model: ir.Model) -> PassResult:
        transposes = [node for node in all_nodes(model.graph) if (node.domain, node.op_type) == ("", "Transpose")]
        folding = _Folding(model.graph, Names.of(model.graph) if transposes else Names())
        count = sum(folding.fold(node) for node in transposes)
        return PassResult(model, modified=count > 0)


_Perm = tuple[int, ...]


@dataclass
class _Folding:
    """The transposed initializers of a graph.

    Attributes:
        root: the graph.
        names: its names.
        folded: the transposed initializer of each initializer and order.
        origins: for each transposed initializer, the original one and the order. Further transpositions of the transposed
            one are computed from the original.
    """

    root: ir.Graph
    names: Names
    folded: dict[tuple[ir.Value, _Perm], ir.Value] = field(default_factory=dict)
    origins: dict[ir.Value, tuple[ir.Value, _Perm]] = field(default_factory=dict)

    def fold(self, node: ir.Node) -> bool:
        if (source := node.inputs[0]) is None:
            return False
        cast = source.producer()
        if cast is not None and (cast.domain, cast.op_type) == ("", "Cast") and cast.inputs[0] is not None:
            source = cast.inputs[0]
        tensor = source.const_value
        if tensor is None or tensor.dtype == ir.DataType.STRING or source.producer() is not None or source.is_graph_input():
            return False
        perm = tuple(node.attributes.get_ints("perm", ())) or tuple(range(len(tensor.shape)))[::-1]
        replacement, output = self.transposed(source, perm), node.outputs[0]
        if source is not node.inputs[0]:
            assert cast is not None and node.graph is not None
            result = Value(name=self.names.unique(f"{output.name}_cast"), type=output.type, shape=output.shape)
            attributes = list(cast.attributes.values())
            node.graph.insert_before(node, ir.Node("", "Cast", [replacement], attributes, outputs=[result], name=node.name))
            replacement = result
        return replace_value(output, replacement)

    def transposed(self, source: ir.Value, perm: _Perm) -> ir.Value:
        """Return the transposed initializer."""
        if source in self.origins:
            source, first = self.origins[source]
            perm = tuple(first[axis] for axis in perm)
        if perm == tuple(range(len(perm))):
            return source
        if (source, perm) not in self.folded:
            found = self.folded[source, perm] = _transposed(source, perm)
            self.origins[found] = source, perm
            self.names.register(self.root, found)
        return self.folded[source, perm]


def _transposed(source: ir.Value, perm: _Perm) -> Value:
    tensor = source.const_value
    assert tensor is not None

    def compute(tensor: ir.TensorProtocol = tensor) -> ir.TensorProtocol:
        return ir.Tensor(np.ascontiguousarray(tensor.numpy().transpose(perm)), dtype=tensor.dtype)

    shape = ir.Shape([tensor.shape.numpy()[axis] for axis in perm])
    lazy = ir.LazyTensor(compute, dtype=tensor.dtype, shape=shape, name=f"{source.name}_transposed")
    return Value(name=lazy.name, type=source.type, shape=shape, const_value=lazy)
