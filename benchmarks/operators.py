"""Compare each implementation of the custom operators with OpenVINO, on layers with the dimensions of real models.

    python -m benchmarks.operators                  # a table: OpenVINO, body, native kernel, Python kernel
    python -m benchmarks.operators --only nms       # layers whose name contains it
    python -m benchmarks.operators --forms native   # none, native, python: separated by commas
    python -m benchmarks.operators --json

Each layer is built with OpenVINO's Python API, saved as IR and converted. OpenVINO's CPU plugin computes in float32. All
runtimes use two threads. A ratio is the time of a form relative to OpenVINO's. Contenders take turns and figures are
medians, as in `benchmarks.seeds`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnxruntime as ort

import onnx_specops
from benchmarks.seeds import OURS, THREADS, Call, Work, in_units, measure, openvino_request
from onnx_specops.runtime.library import native_operators

Form = Literal["none", "native", "python"]
FORMS: tuple[Form, ...] = ("none", "native", "python")
HEADINGS = {"none": "body", "native": "native", "python": "Python"}

Maker = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class Layer:
    """A layer and its inputs.

    Attributes:
        name: the type of the layer, and a description of the variant.
        opset: the opset of the layer.
        attributes: its attributes.
        inputs: the fed arrays.
        constants: further inputs that are constants of the model; a function creates a type that NumPy lacks.
    """

    name: str
    opset: str
    attributes: Mapping[str, Any]
    inputs: Sequence[np.ndarray]
    constants: Sequence[np.ndarray | Callable[[], Any]] = ()

    def model(self) -> Any:
        """Build an OpenVINO model of the layer."""
        import openvino as ov
        from openvino import opset13
        from openvino.utils.node_factory import NodeFactory

        parameters = [opset13.parameter(list(array.shape), array.dtype) for array in self.inputs]
        nodes = [*parameters, *(given() if callable(given) else opset13.constant(given) for given in self.constants)]
        operation = self.name.partition(",")[0]
        node = NodeFactory(self.opset).create(operation, [n.output(0) for n in nodes], dict(self.attributes))
        return ov.Model(node.outputs(), parameters)


@dataclass(frozen=True)
class Figures:
    """The median seconds of OpenVINO and of each available form."""

    name: str
    openvino: float
    forms: Mapping[str, float]

    def ratio(self, form: str) -> float:
        """Return the time of a form relative to OpenVINO's."""
        return self.forms[form] / self.openvino


# --------------------------------------------------------------------------------------------------------------- layers


def _f32(*arrays: Any) -> list[np.ndarray]:
    return [np.ascontiguousarray(array, np.float32) for array in arrays]


def _boxes(rng: np.random.Generator, shape: Sequence[int], extent: float, size: float) -> np.ndarray:
    start = rng.random((*shape, 2)) * extent
    return np.concatenate([start, start + rng.random((*shape, 2)) * size + size / 20], axis=-1)


def _regions(rng: np.random.Generator, count: int, extent: float) -> np.ndarray:
    return np.concatenate([np.zeros((count, 1)), _boxes(rng, [count], extent * 0.6, extent * 0.4)], axis=1)


def _peaked(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    """Return scores that are mostly low, like those of a network."""
    return rng.random(shape) ** 12


def detectors() -> Iterator[Layer]:
    """Postprocessing of detectors."""
    rng = np.random.default_rng(0)
    priors, classes = 8732, 21
    prior = np.concatenate([_boxes(rng, [priors], 0.8, 0.2).reshape(1, 1, -1), np.full((1, 1, priors * 4), 0.1)], axis=1)
    scores = rng.standard_normal((1, priors, classes)) * 1.5
    scores[..., 0] += 4
    scores = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    yield Layer(
        "DetectionOutput, SSD-300: 8,732 priors x 21 classes",
        "opset8",
        {
            "background_label_id": 0, "top_k": 400, "keep_top_k": [200], "nms_threshold": 0.45, "normalized": True,
            "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "confidence_threshold": 0.01,
        },
        _f32(rng.standard_normal((1, priors * 4)), scores.reshape(1, -1), prior),
    )  # fmt: skip
    boxes, class_scores = _f32(_boxes(rng, [1, 8400], 560, 80), _peaked(rng, [1, 80, 8400]))
    yield Layer(
        "MulticlassNms, 80 classes x 8,400 boxes",
        "opset9",
        {"iou_threshold": 0.5, "score_threshold": 0.3, "nms_top_k": 400, "keep_top_k": 200},
        [boxes, class_scores],
    )
    yield Layer(
        "MatrixNms, 80 classes x 8,400 boxes",
        "opset8",
        {"score_threshold": 0.3, "nms_top_k": 400, "keep_top_k": 200, "post_threshold": 0.1},
        [boxes, class_scores],
    )
    boxes, class_scores = _f32(_boxes(rng, [1, 5000], 560, 80), rng.random([1, 1, 5000]))
    limits = [np.array(300), np.array(0.5, np.float32), np.array(0.05, np.float32)]
    yield Layer("NonMaxSuppression, 5,000 boxes", "opset9", {}, [boxes, class_scores], limits)
    yield Layer(
        "NonMaxSuppression, 5,000 boxes, decaying scores",
        "opset9",
        {},
        [boxes, class_scores],
        [*limits, np.array(0.5, np.float32)],
    )
    rotated = np.concatenate([rng.random((1, 1000, 2)) * 500, rng.random((1, 1000, 3)) * [80, 40, 3] + 5], axis=2)
    yield Layer("NMSRotated, 1,000 boxes", "opset13", {}, _f32(rotated, rng.random((1, 1, 1000))), [*limits])


def proposals() -> Iterator[Layer]:
    """Postprocessing of region proposal networks."""
    rng = np.random.default_rng(0)
    rows, columns, anchors = 38, 63, 9
    yield Layer(
        "Proposal, 38 x 63 positions x 9 anchors",
        "opset4",
        {
            "base_size": np.uint32(16), "pre_nms_topn": np.uint32(6000), "post_nms_topn": np.uint32(300), "nms_thresh": 0.7,
            "feat_stride": np.uint32(16), "min_size": np.uint32(16), "ratio": np.array([0.5, 1, 2], np.float32),
            "scale": np.array([8, 16, 32], np.float32),
        },
        _f32(
            rng.random((1, 2 * anchors, rows, columns)), rng.standard_normal((1, 4 * anchors, rows, columns)) * 0.3,
            [600, 1000, 1],
        ),
    )  # fmt: skip
    rows, columns, anchors = 50, 76, 3
    count = rows * columns * anchors
    deltas, scores = rng.standard_normal((4 * anchors, rows, columns)) * 0.3, rng.random((anchors, rows, columns))
    places = _boxes(rng, [count], 1000, 200)
    yield Layer(
        "ExperimentalDetectronGenerateProposalsSingleImage, 50 x 76 x 3 anchors",
        "opset6",
        {"min_size": 0.0, "nms_threshold": 0.7, "pre_nms_count": 1000, "post_nms_count": 1000},
        _f32([800, 1216, 1], places, deltas, scores),
    )
    yield Layer(
        "GenerateProposals, 50 x 76 x 3 anchors",
        "opset9",
        {"min_size": 0.0, "nms_threshold": 0.7, "pre_nms_count": 1000, "post_nms_count": 1000, "normalized": False},
        _f32([[800, 1216, 1]], places.reshape(rows, columns, anchors, 4), deltas[None], scores[None]),
    )
    yield Layer(
        "ExperimentalDetectronDetectionOutput, 1,000 regions x 81 classes",
        "opset6",
        {
            "score_threshold": 0.05, "nms_threshold": 0.5, "num_classes": 81, "post_nms_count": 2000,
            "max_detections_per_image": 100, "class_agnostic_box_regression": False, "max_delta_log_wh": 4.135,
            "deltas_weights": [10.0, 10.0, 5.0, 5.0],
        },
        _f32(_boxes(rng, [1000], 1000, 200), rng.standard_normal((1000, 324)), _peaked(rng, [1000, 81]), [[800, 1216, 1]]),
    )  # fmt: skip


def regions() -> Iterator[Layer]:
    """Pooling of 300 regions from feature maps with 256 channels."""
    rng = np.random.default_rng(0)
    maps = rng.standard_normal((1, 256, 38, 63))
    rois = _regions(rng, 300, 1000)
    rois[:, [2, 4]] *= 0.6
    pooled = {"pooled_h": 7, "pooled_w": 7}
    yield Layer(
        "ROIPooling, 300 regions x 256 channels x 7 x 7",
        "opset2",
        {"output_size": [7, 7], **pooled, "spatial_scale": 0.0625, "method": "max"},
        _f32(maps, rois),
    )
    yield Layer(
        "ROIPooling, bilinear, 300 regions x 256 channels x 7 x 7",
        "opset2",
        {"output_size": [7, 7], **pooled, "spatial_scale": 1.0, "method": "bilinear"},
        _f32(maps, rois / [1, 1000, 600, 1000, 600]),
    )
    indices = np.zeros(300, np.int64)
    align = {**pooled, "sampling_ratio": 2, "spatial_scale": 0.0625}
    yield Layer(
        "ROIAlign, maxima, 300 regions x 256 channels x 7 x 7",
        "opset9",
        {**align, "mode": "max", "aligned_mode": "half_pixel"},
        [*_f32(maps, rois[:, 1:]), indices],
    )
    turned = np.concatenate([rois[:, 1:3] + 100, rng.random((300, 2)) * 300 + 16, rng.random((300, 1)) * 3], axis=1)
    yield Layer(
        "ROIAlignRotated, 100 regions x 256 channels x 7 x 7",
        "opset15",
        {**align, "clockwise_mode": True},
        [*_f32(maps, turned[:100]), indices[:100]],
    )
    maps = rng.standard_normal((1, 10 * 49, 38, 63))
    yield Layer(
        "PSROIPooling, 300 regions x 10 channels x 7 x 7",
        "opset1",
        {
            "output_dim": 10, "group_size": 7, "spatial_scale": 0.0625, "spatial_bins_x": 1, "spatial_bins_y": 1,
            "mode": "average",
        },
        _f32(maps, rois),
    )  # fmt: skip
    yield Layer(
        "DeformablePSROIPooling, 300 regions x 10 channels x 7 x 7",
        "opset1",
        {
            "output_dim": 10, "group_size": 7, "spatial_scale": 0.0625, "spatial_bins_x": 4, "spatial_bins_y": 4,
            "trans_std": 0.1, "part_size": 7, "mode": "bilinear_deformable",
        },
        _f32(maps, rois, rng.standard_normal((300, 2, 7, 7))),
    )  # fmt: skip


def images() -> Iterator[Layer]:
    """Video frames, and resize modes that ONNX's Resize lacks."""
    rng = np.random.default_rng(0)
    image = rng.random((1, 3, 512, 512)).astype(np.float32)
    pixels = rng.integers(0, 256, (1, 1080, 1920, 3)).astype(np.uint8)
    half, bytes_ = {"coordinate_transformation_mode": "half_pixel"}, "8-bit 1,080 x 1,920 x 3"
    works: list[tuple[str, np.ndarray, Sequence[int], Sequence[int], Mapping[str, Any]]] = [
        ("bilinear_pillow", image, [224, 224], [2, 3], {}),
        ("bicubic_pillow", image, [224, 224], [2, 3], {}),
        ("bicubic_pillow", image, [768, 768], [2, 3], {}),
        ("bilinear_pillow", pixels, [224, 224], [1, 2], {}),
        ("linear_onnx", pixels, [640, 640], [1, 2], half),
        ("cubic", pixels, [640, 640], [1, 2], half),
        ("nearest", image, [700, 700], [2, 3], half | {"nearest_mode": "round_prefer_floor"}),
        ("nearest", pixels, [640, 640], [1, 2], half | {"nearest_mode": "round_prefer_floor"}),
        ("linear", image, [224, 224], [2, 3], half | {"antialias": True}),
        ("linear", image.transpose(0, 2, 3, 1), [224, 224], [1, 2], half | {"antialias": True}),
    ]
    for name in ("NV12toBGR", "I420toRGB"):
        frame = rng.integers(0, 256, (1, 1620, 1920, 1)).astype(np.uint8)
        yield Layer(f"{name}, 8-bit 1,080 x 1,920", "opset8", {}, [frame])
    for mode, given, sizes, axes, attributes in works:
        what = bytes_ if given is pixels else " x ".join(str(size) for size in given.shape[1:])
        yield Layer(
            f"Interpolate, {mode}, {what} to {sizes[0]} x {sizes[1]}",
            "opset11",
            {
                "mode": mode,
                "shape_calculation_mode": "sizes",
                "cube_coeff": -0.5,
                "pads_begin": [0] * 4,
                "pads_end": [0] * 4,
                **attributes,
            },
            [np.ascontiguousarray(given)],
            [np.array(sizes), np.array(axes)],
        )


def sequences() -> Iterator[Layer]:
    """Text, speech and searches."""
    rng = np.random.default_rng(0)
    logits = _f32(rng.standard_normal((16, 100, 64)))
    lengths, labels = np.full(16, 100, np.int32), rng.integers(0, 63, (16, 100)).astype(np.int32)
    yield Layer(
        "CTCLoss, 16 x 100 steps x 64 classes", "opset4", {}, [*logits, lengths, labels, np.full(16, 30, np.int32)],
        [np.array(63, np.int32)],
    )  # fmt: skip
    probabilities = _f32(np.exp(rng.standard_normal((88, 16, 71))))
    yield Layer(
        "CTCGreedyDecoder, 88 steps x 16 x 71 classes", "opset1", {}, [*probabilities, np.ones((88, 16), np.float32)]
    )
    yield Layer(
        "CTCGreedyDecoderSeqLen, 16 x 88 steps x 71 classes",
        "opset6",
        {},
        [np.ascontiguousarray(probabilities[0].transpose(1, 0, 2)), np.full(16, 88, np.int32)],
        [np.array(70, np.int32)],
    )
    steps = rng.integers(0, 30000, (100, 16, 10)).astype(np.int32)
    parents = rng.integers(0, 10, (100, 16, 10)).astype(np.int32)
    yield Layer(
        "GatherTree, 100 steps x 16 x 10 beams", "opset1", {}, [steps, parents, np.full(16, 100, np.int32)],
        [np.array(2, np.int32)],
    )  # fmt: skip
    ordered = np.sort(rng.random((8, 4096)).astype(np.float32), axis=1)
    yield Layer("SearchSorted, 8 x 1,024 values in 4,096", "opset15", {}, [ordered, *_f32(rng.random((8, 1024)))])
    ids = np.sort(rng.integers(0, 500, 20000)).astype(np.int32)
    yield Layer(
        "SegmentMax, 20,000 x 64 in 500 segments", "opset16", {"fill_mode": "ZERO"},
        [*_f32(rng.standard_normal((20000, 64))), ids], [np.array(500, np.int32)],
    )  # fmt: skip


def numbers() -> Iterator[Layer]:
    """Random numbers, matrices and functions."""
    rng = np.random.default_rng(0)
    bounds = [np.array([1000, 1000]), np.array(0, np.float32), np.array(1, np.float32)]
    for alignment in ("tensorflow", "pytorch"):
        given = {"output_type": "f32", "global_seed": 150, "op_seed": 10, "alignment": alignment}
        # The shape is an input, because OpenVINO would fold a constant layer.
        yield Layer(f"RandomUniform, 1,000,000 numbers as {alignment}", "opset8", given, bounds[:1], bounds[1:])
    for tokens, groups in ((64, 8), (1024, 8)):
        weights = np.asarray(rng.standard_normal((groups, 1024, 2048)), np.float32)
        ends = np.linspace(0, tokens, groups + 1)[1:].astype(np.int32)
        yield Layer(
            f"GroupedMatMul, {tokens:,} x 2,048 by {groups} of 1,024 x 2,048",
            "opset17",
            {},
            _f32(rng.standard_normal((tokens, 2048))),
            [weights, ends],
        )
    matrices = rng.standard_normal((16, 64, 64)) + np.eye(64) * 8
    yield Layer("Inverse, 16 x 64 x 64", "opset14", {"adjoint": False}, _f32(matrices))
    yield Layer("ErfInv, 1,000,000 numbers", "opset17", {}, _f32(rng.uniform(-0.99, 0.99, (1000, 1000))))
    yield Layer(
        "RegionYolo, 125 x 13 x 13",
        "opset1",
        {"axis": 1, "coords": 4, "classes": 20, "end_axis": 3, "num": 5, "do_softmax": True, "mask": [0, 1, 2]},
        _f32(rng.standard_normal((1, 125, 13, 13))),
    )


FAMILIES = (detectors, proposals, regions, images, sequences, numbers)


# ---------------------------------------------------------------------------------------------------------- measurements


def run_call(path: Path, form: Form, arrays: Sequence[np.ndarray]) -> Call:
    """Return a function that runs a converted model in one form."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    session = onnx_specops.InferenceSession(str(path), options, kernels=form)
    binding = session.io_binding()
    for value, array in zip(session.get_inputs(), arrays, strict=True):
        binding.bind_ortvalue_input(value.name, ort.OrtValue.ortvalue_from_numpy(array))
    for value in session.get_outputs():
        binding.bind_output(value.name, "cpu")
    return lambda: session.run_with_iobinding(binding)


def figures(layer: Layer, forms: Sequence[Form], rounds: int) -> Figures | None:
    """Convert a layer and measure its forms and OpenVINO in turns; ``None`` if it has none of the forms."""
    import openvino as ov

    from converters.openvino import convert

    model = layer.model()
    work = Work(layer.name, {})
    with tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder) / "model.xml", Path(folder) / "model.onnx"
        ov.save_model(model, source, compress_to_fp16=False)
        _, report = convert(source, path)
        custom = set(report.custom_operators)
        work.add(OURS, openvino_request(model, layer.inputs)[0])
        for form in forms:
            if form == "none" and report.without_body:
                continue
            if form != "none" and not custom:  # standard ONNX
                continue
            if form == "native" and not custom <= native_operators():
                continue
            work.add(form, run_call(path, form, layer.inputs))
        rows = measure(work, rounds)
    if not rows:
        return None
    return Figures(layer.name, rows[0].seconds, {row.other: row.other_seconds for row in rows})


def as_table(all_figures: Sequence[Figures]) -> Any:
    """Return a table for the terminal."""
    from rich.table import Table

    table = Table(title=f"Medians, {THREADS} threads each; in brackets, as a multiple of OpenVINO's time")
    table.add_column("layer")
    for heading in ("OpenVINO", *HEADINGS.values()):
        table.add_column(heading, justify="right")
    for one in all_figures:
        cells = [f"{in_units(one.forms[form])} ({one.ratio(form):.2f})" if form in one.forms else "" for form in FORMS]
        table.add_row(one.name, in_units(one.openvino), *cells)
    return table


def compare_layers(families: Sequence[Callable[[], Iterator[Layer]]], documentation: str | None) -> int:
    """Run the command: measure the selected layers of all families, and print the figures."""
    parser = argparse.ArgumentParser(description=(documentation or "").partition("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="layers whose name contains this")
    parser.add_argument("--forms", default=",".join(FORMS), help="the forms (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=5, help="the number of blocks of each contender (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    wanted = arguments.forms.split(",")
    if unknown := set(wanted) - set(FORMS):
        parser.error(f"--forms: {', '.join(sorted(unknown))} is not one of {', '.join(FORMS)}")
    forms = [form for form in FORMS if form in wanted]

    found = []
    for family in families:
        for layer in family():
            if arguments.only.lower() in layer.name.lower():
                try:
                    one = figures(layer, forms, arguments.rounds)
                except Exception as error:
                    raise RuntimeError(f"{layer.name} failed") from error
                if one is not None:
                    found.append(one)
                    print(f"{one.name}: {in_units(one.openvino)}", file=sys.stderr)
    if arguments.json:
        print(json.dumps([{"name": f.name, "openvino": f.openvino, "forms": dict(f.forms)} for f in found], indent=2))
    else:
        from rich.console import Console

        Console().print(as_table(found))
    return 0


if __name__ == "__main__":
    sys.exit(compare_layers(FAMILIES, __doc__))
