"""An IR's weights as safetensors with transformers' names, for engines that read weights instead of graphs.

Compressed weights of linear layers keep their codes, scales and zero points, in the form of compressed-tensors
(``pack-quantized``). Others are decompressed, because transformers cannot load them packed. The names are derived from the
layers' names. The architecture in config.json determines the required parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from converters.errors import ConversionError, Fault, Problem
from converters.folders.architectures import MODULE_OF_LAYER, Architecture
from converters.folders.companions import add_companions, check_companions, places
from converters.folders.language_model import DECODER
from converters.folders.layouts import CONFIG, read_object
from converters.folders.path_errors import AS_WRITTEN, path_error
from converters.folders.recurrences import (
    convolution_bias,
    convolutions_without_bias,
    decay,
    logarithm,
    skip_scale,
    skip_scales,
    step_bias,
)
from converters.folders.whole import created
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.graph import InputPort, Layer, Model, producer_before
from converters.openvino.reader.read import read
from converters.outputs import Outputs

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"

_SHARD_BYTES = 4 << 30
_CHECKED, _CHECKED_OF_MAMBA = 12, 4
"""The number of compared tokens. For more, the cumulative sums by which optimum-intel computes Mamba become inaccurate."""

_EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
_OWN = "self."
_EXPERTS = {
    r"__module\.(?P<path>.+)/prim::ListUnpack/VariadicSplit\.0": "gate",
    r"__module\.(?P<path>.+)/prim::ListUnpack/VariadicSplit\.1": "up",
    r"self\.(?P<path>.+)\.down_proj": "down",
}
_UNCHANGED = ("Convert", "Reshape", "Unsqueeze", "Squeeze")
_ARITHMETIC = ("Multiply", "Subtract", "Transpose", "Add")
_BITS = {ElementType.U4: 4, ElementType.I4: 4, ElementType.U8: 8, ElementType.I8: 8}
_DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I32": np.int32, "I64": np.int64}


Scheme = tuple[int, int | None, bool]
"""A scheme of compressed-tensors: bits, group size (``None``: a row), and whether all zero points are the middle code."""


@dataclass(frozen=True)
class Compressed:
    """A matrix of codes.

    Attributes:
        codes: ``[outputs, inputs]``, from 0 to 2**bits - 1.
        scales: ``[outputs, groups]``, floats as they are stored.
        zero_points: the zero points, ``[outputs, groups]``; ``None`` if they are the middle code.
        bits: the number of bits of a code.
    """

    codes: np.ndarray
    scales: np.ndarray
    zero_points: np.ndarray | None
    bits: int

    @property
    def group(self) -> int | None:
        """The number of inputs that share a scale; ``None`` for a whole row."""
        groups = self.scales.shape[1]
        return None if groups == 1 else self.codes.shape[1] // groups

    @property
    def scheme(self) -> Scheme:
        """Bits, group size, and whether the codes are symmetric."""
        return self.bits, self.group, self.zero_points is None

    def part(self, number: int, count: int) -> Compressed:
        """Return one of ``count`` matrices, whose rows follow each other."""
        rows = len(self.codes) // count
        one = slice(number * rows, (number + 1) * rows)
        zeros = None if self.zero_points is None else self.zero_points[one]
        return Compressed(self.codes[one], self.scales[one], _unless_middle(zeros, self.bits), self.bits)


def _unless_middle(zeros: np.ndarray | None, bits: int) -> np.ndarray | None:
    """Return zero points; ``None`` if all of them are the middle code."""
    return None if zeros is None or (zeros == 1 << (bits - 1)).all() else np.ascontiguousarray(zeros)


@dataclass(frozen=True)
class Found:
    """A weight in the graph.

    Attributes:
        shape: its shape.
        value: returns its elements, as float32 if they are computed.
        compressed: returns the codes from which they are computed, if there are any.
        flipped: whether a MatMul uses it with the inputs as rows.
        named: whether it has the parameter's name, rather than that of a layer with several inputs.
        order: the number at the end of the name of the layer that uses it.
    """

    shape: tuple[int, ...]
    value: Callable[[], np.ndarray]
    compressed: Callable[[], Compressed | None]
    flipped: bool = False
    named: bool = False
    order: int = 0

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))


@dataclass(frozen=True)
class Written:
    """The result of writing a folder's weights.

    Attributes:
        files: the files of weights.
        parameters: the number of parameters.
        compressed: the number of parameters that keep their codes.
        supplied: parameters that the IR lacks because they have no effect: scales of 1 and offsets of 0 of normalizations,
            biases of 0 of convolutions, scales of 1 in Mamba.
    """

    files: list[Path]
    parameters: int
    compressed: int
    supplied: list[str]


def write_weights(folder: Path, target: Path, decompress: bool = False) -> Written:
    """Write the weights and the configuration of a language model's folder.

    Args:
        folder: the folder that optimum-intel wrote.
        target: the output folder.
        decompress: whether to write the float32 values of codes instead of the codes.

    Raises:
        ConversionError: the folder is not a language model's, transformers does not support its architecture, or weights are
            missing or have other shapes. All of those are listed.
        OSError: a file cannot be written. The previous files are unchanged.
    """
    if not (folder / DECODER).is_file():
        raise path_error(folder, f"it contains no {DECODER}", AS_WRITTEN)
    if not (folder / CONFIG).is_file():
        raise path_error(folder, f"it contains no {CONFIG}, which names the architecture", AS_WRITTEN)
    check_companions(folder)
    config = read_object(folder / CONFIG)
    architecture = Architecture(folder / CONFIG, config)
    model = read(folder / DECODER)
    candidates: dict[str, list[Found]] = {}
    for name, found in _weights(model, architecture):
        candidates.setdefault(name, []).append(found)
    omitted = dict.fromkeys(convolutions_without_bias(model, architecture), 0.0)
    for name, port in skip_scales(model, architecture):
        if port is None:
            omitted[name] = 1.0
        else:
            candidates.setdefault(name, []).append(Found(_shape(port), partial(_value, port), lambda: None, named=True))
    tensors: dict[str, tuple[str, np.ndarray]] = {}
    schemes: dict[str, Scheme] = {}
    supplied: list[str] = []
    problems: list[Problem] = []
    for name, shape in architecture.shapes.items():
        weight = _chosen(candidates.get(name, []), shape)
        if weight is None:
            if (same := omitted.get(name, architecture.neutral(name))) is None:
                problems.append(_problem(folder, f"it contains no {name}, which the architecture requires"))
            else:
                tensors[name] = ("F32", np.full(shape, same, np.float32))
                supplied.append(name)
            continue
        module = name.removesuffix(".weight")
        packable = not decompress and not weight.flipped and architecture.is_linear(module)
        codes = weight.compressed() if packable else None
        if codes is not None and codes.codes.shape == shape:
            tensors |= _packed(module, codes)
            schemes[module] = codes.scheme
            continue
        value = _fitting(weight, shape, architecture, module)
        if value is None:
            problems.append(_problem(folder, f"{name} has the shape {list(weight.shape)}, the architecture's {list(shape)}"))
            continue
        tensors[name] = _stored(architecture.as_stored(name, value))
    if problems:
        raise ConversionError.of(problems)
    config = {**config, "architectures": [architecture.name]}
    if schemes:
        config["quantization_config"] = _quantization(schemes, architecture)
    copies = {path: place for path, place in places(folder, target).items() if place != target / CONFIG}
    shards = _shards(tensors)
    _reject_other_weights(target, shards)
    with created(target), Outputs(inputs=[folder / DECODER, folder / CONFIG, *copies]) as outputs:
        files = _write(tensors, shards, target, outputs)
        add_companions(outputs, copies, {target / CONFIG: f"{json.dumps(config, indent=2)}\n".encode()})
    return Written(files, len(architecture.shapes), len(schemes), supplied)


def check_weights(folder: Path, target: Path) -> float:
    """Return the largest difference of the logits from OpenVINO's for a few tokens, as a fraction of the largest logit.

    Args:
        folder: see `write_weights`.
        target: the folder that it wrote.

    Raises:
        ConversionError: OpenVINO, or a package that transformers needs for such weights, is missing, or transformers cannot
            load the weights.
    """
    remedy = "pip install 'onnx-specops[weights,openvino]'"
    try:
        import openvino as ov
        import torch
        import transformers
    except ImportError as error:
        raise path_error(target, f"it cannot be compared: {error}", remedy) from None
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32).eval()
        kernel = getattr(model.config, "conv_kernel", 0)
        count = _CHECKED_OF_MAMBA if kernel else _CHECKED
        ids = np.random.default_rng(0).integers(1, model.config.vocab_size, (2, count))
        with torch.no_grad():  # the first run decompresses
            found = model(input_ids=torch.from_numpy(ids)).logits.float().numpy()
    except Exception as error:  # for example, a release of compressed-tensors that cannot load its own zero points
        message = f"transformers {transformers.__version__} cannot load the weights: {error}"
        raise path_error(target, message, f"{remedy}, or specify --no-check") from error
    compiled = ov.Core().compile_model(folder / DECODER, "CPU", _EXACT)
    feeds = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "position_ids": np.tile(np.arange(count), (2, 1)),
        "beam_idx": np.arange(2, dtype=np.int32),
        "cache_position": np.arange(kernel),  # of Mamba, in the first run
    }
    names = {name for port in compiled.inputs for name in port.names}
    expected = compiled({name: array for name, array in feeds.items() if name in names})["logits"]
    distance = np.abs(found - expected).max() / np.abs(expected).max()
    return float(distance) if np.isfinite(distance) else float("inf")


def _problem(folder: Path, message: str) -> Problem:
    remedy = "use the config.json of the model from which the IR was converted"
    return Problem(message, str(folder / DECODER), remedy=remedy, fault=Fault.UNSUPPORTED)


# -- weights in the graph -----------------------------------------------------------------------------------------------


def _weights(model: Model, architecture: Architecture) -> Iterator[tuple[str, Found]]:
    """Yield the constant inputs of layers, with the name of the parameter that they may be."""
    # One constant may contain the weights of all experts, so the last ones are kept.
    value, codes = lru_cache(maxsize=4)(_value), lru_cache(maxsize=4)(_compressed)
    for layer in model.layers:
        if _is_constant(layer):
            continue
        for port in layer.inputs:
            if not (chain := _constant(port)):
                continue
            shape = _shape(port)
            flipped = layer.type == "MatMul" and _takes_inputs_first(layer, port)
            experts = _experts(layer, chain, shape, architecture)
            for number, expert in enumerate(experts):
                how = partial(_expert, value, port, number), partial(_expert_codes, codes, port, number)
                yield expert, Found(shape[1:], *how, flipped, named=True)
            if (name := decay(chain, architecture)) is not None:
                if (found := logarithm(value(port))) is not None:
                    yield name, Found(shape, partial(np.copy, found), lambda: None)
                continue
            own = _own_name(chain, architecture)
            name = _name_by_layer(layer, architecture) if own is None else own
            if experts or name is None:
                continue
            if own is None and (scale := _scale_before(layer, port)) != 1:
                yield name, Found(shape, partial(_quotient, value, port, scale), lambda: None)
            else:
                whole = partial(value, port), partial(codes, port)
                yield name, Found(shape, *whole, flipped, own is not None, _order(layer))


def _chosen(candidates: list[Found], shape: tuple[int, ...]) -> Found | None:
    """Return the weight of a parameter. Several layers may each use one row of it, such as Granite's experts."""
    size = int(np.prod(shape))
    for one in candidates:
        if one.named or one.size == size:
            return one
    rows = [one for one in candidates if one.shape == shape[1:]]
    if len(rows) < 2 or len(rows) != shape[0] or any(one.flipped for one in rows):
        return None
    rows.sort(key=lambda one: one.order)
    return Found(shape, lambda: np.stack([one.value() for one in rows]), lambda: None)


def _order(layer: Layer) -> int:
    _, _, number = layer.name.rpartition("_")
    return int(number) if number.isdecimal() else 0


def _shape(port: InputPort) -> tuple[int, ...]:
    """Return the shape of a constant."""
    layer = port.source.layer
    if layer.constant is not None:
        return layer.constant.shape
    return _value(port).shape if port.source.dims is None else tuple(dim or 0 for dim in port.source.dims)


def _experts(layer: Layer, chain: list[Layer], shape: tuple[int, ...], architecture: Architecture) -> list[str]:
    """Return the parameters of a mixture's experts if a MatMul multiplies by all of them; an empty list otherwise.

    optimum-intel 2 multiplies by three constants: both parts of ``experts.gate_up_proj``, and ``experts.down_proj``.
    """
    if layer.type != "MatMul" or len(shape) != 3:
        return []
    for one in chain:
        for pattern, use in _EXPERTS.items():
            if place := re.fullmatch(pattern, one.name):
                names = architecture.experts(place["path"], use)
                return names if len(names) == shape[0] else []
    return []


def _expert(value: Callable[[InputPort], np.ndarray], port: InputPort, number: int) -> np.ndarray:
    return value(port)[number]


def _expert_codes(codes: Callable[[InputPort, int], Compressed | None], port: InputPort, number: int) -> Compressed | None:
    count = _shape(port)[0]
    whole = codes(port, count)
    return None if whole is None else whole.part(number, count)


def _takes_inputs_first(layer: Layer, port: InputPort) -> bool:
    """Return whether a MatMul's constant operand is ``[inputs, outputs]``."""
    right = port.index == 1
    transposed = layer.attributes.get("transpose_b" if right else "transpose_a", "false") in ("true", "1")
    return right != transposed


def _is_constant(layer: Layer) -> bool:
    return bool(layer.inputs) and layer.type in (*_UNCHANGED, *_ARITHMETIC) and all(_constant(port) for port in layer.inputs)


def _constant(port: InputPort, depth: int = 0) -> list[Layer]:
    """Return the layers that compute a constant; an empty list if it is not constant."""
    layer = port.source.layer
    if layer.type == "Const":
        return [layer]
    if depth > 8 or layer.type not in (*_UNCHANGED, *_ARITHMETIC) or not layer.inputs:
        return []
    parts = [_constant(part, depth + 1) for part in layer.inputs]
    return [layer, *(one for part in parts for one in part)] if all(parts) else []


def _own_name(chain: list[Layer], architecture: Architecture) -> str | None:
    """Return the parameter after which one of the layers of a constant is named."""
    for one in chain:
        if not one.name.startswith(_OWN):
            continue
        name = one.name.removeprefix(_OWN)
        while name and (known := architecture.known(name)) is None:
            name = name[: max(name.rfind(end) for end in "._/") if any(end in name for end in "._/") else 0]
        if name:
            return known
    return None


def _name_by_layer(layer: Layer, architecture: Architecture) -> str | None:
    """Return the parameter of the module to which a layer belongs. An addition to a matrix multiplication may have the name
    of a conversion after it.
    """
    if layer.type == "Add":
        for port in layer.inputs:
            product, _ = _unscaled(port.source.layer)
            place = MODULE_OF_LAYER.match(product.name) if product.type == "MatMul" else None
            if place is not None and (bias := architecture.known(f"{place['path']}.bias")) is not None:
                return bias
    for name in (
        convolution_bias(layer, architecture),
        step_bias(layer, architecture),
        skip_scale(layer, architecture),
    ):
        if name is not None:
            return name
    place = MODULE_OF_LAYER.match(layer.name)
    if place is None:
        return None
    name = architecture.known(f"{place['path']}.{'bias' if layer.type in ('Add', 'Subtract') else 'weight'}")
    if name is None and layer.type in ("Convolution", "GroupConvolution"):
        return architecture.convolution_in(place["path"])
    return name


def _unscaled(layer: Layer) -> tuple[Layer, float]:
    """Return the matrix multiplication whose result a layer multiplies by a number, and the number; or the layer and 1.

    OpenVINO moves the scale of OPT's queries before the addition of the bias, and multiplies the bias by it.
    """
    if layer.type == "Multiply":
        for port, other in (layer.inputs, layer.inputs[::-1]):
            product = port.source.layer
            if product.type == "MatMul" and _constant(other) and (scale := _value(other)).size == 1 and scale.all():
                return product, float(scale.reshape(()))
    return layer, 1.0


def _scale_before(layer: Layer, port: InputPort) -> float:
    """Return the number by which the other input of an addition was multiplied."""
    if layer.type != "Add":
        return 1.0
    (other,) = (one for one in layer.inputs if one is not port)
    return _unscaled(other.source.layer)[1]


def _quotient(value: Callable[[InputPort], np.ndarray], port: InputPort, scale: float) -> np.ndarray:
    return value(port) / np.float32(scale)


def _value(port: InputPort) -> np.ndarray:
    """Return the elements of a constant. A Convert of integers gives float32."""
    layer = port.source.layer
    if layer.type == "Const":
        assert layer.constant is not None
        return layer.constant.numpy()
    values = [_value(part) for part in layer.inputs]
    if layer.type == "Convert":
        return values[0] if values[0].dtype in (np.float16, ml_dtypes.bfloat16) else values[0].astype(np.float32)
    if layer.type in ("Reshape", "Unsqueeze", "Squeeze"):
        assert layer.outputs[0].dims is not None
        return values[0].reshape([dim or -1 for dim in layer.outputs[0].dims])
    if layer.type == "Transpose":
        return values[0].transpose(values[1].tolist())
    left, right = (value.astype(np.float32) for value in values)
    return {"Multiply": np.multiply, "Subtract": np.subtract, "Add": np.add}[layer.type](left, right)


def _compressed(port: InputPort, experts: int | None = None) -> Compressed | None:
    """Return the codes of ``(codes - zero points) * scales``, as NNCF writes it; ``None`` for another form.

    With ``experts``, the constant has a further dimension before the others. The rows of the experts follow each other.
    """
    layer = _producer(port)
    if layer.type != "Multiply":
        return None
    scale = _producer(layer.inputs[1])
    inner = _producer(layer.inputs[0])
    zero: Layer | None = None
    if inner.type == "Subtract":
        zero, inner = _producer(inner.inputs[1]), _producer(inner.inputs[0])
    if scale.type != "Const" or inner.type != "Const" or inner.constant is None or scale.constant is None:
        return None
    kind = inner.constant.element_type
    bits = _BITS.get(kind)
    shape = inner.constant.shape
    matrix = shape if experts is None else shape[1:]
    if bits is None or inner.constant.count == 0 or len(matrix) not in (2, 3) or shape[0] != (experts or shape[0]):
        return None
    rows, middle = matrix[0] * (experts or 1), 1 << (bits - 1)
    of_rows = (*shape[:-1], 1)  # a scale for each row or group
    if scale.constant.shape != of_rows:
        return None
    scales = scale.constant.numpy().reshape(rows, -1)
    codes = inner.constant.codes().reshape(rows, -1)
    unsigned = kind in (ElementType.U4, ElementType.U8)
    if not unsigned:
        return Compressed(codes ^ middle, scales, None, bits) if zero is None else None
    if zero is None:
        return Compressed(codes, scales, np.zeros(scales.shape, np.uint8), bits)
    if zero.constant is None or zero.constant.element_type is not kind:
        return None
    points = zero.constant.codes().reshape(zero.constant.shape)
    if points.ndim > len(of_rows) or any(
        size not in (1, own) for size, own in zip(points.shape[::-1], of_rows[::-1], strict=False)
    ):
        return None
    zeros = np.broadcast_to(points, of_rows).reshape(scales.shape)
    return Compressed(codes, scales, _unless_middle(zeros, bits), bits)


def _producer(port: InputPort) -> Layer:
    """Return the layer that computes a value, before conversions and reshapes."""
    return producer_before(port, _UNCHANGED)


# -- weights as transformers and compressed-tensors store them ----------------------------------------------------------


def _fitting(weight: Found, shape: tuple[int, ...], architecture: Architecture, module: str) -> np.ndarray | None:
    """Return a weight in the shape of the architecture; ``None`` if its number of elements differs."""
    if weight.size != int(np.prod(shape)):
        return None
    value = weight.value()
    if len(shape) != 2:
        squeezed = tuple(dim for dim in value.shape if dim != 1)
        return value.reshape(shape) if squeezed == tuple(dim for dim in shape if dim != 1) else None
    matrix = value.reshape(value.shape[-2:]) if value.ndim > 2 and value.size == value.shape[-1] * value.shape[-2] else value
    inputs_first = architecture.takes_inputs_first(module)
    matrix = matrix.T if architecture.is_product(module) and weight.flipped != inputs_first else matrix
    return np.ascontiguousarray(matrix) if matrix.shape == shape else None


def _stored(value: np.ndarray) -> tuple[str, np.ndarray]:
    names = {np.dtype(np.float16): "F16", np.dtype(ml_dtypes.bfloat16): "BF16"}
    name = names.get(value.dtype, "F32")
    return name, np.ascontiguousarray(value, _DTYPES[name])


def _packed(module: str, found: Compressed) -> dict[str, tuple[str, np.ndarray]]:
    """Return the tensors of a linear layer in the form ``pack-quantized``."""
    scales = found.scales if found.scales.dtype in (np.float16, np.float32) else found.scales.astype(np.float32)
    tensors = {
        f"{module}.weight_packed": ("I32", pack(found.codes, found.bits)),
        f"{module}.weight_scale": _stored(scales),
        f"{module}.weight_shape": ("I64", np.array(found.codes.shape, np.int64)),
    }
    if found.zero_points is not None:  # packed along the rows
        tensors[f"{module}.weight_zero_point"] = "I32", np.ascontiguousarray(pack(found.zero_points.T, found.bits).T)
    return tensors


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Pack codes of 4 or 8 bits, ``[rows, columns]``, into int32 ``[rows, ceil(columns * bits / 32)]``, low bits first."""
    each = 32 // bits
    rows, columns = codes.shape
    whole = np.zeros((rows, -(-columns // each) * each), np.uint8)
    whole[:, :columns] = codes
    if bits == 4:
        whole = whole[:, ::2] | whole[:, 1::2] << 4
    return np.ascontiguousarray(whole).view("<i4")


def _quantization(schemes: Mapping[str, Scheme], architecture: Architecture) -> dict[str, Any]:
    """Return the ``quantization_config`` of compressed-tensors: the scheme of each module."""
    groups = {}
    for number, scheme in enumerate(sorted(set(schemes.values()), key=str)):
        bits, group, symmetric = scheme
        groups[f"group_{number}"] = {
            "targets": [module for module, own in schemes.items() if own == scheme],
            "weights": {
                "num_bits": bits, "type": "int", "symmetric": symmetric, "dynamic": False,
                "strategy": "channel" if group is None else "group", "group_size": group,
            },
        }  # fmt: skip
    return {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "quantization_status": "compressed",
        "config_groups": groups,
        "ignore": [module for module in architecture.linear if module not in schemes],
    }


def _shards(tensors: Mapping[str, tuple[str, np.ndarray]]) -> dict[str, list[str]]:
    """Return the names of the files, each with at most `_SHARD_BYTES`, and the tensors in each."""
    shards: list[list[str]] = [[]]
    size = 0
    for name, (_, value) in tensors.items():
        if shards[-1] and size + value.nbytes > _SHARD_BYTES:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += value.nbytes
    count = len(shards)
    names = [WEIGHTS] if count == 1 else [f"model-{k + 1:05}-of-{count:05}.safetensors" for k in range(count)]
    return dict(zip(names, shards, strict=True))


def _reject_other_weights(target: Path, shards: Mapping[str, list[str]]) -> None:
    """Raise `ConversionError` if the output folder has files of weights that stay. Engines would load them."""
    new = {*shards, INDEX} if len(shards) > 1 else set(shards)
    old = [target / INDEX, *sorted(target.glob("*.safetensors"))] if target.is_dir() else []
    for path in old:
        if path.name not in new and path.is_file():
            message = "it would stay next to the new weights, and engines would load it"
            raise path_error(path, message, "delete it, or specify another output folder")


def _write(
    tensors: Mapping[str, tuple[str, np.ndarray]], shards: Mapping[str, list[str]], target: Path, outputs: Outputs
) -> list[Path]:
    """Write the files of weights, with an index if there are several."""
    for name, shard in shards.items():
        with outputs.open(target / name) as file:
            for part in _safetensors({one: tensors[one] for one in shard}):
                file.write(part)
    if len(shards) > 1:
        index = {one: name for name, shard in shards.items() for one in shard}
        total = sum(value.nbytes for _, value in tensors.values())
        with outputs.open(target / INDEX) as file:
            file.write(json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=2).encode())
    return [target / name for name in shards]


def _safetensors(tensors: Mapping[str, tuple[str, np.ndarray]]) -> Iterator[bytes]:
    """Yield the parts of a safetensors file: the header's length, the header, and the tensors' bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, (kind, value) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [end, end + value.nbytes]}
        end += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for _, value in tensors.values():
        yield value.tobytes()
