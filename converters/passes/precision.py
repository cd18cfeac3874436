"""The precision of weights and computation: float32 throughout, or float16 where it is accurate enough.

In float16, for GPUs and NPUs, the following stay in float32, with casts around them:

- operators that do not support float16, sums along an axis and powers, which overflow, random numbers, pooling of regions,
  whose boxes have the type of the image, and the domain's operators;
- values that are computed from shapes and positions, or become an index, a size, a level of 16 bits, or a position or box in
  an image, because float16 does not represent all integers above 2048;
- MatMul, Conv and BatchNormalization with constants beyond float16's range, numbers close to zero, and large intermediate
  results, such as the mean square in a normalization (`float16_limits`).
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.float16_limits import LARGEST, is_constant, is_near_zero, near_zero, overflowing, positions
from converters.passes.simplification.constants import RANDOM
from onnx_specops.building import OPSET, OPSET_IMPORTS, Value, constant_value
from onnx_specops.domain import CONTRIB_DOMAIN, DOMAIN
from onnx_specops.graphs import all_nodes, all_values, nested, producer_of
from onnx_specops.naming import Names
from onnx_specops.replacing import replace_value
from onnx_specops.retyping import converted, retype

D = ir.DataType


class InFloat32(InPlacePass):
    """Convert 16-bit weights and computation to float32. Inputs and outputs keep their types.

    Where a value is rounded to float16, the Cast stays:

    - between float32 and an 8-bit float: FakeConvert rounds twice, as OpenVINO does;
    - if it is computed from constants only: OpenVINO rounds these when it loads the model, but not values that it computes
    later.
    """

    def call(self, model: ir.Model) -> PassResult:
        types = {D.FLOAT16: D.FLOAT, D.BFLOAT16: D.FLOAT}
        before = any(value.dtype in types for value in all_values(model.graph))
        retype(model, types, kept=_before_float8(model) | _rounded_constants(model))
        return PassResult(model, modified=before)


def _rounded_constants(model: ir.Model) -> set[ir.Value]:
    """Return the results of Casts that round values computed from constants to float16. Insert a Cast after each of them,
    which becomes one to float32.
    """
    constants: set[ir.Value | None] = {None}
    found: list[ir.Node] = []
    for node in all_nodes(model.graph):
        if node.op_type in RANDOM or nested(node) or not all(v in constants or is_constant(v) for v in node.inputs if v):
            continue
        constants.update(node.outputs)
        if (node.op_type, node.domain) == ("Cast", "") and _rounds_to_float16(node):
            found.append(node)
    names = Names.of(model.graph) if found else Names()
    for node in found:
        (rounded,) = node.outputs
        assert node.graph is not None
        name = names.unique(f"{rounded.name}_rounded")
        copy = Value(name=name, type=rounded.type, shape=rounded.shape)
        rounded.replace_all_uses_with(copy)
        node.graph.insert_after(
            node, ir.Node("", "Cast", [rounded], [ir.AttrInt64("to", int(D.FLOAT16))], outputs=[copy], name=name)
        )
    return {node.outputs[0] for node in found}


def _rounds_to_float16(cast: ir.Node) -> bool:
    source, result = cast.inputs[0], cast.outputs[0]
    if source is None or source.dtype is None or result.dtype != D.FLOAT16 or result.is_graph_output():
        return False
    return source.dtype in _NOT_IN_FLOAT16 and not (isinstance(result, Value) and result.unrounded)


_NOT_IN_FLOAT16 = frozenset((
    D.FLOAT, D.DOUBLE, D.BFLOAT16, D.INT16, D.INT32, D.INT64, D.UINT16, D.UINT32, D.UINT64,
))  # fmt: skip
"""Types with numbers that float16 rounds."""


def _before_float8(model: ir.Model) -> set[ir.Value]:
    """Return the values of Casts from float32 to float16 that a Clip and a Cast to an 8-bit float follow."""
    clips = set()
    for node in all_nodes(model.graph):
        if (node.op_type, node.domain) != ("Cast", "") or node.outputs[0].dtype not in _FLOAT8:
            continue
        clip = producer_of(node.inputs[0], "Clip")
        cast = None if clip is None else producer_of(clip.inputs[0], "Cast")
        if clip is None or cast is None or cast.inputs[0] is None:
            continue
        if (cast.inputs[0].dtype, cast.outputs[0].dtype) == (D.FLOAT, D.FLOAT16):
            clips.add(clip)
    names = Names.of(model.graph) if clips else Names()
    kept: set[ir.Value] = set()
    for clip in clips:
        for index, limit in enumerate(clip.inputs[1:], 1):
            if limit is not None and limit.const_value is not None and not clips.issuperset(limit.consumers()):
                own = constant_value(limit.const_value.numpy(), name=limit.name)
                names.register(model.graph, own)
                clip.replace_input_with(index, own)
        kept.update(value for value in (*clip.inputs, *clip.outputs) if value is not None)
    return kept


_FLOAT8 = (D.FLOAT8E4M3FN, D.FLOAT8E5M2)


# -- float16 --------------------------------------------------------------------------------------------------------------

# Operators that overflow in float16, accumulate its rounding errors, take boxes in an image, or draw random numbers.
_FLOAT32_ONLY = frozenset((
    "Bernoulli", "CumSum", "DFT", "LRN", "MaxRoiPool", "Multinomial", "NonMaxSuppression", "Pow", "RandomNormal",
    "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Range", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
    "ReduceProd", "ReduceSumSquare", "RoiAlign", "STFT",
))  # fmt: skip

# Operators through which values computed from shapes, and values that become an index or a size, are tracked.
_TRACKED = frozenset((
    "Abs", "Add", "Cast", "Ceil", "Clip", "Concat", "Div", "Exp", "Expand", "Flatten", "Floor", "Gather",
    "Identity", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Reciprocal", "Reshape", "Round", "Sign", "Slice",
    "Split", "Sqrt", "Squeeze", "Sub", "Tile", "Transpose", "Unsqueeze", "Where",
))  # fmt: skip

# Operators through which the latter are tracked: sums of ones are counts.
_COUNTING = _TRACKED | {"ReduceMax", "ReduceMin", "ReduceSum"}

# These operators need the exact values of constants beyond float16's range. Others use such constants as masks.
_WITH_WEIGHTS = frozenset(("BatchNormalization", "Conv", "ConvTranspose", "Gemm", "MatMul"))

# The inputs whose relative error is that of the result: scales, and the variance.
_SCALES = {"BatchNormalization": (1, 4), "DequantizeLinear": (1,), "QuantizeLinear": (1,)}

# ONNX Runtime 1.32 cannot combine float16 numbers here, although its kernels accept the type.
_COMBINING = frozenset(("ScatterElements", "ScatterND"))

_CONTROL = frozenset(("If", "Loop", "Scan"))


def _exceeds_float16(value: ir.Value | None) -> bool:
    """Return whether a constant has finite numbers beyond float16's range."""
    if value is None or value.const_value is None or value.is_graph_input() or value.dtype != D.FLOAT:
        return False
    array = value.const_value.numpy()
    return bool((np.isfinite(array) & (np.abs(array) > LARGEST)).any())


class InFloat16(InPlacePass):
    """Convert float32 weights and computation to float16. Inputs and outputs keep their types.

    Args:
        opset: the opset of the model. Operators that support float16 only in later opsets stay in float32.

    Attributes:
        clamped: after the pass, the names of constants with numbers beyond float16's range.
    """

    def __init__(self, opset: int = OPSET) -> None:
        self.opset = opset
        self.clamped: list[str] = []

    def call(self, model: ir.Model) -> PassResult:
        work = _Float16Conversion(model.graph, self.opset)
        work.run()
        self.clamped = list(dict.fromkeys(work.clamped))
        return PassResult(model, modified=True)


class _Float16Conversion:
    """The conversion of one graph to float16."""

    def __init__(self, graph: ir.Graph, opset: int) -> None:
        self.graph, self.opset = graph, opset
        self.nodes = list(all_nodes(graph))
        self.floats = {value for value in all_values(graph) if value.dtype == D.FLOAT}
        self._unique = Names(value.name for value in all_values(graph)).unique
        self.single = {node for node in self.nodes if self._stays_float32(node)}
        self.large: set[ir.Value] = set()
        self.clamped: list[str] = []
        self._casts: dict[tuple[ir.Value, ir.DataType, ir.Graph], Value] = {}
        self._halves: dict[ir.Value, Value] = {}

    def run(self) -> None:
        self._follow_shapes()
        self._follow_limits()
        self._follow_indices()
        for node in self.nodes:
            self._settle_outputs(node)
        for node in self.nodes:
            for index, value in enumerate(node.inputs):
                if value in self.floats and value is not None:
                    self._settle_input(node, index, value)
            for inner in nested(node):
                self._settle_ends(inner, D.FLOAT16)
        self._settle_ends(self.graph, D.FLOAT)
        self._drop_casts()
        for value in list(self.graph.initializers.values()):
            if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
                del self.graph.initializers[value.name or ""]

    # -- nodes that stay ---------------------------------------------------------------------------------------------

    def _stays_float32(self, node: ir.Node) -> bool:
        """Return whether a node's operator always computes in float32."""
        if node.op_type in _CONTROL and not node.domain:
            return False
        if node.domain not in ("", CONTRIB_DOMAIN) or node.op_type in _FLOAT32_ONLY:
            return True
        if node.op_type in _COMBINING and node.attributes.get_string("reduction", "none") != "none":
            return True
        if node.op_type in _WITH_WEIGHTS and any(_exceeds_float16(value) for value in node.inputs):
            return True
        if any(is_near_zero(node.inputs[index], some=True) for index in _SCALES.get(node.op_type, ())):
            return True
        version = OPSET_IMPORTS[node.domain]
        schemas = [onnx.defs.get_schema(node.op_type, version, node.domain)]
        if not node.domain and self.opset < version and onnx.defs.has(node.op_type, self.opset):
            schemas.append(onnx.defs.get_schema(node.op_type, self.opset))
        return any(self._has_single_floats(node, schema) for schema in schemas)

    def _has_single_floats(self, node: ir.Node, schema: onnx.defs.OpSchema) -> bool:
        """Return whether a schema supports float32 and not float16 for a node's floats. A single float32 input does not
        count.
        """
        halves = {c.type_param_str for c in schema.type_constraints if "tensor(float16)" in c.allowed_type_strs}
        fixed = {c.type_param_str for c in schema.type_constraints} - halves
        formals = [(schema.inputs, node.inputs, fixed), (schema.outputs, node.outputs, fixed | {"tensor(float)"})]
        return any(
            value in self.floats and parameters[min(i, len(parameters) - 1)].type_str in types
            for parameters, values, types in formals
            if parameters
            for i, value in enumerate(values)
        )

    def _follow_shapes(self) -> None:
        for node in self.nodes:
            if node.domain or node.op_type not in _TRACKED or node.outputs[0] not in self.floats:
                continue
            sources = [v for v in node.inputs if v is not None and v in self.floats and not is_constant(v)]
            of_whole_numbers = node.op_type == "Cast" and node.inputs[0] is not None and _is_whole(node.inputs[0])
            if of_whole_numbers or (sources and all(v.producer() in self.single for v in sources)):
                self.single.add(node)
            if node in self.single and any(self._is_large(v) for v in node.inputs if v is not None):
                self.large.update(node.outputs)

    def _follow_limits(self) -> None:
        nodes, large = near_zero(self.nodes, self.floats)
        exact = positions(self.nodes, self.floats, self.graph.inputs)
        self.single |= nodes | exact | overflowing(self.nodes, self.floats)
        self.large |= large
        for node in self.nodes:
            if node in exact and any(self._is_large(value) for value in node.inputs if value is not None):
                self.large.update(node.outputs)

    def _is_large(self, value: ir.Value) -> bool:
        if value in self.large:
            return True
        if value not in self.floats or not is_constant(value) or value.const_value is None:
            return False
        array = value.const_value.numpy()
        return bool(np.isfinite(array).any() and np.abs(array[np.isfinite(array)]).max() > LARGEST)

    def _follow_indices(self) -> None:
        pending = [v for n in self.nodes for i, v in enumerate(n.inputs) if v is not None and self._is_exact(n, i)]
        followed: set[ir.Node] = set()
        while pending:
            node = pending.pop().producer()
            if node is None or node.domain or node in followed or node.op_type not in _COUNTING:
                continue
            followed.add(node)
            if node.outputs[0] in self.floats:
                self.single.add(node)
            pending += [v for v in node.inputs if v is not None and (v in self.floats or v.dtype == D.DOUBLE)]

    def _is_exact(self, node: ir.Node, index: int) -> bool:
        """Return whether an input becomes an index or a size, or must be float32."""
        value = node.inputs[index]
        if value not in self.floats or node.domain == CONTRIB_DOMAIN:
            return False
        return (node.op_type == "Cast" and _is_whole(node.outputs[0])) or _is_fixed(node, index)

    # -- casts --------------------------------------------------------------------------------------------------

    def _settle_outputs(self, node: ir.Node) -> None:
        for inner in nested(node):
            for value in inner.inputs:
                if value in self.floats:
                    value.type = ir.TensorType(D.FLOAT16)
        if node in self.single:
            return
        for value in node.outputs:
            if value in self.floats:
                value.type = ir.TensorType(D.FLOAT16)
        if node.op_type == "Cast" and node.attributes.get_int("to") == D.FLOAT:
            node.attributes["to"] = ir.AttrInt64("to", int(D.FLOAT16))
        for attribute in list(node.attributes.values()):
            if attribute.type == ir.AttributeType.TENSOR and attribute.as_tensor().dtype == D.FLOAT:
                tensor = self._as_float16(attribute.as_tensor(), node.name)
                node.attributes[attribute.name] = ir.AttrTensor(attribute.name, tensor)

    def _settle_input(self, node: ir.Node, index: int, value: ir.Value) -> None:
        needed = D.FLOAT if node in self.single or _is_fixed(node, index) else D.FLOAT16
        if node.op_type in ("Cast", "Shape", "Size") and not node.domain and value.dtype != needed:
            return  # they accept any type
        if value.dtype != needed:
            node.replace_input_with(index, self._as(value, needed, node))

    def _settle_ends(self, graph: ir.Graph, needed: ir.DataType) -> None:
        for index, value in enumerate(list(graph.outputs)):
            if value not in self.floats or value.dtype == needed:
                continue
            name = value.name
            producer = value.producer()
            if producer is not None and producer.graph is graph:
                value.name = self._unique(f"{name}_{'half' if value.dtype == D.FLOAT16 else 'single'}")
            else:
                name = self._unique(f"{name}_output")
            graph.outputs[index] = self._cast(value, needed, graph, None, name)

    def _as(self, value: ir.Value, dtype: ir.DataType, node: ir.Node) -> Value:
        if is_constant(value) and dtype == D.FLOAT16:
            if value not in self._halves:
                assert value.const_value is not None
                half = constant_value(
                    self._as_float16(value.const_value, value.name), name=self._unique(f"{value.name}_half")
                )
                self.graph.register_initializer(half)
                self._halves[value] = half
            return self._halves[value]
        assert isinstance(node.graph, ir.Graph)
        key = (value, dtype, node.graph)
        if key not in self._casts:
            name = self._unique(f"{value.name}_as_{dtype.name.lower()}")
            self._casts[key] = self._cast(value, dtype, node.graph, node, name)
        return self._casts[key]

    def _cast(self, value: ir.Value, dtype: ir.DataType, graph: ir.Graph, before: ir.Node | None, name: str | None) -> Value:
        nodes = []
        if value in self.large and dtype == D.FLOAT16:
            bounds = [constant_value(np.float32(limit), name=self._unique("bound")) for limit in (-LARGEST, LARGEST)]
            for bound in bounds:
                self.graph.register_initializer(bound)
            within = Value(name=self._unique(f"{value.name}_within"), type=value.type, shape=value.shape)
            nodes.append(ir.Node("", "Clip", [value, *bounds], outputs=[within], name=within.name))
            value = within
        result = Value(name=name, type=ir.TensorType(dtype), shape=value.shape)
        # If the result takes over a value's name, the node that computed the value has that name, too.
        node_name = self._unique(f"{name}_cast")
        nodes.append(ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(dtype))], outputs=[result], name=node_name))
        for node in nodes:
            if before is None:
                graph.append(node)
            else:
                graph.insert_before(before, node)
        return result

    def _drop_casts(self) -> None:
        for node in self.nodes:
            if (node.domain, node.op_type) != ("", "Cast") or (source := node.inputs[0]) is None or node.graph is None:
                continue
            result = node.outputs[0]
            if source.dtype == result.dtype and not result.is_graph_output():
                replace_value(result, source, equal=False)
                node.graph.remove(node, safe=True)

    def _as_float16(self, tensor: ir.TensorProtocol, name: str | None) -> ir.TensorProtocol:
        """Convert a constant to float16, and clamp numbers beyond the range."""
        array = tensor.numpy()
        beyond = np.isfinite(array) & (np.abs(array) > LARGEST)
        if not beyond.any():
            return converted(tensor, D.FLOAT16)
        self.clamped.append(name or tensor.name or "")
        bounded = np.where(beyond, np.clip(array, -LARGEST, LARGEST), array)
        return ir.Tensor(bounded.astype(np.float16), name=tensor.name)


def _is_whole(value: ir.Value) -> bool:
    return value.dtype is not None and (value.dtype.is_integer() or value.dtype == D.BOOL)


# Operators whose second input consists of positions of samples, or of boxes, in an image: float16 places them by less than a
# pixel in small images only.
_WITH_POSITIONS = frozenset((
    ("", "GridSample"), ("", "MaxRoiPool"), ("", "RoiAlign"), (DOMAIN, "DeformablePSROIPooling"), (DOMAIN, "PSROIPooling"),
    (DOMAIN, "ROIAlign"), (DOMAIN, "ROIAlignRotated"), (DOMAIN, "ROIPooling"),
))  # fmt: skip


def _is_fixed(node: ir.Node, index: int) -> bool:
    """Return whether an input stays float32: the operator's schema allows only float32, such as for the scales of Resize, or
    it consists of positions, or of 16-bit levels, which float16 does not represent.
    """
    if index == 1 and (node.domain, node.op_type) in _WITH_POSITIONS:
        return True
    if (node.domain, node.op_type) == ("", "QuantizeLinear") and node.outputs[0].dtype in (D.INT16, D.UINT16):
        return True
    if node.domain not in ("", CONTRIB_DOMAIN):
        return False
    inputs = onnx.defs.get_schema(node.op_type, OPSET_IMPORTS[node.domain], node.domain).inputs
    return bool(inputs) and inputs[min(index, len(inputs) - 1)].type_str == "tensor(float)"
