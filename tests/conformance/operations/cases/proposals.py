"""Region proposals."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import dynamics, layer_case, shaped, statics
from tests.conformance.operations.cases.detectron import PLAIN, PROPOSALS, TIES, ZEROS, halves, proposal_inputs


def _make(ops, *inputs, outputs, **attributes):
    unsigned = ("base_size", "pre_nms_topn", "post_nms_topn", "feat_stride", "min_size")
    given = {}
    for key, value in attributes.items():
        kind = np.uint32 if key in unsigned else np.float32
        given[key] = np.array(value, kind) if isinstance(value, list) else value
        if key in unsigned or isinstance(value, float):
            given[key] = kind(value)
    return ops.proposal(*inputs, given).outputs()[:outputs]


def _maps(images, anchors, rows, columns, *, seed=0, shape=(60, 80, 1)):
    rng = np.random.default_rng(seed)
    probs = rng.permutation(images * 2 * anchors * rows * columns).reshape(images, 2 * anchors, rows, columns) + 1
    deltas = rng.standard_normal((images, 4 * anchors, rows, columns)) * 0.3
    return tuple(a.astype(np.float32) for a in (probs / (probs.size + 1), deltas, np.array(shape)))


def _case(name, runs, *, shapes=None, dtype=np.float32, outputs=2, seeded_body=True, **attributes):
    attributes = {
        "base_size": 12, "pre_nms_topn": 60, "post_nms_topn": 10, "nms_thresh": 0.6, "feat_stride": 8, "min_size": 2,
        "ratio": [0.5, 1.0, 2.0], "scale": [1.0, 2.0], "outputs": outputs, **attributes,
    }  # fmt: skip
    runs = [[a.astype(dtype) for a in run] for run in runs]
    inputs = statics(*runs) if shapes is None else shaped(shapes, *runs)
    for version in ("opset1", "opset4"):
        yield layer_case("Proposal", version, _make, name, inputs, attributes, seeded_body=seeded_body)


def _proposals():
    maps = _maps(2, 6, 6, 8)
    yield from _case("pixels", [maps])
    yield from _case(
        "tensorflow", [maps], framework="tensorflow", clip_before_nms=False, clip_after_nms=True, normalize=True
    )
    yield from _case("scales", [_maps(1, 6, 6, 8, shape=(60, 80, 0.5, 2))], box_size_scale=5.0, box_coordinate_scale=10.0)
    yield from _case("unclipped", [maps], clip_before_nms=False, normalize=True, nms_thresh=0.3, pre_nms_topn=10000)
    # The CPU plugin does not write the probabilities after an image's last box.
    yield from _case("few-boxes", [maps], post_nms_topn=50, nms_thresh=0.1, outputs=1)
    # For equal scores, OpenVINO's sorting determines the better box.
    ties = np.round(maps[0] * 8) / 8, *maps[1:]
    yield from _case("ties", [ties], pre_nms_topn=100, min_size=8, seeded_body=False)
    shapes = [[-1, 12, -1, -1], [-1, 24, -1, -1], [-1]]
    yield from _case(
        "dynamic", [maps, _maps(1, 6, 3, 5, seed=1), _maps(3, 6, 4, 4, seed=2, shape=(50, 50, 1, 1))], shapes=shapes
    )
    yield from _case("f16", [maps], dtype=np.float16, pre_nms_topn=20, ratio=[1.0], scale=[1.0, 1.5, 2.0, 2.5, 3.0, 4.0])


def _batch(*items, scales=([1], [1])):
    info = np.stack([np.append(item[0][:2], scale) for item, scale in zip(items, scales, strict=False)])
    count, rows, columns = items[0][3].shape
    return (
        info.astype(np.float32), items[0][1].reshape(rows, columns, count, 4),
        np.stack([item[2] for item in items]), np.stack([item[3] for item in items]),
    )  # fmt: skip


def _generated():
    case = partial(layer_case, "GenerateProposals", "opset9", "GenerateProposals")
    both = _batch(PLAIN, ZEROS)
    yield case("plain", statics(both), PROPOSALS)
    yield case("pixels", statics(both), PROPOSALS | {"normalized": False, "roi_num_type": "i32"})
    scaled = _batch(PLAIN, proposal_inputs(4, 5, 3, 3), scales=([1, 3], [4, 0.5]))
    yield case("two-scales", statics(scaled), PROPOSALS | {"post_nms_count": 60})
    given = {"post_nms_count": 7, "min_size": 0.0, "nms_threshold": 0.9}
    # For equal scores, OpenVINO's sorting determines the better box.
    yield case("ties", statics(_batch(TIES, ZEROS)), PROPOSALS | given, seeded_body=False)
    yield case("none-left", statics(both), PROPOSALS | {"min_size": 1000.0})
    runs = both, _batch(proposal_inputs(2, 3, 2, 5))
    yield case("dynamic", dynamics(*runs), PROPOSALS | {"pre_nms_count": 5})
    yield case("f16", statics(halves(both)), PROPOSALS)


CASES = [*_proposals(), *_generated()]
