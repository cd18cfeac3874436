"""The registry of the domain ``onnx_specops``: every operator in all its forms.

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

A body is shared by nodes that agree in attributes, types and ranks. If constants or sizes of a node determine the content of
its body, ``@Example.body_facts`` decorates a function of the node's inputs and attributes that returns those facts.

The kernel's signature is the schema. Positional parameters are the inputs; a default of ``None`` makes one optional.
Keyword-only parameters are the attributes, with their types (``int``, ``float``, ``str``, ``tuple[int, ...]``,
``tuple[float, ...]``), defaults and valid values: ``Literal["none", "sum"]`` lists strings, ``Annotated[int, Limits(0,
1000)]`` limits an integer, and ``products`` limits products of attributes. ``inputs`` and ``outputs`` map names to a type
variable of ``types`` or to a type.

Every attribute that determines work or memory has limits, because a node may come from any file. The output size limits what
the values of inputs (a shape, a count) can demand; see `MOST_ELEMENTS`.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import math
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import onnx
from onnx.defs import OpSchema

from onnx_specops.attributes import KINDS, Attribute, LimitError, Limits, Product

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = [
    "CONTRIB_DOMAIN", "DOMAIN", "FLOATS", "INDICES", "INTEGERS", "MOST_ELEMENTS", "MOST_GROWTH", "NUMERIC",
    "OPSET_VERSION", "Attribute", "Declaration", "LimitError", "Limits", "NoBodyError", "NodeInfo", "Operator", "Product",
    "check_size", "declare", "declared", "find", "find_declaration", "operator", "operators", "register_schemas",
]  # fmt: skip

DOMAIN = "onnx_specops"
OPSET_VERSION = 1

CONTRIB_DOMAIN = "com.microsoft"
"""The domain of ONNX Runtime's own operators, version 1; `onnx_specops.contrib` declares those that have bodies."""

INTERNAL = "__"
"""The prefix of attributes with private meaning. ONNX's checker allows them on any node."""

FLOATS = ("float16", "bfloat16", "float", "double")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMERIC = (*FLOATS, *INTEGERS)
INDICES = ("int32", "int64")

Dims = Sequence["int | str | None"] | None

MOST_ELEMENTS, MOST_GROWTH = 2**28, 1024
"""The maximum number of elements of an output: this number, or this many times the elements of all inputs if that is more.
Without the limit, a few numbers in a node could exhaust the memory.
"""


class NoBodyError(ValueError):
    """Standard ONNX cannot represent the operator, or not with these attributes. Bodies raise it."""


@dataclass(frozen=True)
class NodeInfo:
    """The facts for a shape function: shapes, element types and constants of inputs, and the attributes."""

    operator: Declaration
    attributes: Mapping[str, Any]
    _context: Any = field(repr=False)

    def has(self, index: int) -> bool:
        """Whether input ``index`` is connected."""
        return index < self._context.get_num_inputs() and bool(self._context.has_input(index))

    def shape(self, index: int) -> list[int | str | None] | None:
        """Return the dimensions of input ``index``: numbers, symbols, ``None`` for an unknown one; ``None`` if the rank is
        unknown.
        """
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
        """Return the ``TensorProto.DataType`` of input ``index``, or 0 if unknown."""
        return self._context.get_input_type(index).tensor_type.elem_type if self.has(index) else 0

    def constant(self, index: int) -> Any | None:
        """Return the constant value of input ``index`` as a NumPy array, or ``None``."""
        tensor = self._context.get_input_data(index) if self.has(index) else None
        return None if tensor is None else onnx.numpy_helper.to_array(tensor)


class ArrayNode(NodeInfo):
    """A node whose inputs are all known. They are arrays, or ``None`` for an omitted input."""

    def has(self, index: int) -> bool:
        return index < len(self._context) and self._context[index] is not None

    def shape(self, index: int) -> list[int | str | None] | None:
        return list(self._context[index].shape) if self.has(index) else None

    def element_type(self, index: int) -> int:
        return onnx.helper.np_dtype_to_tensor_dtype(self._context[index].dtype) if self.has(index) else 0

    def constant(self, index: int) -> Any | None:
        return self._context[index] if self.has(index) else None


def check_size(what: str, elements: int, inputs: Sequence[Any]) -> None:
    """Raise `LimitError` if a kernel's array has more than `MOST_ELEMENTS` elements and the inputs do not justify it.

    ``what`` names the array. ``inputs`` contains ``None`` for omitted inputs.
    """
    if elements > max(MOST_ELEMENTS, MOST_GROWTH * sum(np.size(array) for array in inputs if array is not None)):
        raise LimitError(
            f"{what} would have {elements} elements, more than {MOST_ELEMENTS} and than {MOST_GROWTH} times as many as the "
            "inputs"
        )


class Declaration:
    """The declaration of an operator, with or without kernels: its schema, its body and its shape inference.

    Attributes:
        name: the operator's name in the domain.
        domain: its domain.
        inputs: input name -> type variable or type, in order.
        optional: for each input, whether a node may omit it.
        outputs: output name -> type variable or type, in order.
        optional_outputs: the number of outputs at the end that a node may omit.
        types: type variable -> the element types that it allows (``"float"``, ``"int64"``, ...).
        attributes: attribute name -> its declaration in the function's signature.
        products: limits for products of attributes.
        no_body: the reason why standard ONNX cannot represent this operator, or ``""`` if it can.
    """

    domain: ClassVar[str]
    optional_outputs = 0
    no_body = ""

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: Sequence[inspect.Parameter],
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
        types: Mapping[str, Sequence[str]],
        products: Sequence[Product] = (),
    ) -> None:
        self.name = function.__name__
        self.module = function.__module__
        self.inputs = dict(inputs)
        self.outputs = dict(outputs)
        self.types = {variable: tuple(names) for variable, names in types.items()}
        self.products = tuple(products)
        self.doc = inspect.getdoc(function) or ""
        hints = typing.get_type_hints(function, include_extras=True)
        positional = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
        if [p.name for p in positional] != list(self.inputs):
            raise TypeError(f"{self.name}: the parameters differ from the declared inputs")
        self.optional = tuple(p.default is None for p in positional)
        self.attributes = {
            p.name: Attribute.of(p, hints[p.name]) for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY
        }
        self._body: Callable[..., Any] | None = None
        self._facts: Callable[..., Mapping[str, Hashable]] | None = None
        self._infer: Callable[[NodeInfo], Sequence[Dims]] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def infer_shapes(self, function: Callable[[NodeInfo], Sequence[Dims]]) -> Self:
        """Decorator: ``function(node)`` returns the dimensions of every output."""
        self._infer = function
        return self

    @property
    def emit_body(self) -> Callable[..., Any] | None:
        """The function that emits the body, or ``None`` if standard ONNX cannot represent the operator."""
        return self._body

    def body_facts(self, function: Callable[..., Mapping[str, Hashable]]) -> Self:
        """Decorator: ``function(*inputs, **attributes)`` returns further keyword arguments of the body of a node. The inputs
        are the node's values, with their constants and sizes.
        """
        self._facts = function
        return self

    def facts(self, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any]) -> Mapping[str, Hashable]:
        """Return the further keyword arguments of the body of a node; omitted inputs are ``None``."""
        return {} if self._facts is None else self._facts(*inputs, **attributes)

    def element_types(self, type_name: str) -> tuple[str, ...]:
        """Return the element types of a type variable, or of a plain ``tensor(...)`` type."""
        return self.types[type_name] if type_name in self.types else (type_name.removeprefix("tensor(")[:-1],)

    def schema(self) -> OpSchema:
        """The ``onnx.defs.OpSchema``, including type and shape inference."""
        option = OpSchema.FormalParameterOption
        required = len(self.outputs) - self.optional_outputs
        schema = OpSchema(
            self.name,
            self.domain,
            OPSET_VERSION,
            doc=self.doc,
            inputs=[
                OpSchema.FormalParameter(name, type_, param_option=option.Optional if optional else option.Single)
                for (name, type_), optional in zip(self.inputs.items(), self.optional, strict=True)
            ],
            outputs=[
                OpSchema.FormalParameter(name, type_, param_option=option.Single if index < required else option.Optional)
                for index, (name, type_) in enumerate(self.outputs.items())
            ],
            type_constraints=[
                (variable, [f"tensor({name})" for name in names], "") for variable, names in self.types.items()
            ],
            attributes=[
                OpSchema.Attribute(attribute.name, KINDS[attribute.type], required=True)
                if attribute.required
                else OpSchema.Attribute(
                    attribute.name,
                    onnx.helper.make_attribute(attribute.name, attribute.default, attr_type=attribute.kind),
                )
                for attribute in self.attributes.values()
            ],
        )
        schema.set_type_and_shape_inference_function(self._infer_node)
        return schema

    def node_attributes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``given`` with the defaults added and `INTERNAL` attributes removed.

        Raises:
            LimitError: an attribute exceeds its limits.
            ValueError: an attribute is unknown, missing or invalid.
        """
        if unknown := {name for name in given if not name.startswith(INTERNAL)} - set(self.attributes):
            raise ValueError(f"{self.name}: unknown attribute {sorted(unknown)[0]!r}")
        complete = {name: given.get(name, attribute.default) for name, attribute in self.attributes.items()}
        for name, value in complete.items():
            if value is None:
                raise ValueError(f"{self.name}: attribute {name} is missing")
            self.attributes[name].check(self.name, value)
        for product in self.products:
            product.check(self.name, complete)
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
            if index >= context.get_num_outputs():
                break
            element_types = self.element_types(type_)
            element_type = bound.get(type_, 0)
            if type_ not in bound and len(element_types) == 1:
                element_type = getattr(onnx.TensorProto, element_types[0].upper())
            context.set_output_type(index, onnx.helper.make_tensor_type_proto(element_type, shape))


class Operator(Declaration):
    """An operator of the domain: its declaration and its NumPy kernel.

    Attributes:
        kernel: the NumPy kernel, ``kernel(*arrays, **attributes) -> array | tuple of arrays``.
        random_body: whether the body draws different random numbers than the kernels, from the same distribution.
    """

    domain = DOMAIN

    def __init__(
        self,
        kernel: Callable[..., Any],
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
        types: Mapping[str, Sequence[str]],
        no_body: str = "",
        random_body: bool = False,
        products: Sequence[Product] = (),
    ) -> None:
        super().__init__(kernel, list(inspect.signature(kernel).parameters.values()), inputs, outputs, types, products)
        self.kernel = kernel
        self.no_body = no_body
        self.random_body = random_body

    def __call__(self, *arrays: Any, **attributes: Any) -> Any:
        """Run the NumPy kernel after checking the limits of the attributes and output sizes."""
        complete = self.node_attributes(attributes)
        for name, shape in zip(self.outputs, self.output_shapes(arrays, complete), strict=True):
            if shape is not None:
                check_size(f"{self.name}: {name}", math.prod(shape), arrays)
        return self.kernel(*arrays, **complete)

    def body(self, function: Callable[..., Any]) -> Operator:
        """Decorator: ``function(op, *inputs, **attributes)`` emits the operator in standard ONNX."""
        self._body = function
        return self

    def output_shapes(self, arrays: Sequence[Any], attributes: Mapping[str, Any]) -> Sequence[tuple[int, ...] | None]:
        """Return the shapes of the outputs; ``None`` if the inputs' shapes and small values do not determine them."""
        shapes: Sequence[Dims] = [None] * len(self.outputs)
        if self._infer is not None:
            with contextlib.suppress(Exception):  # the kernel reports contradictory inputs
                shapes = self._infer(ArrayNode(self, attributes, arrays))
        known = [s is not None and all(isinstance(d, int) and d >= 0 for d in s) for s in shapes]
        return [tuple(s) if is_known else None for s, is_known in zip(shapes, known, strict=True)]  # type: ignore[arg-type]


_declared: dict[tuple[str, str], Declaration] = {}
_schemas_are_registered = False

AnyDeclaration = TypeVar("AnyDeclaration", bound=Declaration)


def declare(declaration: AnyDeclaration) -> AnyDeclaration:
    """Add an operator to its domain; raise ``ValueError`` if another module declares the same name."""
    key = (declaration.domain, declaration.name)
    known = _declared.get(key)
    if known is not None and known.module != declaration.module:
        raise ValueError(f"{known.module} declares an operator {declaration.name} already")
    _declared[key] = declaration
    if _schemas_are_registered:
        _register_schema(declaration)
    return declaration


def operator(
    *,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    types: Mapping[str, Sequence[str]] = {},
    no_body: str = "",
    random_body: bool = False,
    products: Sequence[Product] = (),
) -> Callable[[Callable[..., Any]], Operator]:
    """Declare an operator of the domain; see the module's docstring. Modules of other packages may call it at any time.

    Raises:
        TypeError: the kernel's parameters differ from the declared inputs.
        ValueError: another module declares an operator with the same name.
    """
    return lambda kernel: declare(Operator(kernel, inputs, outputs, types, no_body, random_body, products))


def declared(domain: str) -> Iterator[Declaration]:
    """Iterate over the declared operators of a domain, sorted by name."""
    return iter([_declared[key] for key in sorted(_declared) if key[0] == domain])


def operators() -> Iterator[Operator]:
    """Iterate over the operators of the domain ``onnx_specops``, sorted by name."""
    return (found for found in declared(DOMAIN) if isinstance(found, Operator))


def find(name: str) -> Operator:
    """Return the operator called ``name``; raise ``KeyError`` if the domain does not have it."""
    found = _declared[DOMAIN, name]
    assert isinstance(found, Operator)
    return found


def find_declaration(domain: str, name: str) -> Declaration | None:
    """Return the operator called ``name`` of a domain, or ``None`` if it is not declared."""
    return _declared.get((domain, name))


def register_schemas() -> None:
    """Register the operators, including those declared later, with ``onnx.checker`` and ``onnx.shape_inference``."""
    global _schemas_are_registered
    # onnx's reference evaluator reads all schemas on import. It fails if two domains have the same name, such as
    # Multinomial. It must be imported first.
    importlib.import_module("onnx.reference.op_run")
    _schemas_are_registered = True
    for declaration in _declared.values():
        _register_schema(declaration)


def _register_schema(declaration: Declaration) -> None:
    if onnx.defs.has(declaration.name, declaration.domain):  # a module that is loaded again
        onnx.defs.deregister_schema(declaration.name, OPSET_VERSION, declaration.domain)
    onnx.defs.register_schema(declaration.schema())
