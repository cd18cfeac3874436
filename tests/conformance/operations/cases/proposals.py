"""Region proposals."""

from __future__ import annotations

import functools

import numpy as np

from tests.conformance.case import Case


def _proposal(version, shapes, dtype, outputs, attributes):
    import openvino as ov
    from openvino import opset1, opset4

    inputs = [(opset1 if version == 1 else opset4).parameter(ov.PartialShape(list(s)), dtype) for s in shapes]
    unsigned = ("base_size", "pre_nms_topn", "post_nms_topn", "feat_stride", "min_size")
    lists = {"ratio": np.float32, "scale": np.float32}
    given = {
        key: np.uint32(value) if key in unsigned else np.array(value, lists[key]) if key in lists else value
        for key, value in attributes.items()
    }
    given = {key: np.float32(v) if isinstance(v, float) else v for key, v in given.items()}
    node = (opset1 if version == 1 else opset4).proposal(*inputs, given)
    return ov.Model(node.outputs()[:outputs], inputs)


def _maps(images, anchors, rows, columns, *, seed=0, shape=(60, 80, 1)):
    rng = np.random.default_rng(seed)
    probs = rng.permutation(images * 2 * anchors * rows * columns).reshape(images, 2 * anchors, rows, columns) + 1
    deltas = rng.standard_normal((images, 4 * anchors, rows, columns)) * 0.3
    return tuple(a.astype(np.float32) for a in (probs / (probs.size + 1), deltas, np.array(shape)))


def _case(name, runs, *, shapes=None, dtype=np.float32, outputs=2, seeded_body=True, **attributes):
    attributes = {
        "base_size": 12, "pre_nms_topn": 60, "post_nms_topn": 10, "nms_thresh": 0.6, "feat_stride": 8, "min_size": 2,
        "ratio": [0.5, 1.0, 2.0], "scale": [1.0, 2.0], **attributes,
    }  # fmt: skip
    runs = [tuple(a.astype(dtype) for a in run) for run in runs]
    for version in (1, 4):
        build = functools.partial(_proposal, version, shapes or [a.shape for a in runs[0]], dtype, outputs, attributes)
        yield Case("Proposal", f"opset{version}", name, build, runs, seeded_body=seeded_body)


def _proposals():
    maps = _maps(2, 6, 6, 8)
    yield from _case("pixels", [maps])
    yield from _case(
        "tensorflow", [maps], framework="tensorflow", clip_before_nms=False, clip_after_nms=True, normalize=True
    )
    yield from _case("scales", [_maps(1, 6, 6, 8, shape=(60, 80, 0.5, 2))], box_size_scale=5.0, box_coordinate_scale=10.0)
    yield from _case("unclipped", [maps], clip_before_nms=False, normalize=True, nms_thresh=0.3, pre_nms_topn=10000)
    # The CPU plugin does not write the probabilities behind an image's last box.
    yield from _case("few-boxes", [maps], post_nms_topn=50, nms_thresh=0.1, outputs=1)
    # Of equal scores OpenVINO's sorting decides which box is better.
    ties = np.round(maps[0] * 8) / 8, *maps[1:]
    yield from _case("ties", [ties], pre_nms_topn=100, min_size=8, seeded_body=False)
    dynamic = [[-1, 12, -1, -1], [-1, 24, -1, -1], [-1]]
    yield from _case(
        "dynamic", [maps, _maps(1, 6, 3, 5, seed=1), _maps(3, 6, 4, 4, seed=2, shape=(50, 50, 1, 1))], shapes=dynamic
    )
    yield from _case("f16", [maps], dtype=np.float16, pre_nms_topn=20, ratio=[1.0], scale=[1.0, 1.5, 2.0, 2.5, 3.0, 4.0])


CASES = [*_proposals()]
