"""The registry of the domain ``onnx_specops``: what every operator of it is, in all its forms.

An operator is declared once, by decorating its NumPy kernel::

    @operator(
        inputs={"data": "T", "axis": "tensor(int64)"},
        outputs={"output": "T"},
        types={"T": NUMERIC},
    )
    def Example(data, axis=None, *, mode: str = "none"):
        '''Docstring: the operator's documentation in the schema.'''
        return ...  # NumPy

    @Example.infer_shapes
    def _(node):  # -> one list of dimensions (int, str or None) an output, or None where even the rank is unknown
        return [node.shape(0)]

    @Example.body
    def _(op, data, axis, *, mode):  # standard ONNX, emitted through the same builder that the converters use
        return op.Identity(data)

The kernel's signature is the schema's: positional parameters are the inputs (a default of ``None`` makes one optional),
keyword-only parameters the attributes, with their types (``int``, ``float``, ``str``, ``tuple[int, ...]``,
``tuple[float, ...]``) and their defaults. The names in ``inputs`` and ``outputs`` map to a type variable of ``types``
or to a type.
"""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx.defs import OpSchema

DOMAIN = "onnx_specops"
OPSET_VERSION = 1

FLOATS = ("float16", "bfloat16", "float", "double")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMERIC = (*FLOATS, *INTEGERS)
INDICES = ("int32", "int64")

Dims = Sequence["int | str | None"] | None

ATTRIBUTE_TYPES: dict[Any, OpSchema.AttrType] = {
    int: OpSchema.AttrType.INT,
    float: OpSchema.AttrType.FLOAT,
    str: OpSchema.AttrType.STRING,
    tuple[int, ...]: OpSchema.AttrType.INTS,
    tuple[float, ...]: OpSchema.AttrType.FLOATS,
}


class NoBodyError(ValueError):
    """Standard ONNX cannot say the operator, or not with these attributes (raised by a body)."""


def attribute_kind(type_: OpSchema.AttrType) -> int:
    """The ``AttributeProto.AttributeType`` of a schema's attribute type."""
    return type_.value  # type: ignore[attr-defined]


@dataclass(frozen=True)
class NodeInfo:
    """What a shape function may know of a node: its inputs' shapes, element types and constants, its attributes."""

    operator: Operator
    attributes: Mapping[str, Any]
    _context: Any = field(repr=False)

    def has(self, index: int) -> bool:
        """Whether input ``index`` is connected."""
        return index < self._context.get_num_inputs() and bool(self._context.has_input(index))

    def shape(self, index: int) -> list[int | str | None] | None:
        """The dimensions of input ``index``: sizes, symbols, ``None`` for an unknown one; ``None`` for an unknown rank."""
        if not self.has(index):
            return None
        type_proto = self._context.get_input_type(index)
        if not type_proto.tensor_type.HasField("shape"):
            return None
        return [
            dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or None)
            for dim in type_proto.tensor_type.shape.dim
        ]

    def element_type(self, index: int) -> int:
        """The ``TensorProto.DataType`` of input ``index``; 0 where it is unknown."""
        return self._context.get_input_type(index).tensor_type.elem_type if self.has(index) else 0

    def constant(self, index: int) -> Any | None:
        """The constant value of input ``index`` as a NumPy array, or ``None``."""
        tensor = self._context.get_input_data(index) if self.has(index) else None
        return None if tensor is None else onnx.numpy_helper.to_array(tensor)


class Operator:
    """One operator of the domain: its schema's parts, its NumPy kernel, its body and how shapes are inferred.

    Attributes:
        name: the operator's name in the domain.
        inputs: input name -> type variable or type, in order.
        outputs: output name -> type variable or type, in order.
        types: type variable -> the element types that it admits (``"float"``, ``"int64"``, ...).
        attributes: attribute name -> its parameter (type and default) in the kernel's signature.
        kernel: the NumPy kernel, ``kernel(*arrays, **attributes) -> array | tuple of arrays``.
        no_body: why standard ONNX cannot say this operator, or ``""`` when it can.
        random_body: whether the body draws other random numbers than the kernels, from the same distribution.
    """

    def __init__(
        self,
        kernel: Callable[..., Any],
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
        types: Mapping[str, Sequence[str]],
        no_body: str = "",
        random_body: bool = False,
    ) -> None:
        self.name = kernel.__name__
        self.kernel = kernel
        self.inputs = dict(inputs)
        self.outputs = dict(outputs)
        self.types = {variable: tuple(names) for variable, names in types.items()}
        self.no_body = no_body
        self.random_body = random_body
        self.doc = inspect.getdoc(kernel) or ""
        hints = typing.get_type_hints(kernel)
        parameters = inspect.signature(kernel).parameters.values()
        positional = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        if [p.name for p in positional] != list(self.inputs):
            raise TypeError(f"{self.name}: the kernel's parameters differ from the declared inputs")
        self.optional = tuple(p.default is None for p in positional)
        self.attributes = {
            p.name: (hints[p.name], p.default) for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY
        }
        self._body: Callable[..., Any] | None = None
        self._infer: Callable[[NodeInfo], Sequence[Dims]] | None = None

    def __call__(self, *arrays: Any, **attributes: Any) -> Any:
        """Run the NumPy kernel."""
        return self.kernel(*arrays, **attributes)

    def __repr__(self) -> str:
        return f"Operator({self.name!r})"

    def body(self, function: Callable[..., Any]) -> Operator:
        """Decorator: ``function(op, *inputs, **attributes)`` emits the operator in standard ONNX."""
        self._body = function
        return self

    def infer_shapes(self, function: Callable[[NodeInfo], Sequence[Dims]]) -> Operator:
        """Decorator: ``function(node)`` gives the dimensions of every output."""
        self._infer = function
        return self

    @property
    def emit_body(self) -> Callable[..., Any] | None:
        """The function that emits the body, or ``None`` where standard ONNX cannot say the operator."""
        return self._body

    def element_types(self, type_name: str) -> tuple[str, ...]:
        """The element types behind a type variable (or a plain ``tensor(...)`` type)."""
        return self.types[type_name] if type_name in self.types else (type_name.removeprefix("tensor(")[:-1],)

    def schema(self) -> OpSchema:
        """The ``onnx.defs.OpSchema``, with its type and shape inference."""
        option = OpSchema.FormalParameterOption
        schema = OpSchema(
            self.name,
            DOMAIN,
            OPSET_VERSION,
            doc=self.doc,
            inputs=[
                OpSchema.FormalParameter(name, type_, param_option=option.Optional if optional else option.Single)
                for (name, type_), optional in zip(self.inputs.items(), self.optional, strict=True)
            ],
            outputs=[OpSchema.FormalParameter(name, type_) for name, type_ in self.outputs.items()],
            type_constraints=[
                (variable, [f"tensor({name})" for name in names], "") for variable, names in self.types.items()
            ],
            attributes=[
                OpSchema.Attribute(name, ATTRIBUTE_TYPES[type_], required=True)
                if default is inspect.Parameter.empty
                else OpSchema.Attribute(
                    name, onnx.helper.make_attribute(name, default, attr_type=attribute_kind(ATTRIBUTE_TYPES[type_]))
                )
                for name, (type_, default) in self.attributes.items()
            ],
        )
        schema.set_type_and_shape_inference_function(self._infer_node)
        return schema

    def node_attributes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """``given`` completed by the defaults; raises ``ValueError`` for an unknown or a missing attribute."""
        if unknown := set(given) - set(self.attributes):
            raise ValueError(f"{self.name}: unknown attribute {sorted(unknown)[0]!r}")
        complete = {name: given.get(name, default) for name, (_, default) in self.attributes.items()}
        for name, value in complete.items():
            if value is inspect.Parameter.empty:
                raise ValueError(f"{self.name}: the attribute {name!r} is required")
        return complete

    def _infer_node(self, context: Any) -> None:
        given = {}
        for name in self.attributes:
            if (attribute := context.get_attribute(name)) is not None:
                value = onnx.helper.get_attribute_value(attribute)
                given[name] = value.decode() if isinstance(value, bytes) else value
        node = NodeInfo(self, self.node_attributes(given), context)
        bound = {
            type_: node.element_type(index)
            for index, type_ in reversed(list(enumerate(self.inputs.values())))
            if node.has(index)
        }
        shapes = self._infer(node) if self._infer else [None] * len(self.outputs)
        for index, (type_, shape) in enumerate(zip(self.outputs.values(), shapes, strict=True)):
            if type_ in self.types:
                element_type = bound.get(type_, 0)
            else:
                element_type = getattr(onnx.TensorProto, self.element_types(type_)[0].upper())
            context.set_output_type(index, onnx.helper.make_tensor_type_proto(element_type, shape))


_operators: dict[str, Operator] = {}
_schemas_are_registered = False


def operator(
    *,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    types: Mapping[str, Sequence[str]] = {},
    no_body: str = "",
    random_body: bool = False,
) -> Callable[[Callable[..., Any]], Operator]:
    """Declare an operator of the domain; see the module's docstring. A module from outside may do so at any time.

    Raises:
        TypeError: where the kernel's parameters are not the declared inputs.
        ValueError: where another module declares an operator of that name.
    """

    def declare(kernel: Callable[..., Any]) -> Operator:
        declared = Operator(kernel, inputs, outputs, types, no_body, random_body)
        known = _operators.get(declared.name)
        if known is not None and known.kernel.__module__ != kernel.__module__:
            raise ValueError(f"{known.kernel.__module__} declares an operator {declared.name} already")
        _operators[declared.name] = declared
        if _schemas_are_registered:
            _register_schema(declared)
        return declared

    return declare


def operators() -> Iterator[Operator]:
    """Every operator of the domain, by name."""
    return iter(sorted(_operators.values(), key=lambda op: op.name))


def find(name: str) -> Operator:
    """The operator called ``name``; raises ``KeyError`` when the domain has none."""
    return _operators[name]


def register_schemas() -> None:
    """Make ``onnx.checker`` and ``onnx.shape_inference`` know the domain's operators, and those declared later."""
    global _schemas_are_registered
    # onnx's reference evaluator reads all schemas when it is imported, and refuses a name that two domains share, as they
    # do Multinomial. It must have done so before.
    importlib.import_module("onnx.reference.op_run")
    _schemas_are_registered = True
    for declared in operators():
        _register_schema(declared)


def _register_schema(declared: Operator) -> None:
    if onnx.defs.has(declared.name, DOMAIN):  # a module that is loaded anew
        onnx.defs.deregister_schema(declared.name, OPSET_VERSION, DOMAIN)
    onnx.defs.register_schema(declared.schema())
