"""Strings: unpacking and packing."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import decided, dynamic, dynamics, layer_case, static, statics

TEXTS = np.array(["emerson", "", "Grüße", "漢字かな", "a b", "x" * 300, "lake"], object)
FEW = np.array([["lake", "palmer"], ["", "and"]], object)


def _strings(*texts):
    return np.array(texts, object)


def _repack(ops, x):
    """Unpacked and packed again; and every string without its first byte."""
    begins, ends, symbols = ops.string_tensor_unpack(x).outputs()
    later = ops.minimum(ops.add(begins, ops.constant(np.int32(1))), ends)
    return [ops.string_tensor_pack(begins, ends, symbols), ops.string_tensor_pack(later, ends, symbols)]


def _unpacked():
    case = partial(layer_case, "StringTensorUnpack", "opset15", "string_tensor_unpack")
    yield case("vector", [static(TEXTS)])
    yield case("matrix", [static(FEW)])
    yield case("dynamic", [dynamic(FEW, FEW[:1, :1])])
    expected = np.zeros((0, 2), np.int32), np.zeros((0, 2), np.int32), np.zeros(0, np.uint8)
    kept = decided("expected", "the CPU plugin does not update the shapes of the outputs", *expected)
    yield case("no-strings", [dynamic(FEW[:0])], **kept)
    yield case("constant", [TEXTS])
    yield case("empty-strings", [static(np.full(7, "", object))])
    yield layer_case("StringTensorUnpack", "opset15", _repack, "repacked", [static(_strings("ab", "", "c"))])


def _packed():
    case = partial(layer_case, "StringTensorPack", "opset15", "string_tensor_pack")
    symbols = np.frombuffer(b"emersonlakepalmer", np.uint8)
    begins, ends = np.array([0, 7, 11], np.int32), np.array([7, 11, 17], np.int32)
    yield case("vector", statics([begins, ends, symbols]))
    yield case("i64", statics([begins.astype(np.int64), ends.astype(np.int64), symbols]))
    runs = (begins, ends, symbols), (begins[:1], ends[1:2], symbols), (begins[:0], ends[:0], symbols)
    yield case("dynamic", dynamics(*runs))
    given = np.array([2, 0, 2], np.int32), np.array([9, 17, 2], np.int32), symbols
    yield case("gaps-overlaps-and-repetitions", statics(given))
    yield case("matrix", statics([begins[None], ends[None], symbols]))
    wide = np.frombuffer("Grüße漢".encode(), np.uint8)
    given = np.array([0, 7], np.int32), np.array([7, 10], np.int32), wide
    yield case("characters-of-several-bytes", statics(given))
    reason = "the CPU plugin cannot store strings that it computes when it compiles the model"
    settings = decided("expected", reason, _strings("emerson", "lake", "palmer"))
    yield case("constants", [begins, ends, symbols], **settings)
    yield layer_case("StringTensorPack", "opset15", _repack, "repacked", [static(_strings("ab", "", "c"))])


CASES = [*_unpacked(), *_packed()]
