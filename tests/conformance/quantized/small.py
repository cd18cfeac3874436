"""Small quantized IR files of many families, for near misses.

    python -m tests.conformance.quantized.small FOLDER                 # a file for each
    python -m tests.conformance.quantized.small FOLDER --only encoder  # those whose names contain one of these

NNCF quantizes a module of each family (`families`) in several ways, and `written` has networks in other forms. Needs torch,
nncf and openvino. Existing files are kept.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import nncf
import numpy as np
import openvino as ov
import torch
from nncf.common.quantization.quantizer_propagation.structs import QuantizerPropagationRule
from nncf.common.quantization.structs import QuantizationScheme
from nncf.quantization.advanced_parameters import (
    AdvancedQuantizationParameters,
    AdvancedSmoothQuantParameters,
    OverflowFix,
    QuantizationParameters,
)
from openvino import opset13 as ops
from torch import nn

from tests.conformance.quantized.families import ACTIVATIONS, FAMILIES, Activation, Made
from tests.conformance.quantized.written import written

SAMPLES = 4
WRITTEN = 24
_OF_ONE = 4
"""The number of files of a family."""


def _advanced(**options: Any) -> dict[str, Any]:
    return {"advanced_parameters": AdvancedQuantizationParameters(**options)}


_MIXED = nncf.QuantizationPreset.MIXED

QUANTIZATIONS: dict[str, dict[str, Any]] = {
    "performance": {},
    "mixed": {"preset": _MIXED},
    "cpu": {"target_device": nncf.TargetDevice.CPU, "preset": _MIXED, "fast_bias_correction": False},
    "gpu": {"target_device": nncf.TargetDevice.GPU},
    "npu": {"target_device": nncf.TargetDevice.NPU, "preset": _MIXED},
    "spr": {"target_device": nncf.TargetDevice.CPU_SPR},
    "transformer": {"model_type": nncf.ModelType.TRANSFORMER, "preset": _MIXED},
    "smooth": {
        "model_type": nncf.ModelType.TRANSFORMER,
        **_advanced(smooth_quant_alphas=AdvancedSmoothQuantParameters(convolution=0.5, matmul=0.6)),
    },
    "tensor_weights": _advanced(weights_quantization_params=QuantizationParameters(per_channel=False)),
    "asymmetric_weights": {
        "preset": _MIXED,
        **_advanced(
            weights_quantization_params=QuantizationParameters(mode=QuantizationScheme.ASYMMETRIC, per_channel=True),
            overflow_fix=OverflowFix.DISABLE,
        ),
    },
    "half_range": _advanced(overflow_fix=OverflowFix.ENABLE, quantize_outputs=True),
    "aligned": {"preset": _MIXED, **_advanced(disable_channel_alignment=False, overflow_fix=OverflowFix.DISABLE)},
    "branches": _advanced(quantizer_propagation_rule=QuantizerPropagationRule.DO_NOT_MERGE_BRANCHES, quantize_outputs=True),
    "e4m3": {"mode": nncf.QuantizationMode.FP8_E4M3},
    "e5m2": {"mode": nncf.QuantizationMode.FP8_E5M2},
    # NNCF does not create these for the CPU: other limits replace those of its activations.
    "channels": {},
    "asymmetric_channels": {"preset": _MIXED},
    "narrow": {},
    "four_bits": {},
    "other_outputs": {"preset": _MIXED},
}  # fmt: skip
"""Name -> arguments of `nncf.quantize`."""

_OTHER_LIMITS = ("channels", "asymmetric_channels", "narrow", "four_bits", "other_outputs")


def _other_limits(model: ov.Model, name: str) -> None:
    """Change the limits of the quantized activations."""
    rng = np.random.default_rng(0)
    for node in model.get_ordered_ops():
        if node.get_type_name() != "FakeQuantize" or any(
            node.input_value(i).get_node().get_type_name() != "Constant" for i in range(1, 5)
        ):
            continue
        limits, levels = [node.input_value(i).get_node().get_data().astype(np.float32) for i in range(1, 5)], 256
        shape = node.get_output_partial_shape(0)
        if name.endswith("channels") and shape.rank.get_length() > 1 and shape[1].is_static and limits[0].size == 1:
            spread = rng.uniform(0.5, 2, [1, shape[1].get_length()] + [1] * (shape.rank.get_length() - 2))
            limits = [(limit.reshape(-1)[0] * spread).astype(np.float32) for limit in limits]
        elif name == "narrow" and (limits[0] < 0).all():
            levels, limits = 255, [-limits[1], limits[1], -limits[3], limits[3]]
        elif name == "four_bits":
            levels = 16
            limits = [
                limits[k] if (limits[k] >= 0).all() else -limits[k + 1] * np.float32(8 / 7) for k in range(3)
            ] + limits[3:]
        elif name == "other_outputs":
            limits = [limit * np.float32(1 + k // 2 * 0.25) for k, limit in enumerate(limits)]
        other = ops.fake_quantize(node.input_value(0), *map(ops.constant, limits), levels=levels)
        other.set_friendly_name(node.get_friendly_name())
        node.output(0).replace(other.output(0))
    model.validate_nodes_and_infer_types()


COMPRESSIONS: dict[str, dict[str, Any]] = {
    "int8_asym": {"mode": nncf.CompressWeightsMode.INT8_ASYM},
    "int8_sym": {"mode": nncf.CompressWeightsMode.INT8_SYM},
    "int4_asym": {"mode": nncf.CompressWeightsMode.INT4_ASYM, "group_size": 8, "all_layers": True},
    "int4_sym": {"mode": nncf.CompressWeightsMode.INT4_SYM, "group_size": 4, "ratio": 0.7},
    "int4_rows": {"mode": nncf.CompressWeightsMode.INT4_SYM, "group_size": -1, "all_layers": True},
    "fp8": {"mode": nncf.CompressWeightsMode.FP8_E4M3, "group_size": -1, "all_layers": True},
    "nf4": {"mode": nncf.CompressWeightsMode.NF4, "group_size": 8, "all_layers": True},
}
"""Name -> arguments of `nncf.compress_weights`, for a family with a MatMul or an Embedding."""

_COMPRESSED = ("convnext", "encoder", "tokens", "windows", "linear", "products")


def _trained(family: str, activation: Activation) -> Made:
    """Return the module with statistics of random data, like those of a trained one."""
    torch.manual_seed(0)
    module, shapes = FAMILIES[family](activation)
    norms = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm2d
    for part in module.modules():
        if isinstance(part, norms) and part.weight is not None:
            nn.init.uniform_(part.weight, 0.7, 1.3)
            nn.init.normal_(part.bias, 0, 0.2)
    module.train()
    with torch.no_grad():
        for _ in range(3):
            module(*(torch.from_numpy(array) for array in _inputs(family, shapes, 0)))
    return module.eval(), shapes


def _inputs(family: str, shapes: Sequence[tuple[int, ...]], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    if family == "tokens":
        return [rng.integers(0, 40, shape) for shape in shapes]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _imported(family: str, activation: str, *, dynamic: bool) -> tuple[ov.Model, list[dict[str, np.ndarray]]]:
    """Return the model and its samples."""
    module, shapes = _trained(family, ACTIVATIONS[activation])
    samples = [_inputs(family, shapes, seed) for seed in range(1, 1 + SAMPLES)]
    given = [ov.PartialShape([-1, *shape[1:]] if dynamic else list(shape)) for shape in shapes]
    example = tuple(torch.from_numpy(array) for array in samples[0])
    with torch.no_grad():
        model = ov.convert_model(module, example_input=example, input=given)
    for number, port in enumerate(model.inputs):
        port.set_names({f"x{number}"})
    return model, [{f"x{k}": array for k, array in enumerate(sample)} for sample in samples]


def files() -> Iterator[tuple[str, Callable[[], ov.Model]]]:
    """Yield each name with a function that creates the model."""
    activations, quantizations = itertools.cycle(ACTIVATIONS), itertools.cycle(QUANTIZATIONS)
    for number, family in enumerate(FAMILIES):
        for k in range(_OF_ONE):
            activation, name = next(activations), next(quantizations)
            # The batch of windows and of the reshaped rows is part of the module.
            dynamic = (number + k) % 3 == 0 and family not in ("windows", "linear")
            yield f"{family}_{activation}_{name}", partial(_quantized, family, activation, name, dynamic=dynamic)
        next(activations)
        next(quantizations)
    for family, name in zip(itertools.cycle(_COMPRESSED), [*COMPRESSIONS, *COMPRESSIONS], strict=False):
        yield f"{family}_{name}", partial(_compressed, family, name)
    for seed in range(WRITTEN):
        yield f"written_{seed}", partial(written, seed)


def _quantized(family: str, activation: str, name: str, *, dynamic: bool) -> ov.Model:
    model, samples = _imported(family, activation, dynamic=dynamic)
    quantized = nncf.quantize(model, nncf.Dataset(samples), subset_size=SAMPLES, **QUANTIZATIONS[name])
    if name in _OTHER_LIMITS:
        _other_limits(quantized, name)
    return quantized


def _compressed(family: str, name: str) -> ov.Model:
    model, _ = _imported(family, "gelu", dynamic=False)
    return nncf.compress_weights(model, **COMPRESSIONS[name])


def main() -> int:
    """Create the files that the command line selects."""
    parser = argparse.ArgumentParser("tests.conformance.quantized.small", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[""], metavar="PART", help="files whose names contain one of these")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for number, (name, make) in enumerate(files()):
        path = options.folder / f"{name}.xml"
        if path.exists() or not any(part in name for part in options.only):
            continue
        try:
            ov.save_model(make(), path, compress_to_fp16=number % 2 == 0)
            print(name, flush=True)
        except Exception as error:  # any exception of a library; the other files are still created
            print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:200]}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
