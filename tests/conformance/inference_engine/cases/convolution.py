"""Convolutions and poolings."""

from __future__ import annotations

from tests.conformance.inference_engine.case import Case, one, random


def _conv(name, dims, out, kernel, weights, data=None, bias=True, kind="Convolution", **options) -> Case:
    attributes = {"output": out[1], "kernel": kernel, **(data or {})}
    blobs = {"weights": random(1, *weights)}
    if bias:
        blobs["biases"] = random(2, out[1])
    return one(kind, name, dims, out, attributes, blobs=blobs, **options)


def _pool(name, dims, out, data, **options) -> Case:
    return one("Pooling", name, dims, out, data, **options)


_V2 = {"kernel-x": 3, "kernel-y": 2, "stride-x": 2, "stride-y": 1, "pad-x": 1, "pad-y": 0, "output": 4, "group": 1}

_PADDED = {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1"}

CASES = [
    _pool(
        "avg_mixed_include_pads",
        (1, 3, 10, 9),
        (1, 3, 6, 4),
        {
            "kernel": "3,3",
            "strides": "2,2",
            "pads_begin": "1,0",
            "pads_end": "1,0",
            "pool-method": "avg",
            "exclude-pad": "false",
        },
    ),
    _pool(
        "avg_pads_at_the_end",
        (1, 3, 11, 11),
        (1, 3, 6, 5),
        {
            "kernel": "3,3",
            "strides": "2,2",
            "pads_begin": "0,0",
            "pads_end": "2,0",
            "pool-method": "avg",
            "exclude-pad": "false",
        },
    ),
    _pool(
        "avg_pads_at_the_end_and_one_begin",
        (1, 3, 11, 11),
        (1, 3, 6, 6),
        {
            "kernel": "3,3",
            "strides": "2,2",
            "pads_begin": "0,1",
            "pads_end": "2,1",
            "pool-method": "avg",
            "exclude-pad": "false",
        },
    ),
    _pool(
        "avg_same_upper_include",
        (1, 3, 8, 8),
        (1, 3, 4, 4),
        {"kernel": "3,3", "strides": "2,2", "pool-method": "avg", "exclude-pad": "false", "auto_pad": "same_upper"},
    ),
    *[
        _pool(
            f"auto_pad_{text or 'empty'}_{method}",
            (1, 3, 7, 8),
            (1, 3, 4, 4),
            {**_PADDED, "pool-method": method, "auto_pad": text},
        )
        for text in ("explicit", "", "SAME_LOWER")
        for method in ("max", "avg")
    ],
    _pool(
        "rounding_of_another_kind", (1, 3, 7, 8), (1, 3, 3, 4), {"kernel": "3,3", "strides": "2,2", "rounding_type": "up"}
    ),
    _pool(
        "exclude_pad_by_another_name",
        (1, 3, 7, 8),
        (1, 3, 4, 4),
        {**_PADDED, "pool-method": "avg", "exclude_pad": "true"},
    ),
    _pool(
        "caffe_exclude_pad",
        (1, 3, 7, 8),
        (1, 3, 4, 4),
        {"kernel_size": 3, "stride": 2, "pad": 1, "pool": "caffe.PoolingParameter.AVE", "exclude-pad": "true"},
    ),
    _conv("plain", (1, 3, 8, 8), (1, 4, 6, 6), (3, 3), (4, 3, 3, 3)),
    _conv("no_biases", (1, 3, 8, 8), (1, 4, 6, 6), (3, 3), (4, 3, 3, 3), bias=False),
    _conv(
        "strides_pads",
        (2, 3, 9, 8),
        (2, 4, 5, 4),
        (3, 3),
        (4, 3, 3, 3),
        {"strides": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 0)},
    ),
    _conv("pads_begin_only", (1, 3, 8, 8), (1, 4, 8, 8), (3, 3), (4, 3, 3, 3), {"pads_begin": (1, 1)}),
    _conv("dilations", (1, 2, 10, 10), (1, 4, 6, 6), (3, 3), (4, 2, 3, 3), {"dilations": (2, 2)}),
    _conv("groups", (1, 4, 8, 8), (1, 8, 6, 6), (3, 3), (8, 2, 3, 3), {"group": 2}),
    _conv("depthwise", (1, 8, 8, 8), (1, 8, 6, 6), (3, 3), (8, 1, 3, 3), {"group": 8}),
    _conv("same_upper", (1, 3, 8, 7), (1, 4, 4, 4), (3, 3), (4, 3, 3, 3), {"strides": (2, 2), "auto_pad": "same_upper"}),
    _conv("same_lower", (1, 3, 8, 7), (1, 4, 4, 4), (3, 3), (4, 3, 3, 3), {"strides": (2, 2), "auto_pad": "same_lower"}),
    _conv(
        "valid",
        (1, 3, 8, 8),
        (1, 4, 6, 6),
        (3, 3),
        (4, 3, 3, 3),
        {"auto_pad": "valid", "pads_begin": (1, 1), "pads_end": (1, 1)},
    ),
    _conv("three_dimensions", (1, 2, 4, 6, 6), (1, 4, 3, 4, 4), (2, 3, 3), (4, 2, 2, 3, 3)),
    _conv("half", (1, 3, 8, 8), (1, 4, 6, 6), (3, 3), (4, 3, 3, 3), precision="FP16"),
    _conv("version7", (1, 3, 8, 8), (1, 4, 6, 6), (3, 3), (4, 3, 3, 3), version=7),
    one(
        "Convolution",
        "version2",
        (1, 3, 8, 8),
        (1, 4, 7, 4),
        _V2,
        blobs={"weights": random(1, 4, 3, 2, 3), "biases": random(2, 4)},
        version=2,
        legacy_blobs=True,
    ),
    one(
        "Convolution",
        "version3",
        (1, 3, 8, 8),
        (1, 4, 6, 6),
        {"kernel": "3,3", "output": 4, "pads_begin": "0,0", "pads_end": "0,0", "strides": "1,1"},
        blobs={"weights": random(1, 4, 3, 3, 3)},
        version=3,
    ),
    one(
        "Convolution",
        "weights_as_input",
        [(1, 3, 8, 8), random(1, 4, 3, 3, 3), random(2, 4)],
        (1, 4, 6, 6),
        {"kernel": "3,3", "output": 4},
        version=7,
    ),
    _conv("plain", (1, 4, 5, 5), (1, 3, 7, 7), (3, 3), (4, 3, 3, 3), kind="Deconvolution"),
    _conv("strides", (1, 4, 5, 5), (1, 3, 11, 11), (3, 3), (4, 3, 3, 3), {"strides": (2, 2)}, kind="Deconvolution"),
    _conv(
        "pads",
        (2, 4, 5, 5),
        (2, 3, 9, 9),
        (3, 3),
        (4, 3, 3, 3),
        {"strides": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 1)},
        kind="Deconvolution",
    ),
    _conv(
        "one_more",
        (1, 4, 5, 5),
        (1, 3, 10, 10),
        (3, 3),
        (4, 3, 3, 3),
        {"strides": (2, 2), "pads_begin": (1, 1), "pads_end": (0, 0)},
        kind="Deconvolution",
    ),
    _conv(
        "groups",
        (1, 4, 5, 5),
        (1, 4, 10, 10),
        (4, 4),
        (4, 1, 4, 4),
        {"strides": (2, 2), "pads_begin": (1, 1), "pads_end": (1, 1), "group": 4},
        kind="Deconvolution",
        bias=False,
    ),
    _conv(
        "same_upper",
        (1, 4, 5, 5),
        (1, 3, 10, 10),
        (3, 3),
        (4, 3, 3, 3),
        {"strides": (2, 2), "auto_pad": "same_upper"},
        kind="Deconvolution",
    ),
    _conv(
        "same_lower",
        (1, 4, 5, 5),
        (1, 3, 10, 10),
        (3, 3),
        (4, 3, 3, 3),
        {"strides": (2, 2), "auto_pad": "same_lower"},
        kind="Deconvolution",
    ),
    _conv("dilations", (1, 4, 5, 5), (1, 3, 9, 9), (3, 3), (4, 3, 3, 3), {"dilations": (2, 2)}, kind="Deconvolution"),
    _conv("three_dimensions", (1, 2, 3, 3, 3), (1, 3, 5, 5, 5), (3, 3, 3), (2, 3, 3, 3, 3), kind="Deconvolution"),
    _conv("half", (1, 4, 5, 5), (1, 3, 7, 7), (3, 3), (4, 3, 3, 3), kind="Deconvolution", precision="FP16"),
    one(
        "Deconvolution",
        "version2",
        (1, 3, 5, 5),
        (1, 4, 6, 9),
        _V2,
        blobs={"weights": random(1, 3, 4, 2, 3), "biases": random(2, 4)},
        version=2,
        data_element="deconvolution_data",
        legacy_blobs=True,
    ),
    _pool("max", (1, 3, 8, 8), (1, 3, 4, 4), {"kernel": "2,2", "strides": "2,2", "pool-method": "max"}),
    _pool(
        "max_ceil",
        (1, 3, 9, 8),
        (1, 3, 5, 4),
        {"kernel": "2,2", "strides": "2,2", "pool-method": "max", "rounding_type": "ceil"},
    ),
    _pool("ceil_of_dims_alone", (1, 3, 9, 8), (1, 3, 5, 4), {"kernel": "2,2", "strides": "2,2", "pool-method": "max"}),
    _pool(
        "max_pads",
        (1, 3, 8, 8),
        (1, 3, 4, 4),
        {"kernel": "3,3", "strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1", "pool-method": "max"},
    ),
    _pool("mixed_rounding", (1, 3, 9, 9), (1, 3, 5, 4), {"kernel": "2,2", "strides": "2,2", "pool-method": "max"}),
    _pool("fewer_windows", (1, 3, 8, 8), (1, 3, 3, 3), {"kernel": "2,2", "strides": "2,2", "pool-method": "max"}),
    _pool("avg", (1, 3, 8, 8), (1, 3, 4, 4), {"kernel": "2,2", "strides": "2,2", "pool-method": "avg"}),
    _pool(
        "avg_pads",
        (1, 3, 8, 8),
        (1, 3, 4, 4),
        {
            "kernel": "3,3",
            "strides": "2,2",
            "pads_begin": "1,1",
            "pads_end": "1,1",
            "pool-method": "avg",
            "exclude-pad": "false",
        },
    ),
    _pool(
        "avg_exclude",
        (1, 3, 8, 8),
        (1, 3, 4, 4),
        {
            "kernel": "3,3",
            "strides": "2,2",
            "pads_begin": "1,1",
            "pads_end": "1,1",
            "pool-method": "avg",
            "exclude-pad": "true",
        },
    ),
    _pool(
        "avg_ceil",
        (1, 3, 9, 9),
        (1, 3, 5, 5),
        {
            "kernel": "3,3",
            "strides": "2,2",
            "pads_begin": "1,1",
            "pads_end": "0,0",
            "pool-method": "avg",
            "exclude-pad": "false",
            "rounding_type": "ceil",
        },
    ),
    _pool(
        "avg_ceil_exclude",
        (1, 3, 9, 9),
        (1, 3, 5, 5),
        {
            "kernel": "3,3",
            "strides": "2,2",
            "pads_begin": "1,1",
            "pads_end": "0,0",
            "pool-method": "avg",
            "exclude-pad": "true",
            "rounding_type": "ceil",
        },
    ),
    _pool(
        "avg_mixed_rounding",
        (1, 3, 9, 9),
        (1, 3, 5, 4),
        {"kernel": "2,2", "strides": "2,2", "pool-method": "avg", "exclude-pad": "true"},
    ),
    _pool(
        "avg_mixed_include",
        (1, 3, 9, 9),
        (1, 3, 5, 4),
        {
            "kernel": "2,2",
            "strides": "2,2",
            "pads_begin": "0,0",
            "pads_end": "0,0",
            "pool-method": "avg",
            "exclude-pad": "false",
        },
    ),
    _pool(
        "same_upper",
        (1, 3, 7, 7),
        (1, 3, 4, 4),
        {"kernel": "2,2", "strides": "2,2", "pool-method": "max", "auto_pad": "same_upper"},
    ),
    _pool(
        "avg_same_upper",
        (1, 3, 7, 7),
        (1, 3, 4, 4),
        {"kernel": "2,2", "strides": "2,2", "pool-method": "avg", "exclude-pad": "true", "auto_pad": "same_upper"},
    ),
    _pool(
        "three_dimensions", (1, 2, 4, 6, 6), (1, 2, 2, 3, 3), {"kernel": "2,2,2", "strides": "2,2,2", "pool-method": "max"}
    ),
    _pool(
        "version2",
        (1, 3, 9, 9),
        (1, 3, 5, 5),
        {
            "kernel-x": 3,
            "kernel-y": 3,
            "stride-x": 2,
            "stride-y": 2,
            "pad-x": 0,
            "pad-y": 0,
            "pool-method": "max",
            "rounding-type": "ceil",
            "exclude-pad": "true",
        },
        version=2,
        data_element="pooling_data",
    ),
    _pool(
        "global",
        (2, 5, 7, 7),
        (2, 5, 1, 1),
        {
            "kernel": "7,7",
            "strides": "7,7",
            "pool-method": "avg",
            "exclude-pad": "true",
            "pads_begin": "0,0",
            "pads_end": "0,0",
        },
    ),
    _conv(
        "plain", [(1, 4, 6, 6), (1, 18, 4, 4)], (1, 4, 4, 4), (3, 3), (4, 4, 3, 3), kind="DeformableConvolution", bias=False
    ),
    _conv("biases", [(1, 4, 6, 6), (1, 18, 4, 4)], (1, 4, 4, 4), (3, 3), (4, 4, 3, 3), kind="DeformableConvolution"),
    _conv(
        "deformable_groups",
        [(1, 4, 6, 6), (1, 36, 6, 6)],
        (1, 4, 6, 6),
        (3, 3),
        (4, 4, 3, 3),
        {"pads_begin": (1, 1), "pads_end": (1, 1), "deformable_group": 2},
        kind="DeformableConvolution",
        bias=False,
    ),
    _conv(
        "strides",
        [(1, 4, 9, 9), (1, 18, 4, 4)],
        (1, 4, 4, 4),
        (3, 3),
        (4, 4, 3, 3),
        {"strides": (2, 2)},
        kind="DeformableConvolution",
        bias=False,
    ),
    *[
        _conv(
            name,
            [(1, 4, 8, 8), (1, 18, *out)],
            (1, 4, *out),
            (3, 3),
            (4, 4, 3, 3),
            data,
            False,
            "DeformableConvolution",
            **more,
        )
        for name, out, data, more in (
            ("more_outputs", (9, 9), {"pads_begin": (1, 1), "pads_end": (1, 1)}, {}),
            ("fewer_outputs", (7, 7), {"pads_begin": (1, 1), "pads_end": (1, 1)}, {}),
            (
                "same",
                (4, 4),
                {"strides": (2, 2), "auto_pad": "same_upper"},
                {"shapes": {"in0": (1, 4, 9, 6), "in1": (1, 18, 5, 3)}},
            ),
            ("of_other_shapes", (6, 6), {}, {"shapes": {"in0": (2, 4, 9, 7), "in1": (2, 18, 7, 5)}}),
            (
                "more_outputs_of_other_shapes",
                (9, 9),
                {"pads_begin": (1, 1)},
                {"shapes": {"in0": (1, 4, 5, 6), "in1": (1, 18, 5, 6)}},
            ),
        )
    ],
]
