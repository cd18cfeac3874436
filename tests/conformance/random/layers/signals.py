"""Fourier transforms and color conversions."""

from __future__ import annotations

import numpy as np

from tests.conformance.random.graph import Graph, Unfit, maker


@maker()
def transformed(g: Graph) -> None:
    shape = list(g.shape(g.int(1, 3), 7))
    if 0 in shape:
        raise Unfit("nothing to transform")
    kind = g.pick("DFT", "IDFT", "RDFT", "IRDFT")
    x = g.of_shape("f32", shape if kind == "RDFT" else [*shape, 2], 0.1)
    axes = g.some(range(len(shape)), 1)
    sizes = []
    if g.chance(0.4):
        # Below the dimension, because the plugin reads out of bounds for a shorter input.
        sizes = [g.index([g.int(1, shape[axis]) if g.chance(0.6) else -1 for axis in axes], 1.0)]
    g.layer(kind, "opset9" if "R" in kind else "opset7", x, g.index(axes, 1.0), *sizes)


@maker()
def spectrum(g: Graph) -> None:
    frame = g.int(2, 8)
    step, length = g.int(1, frame), g.int(frame, frame + 20)
    batch = g.shape(g.int(0, 1), 3)
    if 0 in batch:
        raise Unfit("no signal")
    window = g.leaf(g.array("f32", (g.int(1, frame),), 0.25, 1), 0.7)
    numbers = [g.index(n, 0.8) for n in (frame, step)]
    g.layer("STFT", "opset15", g.of_shape("f32", [*batch, length]), window, *numbers)


@maker()
def inverse_spectrum(g: Graph) -> None:
    frame = g.int(2, 8)
    step, frames = g.int(1, max(1, frame // 2)), g.int(2, 6)
    batch = g.shape(g.int(0, 1), 3)
    if 0 in batch:
        raise Unfit("no signal")
    window = g.leaf(g.array("f32", (frame,), 0.5, 1), 0.7)
    data = g.of_shape("f32", [*batch, frame // 2 + 1, frames, 2])
    g.layer("ISTFT", "opset16", data, window, *(g.index(n, 0.8) for n in (frame, step)))


@maker()
def colours(g: Graph) -> None:
    height, width = 2 * g.int(1, 3), 2 * g.int(1, 3)
    images = g.int(1, 2)
    order, kind = g.pick("RGB", "BGR"), g.pick(np.uint8, np.float32)

    def plane(rows: int, columns: int, channels: int) -> np.ndarray:
        return g.rng.integers(0, 256, (images, rows, columns, channels)).astype(kind)

    if g.chance(0.5):
        planes = [plane(height, width, 1), plane(height // 2, width // 2, 2)]
        planes = [plane(height * 3 // 2, width, 1)] if g.chance(0.4) else planes
        g.layer(f"NV12to{order}", "opset8", *(g.leaf(p, 0.1) for p in planes))
    else:
        planes = [plane(height, width, 1), *(plane(height // 2, width // 2, 1) for _ in range(2))]
        planes = [plane(height * 3 // 2, width, 1)] if g.chance(0.4) else planes
        g.layer(f"I420to{order}", "opset8", *(g.leaf(p, 0.1) for p in planes))


@maker()
def drawn(g: Graph) -> None:
    """Random numbers that only depend on their seeds."""
    seeds = {"global_seed": g.int(1, 99), "op_seed": g.int(1, 99)}
    if g.chance(0.5):
        if g.depth:
            raise Unfit("each iteration of a loop draws on")
        low = g.pick(np.float32, np.int32)
        ends = [g.leaf(np.array(low(n)), 0.8) for n in (g.int(-3, 0), g.int(1, 9))]
        type_ = "f32" if low is np.float32 else "i32"
        g.layer("RandomUniform", "opset8", g.index(g.shape(g.int(1, 3), 4)), *ends, output_type=type_, **seeds)
    else:
        probs = g.leaf(g.array("f32", (g.int(1, 3), g.int(2, 5)), 0.125, 4), 0.2)
        given = {
            "convert_type": g.pick("i32", "i64"),
            "log_probs": g.chance(0.5),
            "with_replacement": g.chance(0.6),
            **seeds,
        }
        g.layer("Multinomial", "opset13", probs, g.index(g.int(1, 2), 0.8), **given)
