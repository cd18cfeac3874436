"""Limits of operators: every implementation rejects values beyond them."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal

import numpy as np
import onnx_ir as ir
import pytest

from onnx_specops.attributes import Attribute, LimitError, Limits
from onnx_specops.bodies import BodyError, attach_bodies
from onnx_specops.domain import find, operators
from tests.onnx_specops.ops.one_node import KERNELS, one_node, run

F, N = np.float32, np.int64
MAPS = np.ones((1, 4, 3, 3), F)
ALIGN = {"feat": MAPS, "rois": F([[0, 0, 2, 2]]), "batch_indices": N([0])}
POOL = {"feat": MAPS, "rois": F([[0, 0, 0, 2, 2]])}
BINS = {"pooled_h": 2, "pooled_w": 2}
RATIO = {**BINS, "sampling_ratio": 2, "spatial_scale": 1.0}

# operator, inputs, attributes, the message
TOO_MUCH = [
    ("ROIAlign", ALIGN, {**RATIO, "sampling_ratio": 129}, "attribute sampling_ratio = 129 is more than 128"),
    ("ROIAlign", ALIGN, {**RATIO, "pooled_h": 2**40}, "attribute pooled_h = 1099511627776 is more than 1024"),
    ("ROIAlign", ALIGN, {**RATIO, "pooled_w": 1024, "sampling_ratio": 32},
     "pooled_h * pooled_w * sampling_ratio * sampling_ratio = 2097152 is more than 1048576"),
    ("ROIPooling", POOL, {**BINS, "pooled_w": 1025}, "attribute pooled_w = 1025 is more than 1024"),
    ("PSROIPooling", POOL, {"output_dim": 2**16, "group_size": 5, "spatial_scale": 1.0},
     "output_dim * group_size * group_size = 1638400 is more than 1048576"),
]  # fmt: skip

# operator, inputs, attributes, the number of output elements
TOO_LARGE = [
    ("Multinomial", {"probs": np.ones((2, 3), F), "num_samples": np.array(2**40)}, {"with_replacement": 1}, 2**41),
    ("RandomUniform", {"shape": N([2**20, 2**20]), "minval": np.array(0, F), "maxval": np.array(1, F)}, {}, 2**40),
    ("SegmentMax", {"data": np.ones((2, 3), F), "segment_ids": N([0, 2**40])}, {"fill_mode": "ZERO"}, 3 * (2**40 + 1)),
    ("Interpolate", {"image": MAPS, "sizes": N([2**20, 2**20]), "scales": F([1e5, 1e5])},
     {"axes": "2,3", "mode": "nearest"}, 2**42),
    ("ROIPooling", {"feat": np.ones((1, 64, 1, 1), F), "rois": np.zeros((99, 5), F)}, {"pooled_h": 1024, "pooled_w": 1024},
     99 * 2**26),
    ("DetectionOutput", {"box_logits": np.zeros((99, 4), F), "class_preds": np.zeros((99, 1), F),
                         "proposals": np.zeros((1, 2, 4), F)},
     {"keep_top_k": 2**20, "nms_threshold": 0.5, "normalized": 1}, 7 * 99 * 2**20),
]  # fmt: skip


@pytest.mark.parametrize("form", [*KERNELS, "body"])
@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"), TOO_MUCH, ids=[f"{e[0]}-{i}" for i, e in enumerate(TOO_MUCH)]
)
def test_limits_of_attributes(op, inputs, attributes, message, form) -> None:
    with pytest.raises(Exception) as caught:
        run(form, op, inputs, attributes)
    assert f"{op}: {message}" in str(caught.value)
    assert form == "native" or isinstance(caught.value, LimitError)


def test_a_body_error_names_the_node() -> None:
    model = ir.from_proto(one_node("ROIPooling", POOL, TOO_MUCH[3][2]))
    model.graph[0].name = "here"
    with pytest.raises(
        BodyError, match="ROIPooling 'here': ROIPooling: attribute pooled_w = 1025 is more than 1024"
    ) as caught:
        attach_bodies(model)
    assert isinstance(caught.value.__cause__, LimitError)


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize(("op", "inputs", "attributes", "elements"), TOO_LARGE, ids=[e[0] for e in TOO_LARGE])
def test_limits_of_output_sizes(op, inputs, attributes, elements, form) -> None:
    with pytest.raises(
        Exception, match=rf"{op}: output would have {elements} elements, more than 268435456 and than 1024 times"
    ):
        run(form, op, inputs, attributes)


@pytest.mark.parametrize("form", KERNELS)
def test_strings_of_more_bytes_than_the_inputs_justify(form) -> None:
    inputs = {"begins": np.zeros(2**16, N), "ends": np.full(2**16, 2**13), "symbols": np.zeros(2**13, np.uint8)}
    with pytest.raises(Exception, match="StringTensorPack: output would have 536870912 elements"):
        run(form, "StringTensorPack", inputs)


def test_the_body_of_an_unknown_operator() -> None:
    model = one_node("ErfInv", {"x": F([0])})
    model.graph.node[0].op_type = "ErfOut"
    with pytest.raises(BodyError, match="the domain onnx_specops has no such operator"):
        attach_bodies(ir.from_proto(model))


def test_every_count_has_a_limit() -> None:
    """Every integer attribute has a limit, or is a flag, a class, a seed or a value."""
    harmless = {
        "background_class", "background_label_id", "default_value", "feat_stride", "global_seed", "hasher_key_0",
        "hasher_key_1", "input_height", "input_width", "min_size", "op_seed",
    }  # fmt: skip
    unlimited = {
        name
        for operator in operators()
        for name, attribute in operator.attributes.items()
        if attribute.type is int and attribute.limits is None and attribute.default not in (0, 1)
    }
    assert unlimited - harmless == {"clockwise_mode", "with_replacement"}  # flags that every node specifies


def _of(hint: Any, default: Any = inspect.Parameter.empty) -> Attribute:
    return Attribute.of(inspect.Parameter("a", inspect.Parameter.KEYWORD_ONLY, default=default), hint)


def test_attributes_are_declared_by_parameters() -> None:
    assert _of(int) == Attribute("a", int)
    assert _of(float, 0.5) == Attribute("a", float, 0.5)
    assert _of(Annotated[int, Limits(0, 9)], 3) == Attribute("a", int, 3, Limits(0, 9))
    assert _of(Literal["x", "y"], "y") == Attribute("a", str, "y", choices=("x", "y"))
    with pytest.raises(TypeError, match="not an integer with limits"):
        _of(Annotated[float, Limits(0, 1)])


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (int, 1.5, "Op: attribute a is not an integer"),
        (float, "1", "Op: attribute a is not a float"),
        (str, 1, "Op: attribute a is not a string"),
        (Annotated[int, Limits(1)], 0, "Op: attribute a = 0 is less than 1"),
        (Annotated[int, Limits(1, 5)], 6, "Op: attribute a = 6 is more than 5"),
        (Literal["x", "y"], "z" * 99, f"Op: attribute a = '{'z' * 60}' is not one of x, y"),
    ],
)
def test_invalid_attribute_values(hint, value, message) -> None:
    with pytest.raises(ValueError) as caught:
        _of(hint).check("Op", value)
    assert str(caught.value) == message
    assert isinstance(caught.value, LimitError) == ("more than" in message)


def test_missing_and_unknown_attributes() -> None:
    with pytest.raises(ValueError, match="Multinomial: attribute with_replacement is missing"):
        find("Multinomial").node_attributes({})
    with pytest.raises(ValueError, match="Multinomial: unknown attribute 'colour'"):
        find("Multinomial").node_attributes({"with_replacement": 1, "colour": 2})
