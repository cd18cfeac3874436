"""Rules: functions that convert a layer of an IR to ONNX. A rule's signature is its operation's specification.

::

    @rule("ScatterElementsUpdate", since="opset12")
    def scatter_elements_update(op, data, indices, updates, axis, *, reduction: Literal["none", "sum"] = "none"):
        return op.ScatterElements(data, indices, updates, ...)

The first parameter is the graph builder (`onnx_specops.building.Builder`). The positional parameters after it are the
layer's inputs in order: ONNX values with element type, shape and, if known, constant value. A default of ``None`` makes an
input optional, and ``*inputs`` takes any number. Keyword-only parameters are the attributes, with the specification's types
and defaults. Their annotations determine how the XML's texts are parsed:

    ``bool``, ``int``, ``float``, ``str``, ``ElementType``, ``PartialShape``, ``Literal["a", "b"]`` (case-insensitive),
    ``tuple[int, ...]``, ``tuple[float, ...]``, ``tuple[str, ...]``, and any of them ``| None`` for an optional attribute.

An attribute that is not in the signature, a value that does not fit its type, and a missing or surplus input are problems of
the layer. They are never ignored. A keyword-only parameter annotated `Context` receives the layer and further information. A
parameter annotated with an `AttributeGroup` receives the group's fields, which are attributes that several operations share.
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
from converters.openvino.stated import Corrections
from converters.variables import Variable
from onnx_specops.building import Builder, Value

LATEST_OPSET = 17

# Types whose names differ between OpenVINO's serializer and the specification.
_SPELLINGS = {"Const": "Constant"}

OPENVINO_RELEASE = "2026.4.1"
"""The OpenVINO release whose CPU plugin the rules were compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A difference between OpenVINO's CPU plugin and its own specification, and the behavior of the rule.

    If the specification does not define the behavior, the difference is to the reference kernel (``Model.evaluate``). The
    texts are phrases in Markdown, without a capital letter and a period, from which ``docs/departures.md`` is generated.

    Attributes:
        where: the inputs, types or attributes that show the difference.
        cpu: the behavior of the CPU plugin.
        avx512: whether the plugin only behaves so on processors with AVX-512.
        specification: the behavior in the specification, or
        reference: the behavior of the reference kernel. Both are given if the reference kernel differs from the
            specification.
        follows: the behavior of the converted model; ``"runtime"`` if ONNX does not define it either, so it depends on the
            runtime.
        release: the OpenVINO release in which it was seen.
        name: a name for programs that check whether a model has such inputs, types or attributes.
    """

    where: str
    cpu: str
    specification: str = ""
    reference: str = ""
    follows: Literal["cpu", "specification", "reference", "runtime"]
    avx512: bool = False
    release: str = OPENVINO_RELEASE
    name: Literal[
        "",
        "integers",
        "ellipsis",
        "ellipsis and axes",
        "no detections",
        "larger windows",
        "negative sizes",
        "large sums",
        "large numbers",
    ] = ""

    def __post_init__(self) -> None:
        if not self.specification and not self.reference:
            raise ValueError(f"{self.where}: a departure needs the behavior of the specification or of the reference kernel")
        if self.follows in ("specification", "reference") and not getattr(self, self.follows):
            raise ValueError(f"{self.where}: it follows the {self.follows}, which it does not describe")

    @property
    def of_both(self) -> bool:
        """Whether the reference kernel also differs from the specification."""
        return bool(self.specification and self.reference)


def omitted(attribute: str, taken: str, specified: str) -> Departure:
    """Return the departure of an attribute that a file omits, whose default in OpenVINO is not that of the specification."""
    return Departure(
        where=f"no attribute `{attribute}`",
        cpu=f"takes {taken}",
        specification=f"takes {specified}",
        follows="cpu",
    )


EVERYWHERE = (
    Departure(
        where="integers of 64 bits, and u32, outside the range of i32",
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
"""Departures of layers of all operations: types and shapes that the CPU plugin's kernels lack."""


@dataclass(frozen=True, slots=True)
class Context:
    """The information for a rule besides the values of its inputs.

    Attributes:
        layer: the layer in the file.
        convert_body: ``convert_body(op, body, inputs)`` emits a nested graph's layers through ``op``. ``inputs`` are the
            values of its Parameters, in the order of ``body.parameters``. It returns the values of its Results.
        variables: the model's variables (ReadValue and Assign) so far, by variable id.
        remarks: collects the parts of the file that OpenVINO ignores.
        ignored_dims: the values whose dimensions in the file are ignored, see `ignore_stated_dims`.
        corrections: the types and dimensions that the file states differently.
    """

    layer: Layer
    convert_body: Callable[[Builder, Body, Sequence[Value]], list[Value]]
    variables: dict[str, Variable]
    ignored_dims: set[Value]
    remarks: Remarks
    corrections: Corrections

    def ignore_stated_dims(self, value: Value) -> Value:
        """Return ``value`` with the dimensions, but not the rank, that ONNX infers instead of those in the file.

        This also applies to all values that are computed from it.
        """
        self.ignored_dims.add(value)
        return value

    def output_type(self, index: int = 0) -> ir.DataType:
        """Return the ONNX element type of the layer's output."""
        return data_type(self.corrections.type_of(self.layer.outputs[index]))

    def input_type(self, index: int = 0) -> ElementType:
        """Return the element type of one of the layer's inputs, which may have no equivalent in ONNX."""
        return self.corrections.type_of(self.layer.inputs[index].source)

    def output_dims(self, index: int = 0) -> tuple[int | None, ...] | None:
        """Return the dimensions of the layer's output in the file; ``None`` for an unknown rank."""
        return self.corrections.dims_of(self.layer.outputs[index])


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
    """A rule and its parsed signature."""

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
        """Emit the layer. Raise a `LayerError` with all its problems."""
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
            raise Malformed(f"it has {count} inputs, but {self.operation} of {self.since} takes {expected}")

    def keywords(self, attributes: dict[str, str], remark: Callable[[str], None] = lambda message: None) -> dict[str, Any]:
        """Return the layer's attributes as the function's keywords, with those of groups in the group."""
        keywords = self.parse(attributes, remark)
        for name, group in self.groups.items():
            members = {field.name for field in fields(group)} & set(keywords)
            keywords[name] = group(**{member: keywords.pop(member) for member in members})
        return keywords

    def parse(self, attributes: dict[str, str], remark: Callable[[str], None] = lambda message: None) -> dict[str, Any]:
        """Parse the layer's attributes by name, and report all their problems at once.

        ``remark`` receives attributes that OpenVINO does not read, and values of which it reads only the beginning.
        """
        errors: list[str] = []
        keywords = {}
        for name, text in attributes.items():
            # Python's keywords cannot be parameter names ("if" is "if_" there). Members of a group are "group.member".
            key = name.rpartition(".")[2].replace("-", "_")
            known = self.attributes.get(key) or self.attributes.get(key + "_")
            if known is None:
                remark(f"the attribute {short(name)} of {self.operation}")
                continue
            try:
                parse = _parsed if len(text) <= _SHORT else _parsed.__wrapped__
                keywords[known.name], is_complete = parse(text, known.annotation)
                if not is_complete:
                    remark(f"all but the beginning of the attribute {name}={short(text)} of {self.operation}")
            except ValueError as error:
                if known.annotation is bool and not known.required:  # keep the default
                    remark(f"the attribute {name}={short(text)} of {self.operation}, neither true nor false")
                    continue
                errors.append(f"its attribute {name}={text!r} {error}")
        errors += [
            f"the attribute {parameter.name!r} is missing"
            for name, parameter in self.attributes.items()
            if parameter.required and name not in keywords and not any(name in e for e in errors)
        ]
        if errors:
            raise Malformed("; ".join(errors), "check whether the file is damaged, and which OpenVINO release wrote it")
        return keywords


def _is_group(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, AttributeGroup)


def _fields(group: type[AttributeGroup]) -> list[Parameter]:
    """Return the attributes of a group."""
    hints = typing.get_type_hints(group)
    defaults = {f.name: inspect.Parameter.empty if f.default is MISSING else f.default for f in fields(group)}
    return [Parameter(name, hints[name], default) for name, default in defaults.items()]


_SHORT = 64
"""The length of texts whose values are kept. Layers repeat the attributes of others."""


@functools.lru_cache(maxsize=4096)
def _parsed(text: str, annotation: Any) -> tuple[Any, bool]:
    """Return the value of an attribute's text, and whether all of the text was read; see `parse_value`."""
    partial: list[str] = []
    return parse_value(text, annotation, partial), not partial


def parse_value(text: str, annotation: Any, partial: list[str] | None = None) -> Any:
    """Parse an attribute's text by the annotation. Raise ``ValueError`` with the expected type.

    OpenVINO reads the longest prefix that is a number: "2.0" is the integer 2. ``partial`` collects such texts.
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
        return int(_beginning(text, _INTEGER, "an integer", partial))
    if annotation is float:
        return float(_beginning(text, _NUMBER, "a number", partial))
    raise TypeError(f"rules do not support attributes of the type {annotation}")


# Python's own functions would also accept underscores and digits of other scripts.
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
"""The operations' names by their lower case, because OpenVINO ignores case."""


def rule(
    *operations: str,
    since: str = "opset1",
    restrictions: str = "",
    departs: Sequence[Departure] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function for operations, from the opset that defines this version of them.

    Args:
        operations: the operations' names, as their specification spells them.
        since: the opset.
        restrictions: the unsupported parts of the specification, for the table of operations; ``""`` if there are none.
        departs: the differences between OpenVINO's CPU plugin and the specification, for the table of departures.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for operation in operations:
            _names[operation.lower()] = operation
            # A later rule for the same opset, from outside, replaces the built-in one.
            _rules[operation] = [known for known in _rules[operation] if known.since != since]
            _rules[operation].append(Rule(function, operation, since, restrictions, departs))
            _rules[operation].sort(key=lambda r: _number(r.since))
        return function

    return register


def rules() -> dict[str, list[Rule]]:
    """Return the rules of each operation, oldest version first."""
    return dict(sorted(_rules.items()))


_other_versions: dict[str, Callable[[str], Rule]] = {}


def register_versions(versions: Sequence[str], find: Callable[[str], Rule]) -> None:
    """Register ``find(layer type)``, which returns the rules of layers of versions with their own table."""
    _other_versions.update(dict.fromkeys(versions, find))


def find_rule(layer_type: str, version: str) -> Rule:
    """Return the rule for a layer. Raise a `LayerError` that names the missing rule, opset or version."""
    if version in _other_versions:
        return _other_versions[version](layer_type)
    operation = _names.get(_SPELLINGS.get(layer_type, layer_type).lower(), layer_type)
    candidates = _rules.get(operation)
    if not candidates:
        raise Unsupported(
            f"no rule converts {layer_type} ({version or 'no version'})",
            "'specops inspect' lists the layers that can be converted; use --rules RULES.py to add your own rule",
        )
    for candidate in candidates:
        if candidate.since == version:
            return candidate
    number = _number(version)
    if number > LATEST_OPSET:
        raise Unsupported(f"{version} is newer than opset{LATEST_OPSET}, the newest supported one", "update onnx-specops")
    chosen = [r for r in candidates if r.since.startswith("opset") and _number(r.since) <= number]
    if not chosen or not _belongs(operation, number):
        known = ", ".join(r.since for r in candidates)
        raise Malformed(f"{layer_type} has no version {version!r}; its versions are {known}")
    return chosen[-1]


@functools.cache
def _belongs(operation: str, number: int) -> bool:
    """Return whether the operation belongs to the opset, in which OpenVINO looks for it. Operations of extensions belong to
    no opset.
    """
    opsets = [entry for entry in operations() if entry.name == operation]
    return not opsets or any(entry.first <= number <= entry.last for entry in opsets)


@functools.lru_cache
def _number(version: str) -> int:
    match = re.fullmatch(r"opset([0-9]{1,4})", version)
    return int(match[1]) if match else 0
