"""Prior boxes."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, layer_case, static

F = np.float32
_SIZES = [static(np.array([2, 3]), np.array([3, 1])), static(np.array([20, 30]), np.array([17, 40]))]
_FORMS = {
    "defaults": {"min_size": [4.0]},
    "ratios": {"min_size": [4.0, 7.0], "aspect_ratio": [2.0, 3.0, 2.0, 1.0]},
    "flipped": {"min_size": [4.0], "aspect_ratio": [2.0, 0.5, 3.0], "flip": True},
    "max-sizes": {"min_size": [4.0, 7.0], "max_size": [9.0, 16.0], "aspect_ratio": [2.0], "variance": [0.1, 0.1, 0.2, 0.2]},
    "clipped": {"min_size": [40.0], "clip": True, "variance": [0.3]},
    "step": {"min_size": [4.0], "step": 7.5, "offset": 0.25},
    "fixed-sizes": {"fixed_size": [5.0, 8.0], "density": [2.0, 3.0]},
    "fixed-ratios": {"fixed_size": [6.0, 9.0], "density": [1.0, 2.0], "fixed_ratio": [0.5]},
    "fixed-and-ratios": {"fixed_size": [6.0], "density": [2.0], "aspect_ratio": [2.0]},
    "not-all-sizes": {"min_size": [0.2, 0.4], "aspect_ratio": [2.0], "scale_all_sizes": False},
    "not-all-sizes-step": {"min_size": [0.2, 0.4], "aspect_ratio": [2.0], "scale_all_sizes": False, "step": 0.3},
}


def _settings(attributes):
    return {"offset": 0.5} | {k: np.array(v, F) if isinstance(v, list) else v for k, v in attributes.items()}


def _prior_box(version, name, attributes, inputs=_SIZES, **settings):
    def make(ops, grid, image, x=None):
        boxes = ops.prior_box(grid, image, _settings(attributes))
        # A graph of constants would be folded: the boxes are used.
        return boxes if x is None else ops.add(boxes, x)

    return layer_case("PriorBox", version, make, name, inputs, **settings)


def _prior_boxes():
    uncounted = decided("cpu", "Model.evaluate writes out of bounds, and may crash")
    for version in ("opset1", "opset8"):
        for name, attributes in _FORMS.items():
            yield _prior_box(version, name, attributes)
        # OpenVINO's number of boxes is too low: some boxes push others out of the output.
        fixed = {"fixed_size": [6.0], "density": [2.0], "min_size": [4.0]}
        yield _prior_box(version, "fixed-and-min-sizes", fixed, **uncounted)
        yield _prior_box(version, "fixed-ratios-and-min-sizes", fixed | {"fixed_ratio": [0.5, 2.0]}, **uncounted)
        attributes = {"min_size": [0.2, 0.4], "max_size": [0.5], "aspect_ratio": [2.0, 3.0], "scale_all_sizes": False}
        yield _prior_box(version, "max-sizes-not-all", attributes, **uncounted)
        odd = {"fixed_size": [5.0, 7.9], "density": [2.0, 3.0], "fixed_ratio": [1.0, 2.0]}
        inputs = [np.array([2, 3]), np.array([20, 30]), static(np.zeros(1, F))]
        yield _prior_box(version, "odd-fixed-sizes-constant", odd, inputs)
    attributes = {"min_size": [4.0], "max_size": [9.0], "aspect_ratio": [4.0], "min_max_aspect_ratios_order": False}
    reason = "the CPU plugin rejects this order, and Model.evaluate crashes; values by the specification"
    # Around (5, 5): half sizes 2 x 2, 4 x 1 (ratio 4), 3 x 3 (the root of 4 times 9), all by 10.
    boxes = np.array([[0.3, 0.3, 0.7, 0.7, 0.1, 0.4, 0.9, 0.6, 0.2, 0.2, 0.8, 0.8], [0.1] * 12], F)
    inputs = [static(np.array([1, 1])), static(np.array([10, 10]))]
    yield _prior_box("opset8", "ratios-before-max", attributes, inputs, **decided("expected", reason, boxes))


def _clustered():
    for name, attributes in {
        "defaults": {},
        "steps": {"step_w": 7.0, "step_h": 5.0, "clip": False},
        "step-of-width": {"step_w": 7.0},
        "steps-mixed": {"step": 6.0, "step_h": 4.0},
        "one-step": {"step": 6.0, "variance": [0.1, 0.1, 0.2, 0.2]},
        "offset": {"offset": 0.25, "variance": [0.4], "clip": False},
    }.items():
        given = _settings({"width": [4.0, 9.0], "height": [5.0, 3.0]} | attributes)
        make = "prior_box_clustered"
        yield layer_case("PriorBoxClustered", "opset1", make, name, _SIZES, {"attrs": given})


CASES = [*_prior_boxes(), *_clustered()]
