"""Attention over variables for tokens without visible keys: fused nodes of OpenVINO give numbers, others NaN.

Queries, keys and values are inputs, so `converters.passes.attention.in_place_cache` does not match any of these models.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset8, opset13

import onnx_specops
from converters.openvino import convert

F, I32, I64 = np.float32, np.int32, np.int64
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
HEADS, SIZE = 2, 8

FUSED = [
    "plain",
    "shared",
    "shared-by-product",
    "transposed",
    "float16",
    "shape",
    "rows-shape",
    "rows-shapes",
    "read-shape",
    "scale",
]
APART = [
    "no-rows",
    "rows-i64",
    "other-rows",
    "taken",
    "rows-taken",
    "read-taken",
    "keys-transposed",
    "written-out",
    "no-cache",
]


def _ints(*numbers: int) -> ov.Node:
    return opset13.constant(np.array(numbers, I64))


def _model(form: str, mask: str) -> ov.Model:
    """Build attention with caches in a given form; the mask's second dimension is 1."""
    batch, heads, length, size = 0, 1, 2, 3
    if form == "transposed":
        heads, length = 2, 1
    groups = 1 if "shared" in form else HEADS
    dims = [-1] * 4
    dims[heads], dims[size] = HEADS, SIZE
    own = [groups if i == heads else d for i, d in enumerate(dims)]
    query, key, value = (opset13.parameter(d, F, name=n) for d, n in ((dims, "q"), (own, "k"), (own, "v")))
    rows = opset13.parameter([-1], I64 if form == "rows-i64" else I32, name="rows")
    other = opset13.parameter([-1], I32, name="other")
    inputs = [query, key, value]
    sinks: list[ov.Node] = []
    results: list[ov.Node] = []

    def cached(new: ov.Node, name: str, rows: ov.Node | None) -> ov.Node:
        begin = [2 if i == batch else 0 if d == -1 else d for i, d in enumerate(own)]
        kind = np.float16 if form == "float16" else F
        shape = ov.PartialShape([-1 if i == batch else d for i, d in enumerate(own)])
        read = opset13.read_value(opset13.constant(np.zeros(begin, kind)), name, ov.Type(kind), shape)
        past = opset13.convert(read, F) if form == "float16" else read
        chosen = past if rows is None else opset13.gather(past, rows, opset13.constant(batch))
        grown = opset13.concat([chosen, new], length)
        sinks.append(opset13.assign(opset13.convert(grown, kind) if form == "float16" else grown, name))
        if form == "taken":
            results.append(opset13.reduce_sum(grown, _ints(length), False))
        if form == "rows-taken":
            results.append(opset13.reduce_sum(chosen, _ints(length), False))
        if form == "read-taken":
            results.append(opset13.reduce_sum(read, _ints(length), False))
        sized = {"shape": [grown], "rows-shape": [chosen], "rows-shapes": [chosen, chosen], "read-shape": [read]}
        results.extend(opset13.convert(opset13.shape_of(one), F) for one in sized.get(form, ()))
        return grown

    def repeated(x: ov.Node) -> ov.Node:
        if "shared" not in form:
            return x
        single = opset13.unsqueeze(x, _ints(2))
        if form == "shared":
            whole = opset13.concat([opset13.gather(opset13.shape_of(x), _ints(0), _ints(0)), _ints(1, HEADS, 1, 1)], 0)
            wide = opset13.broadcast(single, whole, broadcast_spec="BIDIRECTIONAL")
        else:
            wide = opset13.multiply(single, opset13.constant(np.ones((1, 1, HEADS, 1, 1), F)))
        return opset13.reshape(wide, _ints(0, HEADS, -1, SIZE), True)

    chosen = {"no-rows": (None, None), "other-rows": (rows, other)}.get(form, (rows, rows))
    inputs += [x for x in dict.fromkeys(chosen) if x is not None and form != "no-cache"]
    keys, values = key, value
    if form != "no-cache":
        keys, values = cached(key, "keys", chosen[0]), cached(value, "values", chosen[1])
    keys, values = repeated(keys), repeated(values)
    if form == "transposed":
        query, keys, values = (opset13.transpose(x, _ints(0, 2, 1, 3)) for x in (query, keys, values))
    if form == "keys-transposed":
        keys = opset13.transpose(opset13.transpose(keys, _ints(0, 2, 1, 3)), _ints(0, 2, 1, 3))
        keys = opset13.transpose(opset13.multiply(opset13.transpose(keys, _ints(0, 1, 3, 2)), _one()), _ints(0, 1, 3, 2))
    seen = opset13.parameter([-1, 1, -1, -1], bool if mask == "booleans" else F, name="mask")
    inputs.append(seen)
    more = [opset13.constant(F(0.5))] if form == "scale" else []
    if form == "written-out":
        products = opset13.matmul(query, keys, False, True)
        hidden = (
            opset13.select(seen, products, opset13.constant(F(-np.inf)))
            if mask == "booleans"
            else opset13.add(products, seen)
        )
        mixed = opset13.matmul(opset8.softmax(hidden, -1), values, False, False)
    else:
        mixed = opset13.scaled_dot_product_attention(query, keys, values, seen, *more)
    return ov.Model([opset13.result(x) for x in (mixed, *results)], sinks, inputs)


def _one() -> ov.Node:
    return opset13.constant(np.full((1, 1, 1, 1), 2, F))


def _runs(form: str, mask: str) -> Any:
    generator, past = np.random.default_rng(0), 0
    groups = 1 if "shared" in form else HEADS
    for count, rows in ((3, [0, 1]), (1, [1, 0]), (2, [0, 1]), (1, [1, 1])):
        past = count if form == "no-cache" else past + count
        feeds = {
            n: generator.standard_normal((2, h, count, SIZE)).astype(F)
            for n, h in (("q", HEADS), ("k", groups), ("v", groups))
        }
        if form == "transposed":
            feeds = {n: x.transpose(0, 2, 1, 3) for n, x in feeds.items()}
        seen = np.ones((2, 1, count, past), bool)
        seen[1, :, 0] = False
        seen[0, ..., :1] = False if past > 1 else seen[0, ..., :1]
        feeds["mask"] = seen if mask == "booleans" else np.where(seen, 0, -np.inf).astype(F)
        feeds["rows"] = np.array(rows, I64 if form == "rows-i64" else I32)
        feeds["other"] = np.array(rows[::-1], I32)
        yield feeds


@pytest.mark.parametrize("form", FUSED + APART)
@pytest.mark.parametrize("mask", ["numbers", "booleans"])
def test_tokens_without_visible_keys(tmp_path: Path, form: str, mask: str) -> None:
    ov.save_model(_model(form, mask), tmp_path / "model.xml", compress_to_fp16=False)
    request = ov.Core().compile_model(tmp_path / "model.xml", "CPU", EXACT).create_infer_request()
    convert(tmp_path / "model.xml", tmp_path / "model.onnx")
    sessions = [onnx_specops.InferenceSession(tmp_path / "model.onnx", kernels=kernels) for kernels in ("native", "none")]
    names = {value.name for value in sessions[0].get_inputs()}
    for feeds in _runs(form, mask):
        given = {name: np.ascontiguousarray(x) for name, x in feeds.items() if name in names}
        wanted = [np.array(x) for x in request.infer(given).values()]
        assert np.isfinite(wanted[0]).all() == (form in FUSED)
        for session in sessions:
            for got, x in zip(session.run(None, given), wanted, strict=True):
                np.testing.assert_allclose(got, x, rtol=1e-4, atol=1e-3 if form == "float16" else 1e-5)
