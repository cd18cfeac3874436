"""Adapt a model to the limits of Python kernels before the session is created.

onnxruntime-extensions requires every attribute and every input, and does not support 16-bit floats or lists. If the memory
of an output is allocated before its node runs (in a branch of an If, or bound by the caller), a kernel result of another
shape crashes the process.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Container, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_specops.domain import DOMAIN, Operator, find
from onnx_specops.inlining import graphs_and_functions, inline_users, nested_graphs, without_weights
from onnx_specops.runtime.extensions.kernels import BY_BODY, PYTHON_DOMAIN, SORTED, kernel_name, text_attributes

_NARROW: dict[int, str] = {TensorProto.FLOAT16: "float16", TensorProto.BFLOAT16: "bfloat16"}


def domain_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Iterate over the nodes of the domain in ``model``, including nested graphs and functions except the domain's own
    bodies.
    """
    for holder in graphs_and_functions(model):
        for node in holder.node:
            if node.domain == DOMAIN:
                yield node


def adapt(model: onnx.ModelProto) -> bool:
    """Change ``model`` in place so that Python kernels can run all nodes of the domain; return whether it changed.

    The nodes of operators whose bodies in the model are faster do not change.
    """
    bodies = {function.name for function in model.functions if function.domain == DOMAIN} & BY_BODY
    if all(node.op_type in bodies for node in domain_nodes(model)):
        return False
    _check_strings(model)
    changed = False
    if _mentions_16_bits(model):
        inline_users(model)
        changed = _widen(model.graph, {}, onnx.shape_inference.infer_shapes(without_weights(model)).graph)
    versions = {opset.domain: opset.version for opset in model.opset_import}
    # inner graphs first, because nodes of outer graphs are copied
    for holder in reversed(list(graphs_and_functions(model))):
        changed |= _complete(holder, bodies) | _detach_outputs(holder, bodies)
        if _rename(holder, bodies):
            changed = True
            if isinstance(holder, onnx.FunctionProto) and not any(opset.domain == "" for opset in holder.opset_import):
                holder.opset_import.append(onnx.helper.make_opsetid("", versions.get("", onnx.defs.onnx_opset_version())))
    if changed:
        for holder in (model, *(function for function in model.functions if function.domain != DOMAIN)):
            holder.opset_import.append(onnx.helper.make_opsetid(PYTHON_DOMAIN, 1))
    return changed


def check_text(name: str, value: Any) -> None:
    """Raise ``ValueError`` if ``value`` has strings that Python kernels do not support.

    Strings that are not UTF-8 would abort the process. Strings with a NUL would be truncated silently.
    """
    if isinstance(value, np.ndarray) and value.dtype.kind in "SUO":
        for element in value.reshape(-1):
            if isinstance(element, bytes):
                _check_bytes(name, element)
            elif isinstance(element, str) and "\0" in element:
                _check_bytes(name, element.encode(errors="replace"))


def _check_strings(model: onnx.ModelProto) -> None:
    for holder in graphs_and_functions(model):
        for tensor in getattr(holder, "initializer", ()):
            for element in tensor.string_data:
                _check_bytes(tensor.name, element)
        for node in holder.node:
            for attribute in node.attribute:
                for element in (*attribute.t.string_data, *attribute.strings):
                    _check_bytes(node.name or node.op_type, element)


def _check_bytes(name: str, text: bytes) -> None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: {text[:60]!r} is not UTF-8, which Python kernels require") from error
    if b"\0" in text:
        raise ValueError(f"{name}: {text[:60]!r} contains a NUL, which ends a string in Python kernels")


def _replace_nodes(holder: Any, nodes: list[onnx.NodeProto]) -> None:
    copies = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copies.append(copy)
    del holder.node[:]
    holder.node.extend(copies)


def _base_name(node: onnx.NodeProto) -> str:
    return node.op_type.partition("__")[0]


def _has_kernel(node: onnx.NodeProto, bodies: Container[str]) -> bool:
    """Return whether a Python kernel computes a node."""
    return node.domain == DOMAIN and node.op_type not in bodies


def _complete(holder: Any, bodies: Container[str]) -> bool:
    """Add every missing attribute, and an empty tensor for every omitted input."""
    nodes: list[onnx.NodeProto] = []
    changed = False
    for node in holder.node:
        if _has_kernel(node, bodies):
            try:
                operator = find(_base_name(node))
            except KeyError:  # ONNX Runtime's error names it
                nodes.append(node)
                continue
            stated = {attribute.name for attribute in node.attribute}
            for name, attribute in operator.attributes.items():
                if name not in stated and not attribute.required:
                    made = onnx.helper.make_attribute(name, attribute.default, attr_type=attribute.kind)
                    node.attribute.append(made)
                    changed = True
            changed |= _write_out(node, operator)
            changed |= _sort_operands(node)
            added = _fill(node, operator)
            changed |= bool(added)
            nodes.extend(added)
        nodes.append(node)
    if changed:
        _replace_nodes(holder, nodes)
    return changed


def _rename(holder: Any, bodies: Container[str]) -> bool:
    """Move the domain's nodes to the domain of our sessions' Python kernels; return whether there are any."""
    found = False
    for node in holder.node:
        if not _has_kernel(node, bodies):
            continue
        with contextlib.suppress(KeyError):  # ONNX Runtime's error names unknown operators
            find(_base_name(node))
            node.domain, node.overload = PYTHON_DOMAIN, ""
            found = True
    return found


def _write_out(node: onnx.NodeProto, operator: Operator) -> bool:
    """Encode attributes as text if the library would truncate or reject them."""
    names = text_attributes(operator)
    for attribute in node.attribute:
        if attribute.name in names:
            value = onnx.helper.get_attribute_value(attribute)
            text = json.dumps(value if isinstance(value, float) else list(value))
            attribute.CopyFrom(onnx.helper.make_attribute(attribute.name, text))
    if names and node.op_type == operator.name:
        node.op_type, node.overload = kernel_name(operator, {}), ""
    return bool(names)


def _sort_operands(node: onnx.NodeProto) -> bool:
    """Sort the operands of an Elementwise node by type, integers first, and omit those that its program does not use.

    A node that lacks an operand does not change; the kernel reports the error.

    Raises:
        ValueError: the program is invalid.
    """
    from onnx_specops.ops import elementwise  # it imports this package

    if _base_name(node) != "Elementwise":
        return False
    program = next((attribute for attribute in node.attribute if attribute.name == "program"), None)
    if program is None:
        return False
    found = elementwise.instructions(program.s.decode())
    inputs = list(node.input) + [""] * (3 - len(node.input))
    operands = dict(enumerate([inputs[0], *inputs[3:]]))
    integers = {one.arguments[i] for one in found if one.name == "dequantize" for i in (0, 2)}
    used = sorted(elementwise.operands_of(found), key=lambda number: number not in integers)
    if not all(operands.get(number) for number in used):
        return False
    places = {number: place for place, number in enumerate(used)}
    texts = [" ".join([one.name, *(str(places.get(number, number)) for number in one.arguments)]) for one in found]
    program.s = ";".join(texts).encode()
    names = [operands[number] for number in used]
    node.input[:] = [names[0], *inputs[1:3], *names[1:]]
    return True


def _detach_outputs(holder: Any, bodies: Container[str]) -> bool:
    """Insert a node of standard ONNX after each node of the domain that produces a graph output.

    The node expands to the shape of a scalar, which has no effect and which no optimizer removes.
    """
    outputs = {output if isinstance(output, str) else output.name for output in holder.output}
    nodes: list[onnx.NodeProto] = []
    changed = False
    for node in holder.node:
        nodes.append(node)
        if not _has_kernel(node, bodies):
            continue
        for index, name in enumerate(node.output):
            if name in outputs:
                result, shape = f"{name}_of_python_kernel", f"{name}_of_python_kernel_shape"
                node.output[index] = result
                scalar = onnx.helper.make_tensor("", TensorProto.INT64, [0], [])
                nodes.append(onnx.helper.make_node("Constant", [], [shape], value=scalar))
                nodes.append(onnx.helper.make_node("Expand", [result, shape], [name]))
                changed = True
    if changed:
        # Other nodes of the graph keep reading the original name.
        _replace_nodes(holder, nodes)
    return changed


def _fill(node: onnx.NodeProto, operator: Operator) -> list[onnx.NodeProto]:
    """Return nodes that produce the omitted inputs of ``node``: empty tensors, or empty slices of another input."""
    added: list[onnx.NodeProto] = []
    inputs = list(node.input) + [""] * (len(operator.inputs) - len(node.input))
    types = list(operator.inputs.values())
    for index, (name, optional) in enumerate(zip(inputs, operator.optional, strict=True)):
        if name or not optional:
            continue
        is_known = types[index].startswith("tensor(")  # not a type variable
        others = zip(inputs, types, strict=True)
        like = None if is_known else next((other for other, type_ in others if other and type_ == types[index]), None)
        prefix = f"{node.output[0]}_{list(operator.inputs)[index]}_left_out"
        if like is None:  # no other input has the type of this input
            allowed = operator.element_types(types[index])
            allowed = allowed if is_known else SORTED.get(operator.name, ())[::-1] or allowed
            element_type = getattr(TensorProto, allowed[0].upper())
            nothing = onnx.helper.make_tensor("", element_type, [0], [])
            added.append(onnx.helper.make_node("Constant", [], [prefix], value=nothing))
            inputs[index] = prefix
            continue
        zero = onnx.helper.make_tensor("", TensorProto.INT64, [1], [0])
        added.append(onnx.helper.make_node("Constant", [], [f"{prefix}_zero"], value=zero))
        added.append(onnx.helper.make_node("Slice", [like, f"{prefix}_zero", f"{prefix}_zero"], [prefix]))
        inputs[index] = prefix
    if added:
        del node.input[:]
        node.input.extend(inputs)
    return added


# -- 16-bit floats -----------------------------------------------------------------------------------------------------


def _mentions_16_bits(model: onnx.ModelProto) -> bool:
    for holder in graphs_and_functions(model):
        if isinstance(holder, onnx.GraphProto):
            if any(tensor.data_type in _NARROW for tensor in holder.initializer):
                return True
            if any(
                info.type.tensor_type.elem_type in _NARROW for info in (*holder.input, *holder.output, *holder.value_info)
            ):
                return True
        for node in holder.node:
            for attribute in node.attribute:
                if attribute.t.data_type in _NARROW or (attribute.name in ("to", "dtype") and attribute.i in _NARROW):
                    return True
    return False


def _widen(graph: onnx.GraphProto, outer: Mapping[str, int], inferred: onnx.GraphProto) -> bool:
    """Compute nodes of the domain with 16-bit floats in float32, between casts.

    Args:
        graph: the graph to change.
        outer: the element types of values from outer graphs.
        inferred: the same graph with the types of all its values.
    """
    types = dict(outer)
    types.update({tensor.name: tensor.data_type for tensor in inferred.initializer})
    for info in (*inferred.input, *inferred.output, *inferred.value_info):
        types[info.name] = info.type.tensor_type.elem_type
    changed = False
    nodes: list[onnx.NodeProto] = []
    for node, twin in zip(graph.node, inferred.node, strict=True):
        before: list[onnx.NodeProto] = []
        after: list[onnx.NodeProto] = []
        if node.domain == DOMAIN:
            with contextlib.suppress(KeyError):  # ONNX Runtime's error names unknown operators
                before, after = _widen_node(node, find(node.op_type), types)
        changed |= bool(before)
        for subgraph, twin_graph in zip(nested_graphs(node), nested_graphs(twin), strict=True):
            changed |= _widen(subgraph, types, twin_graph)
        nodes += [*before, node, *after]
    if changed:
        _replace_nodes(graph, nodes)
    return changed


def _widen_node(
    node: onnx.NodeProto, operator: Operator, types: Mapping[str, int]
) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
    variables = list(operator.inputs.values())
    narrow = {
        variable: types[name]
        for name, variable in zip(node.input, variables, strict=False)
        if name and variable in operator.types and types.get(name) in _NARROW
    }
    before, after = [], []
    for index, name in enumerate(node.input):
        if name and variables[index] in narrow:
            wide = f"{node.output[0]}_input_{index}_as_float"
            before.append(onnx.helper.make_node("Cast", [name], [wide], to=TensorProto.FLOAT))
            node.input[index] = wide
    for index, variable in enumerate(operator.outputs.values()):
        if variable in narrow and index < len(node.output) and node.output[index]:
            # This name differs from those of casts around standard operators.
            wide, name = f"{node.output[index]}_before_narrowing", node.output[index]
            after.append(onnx.helper.make_node("Cast", [wide], [name], to=narrow[variable]))
            node.output[index] = wide
    if narrow:
        node.op_type = kernel_name(operator, {variable: _NARROW[type_] for variable, type_ in narrow.items()})
        node.overload = ""
    return before, after
