"""The layers of Detectron's networks, and GenerateProposals. What the specification leaves undefined is cut off."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import case


def _make(operation, keep=None, opset="opset6"):
    """A function of the inputs' nodes; ``keep`` says how many elements of each output are defined."""

    def make(*nodes, **attributes):
        from openvino import opset8
        from openvino.utils.node_factory import NodeFactory

        outputs = NodeFactory(opset).create(operation, [node.output(0) for node in nodes], attributes).outputs()
        if keep is None:
            return outputs
        zero, one = opset8.constant(np.array([0])), opset8.constant(np.array([1]))
        return [opset8.slice(output, zero, opset8.constant(np.array([keep])), one, zero).output(0) for output in outputs]

    return make


def _detectron(operation, name, *runs, keep=None, **given):
    operation = f"ExperimentalDetectron{operation}"
    return case(operation, "opset6", name, _make(operation, keep), *runs, **given)


def _floats(*arrays):
    return tuple(np.asarray(a, np.float32) for a in arrays)


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

    plain = data(30)
    yield _detectron("DetectionOutput", "all", plain, **attributes)
    yield _detectron("DetectionOutput", "best", plain, **{**attributes, "max_detections_per_image": 7})
    yield _detectron(
        "DetectionOutput", "ties", data(40, 1, grid=8), **{**attributes, "post_nms_count": 50, "nms_threshold": 0.2}
    )
    # Of equal scores of one region OpenVINO's sorting decides which class is first.
    equal = plain[0], plain[1], np.round(np.tile(plain[2][:, :1], (1, 4)) * 4) / 4, plain[3]
    options = {"seeded_body": False}
    yield _detectron(
        "DetectionOutput", "equal-classes", equal, options=options, **{**attributes, "max_detections_per_image": 17}
    )
    yield _detectron("DetectionOutput", "agnostic", plain, **{**attributes, "class_agnostic_box_regression": True})
    yield _detectron("DetectionOutput", "all-scores", plain, **{**attributes, "score_threshold": -1.0, "post_nms_count": -1})
    yield _detectron("DetectionOutput", "dynamic", plain, data(3, 2), data(60, 3), dynamic=True, **attributes)
    yield _detectron("DetectionOutput", "f16", tuple(a.astype(np.float16) for a in plain), **attributes)


def _proposals():
    def data(rows, columns, anchors, seed=0):
        rng = np.random.default_rng(seed)
        count = rows * columns * anchors
        scores = (rng.permutation(count) + 1) / (count + 1)
        deltas = rng.standard_normal((anchors * 4, rows, columns)) * 0.4
        return _floats([50, 60, 1], _boxes(rng, count), deltas, scores.reshape(anchors, rows, columns))

    attributes = {"min_size": 4.0, "nms_threshold": 0.5, "pre_nms_count": 50, "post_nms_count": 10}
    plain, zeros = data(4, 5, 3), data(4, 5, 3, 1)
    zeros[3][zeros[3] < 0.7] = 0
    single = "GenerateProposalsSingleImage"
    yield _detectron(single, "plain", plain, **attributes)
    yield _detectron(single, "few", plain, **{**attributes, "post_nms_count": 70, "pre_nms_count": 1000, "min_size": 0.0})
    yield _detectron(single, "zero-scores", zeros, keep=8, **{**attributes, "post_nms_count": 40, "nms_threshold": 0.9})
    ties = *plain[:3], np.round(plain[3] * 8) / 8
    options = {"seeded_body": False}  # of equal scores OpenVINO's sorting decides which box is better
    yield _detectron(single, "ties", ties, options=options, **{**attributes, "min_size": 0.0})
    yield _detectron(single, "small", plain, keep=4, **{**attributes, "post_nms_count": 40, "min_size": 15.0})
    yield _detectron(single, "dynamic", plain, data(2, 3, 4, 2), dynamic=True, **{**attributes, "min_size": 0.5})
    yield _detectron(single, "f16", tuple(a.astype(np.float16) for a in plain), **attributes)

    def batch(*items, scales=([1], [1])):
        info = np.stack([np.append(item[0][:2], scale) for item, scale in zip(items, scales, strict=False)])
        count, rows, columns = items[0][3].shape
        return (
            info.astype(np.float32), items[0][1].reshape(rows, columns, count, 4),
            np.stack([item[2] for item in items]), np.stack([item[3] for item in items]),
        )  # fmt: skip

    def generate(name, *runs, **given):
        return case(
            "GenerateProposals", "opset9", name, _make("GenerateProposals", opset="opset9"), *runs, **attributes | given
        )

    both = batch(plain, zeros)
    yield generate("plain", both)
    yield generate("pixels", both, normalized=False, roi_num_type="i32")
    yield generate("two-scales", batch(plain, data(4, 5, 3, 3), scales=([1, 3], [4, 0.5])), post_nms_count=60)
    yield generate("ties", batch(ties, zeros), post_nms_count=7, min_size=0.0, nms_threshold=0.9, options=options)
    yield generate("none-left", both, min_size=1000.0)
    yield generate("dynamic", both, batch(data(2, 3, 2, 5)), dynamic=True, pre_nms_count=5)
    yield generate("f16", tuple(a.astype(np.float16) for a in both))


def _grids():
    def data(priors, rows, columns, height, width):
        rng = np.random.default_rng(priors)
        maps = np.zeros((1, 3, rows, columns)), np.zeros((1, 3, height, width))
        return _floats(rng.standard_normal((priors, 4)) * 20, *maps)

    plain, grid = data(3, 4, 5, 40, 90), "PriorGridGenerator"
    yield _detectron(grid, "flat", plain, flatten=True, h=0, w=0, stride_x=0.0, stride_y=0.0)
    yield _detectron(grid, "strides", plain, flatten=False, h=0, w=0, stride_x=32.0, stride_y=7.5)
    yield _detectron(grid, "smaller", plain, flatten=True, h=2, w=3, stride_x=0.0, stride_y=0.0, keep=2 * 3 * 3)
    yield _detectron(
        grid, "dynamic", plain, data(2, 3, 7, 50, 33), dynamic=True, flatten=True, h=0, w=0, stride_x=0.0, stride_y=0.0
    )
    yield _detectron(
        grid, "f16", tuple(a.astype(np.float16) for a in plain), flatten=False, h=0, w=0, stride_x=0.0, stride_y=0.0
    )


def _features():
    def data(count, channels, sizes, seed=0):
        rng = np.random.default_rng(seed)
        size = 2 ** rng.uniform(3, 10, (count, 1))
        start = rng.random((count, 2)) * 200 - 50
        rois = np.concatenate([start, start + size * rng.uniform(0.5, 2, (count, 2))], axis=1)
        rois[1, 2:] = rois[1, :2]
        rois[2] = [8, 8, 232, 232]
        return _floats(rois, *(rng.standard_normal((1, channels, *s)) for s in sizes))

    extractor = "ROIFeatureExtractor"
    plain = data(20, 3, [(40, 50), (20, 25), (10, 13)])
    yield _detectron(extractor, "plain", plain, output_size=3, sampling_ratio=2, pyramid_scales=[4, 8, 16], aligned=False)
    yield _detectron(extractor, "aligned", plain, output_size=2, sampling_ratio=1, pyramid_scales=[4, 8, 16], aligned=True)
    yield _detectron(extractor, "adaptive", plain, output_size=2, sampling_ratio=0, pyramid_scales=[3, 8, 20], aligned=False)
    yield _detectron(extractor, "one-level", plain[:2], output_size=2, sampling_ratio=2, pyramid_scales=[4], aligned=True)
    yield _detectron(
        extractor, "dynamic", plain, data(5, 2, [(9, 9), (5, 4), (3, 2)], 3), dynamic=True,
        output_size=2, sampling_ratio=2, pyramid_scales=[4, 8, 16, 32], aligned=False,
    )  # fmt: skip
    yield _detectron(
        extractor, "f16", tuple(a.astype(np.float16) for a in plain),
        output_size=2, sampling_ratio=2, pyramid_scales=[4, 8, 16], aligned=False,
    )  # fmt: skip


def _best_regions():
    def data(count, seed=0):
        rng = np.random.default_rng(seed)
        return _floats(rng.random((count, 4)), (rng.permutation(count) + 1) / count)

    yield _detectron("TopKROIs", "some", data(10), max_rois=4)
    yield _detectron("TopKROIs", "more-than-there-are", data(5), max_rois=9, keep=5)
    yield _detectron("TopKROIs", "dynamic", data(10), data(4, 1), max_rois=4, dynamic=True)
    yield _detectron("TopKROIs", "f16", tuple(a.astype(np.float16) for a in data(10)), max_rois=3)


CASES = [*_detection_outputs(), *_proposals(), *_grids(), *_features(), *_best_regions()]
