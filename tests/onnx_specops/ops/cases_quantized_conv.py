"""QuantizedConv: dimensions, groups, functions.

The kernels' integers agree exactly. One in 500 of a body's may be off by 1, because ONNX Runtime's convolution rounds
biases.
"""

from __future__ import annotations

import numpy as np

from tests.onnx_specops.ops.case import Case

F, U8, I8 = np.float32, np.uint8, np.int8

_OPTIONAL = (
    "factor", "slope", "addend", "addend_scale", "addend_zero_point", "sum_scale", "sum_zero_point", "sum_slope",
    "sum_bias", "x_offset", "y_offset", "residual",
)  # fmt: skip


def _layer(
    *nodes, channels, kernel, strides="", pads="", dilations="", group=1, function="none", alpha=0.0, beta=0.0, given=()
):
    """Compute the operator with OpenVINO's float operations, which represent these integers exactly."""
    from openvino import opset13 as ov

    x, w, scale, bias, x_zero, y_zero, *rest = nodes
    (
        factor, slope, addend, addend_scale, addend_zero, sum_scale, sum_zero, sum_slope, sum_bias, x_offset, y_offset,
        residual,
    ) = (rest.pop(0) if name in given else None for name in _OPTIONAL)  # fmt: skip
    rank = kernel.count(",") + 3
    numbers = {
        name: [int(part) for part in text.split(",")] if text else [otherwise] * count
        for name, text, otherwise, count in (
            ("strides", strides, 1, rank - 2), ("dilations", dilations, 1, rank - 2), ("pads", pads, 0, 2 * rank - 4),
        )
    }  # fmt: skip
    first = [0, rank - 1, *range(1, rank - 1)]
    inside = ov.subtract(ov.convert(x, "f32"), ov.convert(x_zero, "f32"))
    inside = ov.transpose(inside if x_offset is None else ov.add(inside, x_offset), first)
    weights = ov.convert(w, "f32")
    sizes = w.output(0).get_shape() if hasattr(w, "output") else w.get_shape()
    begin, end = numbers["pads"][: rank - 2], numbers["pads"][rank - 2 :]
    if group == 1:
        sums = ov.convolution(inside, weights, numbers["strides"], begin, end, numbers["dilations"])
    else:
        weights = ov.reshape(weights, [group, sizes[0] // group, *list(sizes)[1:]], False)
        sums = ov.group_convolution(inside, weights, numbers["strides"], begin, end, numbers["dilations"])
    value = ov.add(ov.multiply(ov.transpose(sums, [0, *range(2, rank), 1]), scale), bias)
    value = {
        "none": lambda: value,
        "clip": lambda: ov.clamp(value, alpha, beta),
        "prelu": lambda: ov.subtract(ov.relu(value), ov.multiply(ov.relu(ov.negative(value)), slope)),
        "hard_sigmoid": lambda: ov.hard_sigmoid(value, F(alpha), F(beta)),
        "hard_swish": lambda: ov.multiply(value, ov.hard_sigmoid(value, F(alpha), F(beta))),
        "sigmoid": lambda: ov.sigmoid(value),
        "swish": lambda: ov.multiply(value, ov.sigmoid(ov.multiply(value, F(alpha)))),
        "gelu": lambda: ov.gelu(value, "ERF"),
        "gelu_tanh": lambda: ov.gelu(value, "TANH"),
        "elu": lambda: ov.elu(value, alpha),
        "mish": lambda: ov.mish(value),
    }[function]()
    value = value if factor is None else ov.multiply(value, factor)
    value = value if y_offset is None else ov.add(value, y_offset)
    if residual is not None:
        value = ov.add(value, residual)
        if sum_slope is not None:
            least = ov.select(ov.equal(sum_slope, F(0)), F(0), F(-np.inf))
            below = ov.multiply(ov.maximum(value, least), sum_slope)
            value = ov.select(ov.less(value, F(0)), below, value)
    if str(y_zero.get_element_type()) == "<Type: 'float32'>":
        return value

    def rounded(value, zero):
        return ov.clamp(ov.add(ov.round(value, "half_to_even"), ov.convert(zero, "f32")), 0.0, 255.0)

    integers = rounded(value, y_zero)
    if addend is None:
        return ov.convert(integers, "u8")
    first = ov.multiply(ov.subtract(integers, ov.convert(y_zero, "f32")), sum_scale)
    second = ov.multiply(ov.subtract(ov.convert(addend, "f32"), ov.convert(addend_zero, "f32")), addend_scale)
    total = ov.add(first, second)
    if sum_bias is not None:
        total = ov.add(total, sum_bias)
    if sum_slope is not None:
        total = ov.subtract(ov.relu(total), ov.multiply(ov.relu(ov.negative(total)), sum_slope))
    return ov.convert(rounded(total, sum_zero), "u8")


def _case(
    name,
    x,
    w,
    *,
    group=1,
    zeros=(128, 100),
    floats=False,
    factor=None,
    slope=None,
    body_error="",
    seed=0,
    variable=False,
    vectors=False,
    dead=False,
    large=False,
    added=None,
    residual=None,
    offsets=(),
    without="",
    changed=None,
    **attributes,
):
    rng = np.random.default_rng(seed)
    channels, products = x[-1], int(np.prod(w[1:]))
    spread = 1 / (5000.0 * np.sqrt(products))
    inputs = {
        "X": rng.integers(0, 256, x).astype(U8),
        "W": rng.integers(-128, 128, w).astype(I8),
        "scale": (rng.uniform(0.5, 2, w[0]) * spread * (1 if factor else 40)).astype(F),
        "bias": (rng.standard_normal(w[0]) * (1 if factor else 40)).astype(F),
        "x_zero_point": np.array(zeros[0], U8),
        "y_zero_point": np.array(0, F) if floats else np.array(zeros[1], U8),
    }
    if vectors:
        inputs["x_zero_point"] = rng.integers(0, 256, channels).astype(U8)
        inputs["y_zero_point"] = rng.integers(0, 256, w[0]).astype(U8)
    if dead:  # like the weights of dead channels, for which biases exceed 32 bits
        inputs["scale"][::3] = 1e-12
    if large:  # factors of channels, as weights of 1
        inputs["W"] = np.ones(w, I8)
        inputs["scale"] = rng.uniform(0.3, 2.5, w[0]).astype(F)
    if factor:
        inputs["factor"] = rng.uniform(20, 60, w[0]).astype(F)
    if slope:
        inputs["slope"] = rng.standard_normal(w[0]).astype(F)
    if added is not None:  # the shape of the result
        size = w[0] if "channels" in added[1:] else 1
        inputs["addend"] = rng.integers(0, 256, added[0]).astype(U8)
        inputs["addend_scale"] = rng.uniform(0.2, 0.9, size).astype(F).reshape([size] if size > 1 else [])
        inputs["addend_zero_point"] = np.array(130, U8)
        inputs["sum_scale"] = rng.uniform(0.3, 0.8, size).astype(F).reshape([size] if size > 1 else [])
        inputs["sum_zero_point"] = rng.integers(0, 256, w[0]).astype(U8) if "zeros" in added else np.array(90, U8)
        if "slope" in added:
            inputs["sum_slope"] = rng.standard_normal(w[0]).astype(F)
        if "bias" in added:
            inputs["sum_bias"] = (20 * rng.standard_normal(w[0])).astype(F)
            inputs["sum_scale"] *= F(-1)  # as of a BatchNormalization
    if residual is not None:  # the shape of the result
        if len(residual) > 1:
            inputs["sum_slope"] = rng.standard_normal(w[0]).astype(F) if "slope" in residual else np.zeros(w[0], F)
        inputs["residual"] = (90 * rng.standard_normal(residual[0])).astype(F)
        if "relu" in residual:
            inputs["residual"].reshape(-1)[:4] = -np.inf, np.inf, np.nan, -np.inf
    for known, size in zip(("x_offset", "y_offset"), (channels, w[0]), strict=True):
        if known in offsets:
            inputs[known] = rng.uniform(-0.5, 0.5, size if vectors else []).astype(F)
    inputs.pop(without, None)
    inputs |= changed or {}
    attributes = {"channels": channels, "kernel": ",".join(map(str, w[2:])), "group": group, **attributes}
    given = [known for known in _OPTIONAL if known in inputs]

    def layer(*nodes, **stated):
        return _layer(*nodes, given=given, **stated)

    options = {} if "error" in attributes else {"layer": layer}
    error = {"error": attributes.pop("error")} if "error" in attributes else {}
    constants = [] if variable else [known for known in inputs if known not in ("X", "addend", "residual")]
    return Case(
        "QuantizedConv",
        name,
        inputs,
        attributes,
        constants=constants,
        rtol=1e-5,
        atol=1e-4,
        near=2e-3,
        body_error=body_error,
        **options,
        **error,
    )


def _cases():
    yield _case("pointwise", (2, 5, 6, 16), (33, 16, 1, 1))
    yield _case("pointwise-odd-channels", (1, 5, 6, 7), (5, 7, 1, 1), zeros=(0, 0))
    yield _case("picture", (1, 13, 9, 3), (24, 3, 3, 3), strides="2,2", pads="1,1,1,1", zeros=(3, 255))
    yield _case("windows", (1, 9, 8, 8), (70, 8, 3, 3), pads="1,0,2,1", dilations="2,1")
    yield _case("line", (2, 21, 12), (9, 12, 5), strides="3", pads="2,4")
    for channels, w, strides, pads in (
        (16, (3, 3), "1,1", "1,1,1,1"),
        (48, (3, 3), "1,2", "0,3,1,4"),
        (12, (2, 5), "2,1", "1,0,0,6"),
    ):
        yield _case(f"lines-of-{channels}-channels", (2, 7, 41, channels), (20, channels, *w), strides=strides, pads=pads)
    yield _case("lines-outside", (1, 3, 2, 16), (5, 16, 3, 3), pads="4,5,5,6")
    yield _case("lines-of-groups", (1, 6, 37, 16), (8, 4, 3, 3), group=4, pads="1,1,1,1")
    yield _case("lines-of-volumes", (1, 4, 3, 19, 20), (18, 20, 3, 3, 3), strides="1,1,2", pads="1,1,1,1,1,1")
    yield _case("volume", (1, 5, 6, 7, 4), (18, 4, 2, 3, 2), strides="1,2,1", pads="1,1,0,0,1,1")
    yield _case("groups", (1, 6, 7, 24), (36, 8, 3, 3), group=3, pads="1,1,1,1")
    yield _case("groups-of-odd-channels", (1, 6, 7, 15), (10, 3, 3, 3), group=5)
    for channels in (3, 16, 32, 64, 130):
        yield _case(f"depthwise-{channels}", (2, 7, 5, channels), (channels, 1, 3, 3), group=channels, pads="1,1,1,1")
    yield _case("depthwise-of-volumes", (1, 4, 5, 6, 20), (20, 1, 3, 3, 3), group=20, strides="1,1,2", pads="1,1,1,1,1,1")
    yield _case("multiplied", (1, 5, 5, 6), (12, 1, 3, 3), group=6)
    for times in (2, 3, 4, 5):  # channels are repeated for up to four columns
        w = (20 * times, 1, 3, 5)
        yield _case(f"multiplied-{times}", (2, 7, 9, 20), w, group=20, strides="2,1", pads="1,2,1,2", vectors=True)
    yield _case("multiplied-pixels", (2, 5, 4, 16), (32, 1, 1, 1), group=16, vectors=True)
    yield _case("multiplied-volumes", (1, 4, 5, 6, 9), (27, 1, 3, 3, 3), group=9, pads="1,1,1,1,1,1", dilations="1,2,2")
    yield _case("multiplied-channel", (1, 6, 7, 1), (4, 1, 3, 3), pads="1,1,1,1")
    yield _case(
        "multiplied-at-run-time", (1, 6, 7, 12), (24, 1, 3, 3), group=12, vectors=True, variable=True,
        added=[(1, 4, 5, 24), "channels"],
    )  # fmt: skip
    yield _case("dead-channels", (1, 9, 8, 8), (40, 8, 3, 3), pads="1,1,1,1", dead=True)
    yield _case("factors", (2, 5, 4, 16), (16, 1, 1, 1), group=16, large=True)  # biases are fractions of the scales
    yield _case("clip-of-integers", (1, 8, 8, 16), (24, 16, 1, 1), function="clip", alpha=-30.5, beta=90.5)
    yield _case("floats", (1, 5, 6, 16), (20, 16, 3, 3), floats=True)
    yield _case("factor", (1, 5, 6, 16), (20, 16, 1, 1), factor=True)
    yield _case("weights-at-run-time", (1, 5, 6, 16), (20, 16, 3, 3), variable=True, factor=True)
    yield _case("clip", (1, 8, 8, 16), (24, 16, 1, 1), factor=True, function="clip", alpha=-0.5, beta=1.5)
    yield _case("prelu", (1, 8, 8, 16), (24, 16, 1, 1), factor=True, slope=True, function="prelu")
    yield _case("hard-sigmoid", (1, 8, 8, 16), (24, 16, 1, 1), factor=True, function="hard_sigmoid", alpha=0.2, beta=0.5)
    yield _case("hard-swish", (1, 8, 8, 16), (24, 16, 1, 1), factor=True, function="hard_swish", alpha=1 / 6, beta=0.5)
    for function in ("sigmoid", "swish", "gelu", "gelu_tanh", "elu", "mish"):
        alpha = 1.0 if function in ("swish", "elu") else 0.0
        yield _case(function, (1, 6, 6, 32), (32, 1, 3, 3), group=32, factor=True, function=function, alpha=alpha)
        yield _case(f"{function}-floats", (1, 6, 6, 16), (8, 16, 1, 1), floats=True, function=function, alpha=alpha)
    for name, w, group in (("depthwise", (40, 1, 3, 3), 40), ("whole", (24, 40, 3, 3), 1), ("grouped", (12, 20, 1, 1), 2),
                           ("long", (4, 40, 4, 4), 1)):  # fmt: skip
        yield _case(f"zero-points-{name}", (1, 6, 7, 40), w, group=group, pads="1,0,1,1", vectors=True, factor=True)
    yield _case("addend", (1, 5, 6, 16), (33, 16, 1, 1), added=[(1, 5, 6, 33)])
    yield _case(
        "addend-picture", (1, 13, 9, 3), (24, 3, 3, 3), strides="2,2", pads="1,1,1,1", added=[(1, 7, 5, 24), "slope"]
    )
    yield _case(
        "addend-windows", (2, 5, 6, 8), (70, 8, 3, 3), pads="1,1,1,1", added=[(2, 5, 6, 70), "channels", "zeros", "slope"]
    )
    yield _case("addend-bias", (1, 5, 6, 16), (33, 16, 1, 1), added=[(1, 5, 6, 33), "bias"])
    yield _case("addend-bias-windows", (1, 6, 7, 8), (20, 8, 3, 3), added=[(1, 4, 5, 20), "bias", "channels", "slope"])
    yield _case("addend-one-column", (1, 40, 16), (1, 16, 1), added=[(1, 40, 1)])
    yield _case("addend-groups", (1, 6, 7, 15), (10, 3, 3, 3), group=5, added=[(1, 4, 5, 10), "channels"])
    for channels in (3, 20, 70):
        w, y = (channels, 1, 3, 3), (1, 7, 5, channels)
        yield _case(
            f"addend-depthwise-{channels}", y, w, group=channels, pads="1,1,1,1", vectors=True, added=[y, "channels"]
        )
    yield _case(
        "addend-function", (1, 8, 8, 16), (24, 16, 1, 1), factor=True, function="swish", alpha=1.0, variable=True,
        added=[(1, 8, 8, 24), "slope"],
    )  # fmt: skip
    yield _case("addend-empty", (0, 5, 6, 16), (20, 16, 3, 3), variable=True, added=[(0, 3, 4, 20)])
    yield _case(
        "error-addend", (1, 5, 6, 16), (20, 16, 1, 1), added=[(1, 5, 1, 20)],
        error=r"addend has the shape \[1, 5, 1, 20\] instead of \[1, 5, 6, 20\]", body_error="shape_of_addend",
    )  # fmt: skip
    yield _case(
        "error-addend-of-floats", (1, 5, 6, 16), (20, 16, 1, 1), floats=True, added=[(1, 5, 6, 20)],
        error="addend needs addend_scale, .*and an integer as y_zero_point",
    )  # fmt: skip
    yield _case(
        "error-sum-scale", (1, 5, 6, 16), (20, 16, 1, 1), added=[(1, 5, 6, 20)], without="sum_scale",
        error="addend needs addend_scale, addend_zero_point, sum_scale",
    )  # fmt: skip
    yield _case(
        "error-sum-bias", (1, 5, 6, 16), (20, 16, 1, 1), added=[(1, 5, 6, 20), "bias"], changed={"sum_bias": np.ones(3, F)},
        error=r"sum_bias has the shape \[3\] instead of \[20\]",
    )  # fmt: skip
    yield _case("residual", (1, 5, 6, 16), (33, 16, 1, 1), floats=True, residual=[(1, 5, 6, 33)])
    yield _case("residual-slope", (2, 5, 6, 8), (70, 8, 3, 3), floats=True, residual=[(2, 3, 4, 70), "slope"])
    yield _case("residual-relu", (1, 7, 6, 16), (20, 16, 3, 3), floats=True, residual=[(1, 5, 4, 20), "relu"])
    yield _case(
        "residual-function", (1, 8, 8, 16), (24, 16, 1, 1), floats=True, factor=True, function="swish", alpha=1.0,
        variable=True, residual=[(1, 8, 8, 24), "slope"],
    )  # fmt: skip
    for channels in (3, 20, 70):
        w, y = (channels, 1, 3, 3), (1, 7, 5, channels)
        yield _case(
            f"residual-depthwise-{channels}", y, w, group=channels, pads="1,1,1,1", floats=True, residual=[y, "slope"]
        )
    yield _case("residual-factors", (2, 5, 7), (7, 1, 1), group=7, floats=True, residual=[(2, 5, 7), "relu"])
    yield _case("residual-empty", (0, 5, 6, 16), (20, 16, 3, 3), floats=True, variable=True, residual=[(0, 3, 4, 20)])
    yield _case(
        "error-residual", (1, 5, 6, 16), (20, 16, 1, 1), floats=True, residual=[(1, 5, 1, 20)],
        error=r"residual has the shape \[1, 5, 1, 20\] instead of \[1, 5, 6, 20\]", body_error="shape_of_residual",
    )  # fmt: skip
    yield _case(
        "error-residual-of-integers", (1, 5, 6, 16), (20, 16, 1, 1), residual=[(1, 5, 6, 20)],
        error="residual needs floats as y_zero_point",
    )  # fmt: skip
    yield _case(
        "error-sum-slope", (1, 5, 6, 16), (20, 16, 1, 1), floats=True, residual=[(1, 5, 6, 20)],
        changed={"sum_slope": np.ones(3, F)}, error=r"sum_slope has the shape \[3\] instead of \[20\]",
    )  # fmt: skip
    both = ("x_offset", "y_offset")
    for name, w, more in (
        ("windows", (33, 16, 3, 3), {"pads": "1,1,1,1"}),
        ("inside", (33, 16, 3, 2), {"strides": "2,1"}),
        ("product", (40, 16, 1, 1), {}),
        ("groups", (12, 4, 3, 3), {"group": 4, "pads": "2,0,1,1", "strides": "2,2"}),
        ("depthwise", (16, 1, 3, 5), {"group": 16, "pads": "1,2,1,2"}),
        ("multiplied", (48, 1, 3, 5), {"group": 16, "pads": "1,2,1,2"}),
        ("far-apart", (20, 16, 2, 3), {"dilations": "3,2", "pads": "2,4,1,1"}),
        ("functions", (20, 16, 3, 3), {"pads": "1,1,1,1", "factor": True, "function": "swish", "alpha": 1.0}),
        ("floats", (20, 16, 3, 3), {"pads": "1,1,1,1", "floats": True}),
    ):
        yield _case(f"offsets-{name}", (2, 7, 8, 16), w, offsets=both, **more)
        yield _case(f"offsets-of-channels-{name}", (1, 7, 8, 16), w, offsets=both, vectors=True, **more)
    yield _case("offsets-at-run-time", (1, 5, 6, 8), (20, 8, 3, 3), offsets=both, pads="1,0,0,1", variable=True)
    yield _case("offsets-of-a-volume", (1, 4, 5, 6, 4), (8, 4, 3, 2, 3), offsets=both, pads="1,0,1,1,1,1")
    yield _case("offsets-of-a-line", (2, 9, 16), (20, 16, 3), offsets=both, pads="2,1", vectors=True)
    yield _case(
        "offsets-addend", (1, 5, 6, 16), (33, 16, 3, 3), offsets=both, pads="1,1,1,1", added=[(1, 5, 6, 33), "slope"]
    )
    yield _case("offset-of-empty", (0, 5, 6, 16), (20, 16, 3, 3), offsets=both, pads="1,1,1,1", variable=True)
    yield _case(
        "error-x-offset", (1, 5, 6, 16), (20, 16, 1, 1), changed={"x_offset": np.ones(3, F)},
        error=r"x_offset has the shape \[3\] instead of \[\] or \[16\]", body_error="error",
    )  # fmt: skip
    yield _case(
        "error-y-offset", (1, 5, 6, 16), (20, 16, 1, 1), changed={"y_offset": np.ones(3, F)},
        error=r"y_offset has the shape \[3\] instead of \[\] or \[20\]", body_error="error",
    )  # fmt: skip
    yield _case("empty", (0, 5, 6, 16), (20, 16, 3, 3), variable=True)
    yield _case(
        "error-kernel", (1, 5, 6, 16), (20, 16, 3, 3), kernel="3,2", error=r"W has the shape \[20, 16, 3, 3\] instead of",
        body_error="kernel_shape is not compatible with W",
    )  # fmt: skip
    yield _case("error-pixels", (1, 2, 6, 16), (20, 16, 3, 3), error=r".*but X, padded, has 2 pixels along axis 1")
    yield _case("error-strides", (1, 5, 6, 16), (20, 16, 3, 3), strides="1", error="strides has 1 numbers instead of 2")
    yield _case("error-slope", (1, 5, 6, 16), (20, 16, 1, 1), function="prelu", error="function = 'prelu' needs a slope")


CASES = list(_cases())
