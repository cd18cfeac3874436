"""Random small networks in the forms of tools other than NNCF, written directly as OpenVINO's operations.

Weights are floats with a FakeQuantize of 2 to 256 levels, or integers with zero points. Limits are per tensor or per
channel, signed or unsigned, and those of the output may differ from those of the input.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
from openvino import opset1
from openvino import opset13 as ops

_LEVELS = (255, 256, 256, 256, 16, 15, 2)
_FUNCTIONS = (
    "relu",
    "sigmoid",
    "tanh",
    "elu",
    "hswish",
    "hsigmoid",
    "swish",
    "mish",
    "gelu",
    "clamp",
    "prelu",
    "none",
    "none",
)


class _Network:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.kind = np.float16 if seed % 4 == 3 else np.float32
        self.results: list[Any] = []

    def one(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def often(self, fraction: float) -> bool:
        return bool(self.rng.random() < fraction)

    def constant(self, array: Any) -> Any:
        return ops.constant(np.asarray(array, self.kind))

    def _limits(self, low: Any, high: Any) -> list[Any]:
        """Return the four limits; the output's are sometimes others, and equal ones are sometimes one Constant."""
        ends = [self.constant(low), self.constant(high)]
        if self.often(0.7):
            return [*ends, *ends] if self.often(0.5) else [*ends, self.constant(low), self.constant(high)]
        factor = self.one(2.0, 0.5, -1.0, 1.25)
        return [*ends, self.constant(np.asarray(low) * factor), self.constant(np.asarray(high) * factor)]

    def quantized(self, x: Any) -> Any:
        """Quantize activations."""
        rank, channels = len(x.get_output_partial_shape(0)), x.get_output_partial_shape(0)[1].get_length()
        levels = self.one(256, 256, 256, 255, 255, 16, 15, 2)
        high = self.rng.uniform(0.5, 4)
        how = self.rng.integers(4)
        low = -high * (levels // 2) / max(levels - 1 - levels // 2, 1) if how < 2 else 0.0
        if how == 3:  # asymmetric, with zero on a level
            low = -high * self.rng.integers(1, levels - 1) / (levels - 1) if levels > 2 else 0.0
            low, high = low, high + low
        shape = self.one([], [], [1], [1] * rank)
        if self.often(0.25):
            shape = [1, channels] + [1] * (rank - 2)
            spread = self.rng.uniform(0.5, 2, shape)
            return ops.fake_quantize(x, *self._limits(low * spread, high * spread), levels=levels)
        return ops.fake_quantize(x, *self._limits(np.full(shape, low), np.full(shape, high)), levels=levels)

    def weights(self, shape: list[int], axes: tuple[int, ...]) -> Any:
        """Return weights with scales along the axes."""
        scale_shape = [size if k in axes and self.often(0.9) else 1 for k, size in enumerate(shape)]
        scale = self.rng.uniform(0.5, 2, scale_shape) / np.sqrt(max(np.prod(shape) / shape[axes[0]], 1))
        if self.often(0.5):
            integers = ops.constant(self.rng.integers(-127, 128, shape), dtype=self.one(np.int8, np.uint8, np.int8))
            zero = self.one(0, 0, 128, 3)
            value = ops.convert(integers, np.dtype(self.kind))
            if zero:
                value = ops.subtract(value, self.constant(np.full(self.one([], scale_shape), zero)))
            return ops.multiply(value, self.constant(scale / 127))
        values = self.constant(self.rng.standard_normal(shape) * scale)
        levels = self.one(*_LEVELS)
        low, high = (
            (-2 * scale, 2 * scale) if levels % 2 else (-2 * scale * (levels // 2) / max(levels // 2 - 1, 1), 2 * scale)
        )
        if self.often(0.15):
            low = np.zeros_like(scale)
        return ops.fake_quantize(values, *self._limits(low, high), levels=levels)

    def function(self, x: Any) -> Any:
        name = self.one(*_FUNCTIONS)
        if name == "none":
            return x
        if name == "clamp":
            return ops.clamp(x, -0.5, self.one(1.0, 6.0))
        if name == "elu":
            return ops.elu(x, 1.0)
        if name == "gelu":
            return ops.gelu(x, self.one("erf", "tanh"))
        if name == "prelu":
            slope = self.rng.uniform(-0.5, 0.5, self.one([1], [x.get_output_partial_shape(0)[1].get_length()]))
            return ops.prelu(x, self.constant(slope))
        return getattr(ops, name)(x)

    def biased(self, x: Any, channels: int) -> Any:
        rank = len(x.get_output_partial_shape(0))
        if self.often(0.7):
            shape = [1, channels] + [1] * (rank - 2) if self.often(0.9) else [1] * rank
            x = ops.add(x, self.constant(self.rng.standard_normal(shape) * 0.3))
        if self.often(0.15):
            x = ops.multiply(x, self.constant(self.rng.uniform(0.5, 1.5, [1, channels] + [1] * (rank - 2))))
        return x

    def convolved(self, x: Any) -> Any:
        shape = x.get_output_partial_shape(0)
        channels, space = shape[1].get_length(), len(shape) - 2
        kernel = [int(self.rng.integers(1, 4)) for _ in range(space)]
        strides = [int(self.one(1, 1, 1, 2))] * space
        dilations = [int(self.one(1, 1, 1, 2))] * space
        begin, end = ([int(self.rng.integers(0, 2)) for _ in range(space)] for _ in "12")
        pad = self.one("explicit", "explicit", "same_upper", "same_lower", "valid")
        outputs = int(self.one(8, 12, 16))
        how = self.rng.integers(6)
        if how == 0 and channels % 4 == 0:
            groups = int(self.one(2, 4, channels))
            of_one = outputs = channels // groups * int(self.one(1, 2))
            outputs *= groups
            weights = self.weights([groups, of_one, channels // groups, *kernel], (0, 1))
            y = ops.group_convolution(x, weights, strides, begin, end, dilations, pad)
        elif how == 1:
            weights = self.weights([channels, outputs, *kernel], (1,))
            y = ops.convolution_backprop_data(x, weights, strides, None, begin, end, dilations, pad)
        else:
            y = ops.convolution(x, self.weights([outputs, channels, *kernel], (0,)), strides, begin, end, dilations, pad)
        return self.function(self.biased(y, outputs))

    def joined(self, x: Any) -> Any:
        """Two branches that are added, multiplied or concatenated."""
        shape = x.get_output_partial_shape(0)
        channels, space = shape[1].get_length(), len(shape) - 2

        def branch() -> Any:
            if self.often(0.3):
                return x
            y = ops.convolution(
                x, self.weights([channels, channels, *[1] * space], (0,)), *([s] * space for s in (1, 0, 0, 1))
            )
            y = self.function(self.biased(y, channels))
            return self.quantized(y) if self.often(0.7) else y

        one, other = branch(), branch()
        y = self.one(ops.add, ops.add, ops.multiply, ops.subtract, ops.maximum, lambda a, b: ops.concat([a, b], 1))(
            one, other
        )
        return self.function(y)

    def moved(self, x: Any) -> Any:
        shape = x.get_output_partial_shape(0)
        channels, space = shape[1].get_length(), len(shape) - 2
        how = self.rng.integers(8)
        if how == 0:
            return opset1.max_pool(x, [2] * space, [0] * space, [1] * space, [3] * space)
        if how == 1:
            return ops.avg_pool(x, [1] * space, [1] * space, [1] * space, [3] * space, self.often(0.5))
        if how == 2:
            return ops.transpose(x, [0, 1, *range(2 + space - 1, 1, -1)])
        if how == 3:
            groups = self.one(2, 4)
            rest = [d.get_length() for d in shape][2:]
            y = ops.reshape(x, [0, groups, channels // groups, *rest], True)
            y = ops.transpose(y, [0, 2, 1, *range(3, 3 + space)])
            return ops.reshape(y, [0, channels, *rest], True)
        if how == 4:
            parts = ops.split(x, 1, 2)
            return ops.concat([parts.output(1), parts.output(0)], 1)
        if how == 5:
            gate = ops.reduce_mean(x, np.arange(2, 2 + space), True)
            return ops.multiply(x, self.one(ops.sigmoid, ops.hsigmoid)(self.biased(gate, channels)))
        if how == 6 and channels % 8 == 0 and space == 2:
            y = ops.depth_to_space(x, self.one("blocks_first", "depth_first"), 2)
            return ops.space_to_depth(y, self.one("blocks_first", "depth_first"), 2) if self.often(0.5) else y
        return ops.pad(
            x, [0, 0] + [1] * space, [0, 0] + [0] * space, self.one("constant", "edge", "reflect"), np.array(0, self.kind)
        )

    def multiplied(self, x: Any) -> Any:
        """Products with weights, transposed or not, of the channels."""
        channels = x.get_output_partial_shape(0)[1].get_length()
        rank = len(x.get_output_partial_shape(0))
        y = ops.transpose(x, [0, *range(2, rank), 1]) if rank > 2 else x
        if self.often(0.5):
            y = self.quantized(x)
            y = ops.transpose(y, [0, *range(2, rank), 1]) if rank > 2 else y
        turned = self.often(0.5)
        shape = [16, channels] if turned else [channels, 16]
        y = ops.matmul(y, self.weights(shape, (0,) if turned else (1,)), False, turned)
        return ops.add(y, self.constant(self.rng.standard_normal(self.one([16], [1, 16], []))))


def written(seed: int) -> ov.Model:
    """Return the network with that seed."""
    net = _Network(seed)
    space = [1, 2, 2, 2, 3][seed % 5]
    shape = [1, 8, *[int(net.rng.integers(8, 13)) for _ in range(space)]]
    x = ops.parameter(shape, net.kind, name="x0")
    value: Any = net.quantized(x)
    results = []
    for _ in range(int(net.rng.integers(4, 8))):
        step = net.one(net.convolved, net.convolved, net.convolved, net.joined, net.moved)
        value = step(value)
        if net.often(0.8):
            value = net.quantized(value)
        if net.often(0.15):
            results.append(value)
    model = ov.Model([net.multiplied(value), *results], [x])
    model.inputs[0].set_names({"x0"})
    return model
