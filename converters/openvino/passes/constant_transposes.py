"""Constants that a rule transposes are laid out anew once, at conversion, never at run time."""

from __future__ import annotations

import functools

import numpy as np
import onnx_ir as ir

from onnx_specops.building import Value


def fold_constant_transposes(graph: ir.Graph) -> int:
    """Replace each Transpose of an initializer by a transposed initializer; returns how many.

    Where the initializer is cast first (weights stored as float16), the transposition moves before the cast.
    """
    count = 0
    folded: dict[tuple[int, tuple[int, ...]], Value] = {}
    for node in list(ir.traversal.RecursiveGraphIterator(graph)):
        if node.op_type != "Transpose" or node.domain or node.inputs[0] is None:
            continue
        source: ir.Value | None = node.inputs[0]
        cast = node.inputs[0].producer()
        if cast is not None and cast.op_type == "Cast" and not cast.domain:
            source = cast.inputs[0]
        tensor = None if source is None else source.const_value
        if source is None or tensor is None or source.producer() is not None:
            continue
        perm = (
            tuple(node.attributes["perm"].as_ints())
            if "perm" in node.attributes
            else tuple(range(tensor.shape.rank()))[::-1]
        )
        key = (id(tensor), perm)
        if key not in folded:
            folded[key] = _transposed(source, tensor, perm)
            graph.register_initializer(folded[key])
        output = node.outputs[0]
        if cast is not None and source is not node.inputs[0]:
            node.replace_input_with(0, folded[key])
            # The node becomes the cast of the transposed constant: its output, name and type stay.
            replacement = ir.Node("", "Cast", [folded[key]], list(cast.attributes.values()), name=node.name)
            replacement.outputs[0].type, replacement.outputs[0].shape = output.type, output.shape
            owner = node.graph
            assert owner is not None
            owner.insert_before(node, replacement)
            name = output.name
            output.replace_all_uses_with(replacement.outputs[0], replace_graph_outputs=True)
            owner.remove(node, safe=True)
            replacement.outputs[0].name = name
        else:
            output.replace_all_uses_with(folded[key], replace_graph_outputs=False)
        count += 1
    return count


def _transposed(source: ir.Value, tensor: ir.TensorProtocol, perm: tuple[int, ...]) -> Value:
    def compute(tensor: ir.TensorProtocol = tensor) -> ir.TensorProtocol:
        return ir.Tensor(np.ascontiguousarray(tensor.numpy().transpose(perm)), dtype=tensor.dtype)

    shape = ir.Shape([tensor.shape.numpy()[axis] for axis in perm])
    lazy = ir.LazyTensor(functools.cache(compute), dtype=tensor.dtype, shape=shape, name=f"{source.name}_transposed")
    return Value(name=lazy.name, type=source.type, shape=shape, const_value=lazy)
