"""The mechanism of rules: signatures are specifications, and nothing is dropped silently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from converters.errors import LayerError, Malformed
from converters.openvino import rules as _rules  # noqa: F401  (importing it registers them)
from converters.openvino.reader.element_types import ElementType
from converters.openvino.rule import AttributeGroup, Rule, find_rule, parse_value


def example(op, data, axis=None, *, mode: Literal["none", "Sum"] = "none", count: int, scale: float = 1.0, on: bool = True):
    return data


EXAMPLE = Rule(example, "Example", "opset3")


@dataclass(frozen=True, kw_only=True)
class Shared(AttributeGroup):
    size: int
    names: tuple[str, ...] = ("a",)


def grouped(op, *, shared: Shared, last: bool = False):
    return [(shared, last)]


GROUPED = Rule(grouped, "Grouped", "opset3")


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ("true", bool, True),
        ("0", bool, False),
        ("False", bool, False),
        ("-12", int, -12),
        ("18446744073709551615", int, 2**64 - 1),
        ("1e-05", float, 1e-5),
        ("inf", float, float("inf")),
        ("SUM", Literal["none", "Sum"], "Sum"),
        ("1, 2,3", tuple[int, ...], (1, 2, 3)),
        ("", tuple[int, ...], ()),
        ("0.5,2", tuple[float, ...], (0.5, 2.0)),
        ("FP32", ElementType, ElementType.F32),
        ("5", int | None, 5),
    ],
)
def test_attribute_texts_are_parsed_by_annotation(text, annotation, value):
    assert parse_value(text, annotation) == value


@pytest.mark.parametrize(
    ("text", "annotation"),
    [
        ("yes", bool),
        ("٣", int),
        ("", int),
        ("9" * 5000, int),
        ("1,,2", tuple[int, ...]),
        ("fast", Literal["none", "sum"]),
        ("float", ElementType),
        ("one", float),
    ],
)
def test_texts_outside_the_type_are_rejected(text, annotation):
    with pytest.raises(ValueError, match=r"is n|is none"):
        parse_value(text, annotation)


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [("1.0", int, 1), ("1_000", int, 1), ("2 3", int, 2), ("0.5f", float, 0.5), ("2.0,3", tuple[int, ...], (2, 3))],
)
def test_openvino_reads_the_beginning_of_a_number(text, annotation, value):
    partial: list[str] = []
    assert parse_value(text, annotation, partial) == value
    assert partial


@pytest.mark.parametrize("text", ["1,2,", " 1 , 2 ", "1,2"])
def test_lists_with_and_without_blanks(text):
    partial: list[str] = []
    assert parse_value(text, tuple[int, ...], partial) == (1, 2)
    assert not partial


def test_ignored_attributes_are_reported():
    remarks: list[str] = []
    assert EXAMPLE.parse({"count": "3", "colour": "red"}, remarks.append) == {"count": 3}
    assert remarks == ["the attribute colour of Example"]


def test_all_attribute_errors_are_reported_at_once():
    with pytest.raises(Malformed) as error:
        EXAMPLE.parse({"mode": "max", "scale": "x", "colour": "red"})
    message = error.value.message
    assert "mode='max'" in message
    assert "scale='x'" in message
    assert "'count' is missing" in message


def test_fields_of_a_group_are_attributes():
    assert list(GROUPED.attributes) == ["last", "size", "names"]
    assert GROUPED.keywords({"size": "3", "last": "true"}) == {"shared": Shared(size=3), "last": True}
    assert GROUPED.keywords({"size": "3", "names": "b,c"}) == {"shared": Shared(size=3, names=("b", "c"))}
    with pytest.raises(Malformed, match="'size' is missing"):
        GROUPED.keywords({})


def test_defaults_are_left_to_the_function():
    assert EXAMPLE.parse({"count": "3"}) == {"count": 3}


@pytest.mark.parametrize("count", [0, 3])
def test_a_wrong_number_of_inputs_is_rejected(count):
    with pytest.raises(Malformed, match="takes 1 to 2"):
        EXAMPLE._check_inputs(count)


def test_the_latest_rule_not_above_the_layer_version_is_found():
    assert find_rule("MatMul", "opset1").since == "opset1"
    assert find_rule("MatMul", "opset9").since == "opset1"


@pytest.mark.parametrize(
    ("layer_type", "version", "message"),
    [
        ("NoSuchLayer", "opset1", "no rule converts"),
        ("MatMul", "opset18", "newer than opset17"),
        ("MatMul", "extension", "has no version 'extension'"),
        ("MatMul", "opset0", "has no version"),
        ("MatMul", "", "has no version"),
        ("MatMul", "opset99999999999", "has no version"),
    ],
)
def test_layers_without_a_rule_are_reported(layer_type, version, message):
    with pytest.raises(LayerError, match=message):
        find_rule(layer_type, version)
