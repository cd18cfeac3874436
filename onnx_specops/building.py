"""The graph builder ``op`` that converter rules and operator bodies share.

``op.Add(x, 1)`` emits a node with a standard ONNX operator. ``op.specops.Multinomial(...)`` emits a custom operator,
``op.contrib.FastGelu(...)`` one of ONNX Runtime's own operators (`onnx_specops.contrib`), and ``op.ml.LabelEncoder(...)`` an
operator of ``ai.onnx.ml``. Every value has an element type and the shape that ONNX's inference can determine. Arithmetic on
known shapes and axes is folded into constants.

Python numbers, lists and NumPy arrays are accepted as constant inputs. They take the element type that the operator's schema
requires (``op.Add(x, 1)`` adds a 1 of ``x``'s type). ``None`` omits an optional input.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir

from onnx_specops import partial_values
from onnx_specops.attributes import attribute_kind
from onnx_specops.domain import CONTRIB_DOMAIN, DOMAIN, OPSET_VERSION, find_declaration
from onnx_specops.folding import FOLDED_ELEMENTS, fold
from onnx_specops.graphs import ORIGIN, all_values, origin
from onnx_specops.mapped import same_bytes
from onnx_specops.naming import Names
from onnx_specops.widening import MOVES, WIDER, wider_of_kind

OPSET = 21
ML_DOMAIN = "ai.onnx.ml"
OPSET_IMPORTS = {"": OPSET, ML_DOMAIN: 4, DOMAIN: OPSET_VERSION, CONTRIB_DOMAIN: OPSET_VERSION}
IR_VERSION = 10

# `isinstance` with their common protocol takes 30 times as long.
_TENSORS = (ir.Tensor, ir.ExternalTensor, ir.StringTensor, ir.LazyTensor)

DimsLike = Iterable["int | str | ir.SymbolicDim | None"] | None
_Type = tuple[ir.DataType | None, DimsLike]


class NodeError(ValueError):
    """The inputs or attributes are not valid for the operator."""


class Value(ir.Value):
    """A value of the graph under construction. ``dtype``, ``shape`` and ``const_value`` are those of onnx_ir.

    Attributes:
        unrounded: set for the result of a Cast in a float32 computation whose 16-bit inputs and outputs are the same values
            rounded. Later nodes may use the unrounded values (`kernel_types.insert_casts`).
        elements: the known elements of a small tensor that is not constant (`partial_values`), or ``None``.
    """

    __slots__ = ("elements", "unrounded")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.unrounded = False
        self.elements: partial_values.Elements | None = None

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or ``None`` if unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def dims(self) -> list[int | None] | None:
        """The dimensions, with ``None`` for an unknown one; ``None`` if the rank is unknown."""
        return None if self.shape is None else [d if isinstance(d, int) else None for d in self.shape]

    @property
    def is_static(self) -> bool:
        """Whether every dimension is known."""
        return self.shape is not None and all(isinstance(d, int) for d in self.shape)

    @property
    def constant(self) -> np.ndarray | None:
        """The constant value as an array, or ``None``. A caller can replace the initializer of a graph input."""
        return None if self.const_value is None or self.is_graph_input() else self.const_value.numpy()


def new_value(dtype: ir.DataType | None, dims: DimsLike = None, name: str | None = None) -> Value:
    """Return a value without a producer, such as a graph input. ``dims`` is ``None`` if the rank is unknown."""
    return Value(
        name=name,
        type=None if dtype is None else ir.TensorType(dtype),
        shape=None if dims is None else ir.Shape(list(dims)),
    )


def cast_unrounded(op: Builder, value: Value, to: ir.DataType | None) -> Value:
    """Cast a value to another type unless it has it. Between float32 and 16-bit floats, later nodes may use the unrounded
    value.
    """
    if value.dtype == to:
        return value
    cast: Value = op.Cast(value, to=to)
    cast.unrounded = True
    return cast


_PLAIN_TYPES = frozenset((bool, int, float, str, bytes, list, tuple, np.ndarray))


def _is_tensor(data: Any) -> bool:
    # Tensors implement a protocol, for which `isinstance` is slow.
    return type(data) not in _PLAIN_TYPES and isinstance(data, _TENSORS)


def constant_value(data: Any, dtype: ir.DataType | None = None, name: str | None = None) -> Value:
    """Return a constant. The first node that uses it adds it to the graph."""
    if _is_tensor(data):
        tensor = data
    elif dtype == ir.DataType.STRING or (isinstance(data, np.ndarray) and data.dtype.kind in "OUS"):
        array = np.asarray(data, dtype=object)
        encoded = [s.encode() if isinstance(s, str) else bytes(s) for s in array.reshape(-1)]
        tensor = ir.StringTensor(np.array(encoded, dtype=object).reshape(array.shape), shape=ir.Shape(array.shape))
    else:
        array = np.asarray(data)
        if dtype is None and not isinstance(data, (np.ndarray, np.generic)):
            dtype = ir.DataType.FLOAT if array.dtype.kind == "f" and array.size else None
            array = array.astype(np.int64) if array.dtype.kind in "iu" or (array.size == 0 and dtype is None) else array
        if dtype is not None and array.dtype != dtype.numpy():
            array = array.astype(dtype.numpy())
        tensor = ir.Tensor(array if array.flags.c_contiguous else array.copy(order="C"), dtype=dtype)
    tensor_name = name or getattr(tensor, "name", None)
    return Value(
        name=tensor_name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy()), const_value=tensor
    )


class Builder:
    """Emits nodes into ``graph``. Rules and bodies call it ``op``.

    Args:
        graph: the graph to append to.
        function: whether the graph belongs to a function. Functions store constants as nodes, other graphs as initializers.
        root: the builder of the outermost graph, which contains the constants of its nested graphs.
        before: the node of ``graph`` before which nodes are inserted; by default they are appended.
        named_sizes: whether unknown dimensions get names when a Shape reads them. Names must differ in the whole model, so
            that only a new model can have them.
    """

    def __init__(
        self,
        graph: ir.Graph,
        *,
        function: bool = False,
        root: Builder | None = None,
        before: ir.Node | None = None,
        named_sizes: bool = False,
    ) -> None:
        self.graph = graph
        self._function = function
        self._named_sizes = named_sizes
        self._sizes = 0
        self._root = root or self
        self._before = before
        self._origin = None if before is None else origin(before)
        self._shared: dict[Any, Value] = {}
        self._views: dict[Any, tuple[ir.TensorProtocol, Value]] = {}
        self._names: Names = Names() if root is None else root._names
        self._last_constant: ir.Node | None = None
        self.scope = ""

    @classmethod
    def of_existing(cls, graph: ir.Graph, *, before: ir.Node | None = None) -> Builder:
        """Return a builder for a model's graph that already has nodes. New names do not collide with existing ones."""
        builder = cls(graph, before=before)
        builder.reserve(value.name for value in all_values(graph))
        return builder

    @classmethod
    def before_node(cls, node: ir.Node, root: Builder) -> Builder:
        """Return a builder that emits before a node, under its name.

        Args:
            node: a node of a graph, not of a function.
            root: the builder of the model's own graph.
        """
        assert isinstance(node.graph, ir.Graph)
        builder = cls(node.graph, root=root, before=node)
        builder.scope = node.name or node.op_type
        return builder

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("_") or not op_type[0].isupper():
            raise AttributeError(op_type)
        return functools.partial(self.node, op_type)

    @property
    def specops(self) -> _Namespace:
        """The builder for the domain's own operators."""
        return _Namespace(self, DOMAIN)

    @property
    def contrib(self) -> _Namespace:
        """The builder for ONNX Runtime's own operators."""
        return _Namespace(self, CONTRIB_DOMAIN)

    @property
    def ml(self) -> _Namespace:
        """The builder for the operators of ``ai.onnx.ml``."""
        return _Namespace(self, ML_DOMAIN)

    @property
    def is_outermost(self) -> bool:
        """Whether the graph is the model's own graph, not a nested one."""
        return self._root is self

    @property
    def outermost(self) -> Builder:
        """The builder of the model's own graph."""
        return self._root

    # -- constants ---------------------------------------------------------------------------------------------

    def const(self, data: Any, dtype: ir.DataType | None = None) -> Value:
        """Return a constant from a Python number or list (int64 or float32 unless ``dtype`` is given) or a NumPy array."""
        return constant_value(data, dtype)

    def place(self, value: Value) -> Value:
        """Add a constant to the outermost graph on first use. Equal small constants are shared."""
        if value.const_value is None or value.producer() is not None or value.graph is not None:
            return value
        root, tensor = self._root, value.const_value
        key: Any = id(tensor)
        if tensor.size <= FOLDED_ELEMENTS and tensor.dtype != ir.DataType.STRING and value.name is None:
            key = (tensor.dtype, tuple(tensor.shape), tensor.tobytes())
        if (shared := root._shared.get(key)) is not None:
            return shared
        if root._function:
            node = ir.Node("", "Constant", [], [ir.AttrTensor("value", tensor)], outputs=[value])
            if root._last_constant is None:
                first = next(iter(root.graph), None)
                root.graph.append(node) if first is None else root.graph.insert_before(first, node)
            else:
                root.graph.insert_after(root._last_constant, node)
            root._last_constant = node
        else:
            value.name = root.unique(value.name or f"constant_{len(root.graph.initializers)}")
            root.graph.register_initializer(value)
        root._shared[key] = value
        return value

    def reserve(self, names: Iterable[str | None]) -> None:
        """Reserve the names of existing values, so that new values get others."""
        self._root._names.reserve(names)

    def unique(self, name: str) -> str:
        """Return ``name``, or a variant of it that no value of the model has."""
        return self._root._names.unique(name)

    # -- nodes -------------------------------------------------------------------------------------------------

    def node(
        self,
        op_type: str,
        *inputs: Any,
        domain: str = "",
        outputs: int | None = None,
        types: Sequence[tuple[ir.DataType | None, DimsLike]] | None = None,
        version: int | None = None,
        **attributes: Any,
    ) -> Any:
        """Emit one node; return its output value, or a tuple if it has several outputs.

        Args:
            op_type: the ONNX operator.
            inputs: values or Python constants; ``None`` omits an input.
            domain: its domain.
            outputs: the number of outputs; by default the number that the schema requires.
            types: the element type and dimensions of each output, which replace ONNX's inference.
            version: the opset of the operator, if it differs from the builder's opset; see `at`.
            attributes: the node's attributes; ``None`` omits one.
        """
        if op_type == "CastLike" and isinstance(inputs[1], ir.Value) and inputs[1].dtype is not None:
            return self._cast(inputs[0], inputs[1].dtype)
        signature = _signature(op_type, domain, version)
        values = self._values(signature, inputs)
        known: partial_values.Evaluated = None
        attributes = {name: value for name, value in attributes.items() if value is not None}
        if (declaration := find_declaration(domain, op_type)) is not None:
            complete = declaration.node_attributes(attributes)
            if domain == DOMAIN:  # defaults included, because Python kernels in a plain session need them
                attributes = complete
        if outputs is None:
            outputs = len(types) if types is not None else signature.least_outputs
        if domain == "" and version is None:
            self._make_target_constant(op_type, values, attributes)
            folded = self._fold(op_type, values, attributes, outputs)
            if folded is None and op_type == "Expand":
                folded = self._expand_to_empty(*values)
            if folded is None:
                if op_type == "Shape":
                    self._name_sizes(values[0])
                known = partial_values.evaluate(op_type, values, attributes)
                folded = _numbers(known, outputs)
            if folded is not None:
                return folded
        attrs = [
            ir.AttrGraph(name, value) if isinstance(value, ir.Graph) else _attribute(signature, name, value)
            for name, value in attributes.items()
        ]
        # an omitted last input of LayerNormalization that is written as empty crashes ONNX Runtime 1.31
        if domain != DOMAIN:
            while values and values[-1] is None:
                values.pop()
        placed = [None if value is None else self.place(value) for value in values]
        results = [Value() for _ in range(outputs)]
        node = ir.Node(domain, op_type, placed, attrs, outputs=results, version=version)
        if types is None:
            types = _infer(signature.schema, node, version)
            if domain == "" and version is None:
                known_dims = partial_values.output_dims(op_type, values, attributes, [dims for _, dims in types])
                types = [(dtype, dims) for (dtype, _), dims in zip(types, known_dims, strict=True)]
        for result, (dtype, dims) in zip(results, types, strict=True):
            result.name = self.unique(f"{self.scope}/{op_type}" if self.scope else op_type)
            result.type = None if dtype is None else ir.TensorType(dtype)
            result.shape = None if dims is None else ir.Shape(list(dims))
        returned = list(results)
        for place, (elements, dtype) in enumerate(known or ()):
            partial_values.attach(results[place], elements)
            if (array := partial_values.numbers(elements, dtype)) is not None:  # some outputs of a Split
                returned[place] = constant_value(array)
        if op_type == "Reshape":
            _check_volume(values[0], results[0])
        if op_type == "NonZero":
            self._name_sizes(results[0])
        if op_type == "DFT" and domain == "":
            self._name_transformed(values, attributes, results[0])
        node.name = results[0].name
        self._add(node)
        return returned[0] if outputs == 1 else tuple(returned)

    def _name_sizes(self, value: Value | None) -> None:
        """Name the unknown dimensions of a value, so that inference recognizes them in values with the same dimensions."""
        if value is None or value.shape is None or value.is_graph_input() or not self._root._named_sizes:
            return
        value.shape = ir.Shape([self._root._new_size() if _is_unnamed(dim) else dim for dim in value.shape])

    def _name_transformed(self, values: Sequence[Value | None], attributes: Mapping[str, Any], result: Value) -> None:
        """Give new names to the dimensions that a DFT changes by a length computed at run time.

        ONNX's inference (1.23) copies the input's dimensions. ONNX Runtime (1.32) then stores the result in the memory of a
        tensor of the input's size, and fails. It keeps other names.
        """
        length, axis = [*values, None, None][1:3]
        if length is None or length.constant is not None or result.shape is None:
            return
        place = attributes.get("axis", -2)
        if axis is not None:
            place = None if axis.constant is None else int(axis.constant.reshape(-1)[0])
        last = len(result.shape) - 1
        changed = range(last) if place is None else [place % (last + 1)]
        new = self._root._new_size if self._root._named_sizes else lambda: None
        result.shape = ir.Shape([new() if i in changed else dim for i, dim in enumerate(result.shape)])

    def _new_size(self) -> str:
        self._sizes += 1
        return f"size.{self._sizes}"  # the names of inputs' dimensions end with an underscore and a number

    def _add(self, node: ir.Node) -> None:
        if self._origin is not None:
            node.meta[ORIGIN] = self._origin
        if self._before is None:
            self.graph.append(node)
        else:
            self.graph.insert_before(self._before, node)

    def _cast(self, x: Any, to: ir.DataType) -> Value:
        """Cast ``x`` to a known type, as CastLike does with its second input. Constants are cast immediately."""
        if not isinstance(x, Value):
            return constant_value(x, to)
        return x if x.dtype == to else self.node("Cast", x, to=to)

    def _values(self, signature: _Signature, inputs: Sequence[Any]) -> list[Value | None]:
        if all(value is None or isinstance(value, Value) for value in inputs):
            return list(inputs)
        formal = signature.inputs
        bound = {
            formal[min(i, len(formal) - 1)]: value.dtype
            for i, value in reversed(list(enumerate(inputs)))
            if isinstance(value, ir.Value) and formal
        }
        values: list[Value | None] = []
        for i, value in enumerate(inputs):
            if value is None or isinstance(value, Value):
                values.append(value)
                continue
            dtype = None
            if not isinstance(value, (np.ndarray, np.generic)):
                type_str = formal[min(i, len(formal) - 1)]
                dtype = bound.get(type_str)
                if dtype is None and type_str.startswith("tensor("):
                    dtype = _DATA_TYPES[type_str[7:-1]]
            values.append(constant_value(value, dtype))
        return values

    def _make_target_constant(self, op_type: str, values: list[Value | None], attributes: dict[str, Any]) -> None:
        """Replace the partially known target of a Reshape or Expand by an equivalent constant, if there is one."""
        if op_type not in ("Reshape", "Expand") or values[0] is None or values[1] is None:
            return
        if op_type == "Expand":
            target = partial_values.needless_target(values[0], values[1])
        elif (target := partial_values.constant_target(values[0], values[1], attributes.get("allowzero", 0))) is not None:
            attributes.pop("allowzero", None)
        if target is not None:
            values[1] = constant_value(np.array(target, np.int64))

    def _fold(self, op_type: str, inputs: list[Value | None], attributes: dict[str, Any], outputs: int) -> Any:
        if op_type in ("Shape", "Size") and inputs[0] is not None and inputs[0].shape is not None:
            dims = inputs[0].dims or []
            if op_type == "Shape":
                dims = dims[attributes.get("start", 0) : attributes.get("end")]
            sizes = [d for d in dims if d is not None]
            if len(sizes) < len(dims):
                return None
            return constant_value(np.array(sizes if op_type == "Shape" else np.prod(sizes, dtype=np.int64), np.int64))
        if op_type == "Reshape" and (view := self._reshaped(inputs[0], inputs[1], **attributes)) is not None:
            return view
        arrays = []
        for value in inputs:
            tensor = None if value is None or value.is_graph_input() else value.const_value
            if value is not None and (tensor is None or tensor.size > FOLDED_ELEMENTS or not _is_foldable(op_type, tensor)):
                return None
            arrays.append(None if tensor is None else tensor.numpy())
        if not arrays:
            return None
        try:
            folded = fold(op_type, arrays, attributes)
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            raise NodeError(f"{op_type}: {error}") from error
        if folded is None or len(folded) != outputs:
            return None
        results = tuple(constant_value(np.asarray(array)) for array in folded)
        return results[0] if outputs == 1 else results

    def _reshaped(self, data: Value | None, shape: Value | None, allowzero: int = 0) -> Value | None:
        """Reshape a large constant without a node; the bytes are shared."""
        tensor = None if data is None or data.is_graph_input() else data.const_value
        if tensor is None or shape is None or shape.constant is None or tensor.size <= FOLDED_ELEMENTS:
            return None
        if not isinstance(tensor, ir.Tensor | ir.ExternalTensor) or tensor.dtype.itemsize < 1:
            return None
        dims = [tensor.shape.numpy()[i] if d == 0 and not allowzero else d for i, d in enumerate(shape.constant.tolist())]
        if -1 in dims:
            known = -int(np.prod(dims, dtype=np.int64))
            dims[dims.index(-1)] = tensor.size // known if known else 0
        if int(np.prod(dims, dtype=np.int64)) != tensor.size or min(dims) < 0:
            return None
        views, key = self._root._views, (id(tensor), tuple(dims))
        if key not in views:
            view: ir.TensorProtocol
            if isinstance(tensor, ir.ExternalTensor):
                view = same_bytes(tensor, tensor.dtype, dims)
            else:
                view = ir.Tensor(tensor.numpy().reshape(dims), dtype=tensor.dtype)
            # The tensor stays alive with its view, so its identity is a safe key.
            views[key] = tensor, constant_value(view, name=None if data is None else data.name)
        return views[key][1]

    def _expand_to_empty(self, data: Value | None, shape: Value | None) -> Value | None:
        """Expand to zero elements by adding a dimension. ONNX Runtime 1.31 removes an Expand of the same rank because it
        considers it a no-op.
        """
        if data is None or data.rank is None or shape is None or shape.constant is None:
            return None
        sizes = shape.constant.tolist()
        if 0 not in sizes or len(sizes) > data.rank:
            return None
        more = [1] * (data.rank + 1 - len(sizes))
        return self.node("Squeeze", self.node("Expand", data, [*more, *sizes]), [0])

    def at(self, version: int) -> _Namespace:
        """Return the builder for operators of another opset: ``op.at(12).Squeeze(x, axes=[0])``.

        Nothing is folded there. Callers fold before.
        """
        return _Namespace(self, "", version)

    # -- control flow ------------------------------------------------------------------------------------------

    def subgraph(self, emit: Callable[..., Any], *inputs: Value, name: str = "body") -> ir.Graph:
        """Build a nested graph; ``emit(op, *inputs)`` returns its output or outputs."""
        graph = ir.Graph(list(inputs), [], nodes=[], name=self.unique(name), opset_imports=dict(OPSET_IMPORTS))
        for value in inputs:
            value.name = self.unique(value.name or name + "_input")
        inner = Builder(graph, root=self._root)
        inner.scope, inner._origin = self.scope, self._origin
        results = emit(inner, *inputs)
        for value in results if isinstance(results, (tuple, list)) else [results]:
            graph.outputs.append(inner.result(value))
        return graph

    def result(self, value: Any) -> Value:
        """Return ``value`` as an output of this graph: produced by one of its own nodes, and not used as another output."""
        if not isinstance(value, ir.Value):
            value = constant_value(value)
        producer = value.producer()
        own = producer is not None and producer.graph is self.graph
        if own and not value.is_graph_output():
            return value
        placed = self.place(value)
        copy = Value(name=self.unique("output"), type=value.type, shape=None if value.shape is None else value.shape.copy())
        self._add(ir.Node("", "Identity", [placed], outputs=[copy]))
        return copy

    def if_(self, condition: Any, then: Callable[[Builder], Any], otherwise: Callable[[Builder], Any]) -> Any:
        """Emit an If with the branches ``then(op)`` and ``otherwise(op)``, or only the taken branch if the condition is
        known.
        """
        if not isinstance(condition, ir.Value):
            return (then if condition else otherwise)(self)
        if condition.const_value is not None:
            return (then if bool(condition.const_value.numpy().reshape(-1)[0]) else otherwise)(self)
        branches = [self.subgraph(then, name="then"), self.subgraph(otherwise, name="else")]
        types = [(a.dtype, _merge(a.shape, b.shape)) for a, b in zip(branches[0].outputs, branches[1].outputs, strict=True)]
        return self.node("If", condition, types=types, then_branch=branches[0], else_branch=branches[1])

    def loop(
        self,
        trip_count: Any,
        condition: Any,
        emit: Callable[..., Any],
        *carried: Any,
        carried_dims: Sequence[DimsLike] | None = None,
    ) -> Any:
        """Emit a Loop. ``emit(op, iteration, condition, *carried)`` returns the condition, the carried values and the scan
        outputs.

        ``carried_dims`` gives the dimensions of carried values that change between iterations. By default they are those of
        the initial values.
        """
        start = [value if isinstance(value, Value) else constant_value(value) for value in carried]
        dims = carried_dims or [v.dims for v in start]
        inputs = [new_value(ir.DataType.INT64, [], "iteration"), new_value(ir.DataType.BOOL, [], "condition")]
        inputs += [new_value(v.dtype, d, "carried") for v, d in zip(start, dims, strict=True)]
        body = self.subgraph(emit, *inputs, name="loop")
        outputs = body.outputs[1:]
        types = [(v.dtype, _merge(v.shape, o.shape)) for v, o in zip(start, outputs, strict=False)]
        types += [(o.dtype, None if o.shape is None else [None, *o.shape]) for o in outputs[len(start) :]]
        return self.node("Loop", trip_count, condition, *start, types=types, body=body)


class _Namespace:
    """The builder for another domain (``op.specops``, ``op.contrib``, ``op.ml``) or another opset (``op.at(12)``)."""

    def __init__(self, builder: Builder, domain: str, version: int | None = None) -> None:
        self._builder, self._domain, self._version = builder, domain, version

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        return functools.partial(self._builder.node, op_type, domain=self._domain, version=self._version)


_DATA_TYPES = {kind.name.lower(): kind for kind in ir.DataType if kind}
_DATA_TYPES |= {"float": ir.DataType.FLOAT, "double": ir.DataType.DOUBLE, "bool": ir.DataType.BOOL}
_FOLDABLE = {
    ir.DataType.BOOL, ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT8,
    ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64, ir.DataType.FLOAT, ir.DataType.DOUBLE,
}  # fmt: skip


def _numbers(known: partial_values.Evaluated, outputs: int) -> Any:
    """Return the outputs of a node as constants, if all their elements are known."""
    if known is None or len(known) != outputs:
        return None
    arrays = [partial_values.numbers(elements, dtype) for elements, dtype in known]
    results = tuple(constant_value(array) for array in arrays if array is not None)
    if len(results) < outputs:
        return None
    return results[0] if outputs == 1 else results


_HALVES = {ir.DataType.FLOAT16, ir.DataType.BFLOAT16}


def _is_foldable(op_type: str, tensor: ir.TensorProtocol) -> bool:
    # Runtimes round 16-bit floats at different points, but agree on the float32 values.
    return tensor.dtype in _FOLDABLE or (op_type == "Cast" and tensor.dtype in _HALVES)


@functools.cache
def _schema(op_type: str, domain: str, version: int | None = None) -> onnx.defs.OpSchema:
    return onnx.defs.get_schema(op_type, version or OPSET_IMPORTS[domain], domain)


class _Signature(NamedTuple):
    """The parts of a schema that every node needs. The schema's own properties convert all their elements on each access.

    Attributes:
        schema: the schema.
        least_outputs: the number of outputs that it requires.
        inputs: the types of the inputs, or their variables.
        attributes: the types of the attributes.
    """

    schema: onnx.defs.OpSchema
    least_outputs: int
    inputs: Sequence[str]
    attributes: Mapping[str, ir.AttributeType]


@functools.cache
def _signature(op_type: str, domain: str, version: int | None = None) -> _Signature:
    schema = _schema(op_type, domain, version)
    kinds = {name: ir.AttributeType(attribute_kind(stated.type)) for name, stated in schema.attributes.items()}
    return _Signature(schema, schema.min_output, [formal.type_str for formal in schema.inputs], kinds)


def _attribute(signature: _Signature, name: str, value: Any) -> ir.Attr:
    if (kind := signature.attributes.get(name)) is None:
        raise ValueError(f"{signature.schema.name}: ONNX defines no attribute {name!r}")
    if _is_tensor(value):
        return ir.AttrTensor(name, value)
    if kind == ir.AttributeType.TENSOR:
        return ir.AttrTensor(name, ir.Tensor(np.asarray(value)))
    if kind in (ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS):
        value = list(value)
    elif kind == ir.AttributeType.INT:
        value = int(value)
    elif kind == ir.AttributeType.FLOAT:
        value = float(value)
    return ir.Attr(name, kind, value)


def _infer(schema: onnx.defs.OpSchema, node: ir.Node, version: int | None = None) -> list[_Type]:
    """Return the element types and dimensions of the node's outputs, inferred by ONNX for this node only.

    Results are cached. Half of a model's nodes repeat an earlier node, because bodies use the same few operators.
    """
    question = _cache_key(node, version)
    if question is None:
        return _inferred(schema, node, version)
    if (known := _ANSWERS.get(question)) is None:
        if len(_ANSWERS) >= _MOST_ANSWERS:
            _ANSWERS.clear()
        known = _ANSWERS[question] = _inferred(schema, node, version)
    return known


_PLAIN = frozenset(getattr(ir.AttributeType, name) for name in ("INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS"))
_ANSWERS: dict[Any, list[_Type]] = {}
_MOST_ANSWERS = 10_000


def _cache_key(node: ir.Node, version: int | None) -> Any:
    """Return a key with everything that `_inferred` reads from a node, or ``None`` if an attribute is a graph or tensor."""
    attributes = []
    for attribute in node.attributes.values():
        if attribute.type not in _PLAIN:
            return None
        value = attribute.value
        attributes.append((attribute.name, attribute.type, tuple(value) if isinstance(value, list | tuple) else value))
    inputs: list[Any] = []
    for value in node.inputs:
        if value is None:
            inputs.append(None)
            continue
        shape = None if value.shape is None else tuple(d if isinstance(d, int) else d.value for d in value.shape)
        tensor, data = value.const_value, None
        if tensor is not None and tensor.size <= FOLDED_ELEMENTS and tensor.dtype in _FOLDABLE:
            data = tensor.dtype, tensor.tobytes()
        inputs.append((value.dtype, value.type is None, shape, data))
    return node.domain, node.op_type, version, len(node.outputs), tuple(attributes), tuple(inputs)


def _inferred(schema: onnx.defs.OpSchema, node: ir.Node, version: int | None) -> list[_Type]:
    """Run ONNX's inference."""
    imports = OPSET_IMPORTS if version is None else OPSET_IMPORTS | {"": version}
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    replaced: dict[str, ir.DataType | None] = {}
    for index, value in enumerate(node.inputs):
        name = "" if value is None else f"i{index}"
        proto.input.append(name)
        if value is None:
            continue
        dtype = value.dtype
        if value.type is not None:
            shape = None if value.shape is None else [d if isinstance(d, int) else d.value for d in value.shape]
            formal = schema.inputs[min(index, len(schema.inputs) - 1)].type_str
            dtype = _inference_type(schema, formal, dtype, version)
            if dtype != value.dtype:
                replaced[formal] = value.dtype
            types[name] = onnx.helper.make_tensor_type_proto(int(dtype or 0), shape)
        tensor = value.const_value
        if tensor is not None and tensor.size <= FOLDED_ELEMENTS and tensor.dtype in _FOLDABLE and tensor.dtype == dtype:
            data[name] = onnx.numpy_helper.from_array(np.ascontiguousarray(tensor.numpy()).reshape(tensor.shape.numpy()))
    proto.output.extend(f"o{index}" for index in range(len(node.outputs)))
    proto.attribute.extend(ir.serde.serialize_attribute(attribute) for attribute in node.attributes.values())
    try:
        inferred = onnx.shape_inference.infer_node_outputs(
            schema,
            proto,
            types,
            data,
            opset_imports=[onnx.helper.make_opsetid(d, v) for d, v in imports.items()],
            ir_version=IR_VERSION,
        )
    except Exception as error:  # ONNX's exceptions have no common base class
        raise NodeError(f"{node.op_type}: {error}") from error
    results: list[_Type] = []
    for index in range(len(node.outputs)):
        type_proto = inferred.get(f"o{index}")
        if type_proto is None or not type_proto.HasField("tensor_type"):
            results.append((None, None))
            continue
        tensor_type = type_proto.tensor_type
        dims = None
        if tensor_type.HasField("shape"):
            dims = [d.dim_value if d.HasField("dim_value") else (d.dim_param or None) for d in tensor_type.shape.dim]
        if any(isinstance(dim, int) and dim < 0 for dim in dims or ()):
            raise NodeError(f"{node.op_type}: a result of the shape {dims} is not possible")
        dtype = ir.DataType(tensor_type.elem_type) if tensor_type.elem_type else None
        formal = schema.outputs[min(index, len(schema.outputs) - 1)].type_str
        results.append((replaced.get(formal, dtype), dims))
    return results


def _inference_type(
    schema: onnx.defs.OpSchema, formal: str, dtype: ir.DataType | None, version: int | None
) -> ir.DataType | None:
    """Return ``dtype``, or a wider type for inference if the schema does not allow it at the type variable ``formal``."""
    allowed = None if dtype is None else _allowed(schema.name, schema.domain, version).get(formal)
    if dtype is None or allowed is None or dtype in allowed:
        return dtype
    # In other opsets, these operators do not accept bool.
    is_any = version is not None or (not schema.domain and schema.name in MOVES)
    choices = WIDER.get(dtype, ()) if is_any else wider_of_kind(dtype)
    return next((wider for wider in choices if wider in allowed), dtype)


@functools.cache
def _allowed(op_type: str, domain: str, version: int | None) -> dict[str, frozenset[ir.DataType]]:
    """Return the element types that each type variable of an operator's schema allows."""
    return {
        constraint.type_param_str: frozenset(
            _DATA_TYPES[name[7:-1]] for name in constraint.allowed_type_strs if name[7:-1] in _DATA_TYPES
        )
        for constraint in _schema(op_type, domain, version).type_constraints
    }


def _check_volume(x: ir.Value | None, reshaped: Value) -> None:
    """Raise an error if a Reshape changes the number of elements. ONNX's inference does not check this."""
    volumes = [_volume(None if value is None else value.shape) for value in (x, reshaped)]
    if None not in volumes and volumes[0] != volumes[1]:
        raise NodeError(f"Reshape: {volumes[0]} elements cannot become {reshaped.dims}")


def _is_unnamed(dim: int | ir.SymbolicDim) -> bool:
    return not isinstance(dim, int) and dim.value is None


def _volume(shape: ir.Shape | None) -> int | None:
    if shape is None or not all(isinstance(d, int) for d in shape):
        return None
    return math.prod(int(d) for d in shape if isinstance(d, int))


def _merge(a: ir.Shape | None, b: ir.Shape | None) -> DimsLike:
    """Return the dimensions that two shapes together determine."""
    if a is None or b is None or len(a) != len(b):
        return None
    return [x if isinstance(x, int) and x == y else None for x, y in zip(a, b, strict=True)]
