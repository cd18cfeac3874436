"""Random nodes of MatMulCompressed (weights of every kind, in groups of any size), attention and normalization."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tests.onnx_specops.native.nodes import Node, element_type

BF16 = ml_dtypes.bfloat16
KINDS = (
    "uint2",
    "uint4",
    "int4",
    "codebook2",
    "codebook4",
    "codebook8",
    "uint8",
    "int8",
    "e4m3",
    "e5m2",
    "float16",
    "bfloat16",
    "float32",
)
_BYTES = np.arange(256, dtype=np.uint8)
_E4M3 = _BYTES.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
_E5M2 = _BYTES.view(ml_dtypes.float8_e5m2).astype(np.float32)


def _pick(rng: np.random.Generator, options: Any) -> Any:
    return options[rng.integers(len(options))]


def _pack(codes: np.ndarray, bits: int) -> np.ndarray:
    flat = np.concatenate([codes.reshape(-1), np.zeros(-codes.size % (8 // bits), np.uint8)]).reshape(-1, 8 // bits)
    return (flat << np.arange(0, 8, bits, dtype=np.uint8)).sum(axis=1).astype(np.uint8)


def _weights(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> tuple[np.ndarray, str, np.ndarray | None]:
    """Return B, its packing, and the codebook."""
    bits = {"uint2": 2, "codebook2": 2, "uint4": 4, "int4": 4, "codebook4": 4}.get(kind, 8)
    book = rng.standard_normal(1 << bits).astype(np.float32) if kind.startswith("codebook") else None
    if bits < 8:
        b = _pack(rng.integers(0, 1 << bits, shape, dtype=np.uint8), bits)
        if shape[-1] * bits % 8 == 0:
            b = b.reshape(*shape[:-1], -1)
        elif len(shape) > 2:
            b = b.reshape(shape[0], 1, -1)
        return b, kind if kind == "int4" else f"uint{bits}", book
    if kind == "int8":
        return rng.integers(-128, 128, shape, dtype=np.int8), "no", None
    if kind in ("float16", "bfloat16", "float32"):
        return rng.standard_normal(shape).astype(BF16 if kind == "bfloat16" else kind), "no", None
    b = rng.integers(0, 256, shape, dtype=np.uint8)
    if kind in ("e4m3", "e5m2"):
        book = _E4M3 if kind == "e4m3" else _E5M2
        b[~(np.abs(book[b]) < 500)] = 0x30  # no infinities
    return b, "no", book


def mat_mul_compressed(rng: np.random.Generator) -> Node:
    kind = _pick(rng, KINDS)
    columns, depth = rng.integers(1, 100), int(_pick(rng, (1, 2, 7, 32, 33, 64, 96, 160, 256, 512, 600, 1024, 8448)))
    block_size = int(_pick(rng, (1, 3, 16, 32, 64, 128, 256, depth, 2 * depth)))
    transposed = int(rng.random() < 0.7)
    batch = (int(rng.integers(1, 4)),) if rng.random() < 0.3 and columns * depth % 4 == 0 else ()
    b, packed, book = _weights(rng, kind, (*batch, columns, depth) if transposed else (*batch, depth, columns))
    blocks = -(-depth // min(block_size, depth))

    def numbers(values: Any, types: Any) -> np.ndarray | None:
        if rng.random() < 0.3:
            return None
        dims = [1 if rng.random() < 0.2 else size for size in (columns, blocks)]
        leading = batch if rng.random() < 0.5 else ()
        return values((*leading, *(dims if transposed else dims[::-1]))).astype(_pick(rng, types))

    scales = numbers(rng.standard_normal, (np.float32, np.float16, BF16))
    largest = {"uint2": 4, "int4": 8}.get(packed, 16)
    zeros = numbers(lambda shape: rng.integers(0, largest, shape), (np.uint8, np.int8, np.float32, np.float16, BF16))
    rows = int(_pick(rng, (0, 1, 2, 3, 4, 13, 50)))
    leading = _pick(rng, ((), (1,), (2, 1), batch))
    a = rng.standard_normal((*leading, rows, depth)) / (100 * np.sqrt(depth))
    a = a.astype(_pick(rng, (np.float32, np.float32, np.float16, BF16)))
    attributes = {"N": int(columns), "K": depth, "block_size": block_size, "packed": packed, "transB": transposed}
    attributes["activations"] = _pick(rng, ("float", "int8"))
    attributes["function"] = _pick(rng, ("none", "none", "gelu"))
    bias = rng.standard_normal(columns).astype(np.float32) / 100 if rng.random() < 0.3 else None
    return "MatMulCompressed", [a, b, scales, zeros, book, bias], [element_type(a)], attributes


def attention(rng: np.random.Generator) -> Node:
    q, k, v, mask, attributes = _attended(rng)
    return "Attention", [q, k, v, mask], [element_type(q)], attributes


def quantized_attention(rng: np.random.Generator) -> Node:
    q, k, v, mask, attributes = _attended(rng)
    arrays: list[np.ndarray | None] = []
    for x in (q, k):
        zero = int(_pick(rng, (0, 3, 128, 128, 200, 255)))
        levels = np.clip(np.rint(x / np.float32(0.03)) + zero, 0, 255).astype(np.uint8)
        arrays += [levels, np.array(0.03 if rng.random() < 0.8 else 2.0, np.float32), np.array(zero, np.uint8)]
    zero_of_result = np.array(rng.integers(0, 256), _pick(rng, (np.uint8, np.float32)))
    arrays += [v, np.array(rng.uniform(0.002, 0.02), np.float32), zero_of_result, mask]
    return "QuantizedAttention", arrays, [element_type(zero_of_result)], attributes


def quantized_group_moments(rng: np.random.Generator) -> Node:
    groups, size = int(rng.integers(1, 5)), int(rng.integers(1, 20))
    x = rng.integers(0, 256, (int(rng.integers(0, 3)), *rng.integers(1, 9, rng.integers(1, 4)), groups * size))
    arrays = [x.astype(np.uint8), np.array(rng.uniform(0.001, 1), np.float32), np.array(rng.integers(0, 256), np.uint8)]
    attributes = {"channels": groups * size, "num_groups": groups, "epsilon": float(_pick(rng, (1e-5, 0.1)))}
    return "QuantizedGroupMoments", arrays, [1, 1], attributes


def _attended(
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, dict[str, Any]]:
    """Return queries, keys, values, a mask, and the attributes."""
    shared, batch = int(rng.integers(1, 4)), int(rng.integers(0, 4))
    own = int(rng.integers(1, 4))
    heads = own * shared
    queries, keys = int(_pick(rng, (0, 1, 2, 12, 13, 49, 100))), int(_pick(rng, (0, 1, 5, 16, 17, 33, 64, 512, 513)))
    size, value_size = (int(_pick(rng, (1, 3, 16, 31, 32, 64, 80))) for _ in range(2))
    q, k, v = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((batch, queries, heads * size), (batch, keys, own * size), (batch, keys, own * value_size))
    )
    mask: np.ndarray | None = None
    if rng.random() < 0.7:
        dims = [1 if rng.random() < 0.3 else n for n in (batch, heads, queries, keys)]
        mask = rng.standard_normal(dims).astype(np.float32)
        mask = mask if rng.random() < 0.4 else mask > -1 if rng.random() < 0.5 else np.where(mask > 0, mask, -np.inf)
        mask = mask.astype(np.float32) if mask.dtype.kind == "f" else mask
    attributes = {"q_num_heads": heads, "kv_num_heads": own, "scale": float(_pick(rng, (0.0, 0.2)))}
    return q, k, v, mask, attributes


def quantized_layer_normalization(rng: np.random.Generator) -> Node:
    size = int(_pick(rng, (1, 2, 15, 16, 17, 32, 33, 96, 100)))
    shape = (*_pick(rng, ((), (1,), (0,), (3,), (2, 5), (40, 40))), size)
    x = rng.integers(0, 256, shape, np.uint8) if rng.random() < 0.5 else rng.standard_normal(shape).astype(np.float32)
    x_zero, y_zero = np.array(100, x.dtype), np.array(rng.integers(0, 256), _pick(rng, (np.uint8, np.float32)))
    scale, bias = (rng.standard_normal(size).astype(np.float32) for _ in range(2))
    arrays = [x, np.array(0.02, np.float32), x_zero, scale, np.array(rng.uniform(0.01, 0.03), np.float32), y_zero]
    arrays.append(bias if rng.random() < 0.7 else None)
    attributes = {"epsilon": float(_pick(rng, (1e-5, 1e-12, 0.5)))}
    return "QuantizedLayerNormalization", arrays, [element_type(y_zero)], attributes
