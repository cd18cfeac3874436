"""Prior boxes, patches, darknet's rearrangement."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case

F = np.float32


def _prior_box(opset, dynamic=False, sizes=((2, 3), (20, 30)), **attributes):
    def build():
        import openvino as ov
        from openvino import opset1, opset8

        ops = opset1 if opset == "opset1" else opset8
        settings = {"offset": 0.5} | {k: np.array(v, F) if isinstance(v, list) else v for k, v in attributes.items()}
        if dynamic:
            inputs = [ops.parameter([2], np.int64), ops.parameter([2], np.int64)]
        else:
            inputs = [ops.constant(np.array(size, np.int64)) for size in sizes]
        node = ops.prior_box(*inputs, settings)
        if dynamic:
            return ov.Model([node], inputs)
        # A graph of constants alone would be folded away: the boxes are used.
        x = ops.parameter([1], F)
        return ov.Model([ops.add(node, x)], [x])

    return build


def _clustered(dynamic=False, **attributes):
    def build():
        import openvino as ov
        from openvino import opset1 as ops

        settings = {"offset": 0.5, "width": [4.0, 9.0], "height": [5.0, 3.0]} | attributes
        settings = {k: np.array(v, F) if isinstance(v, list) else v for k, v in settings.items()}
        inputs = [ops.parameter([2], np.int64), ops.parameter([2], np.int64)]
        return ov.Model([ops.prior_box_clustered(*inputs, settings)], inputs)

    return build


SIZES = [(np.array([2, 3]), np.array([20, 30])), (np.array([3, 1]), np.array([17, 40]))]
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
CASES = []
for _opset in ("opset1", "opset8"):
    for _name, _attributes in _FORMS.items():
        CASES.append(Case("PriorBox", _opset, _name, _prior_box(_opset, True, **_attributes), SIZES))
_UNCOUNTED = {"oracle": "cpu", "reason": "Model.evaluate writes the boxes beyond its output's end, and may crash"}
_X = [(np.zeros(1, F),)]
for _opset in ("opset1", "opset8"):
    # OpenVINO's count of boxes leaves some out: they push others out of the output.
    for _name, _attributes in {
        "fixed-and-min-sizes": {"fixed_size": [6.0], "density": [2.0], "min_size": [4.0]},
        "fixed-ratios-and-min-sizes": {"fixed_size": [6.0], "density": [2.0], "fixed_ratio": [0.5, 2.0], "min_size": [4.0]},
        "max-sizes-not-all": {
            "min_size": [0.2, 0.4],
            "max_size": [0.5],
            "aspect_ratio": [2.0, 3.0],
            "scale_all_sizes": False,
        },
    }.items():
        CASES.append(Case("PriorBox", _opset, _name, _prior_box(_opset, True, **_attributes), SIZES, **_UNCOUNTED))
    _odd = _prior_box(_opset, sizes=((2, 3), (20, 30)), fixed_size=[5.0, 7.9], density=[2.0, 3.0], fixed_ratio=[1.0, 2.0])
    CASES.append(Case("PriorBox", _opset, "odd-fixed-sizes-constant", _odd, _X))
CASES += [
    Case(
        "PriorBox",
        "opset8",
        "ratios-before-max",
        _prior_box("opset8", True, min_size=[4.0], max_size=[9.0], aspect_ratio=[4.0], min_max_aspect_ratios_order=False),
        [(np.array([1, 1]), np.array([10, 10]))],
        oracle="expected",
        reason="the CPU plugin refuses this order and Model.evaluate crashes; values by the specification",
        # Around (5, 5): half sizes 2 x 2, 4 x 1 (ratio 4), 3 x 3 (the root of 4 times 9), all by 10.
        expected=[
            [np.array([[0.3, 0.3, 0.7, 0.7, 0.1, 0.4, 0.9, 0.6, 0.2, 0.2, 0.8, 0.8], [0.1] * 12], F)],
        ],
    ),
]
for _name, _attributes in {
    "defaults": {},
    "steps": {"step_w": 7.0, "step_h": 5.0, "clip": False},
    "step-of-width": {"step_w": 7.0},
    "steps-mixed": {"step": 6.0, "step_h": 4.0},
    "one-step": {"step": 6.0, "variance": [0.1, 0.1, 0.2, 0.2]},
    "offset": {"offset": 0.25, "variance": [0.4], "clip": False},
}.items():
    CASES.append(Case("PriorBoxClustered", "opset1", _name, _clustered(**_attributes), SIZES))


def _patches(shape, sizes, strides, rates, pad, dtype=F):
    def build():
        import openvino as ov
        from openvino import opset3 as ops

        x = ops.parameter(list(shape), dtype)
        return ov.Model([ops.extract_image_patches(x, sizes, strides, rates, pad)], [x])

    return build


def _counted(*shape, dtype=F):
    return np.arange(1, int(np.prod(shape)) + 1).reshape(shape).astype(dtype)


_IMAGE = _counted(1, 1, 10, 10)
CASES += [
    Case("ExtractImagePatches", "opset3", "valid", _patches((1, 1, 10, 10), [3, 3], [5, 5], [1, 1], "valid"), [(_IMAGE,)]),
    Case("ExtractImagePatches", "opset3", "same-upper", _patches((1, 1, 10, 10), [4, 4], [9, 9], [1, 1], "same_upper"), [(_IMAGE,)]),
    Case("ExtractImagePatches", "opset3", "same-lower", _patches((1, 1, 10, 10), [4, 3], [9, 4], [1, 2], "same_lower"), [(_IMAGE,)]),
    Case("ExtractImagePatches", "opset3", "rates", _patches((1, 1, 10, 10), [3, 3], [5, 5], [2, 2], "valid"), [(_IMAGE,)]),
    Case("ExtractImagePatches", "opset3", "channels", _patches((1, 2, 5, 5), [2, 2], [3, 3], [1, 1], "valid"), [(_counted(1, 2, 5, 5),)]),
    Case("ExtractImagePatches", "opset3", "dynamic", _patches((-1, 2, -1, -1), [2, 3], [1, 2], [2, 1], "same_upper"),
         [(_counted(1, 2, 5, 4),), (_counted(2, 2, 3, 7),)]),
    Case("ExtractImagePatches", "opset3", "side-by-side", _patches((1, 2, 7, -1), [3, 3], [3, 3], [1, 1], "same_lower"),
         [(_counted(1, 2, 7, 8),)]),
    Case("ExtractImagePatches", "opset3", "side-by-side-valid", _patches((1, 2, 7, -1), [3, 3], [3, 3], [1, 1], "valid"),
         [(_counted(1, 2, 7, 8),)]),
    Case("ExtractImagePatches", "opset3", "large", _patches((1, 2, 12, 12), [8, 9], [3, 2], [1, 1], "same_upper"),
         [(_counted(1, 2, 12, 12),)]),
    Case("ExtractImagePatches", "opset3", "i32", _patches((2, 3, 4, 4), [2, 1], [2, 3], [1, 1], "valid", np.int32),
         [(_counted(2, 3, 4, 4, dtype=np.int32),)]),
]  # fmt: skip


def _reorg(shape, stride, dtype=F):
    def build():
        import openvino as ov
        from openvino import opset2 as ops

        x = ops.parameter(list(shape), dtype)
        return ov.Model([ops.reorg_yolo(x, [stride])], [x])

    return build


CASES += [
    Case("ReorgYolo", "opset2", "stride-2", _reorg((2, 8, 4, 6), 2), [(_counted(2, 8, 4, 6),)]),
    Case("ReorgYolo", "opset2", "stride-1", _reorg((1, 3, 2, 2), 1), [(_counted(1, 3, 2, 2),)]),
    Case("ReorgYolo", "opset2", "stride-3", _reorg((1, 18, 6, 3), 3), [(_counted(1, 18, 6, 3),)]),
    Case("ReorgYolo", "opset2", "dynamic", _reorg((-1, 4, -1, -1), 2), [(_counted(1, 4, 2, 4),), (_counted(3, 4, 6, 2),)]),
    Case("ReorgYolo", "opset2", "odd-channels", _reorg((2, 11, 4, 2), 2), [(_counted(2, 11, 4, 2),)]),
    Case(
        "ReorgYolo",
        "opset2",
        "any-channels",
        _reorg((-1, -1, -1, -1), 2),
        [(_counted(2, 6, 2, 4),), (_counted(1, 8, 2, 2),)],
    ),
    Case("ReorgYolo", "opset2", "f16", _reorg((1, 4, 2, 2), 2, np.float16), [(_counted(1, 4, 2, 2, dtype=np.float16),)]),
]
