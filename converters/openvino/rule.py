"""Rules: how a layer of an IR becomes ONNX. A rule's signature is its operation's specification.

::

    @rule("ScatterElementsUpdate", since="opset12")
    def scatter_elements_update(op, data, indices, updates, axis, *, reduction: Literal["none", "sum"] = "none"):
        return op.ScatterElements(data, indices, updates, ...)

The first parameter is the graph builder (`onnx_specops.building.Builder`). The positional parameters after it are the
layer's inputs in order (a default of ``None`` makes one optional, ``*inputs`` takes any number), as ONNX values with element
type, shape and, where known, constant value. Keyword-only parameters are the attributes with the specification's types and
defaults; the XML's texts are parsed by their annotations:

    ``bool``, ``int``, ``float``, ``str``, ``ElementType``, ``PartialShape``, ``Literal["a", "b"]`` (upper and lower case
    alike), ``tuple[int, ...]``, ``tuple[float, ...]``, ``tuple[str, ...]``, and any of them ``| None`` for one that may be
    missing.

An attribute of the layer that the signature does not name, a value outside its type, a missing or a surplus input: each is a
problem of the layer, never overlooked. A keyword-only parameter annotated `Context` receives the layer itself and what else
a rule may need beyond its inputs. One annotated with an `AttributeGroup` stands for the group's fields: attributes that
several operations share.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal

import onnx_ir as ir

from converters.errors import Malformed, Remarks, Unsupported, short
from converters.openvino.coverage.operations import operations
from converters.openvino.onnx_types import data_type
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import Body, Layer
from converters.openvino.reader.shapes import PartialShape
from converters.variables import Variable
from onnx_specops.building import Builder, Value

LATEST_OPSET = 17

# Types that OpenVINO's serializer spells otherwise than the specification.
_SPELLINGS = {"Const": "Constant"}

OPENVINO_RELEASE = "2026.4.1"
"""The OpenVINO release whose CPU plugin the rules were compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Something in which OpenVINO's CPU plugin parts from its own specification, and what the rule makes of it.

    Where the specification is silent, the reference kernel (``Model.evaluate``) is what the plugin parts from. The texts are
    phrases in Markdown, without a capital and a full stop: ``docs/departures.md`` is made of them.

    Attributes:
        where: the inputs, types or attributes that show it.
        cpu: what the CPU plugin makes of them.
        specification: what the specification says instead; or
        reference: what the reference kernel does. Beside the specification it stands where that kernel parts from it, too.
        follows: which of them the converted model does; ``"runtime"`` where that is for the runtime to say, since ONNX says
            as little of such inputs.
        release: the OpenVINO release in which it was seen.
    """

    where: str
    cpu: str
    specification: str = ""
    reference: str = ""
    follows: Literal["cpu", "specification", "reference", "runtime"]
    release: str = OPENVINO_RELEASE

    def __post_init__(self) -> None:
        if not self.specification and not self.reference:
            raise ValueError(f"{self.where}: the specification or the reference kernel is what the CPU plugin parts from")
        if self.follows in ("specification", "reference") and not getattr(self, self.follows):
            raise ValueError(f"{self.where}: it follows the {self.follows}, of which it says nothing")

    @property
    def of_both(self) -> bool:
        """Whether the reference kernel parts from the specification, too."""
        return bool(self.specification and self.reference)


EVERYWHERE = (
    Departure(
        where="integers of 64 bits, and u32, that i32 does not hold",
        cpu="computes them in i32, mostly from their lower bits; constants are saturated",
        specification="keeps all numbers of the type",
        follows="specification",
    ),
    Departure(
        where="f64",
        cpu="computes in f32; infinite and out-of-range values become the largest finite number",
        specification="computes in f64",
        follows="specification",
    ),
    Departure(
        where="f16 and bf16 between one layer and the next",
        cpu="keeps float32",
        reference="rounds to the type after each layer",
        follows="cpu",
    ),
    Departure(
        where="integers between one function and the next, such as Cos and Sign",
        cpu="keeps the fractions of floats",
        specification="rounds to integers between them",
        follows="specification",
    ),
    Departure(
        where="a layer whose inputs are all constants",
        cpu="computes it when it loads the model, with the reference kernel, or with its own if that rejects the layer",
        specification="treats constants like other inputs",
        follows="specification",
    ),
    Departure(
        where="inputs and results of unknown rank",
        cpu="rejects them",
        specification="allows them",
        follows="specification",
    ),
    Departure(
        where="constants of f8e8m0 that are 2^-127",
        cpu="treats them as 0",
        reference="keeps them",
        follows="reference",
    ),
)
"""What concerns layers of all operations: types and shapes that the CPU plugin's kernels lack."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a rule may know beyond the values of its inputs.

    Attributes:
        layer: the layer as it stands in the file.
        convert_body: ``convert_body(op, body, inputs)`` emits a nested graph's layers through ``op`` with the values
            ``inputs`` for its Parameters (in the order of ``body.parameters``) and returns the values of its Results.
        variables: the model's variables (ReadValue and Assign) so far, by variable id.
        remarks: takes what OpenVINO passes over in the file.
        distrusted: the values of which the file states dimensions that do not count, see `ignore_stated_dims`.
    """

    layer: Layer
    convert_body: Callable[[Builder, Body, Sequence[Value]], list[Value]]
    variables: dict[str, Variable]
    ignored_dims: set[Value]
    remarks: Remarks

    def ignore_stated_dims(self, value: Value) -> Value:
        """``value``, whose dimensions (not its rank) are those that ONNX infers, whatever the file states of them.

        So are those of all that is computed from it.
        """
        self.ignored_dims.add(value)
        return value

    def output_type(self, index: int = 0) -> ir.DataType:
        """The ONNX element type of the layer's output."""
        return data_type(self.layer.outputs[index].element_type)

    def output_dims(self, index: int = 0) -> tuple[int | None, ...] | None:
        """The dimensions of the layer's output as the file states them, ``None`` for an unknown rank."""
        return self.layer.outputs[index].dims


@dataclass(frozen=True, kw_only=True)
class AttributeGroup:
    """Attributes that several operations share: the fields of a subclass, with their types and defaults."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An attribute in a rule's signature."""

    name: str
    annotation: Any
    default: Any

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


class Rule:
    """A rule with what its signature says."""

    def __init__(
        self,
        function: Callable[..., Any],
        operation: str,
        since: str,
        restrictions: str = "",
        departs: Sequence[Departure] = (),
    ) -> None:
        self.function, self.operation, self.since = function, operation, since
        self.restrictions, self.departs = restrictions, tuple(departs)
        hints = typing.get_type_hints(function)
        signature = list(inspect.signature(function).parameters.values())[1:]
        inputs = [p for p in signature if p.kind is p.POSITIONAL_OR_KEYWORD]
        self.max_inputs: int | None = None if any(p.kind is p.VAR_POSITIONAL for p in signature) else len(inputs)
        self.min_inputs = sum(p.default is p.empty for p in inputs)
        self.input_names = [p.name for p in inputs]
        keywords = [p for p in signature if p.kind is p.KEYWORD_ONLY]
        self.context_name = next((p.name for p in keywords if hints.get(p.name) is Context), None)
        self.groups = {p.name: hints[p.name] for p in keywords if _is_group(hints[p.name])}
        own = [p for p in keywords if p.name != self.context_name and p.name not in self.groups]
        self.attributes = {p.name: Parameter(p.name, hints[p.name], p.default) for p in own}
        for group in self.groups.values():
            self.attributes |= {parameter.name: parameter for parameter in _fields(group)}

    def __call__(self, op: Builder, inputs: Sequence[Value], context: Context) -> list[Value]:
        """Emit the layer; raises a `LayerError` for whatever is wrong with it."""
        self._check_inputs(len(inputs))
        keywords = self.keywords(context.layer.attributes, lambda message: context.remarks.add(message, layer=context.layer))
        if self.context_name:
            keywords[self.context_name] = context
        results = self.function(op, *inputs, **keywords)
        results = results if isinstance(results, (list, tuple)) else [results]
        return [result if isinstance(result, Value) else op.const(result) for result in results]

    def _check_inputs(self, count: int) -> None:
        low, high = self.min_inputs, self.max_inputs
        if count < low or (high is not None and count > high):
            expected = f"at least {low}" if high is None else str(low) if low == high else f"{low} to {high}"
            raise Malformed(f"it has {count} inputs where {self.operation} of {self.since} takes {expected}")

    def keywords(self, attributes: dict[str, str], remark: Callable[[str], None] = lambda message: None) -> dict[str, Any]:
        """The layer's attributes as the function's keywords, those of groups gathered in them."""
        keywords = self.parse(attributes, remark)
        for name, group in self.groups.items():
            members = {field.name for field in fields(group)} & set(keywords)
            keywords[name] = group(**{member: keywords.pop(member) for member in members})
        return keywords

    def parse(self, attributes: dict[str, str], remark: Callable[[str], None] = lambda message: None) -> dict[str, Any]:
        """The values of the layer's attributes by name; all that is wrong with them at once.

        ``remark`` is told of attributes that OpenVINO does not read, and of values of which it reads the beginning only.
        """
        errors: list[str] = []
        keywords = {}
        for name, text in attributes.items():
            # Python's keywords cannot be parameter names ("if" stands as "if_"); a group's members come as "group.member".
            key = name.rpartition(".")[2].replace("-", "_")
            known = self.attributes.get(key) or self.attributes.get(key + "_")
            if known is None:
                remark(f"the attribute {short(name)} of {self.operation}")
                continue
            partial: list[str] = []
            try:
                keywords[known.name] = parse_value(text, known.annotation, partial)
                if partial:
                    remark(f"all but the beginning of the attribute {name}={short(text)} of {self.operation}")
            except ValueError as error:
                if known.annotation is bool and not known.required:  # the default stays
                    remark(f"the attribute {name}={short(text)} of {self.operation}, neither true nor false")
                    continue
                errors.append(f"its attribute {name}={text!r} {error}")
        errors += [
            f"the attribute {parameter.name!r} is missing"
            for name, parameter in self.attributes.items()
            if parameter.required and name not in keywords and not any(name in e for e in errors)
        ]
        if errors:
            raise Malformed("; ".join(errors), "check that the file is intact and which OpenVINO release wrote it")
        return keywords


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, AttributeGroup)


def _fields(group: type[AttributeGroup]) -> list[Parameter]:
    """The attributes that a group stands for."""
    hints = typing.get_type_hints(group)
    defaults = {f.name: inspect.Parameter.empty if f.default is MISSING else f.default for f in fields(group)}
    return [Parameter(name, hints[name], default) for name, default in defaults.items()]


def parse_value(text: str, annotation: Any, partial: list[str] | None = None) -> Any:
    """An attribute's text as the type that the annotation names; raises ``ValueError`` saying what it should be.

    Of numbers OpenVINO reads as much as makes one: "2.0" is the whole number 2. ``partial`` takes such texts.
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return parse_value(text, next(a for a in arguments if a is not type(None)), partial)
    if origin is Literal:
        for value in arguments:
            if text.strip().lower() == str(value).lower():
                return value
        raise ValueError("is not one of " + ", ".join(repr(str(value)) for value in arguments))
    if origin is tuple:
        parts = [part.strip() for part in text.split(",")]
        if not parts[-1]:
            parts.pop()
        return tuple(parse_value(part, arguments[0], partial) for part in parts)
    if annotation is str:
        return text
    text = text.strip()
    if annotation is bool:
        if text.lower() in ("true", "1"):
            return True
        if text.lower() in ("false", "0"):
            return False
        raise ValueError("is neither true nor false")
    if annotation is PartialShape:
        return PartialShape.parse(text)
    if annotation is ElementType:
        if (element_type := ElementType.from_name(text)) is None:
            raise ValueError("is not an element type")
        return element_type
    if annotation is int:
        return int(_beginning(text, _INTEGER, "a whole number", partial))
    if annotation is float:
        return float(_beginning(text, _NUMBER, "a number", partial))
    raise TypeError(f"rules know no attribute type {annotation}")


# Python's own functions would also take underscores and digits of other scripts.
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}(?![0-9])", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE
)


def _beginning(text: str, pattern: re.Pattern[str], what: str, partial: list[str] | None) -> str:
    match = pattern.match(text)
    if match is None:
        raise ValueError(f"is not {what}")
    if match.end() < len(text) and partial is not None:
        partial.append(text)
    return match[0]


_rules: dict[str, list[Rule]] = defaultdict(list)
_names: dict[str, str] = {}
"""The operations' names by their lower case: OpenVINO does not tell capitals apart."""


def rule(
    *operations: str,
    since: str = "opset1",
    restrictions: str = "",
    departs: Sequence[Departure] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function for the operations, from the opset on that defined this version of them.

    Args:
        operations: the operations' names, as their specification spells them.
        since: the opset.
        restrictions: what of the specification is refused, for the table of operations; ``""`` where nothing is.
        departs: where OpenVINO's CPU plugin parts from the specification, for the table of departures.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for operation in operations:
            _names[operation.lower()] = operation
            # A later one for the same opset, from outside, takes the place of ours.
            _rules[operation] = [known for known in _rules[operation] if known.since != since]
            _rules[operation].append(Rule(function, operation, since, restrictions, departs))
            _rules[operation].sort(key=lambda r: _number(r.since))
        return function

    return register


def rules() -> dict[str, list[Rule]]:
    """Every operation's rules, oldest version first."""
    return dict(sorted(_rules.items()))


_other_versions: dict[str, Callable[[str], Rule]] = {}


def register_versions(versions: Sequence[str], find: Callable[[str], Rule]) -> None:
    """Let ``find(layer type)`` give the rules of layers of such versions, which have a table of their own."""
    _other_versions.update(dict.fromkeys(versions, find))


def find_rule(layer_type: str, version: str) -> Rule:
    """The rule for a layer; raises a `LayerError` naming what is missing."""
    if version in _other_versions:
        return _other_versions[version](layer_type)
    operation = _names.get(_SPELLINGS.get(layer_type, layer_type).lower(), layer_type)
    candidates = _rules.get(operation)
    if not candidates:
        raise Unsupported(
            f"no rule converts {layer_type} ({version or 'no version'})",
            "'specops inspect' lists the layers that can be converted; --rules RULES.py adds a rule of your own",
        )
    for candidate in candidates:
        if candidate.since == version:
            return candidate
    number = _number(version)
    if number > LATEST_OPSET:
        raise Unsupported(f"{version} is newer than opset{LATEST_OPSET}, the latest that is known", "update onnx-specops")
    chosen = [r for r in candidates if r.since.startswith("opset") and _number(r.since) <= number]
    if not chosen or not _belongs(operation, number):
        known = ", ".join(r.since for r in candidates)
        raise Malformed(f"{layer_type} has no version {version!r}; known are: {known}")
    return chosen[-1]


@functools.cache
def _belongs(operation: str, number: int) -> bool:
    """Whether the operation is one of the opset's, which is where OpenVINO looks for it; those of extensions are of none."""
    opsets = [entry for entry in operations() if entry.name == operation]
    return not opsets or any(entry.first <= number <= entry.last for entry in opsets)


def _number(version: str) -> int:
    match = re.fullmatch(r"opset([0-9]{1,4})", version)
    return int(match[1]) if match else 0
