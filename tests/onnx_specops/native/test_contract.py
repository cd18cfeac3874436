"""Each operator's declarations in the native library and in Python are equal."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import onnx
import pytest

from onnx_specops.attributes import KINDS, Attribute
from onnx_specops.domain import MOST_ELEMENTS, MOST_GROWTH, Operator, operators
from onnx_specops.runtime.library import description, has_library
from tests.native import OF_PCRE2, needs_library, needs_pcre2

pytestmark = needs_library

DESCRIPTION = description() if has_library() else {"operators": []}
NATIVE = {operator["name"]: operator for operator in DESCRIPTION["operators"]}
TYPES = {int: "int", float: "float", str: "string", tuple[int, ...]: "ints", tuple[float, ...]: "floats"}
OPERATORS = pytest.mark.parametrize("operator", list(operators()), ids=lambda operator: operator.name)
BUILT_ONES = pytest.mark.parametrize(
    "operator",
    [pytest.param(o, marks=needs_pcre2) if o.name in OF_PCRE2 else o for o in operators()],
    ids=lambda operator: operator.name,
)


def attribute(declared: Attribute) -> dict[str, Any]:
    """Return the expected description of an attribute."""
    limits = declared.limits
    said = {
        "name": declared.name,
        "type": TYPES[declared.type],
        "default": declared.default,
        "least": None if limits is None else limits.least,
        "most": None if limits is None else limits.most,
        "choices": list(declared.choices) or None,
    }
    return {key: value for key, value in said.items() if value is not None}


def signatures(operator: Operator) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Iterate over the combinations of element types that the operator's types allow."""
    for choice in itertools.product(*operator.types.values()):
        chosen = dict(zip(operator.types, choice, strict=True))
        inputs, outputs = (
            tuple(chosen.get(type_) or operator.element_types(type_)[0] for type_ in parameters.values())
            for parameters in (operator.inputs, operator.outputs)
        )
        yield inputs, outputs


def native_signatures(said: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Iterate over the combinations in the library's description."""
    for signature in said["signatures"]:
        inputs = [
            parameter["any_of"] if type_ is None else [type_]
            for parameter, type_ in zip(said["inputs"], signature["inputs"], strict=True)
        ]
        yield from itertools.product(itertools.product(*inputs), [tuple(signature["outputs"])])


def test_the_operators_are_the_same() -> None:
    assert set(NATIVE) | OF_PCRE2 == {operator.name for operator in operators()}
    assert set(NATIVE) & OF_PCRE2 in (OF_PCRE2, set())
    assert len(NATIVE) == len(DESCRIPTION["operators"])


def test_the_limits_of_outputs_are_the_same() -> None:
    assert (DESCRIPTION["most_elements"], DESCRIPTION["most_growth"]) == (MOST_ELEMENTS, MOST_GROWTH)


@BUILT_ONES
def test_inputs_and_outputs(operator: Operator) -> None:
    said = NATIVE[operator.name]
    assert {i["name"]: i["optional"] for i in said["inputs"]} == dict(zip(operator.inputs, operator.optional, strict=True))
    assert [i["name"] for i in said["inputs"]] == list(operator.inputs)
    assert [(o["name"], o["optional"]) for o in said["outputs"]] == [(name, False) for name in operator.outputs]


@BUILT_ONES
def test_element_types(operator: Operator) -> None:
    native = list(native_signatures(NATIVE[operator.name]))
    assert set(native) == set(signatures(operator))
    assert len(native) == len(set(native))


@BUILT_ONES
def test_attributes(operator: Operator) -> None:
    native = {said["name"]: said for said in NATIVE[operator.name]["attributes"]}
    assert native == {name: attribute(declared) for name, declared in operator.attributes.items()}


@BUILT_ONES
def test_products(operator: Operator) -> None:
    native = [(tuple(product["factors"]), product["most"]) for product in NATIVE[operator.name]["products"]]
    assert native == [(product.factors, product.most) for product in operator.products]


@OPERATORS
def test_the_schema_equals_the_declaration(operator: Operator) -> None:
    """The schema for `onnx.checker` and shape inference equals the declaration."""
    schema = operator.schema()
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    assert [(i.name, i.option == optional) for i in schema.inputs] == [
        (name, is_optional) for name, is_optional in zip(operator.inputs, operator.optional, strict=True)
    ]
    assert [o.name for o in schema.outputs] == list(operator.outputs)
    assert set(schema.attributes) == set(operator.attributes)
    for name, declared in operator.attributes.items():
        said = schema.attributes[name]
        assert (said.type, said.required) == (KINDS[declared.type], declared.required)
        if not declared.required:
            default = onnx.helper.get_attribute_value(said.default_value)
            assert (default.decode() if isinstance(default, bytes) else default) == declared.default
