"""Small networks, quantized by NNCF as users do, which `record` writes into files/."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nncf
import numpy as np
import openvino as ov
import torch
from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, QuantizationParameters
from openvino import opset13 as ops
from torch import nn

IMAGE, TOKENS = (2, 3, 24, 24), (2, 7, 24)


def _conv(inputs: int, outputs: int, kernel: int, activation: nn.Module | None = None, **options: Any) -> nn.Module:
    layers = [nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False, **options), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([] if activation is None else [activation]))


class Residual(nn.Module):
    """A residual network: max pooling, strides, an addition, a linear layer."""

    def __init__(self, activation: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.stem = nn.Sequential(_conv(3, 16, 3, activation()), nn.MaxPool2d(2))
        self.first = nn.Sequential(_conv(16, 16, 3, activation()), _conv(16, 24, 1))
        self.beside = _conv(16, 24, 1)
        self.last = nn.Sequential(activation(), _conv(24, 32, 3, activation(), stride=2))
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = self.last(self.first(x) + self.beside(x))
        return self.head(x.mean((2, 3)))


class Mobile(nn.Module):
    """Inverted residuals: depthwise convolutions, HardSwish, squeeze-and-excitation with a HardSigmoid."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _conv(3, 16, 3, nn.Hardswish(), stride=2)
        self.relu = nn.Sequential(_conv(16, 32, 1, nn.ReLU()), _conv(32, 32, 3, nn.ReLU(), groups=32), _conv(32, 16, 1))
        self.swish = nn.Sequential(_conv(16, 48, 1, nn.Hardswish()), _conv(48, 48, 5, nn.Hardswish(), groups=48))
        self.gate = nn.Sequential(nn.Conv2d(48, 16, 1), nn.ReLU(), nn.Conv2d(16, 48, 1), nn.Hardsigmoid())
        self.down = _conv(48, 16, 1)
        self.head = nn.Sequential(_conv(16, 64, 1, nn.Hardswish()), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = x + self.relu(x)
        y = self.swish(x)
        return self.head(x + self.down(y * self.gate(y.mean((2, 3), keepdim=True))))


class Segmentation(nn.Module):
    """Downsampling and upsampling: dilated and grouped convolutions, transposed ones, a concatenation, average pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(_conv(3, 16, 3, nn.SiLU()), nn.AvgPool2d(2))
        self.deep = nn.Sequential(
            nn.Conv2d(16, 32, 3, padding=2, dilation=2), nn.ReLU6(), _conv(32, 32, 3, nn.SiLU(), groups=4)
        )
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.last = nn.Sequential(_conv(19, 16, 3, nn.GELU()), nn.Conv2d(16, 5, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.cat([x, self.up(self.deep(self.down(x)))], 1))


class Encoder(nn.Module):
    """Transformer blocks: attention, LayerNormalization, GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.ModuleList((nn.LayerNorm(24), nn.Linear(24, 72), nn.Linear(24, 24), nn.LayerNorm(24), nn.Linear(24, 96),
                           nn.Linear(96, 24))) for _ in range(2)
        )  # fmt: skip
        self.head = nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for before, qkv, out, between, up, down in self.blocks:
            batch, length, width = x.shape
            q, k, v = qkv(before(x)).reshape(batch, length, 3, 3, width // 3).permute(2, 0, 3, 1, 4).unbind(0)
            weights = (q @ k.transpose(-2, -1) * 8**-0.5).softmax(-1)
            x = x + out((weights @ v).transpose(1, 2).reshape(batch, length, width))
            x = x + down(nn.functional.gelu(up(between(x))))
        return self.head(x)


class Recurrent(nn.Module):
    """A bidirectional LSTM, a GRU and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(24, 16, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(32, 16, batch_first=True)
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.lstm(x)[0])[0])


def _imported(module: nn.Module, shape: tuple[int, ...]) -> ov.Model:
    torch.manual_seed(0)
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm2d, nn.LayerNorm)):
            nn.init.uniform_(part.weight, 0.7, 1.3)
            nn.init.normal_(part.bias, 0, 0.2)
    module.train()
    with torch.no_grad():
        for _ in range(4):
            module(torch.randn(8, *shape[1:]))
    model = ov.convert_model(module.eval(), example_input=torch.randn(shape), input=list(shape))
    model.inputs[0].set_names({"x"})
    model.outputs[0].set_names({"y"})
    return model


def _quantized(module: Callable[[], nn.Module], shape: tuple[int, ...], **options: Any) -> ov.Model:
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    samples = [rng.standard_normal(shape).astype(np.float32) for _ in range(8)]
    return nncf.quantize(_imported(module(), shape), nncf.Dataset(samples), subset_size=8, **options)


def _whole_weights() -> AdvancedQuantizationParameters:
    return AdvancedQuantizationParameters(weights_quantization_params=QuantizationParameters(per_channel=False))


def _sixteen_bits() -> ov.Model:
    """Return the residual network with 16-bit activations."""
    model = _quantized(lambda: Residual(nn.ReLU), IMAGE)
    for node in model.get_ordered_ops():
        if node.get_type_name() == "FakeQuantize":
            wider = ops.fake_quantize(
                *(node.input_value(i) for i in range(5)), levels=2**16 - 1
            )  # OpenVINO's CPU plugin treats 2^16 differently
            wider.set_friendly_name(node.get_friendly_name())
            node.output(0).replace(wider.output(0))
    model.validate_nodes_and_infer_types()
    return model


def _float_weights() -> ov.Model:
    """Return the form of tools before NNCF: float weights with a FakeQuantize of 255 levels, activations with 255 levels."""
    rng = np.random.default_rng(0)
    x = ops.parameter(list(IMAGE), np.float32, name="x")
    value: Any = x
    for inputs, outputs in ((3, 16), (16, 24)):
        weights = rng.standard_normal((outputs, inputs, 3, 3)).astype(np.float32) / np.sqrt(inputs * 9, dtype=np.float32)
        limit = np.abs(weights).max((1, 2, 3), keepdims=True)
        quantized = ops.fake_quantize(ops.constant(weights), -limit, limit, -limit, limit, levels=255)
        levels, low, high = (255, -3.0, 3.0) if inputs == 3 else (256, 0.0, 2.5)
        limits = [np.float32(edge) for edge in (low, high, low, high)]
        value = ops.fake_quantize(value, *limits, levels=levels)
        value = ops.convolution(value, quantized, [1, 1], [1, 1], [1, 1], [1, 1])
        value = ops.relu(ops.add(value, rng.standard_normal((1, outputs, 1, 1)).astype(np.float32)))
    value = ops.fake_quantize(value, *(np.float32(edge) for edge in (0, 4, 0, 4)), levels=256)
    model = ov.Model([ops.reduce_mean(value, np.array([2, 3]), keep_dims=True)], [x])
    model.inputs[0].set_names({"x"})
    model.outputs[0].set_names({"y"})
    return model


MODELS: dict[str, Callable[[], ov.Model]] = {
    "residual": lambda: _quantized(lambda: Residual(nn.ReLU), IMAGE),
    "residual_asymmetric": lambda: _quantized(lambda: Residual(nn.PReLU), IMAGE, preset=nncf.QuantizationPreset.MIXED),
    "residual_whole_weights": lambda: _quantized(
        lambda: Residual(nn.ReLU), IMAGE, advanced_parameters=_whole_weights()
    ),
    "residual_16_bits": _sixteen_bits,
    "mobile": lambda: _quantized(Mobile, IMAGE),
    "mobile_asymmetric": lambda: _quantized(Mobile, IMAGE, preset=nncf.QuantizationPreset.MIXED),
    "segmentation": lambda: _quantized(Segmentation, IMAGE, preset=nncf.QuantizationPreset.MIXED),
    "encoder": lambda: _quantized(Encoder, TOKENS, model_type=nncf.ModelType.TRANSFORMER),
    "recurrent": lambda: _quantized(Recurrent, TOKENS, preset=nncf.QuantizationPreset.MIXED),
    "float_weights": _float_weights,
}  # fmt: skip
"""Name -> a function that creates the model."""
