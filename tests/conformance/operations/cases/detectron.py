"""The layers of Detectron's networks. Undefined parts of outputs are removed."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import dynamics, layer_case, statics


def _detectron(operation, keep=None):
    """Creates cases of a layer; ``keep`` has the number of defined elements of each output."""
    operation = f"ExperimentalDetectron{operation}"

    def make(ops, *nodes, **attributes):
        from openvino import opset8
        from openvino.utils.node_factory import NodeFactory

        outputs = NodeFactory("opset6").create(operation, [node.output(0) for node in nodes], attributes).outputs()
        if keep is None:
            return outputs
        zero, one = opset8.constant(np.array([0])), opset8.constant(np.array([1]))
        return [opset8.slice(output, zero, opset8.constant(np.array([keep])), one, zero) for output in outputs]

    return partial(layer_case, operation, "opset6", make)


def _floats(*arrays):
    return tuple(np.asarray(a, np.float32) for a in arrays)


def halves(arrays):
    return [a.astype(np.float16) for a in arrays]


def _boxes(rng, count, extent=60, size=30):
    start = rng.random((count, 2)) * extent
    return np.concatenate([start, start + rng.random((count, 2)) * size + 1], axis=1)


def _detection_outputs():
    attributes = {
        "score_threshold": 0.3, "nms_threshold": 0.4, "num_classes": 4, "post_nms_count": 6, "max_detections_per_image": 100,
        "class_agnostic_box_regression": False, "max_delta_log_wh": 1.5, "deltas_weights": [10.0, 10.0, 5.0, 4.0],
    }  # fmt: skip

    def data(count, seed=0, classes=4, grid=0):
        rng = np.random.default_rng(seed)
        scores = rng.random((count, classes))
        scores = np.round(scores * grid) / grid if grid else scores
        rois = _boxes(rng, count)
        rois[1, 2] = rois[1, 0]
        return _floats(rois, rng.standard_normal((count, classes * 4)) * 4, scores, [[60, 60, 1]])

    case = _detectron("DetectionOutput")
    plain = data(30)
    yield case("all", statics(plain), attributes)
    yield case("best", statics(plain), {**attributes, "max_detections_per_image": 7})
    yield case("ties", statics(data(40, 1, grid=8)), {**attributes, "post_nms_count": 50, "nms_threshold": 0.2})
    # For equal scores of one region, OpenVINO's sorting determines the first class.
    equal = plain[0], plain[1], np.round(np.tile(plain[2][:, :1], (1, 4)) * 4) / 4, plain[3]
    yield case("equal-classes", statics(equal), {**attributes, "max_detections_per_image": 17}, seeded_body=False)
    yield case("agnostic", statics(plain), {**attributes, "class_agnostic_box_regression": True})
    yield case("all-scores", statics(plain), {**attributes, "score_threshold": -1.0, "post_nms_count": -1})
    yield case("dynamic", dynamics(plain, data(3, 2), data(60, 3)), attributes)
    yield case("f16", statics(halves(plain)), attributes)


def proposal_inputs(rows, columns, anchors, seed=0):
    """Return an image's size and scale, anchors, deltas and scores."""
    rng = np.random.default_rng(seed)
    count = rows * columns * anchors
    scores = (rng.permutation(count) + 1) / (count + 1)
    deltas = rng.standard_normal((anchors * 4, rows, columns)) * 0.4
    return _floats([50, 60, 1], _boxes(rng, count), deltas, scores.reshape(anchors, rows, columns))


PROPOSALS = {"min_size": 4.0, "nms_threshold": 0.5, "pre_nms_count": 50, "post_nms_count": 10}
PLAIN, ZEROS = proposal_inputs(4, 5, 3), proposal_inputs(4, 5, 3, 1)
ZEROS[3][ZEROS[3] < 0.7] = 0
TIES = *PLAIN[:3], np.round(PLAIN[3] * 8) / 8


def _proposals():
    name = "GenerateProposalsSingleImage"
    case = _detectron(name)
    few = {"post_nms_count": 70, "pre_nms_count": 1000, "min_size": 0.0}
    yield case("plain", statics(PLAIN), PROPOSALS)
    yield case("few", statics(PLAIN), PROPOSALS | few)
    many = {"post_nms_count": 40, "nms_threshold": 0.9}
    yield _detectron(name, keep=8)("zero-scores", statics(ZEROS), PROPOSALS | many)
    # For equal scores, OpenVINO's sorting determines the better box.
    yield case("ties", statics(TIES), PROPOSALS | {"min_size": 0.0}, seeded_body=False)
    yield _detectron(name, keep=4)("small", statics(PLAIN), PROPOSALS | {"post_nms_count": 40, "min_size": 15.0})
    yield case("dynamic", dynamics(PLAIN, proposal_inputs(2, 3, 4, 2)), PROPOSALS | {"min_size": 0.5})
    yield case("f16", statics(halves(PLAIN)), PROPOSALS)


def _grids():
    def data(priors, rows, columns, height, width):
        rng = np.random.default_rng(priors)
        maps = np.zeros((1, 3, rows, columns)), np.zeros((1, 3, height, width))
        return _floats(rng.standard_normal((priors, 4)) * 20, *maps)

    plain, grid = data(3, 4, 5, 40, 90), _detectron("PriorGridGenerator")
    given = {"flatten": True, "h": 0, "w": 0, "stride_x": 0.0, "stride_y": 0.0}
    yield grid("flat", statics(plain), given)
    yield grid("strides", statics(plain), given | {"flatten": False, "stride_x": 32.0, "stride_y": 7.5})
    yield _detectron("PriorGridGenerator", keep=2 * 3 * 3)("smaller", statics(plain), given | {"h": 2, "w": 3})
    yield grid("dynamic", dynamics(plain, data(2, 3, 7, 50, 33)), given)
    yield grid("f16", statics(halves(plain)), given | {"flatten": False})


def _features():
    def data(count, channels, sizes, seed=0):
        rng = np.random.default_rng(seed)
        size = 2 ** rng.uniform(3, 10, (count, 1))
        start = rng.random((count, 2)) * 200 - 50
        rois = np.concatenate([start, start + size * rng.uniform(0.5, 2, (count, 2))], axis=1)
        rois[1, 2:] = rois[1, :2]
        rois[2] = [8, 8, 232, 232]
        return _floats(rois, *(rng.standard_normal((1, channels, *s)) for s in sizes))

    case = _detectron("ROIFeatureExtractor")
    plain = data(20, 3, [(40, 50), (20, 25), (10, 13)])
    given = {"output_size": 2, "sampling_ratio": 2, "pyramid_scales": [4, 8, 16], "aligned": False}
    yield case("plain", statics(plain), given | {"output_size": 3})
    yield case("aligned", statics(plain), given | {"sampling_ratio": 1, "aligned": True})
    yield case("adaptive", statics(plain), given | {"sampling_ratio": 0, "pyramid_scales": [3, 8, 20]})
    yield case("one-level", statics(plain[:2]), given | {"pyramid_scales": [4], "aligned": True})
    runs = plain, data(5, 2, [(9, 9), (5, 4), (3, 2)], 3)
    yield case("dynamic", dynamics(*runs), given | {"pyramid_scales": [4, 8, 16, 32]})
    yield case("f16", statics(halves(plain)), given)


def _best_regions():
    def data(count, seed=0):
        rng = np.random.default_rng(seed)
        return _floats(rng.random((count, 4)), (rng.permutation(count) + 1) / count)

    case = _detectron("TopKROIs")
    yield case("some", statics(data(10)), {"max_rois": 4})
    yield _detectron("TopKROIs", keep=5)("more-than-there-are", statics(data(5)), {"max_rois": 9})
    yield case("dynamic", dynamics(data(10), data(4, 1)), {"max_rois": 4})
    yield case("f16", statics(halves(data(10))), {"max_rois": 3})


CASES = [*_detection_outputs(), *_proposals(), *_grids(), *_features(), *_best_regions()]
