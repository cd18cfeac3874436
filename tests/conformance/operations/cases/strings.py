"""Strings: taking them apart and putting them together, vocabularies, hash buckets."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case

TEXTS = np.array(["emerson", "", "Grüße", "漢字かな", "a b", "x" * 300, "lake"], object)
FEW = np.array([["lake", "palmer"], ["", "and"]], object)


def _type(array: np.ndarray):
    import openvino as ov

    return ov.Type.string if array.dtype.kind == "O" else ov.Type(array.dtype)


def _model(emit, *arrays, dynamic=False, constants=()):
    """The results of ``emit(ops, extension, *nodes)``: a Parameter for each array, or a constant where its index says so."""

    def build():
        import openvino as ov
        from openvino import opset15 as ops

        nodes, parameters = [], []
        for index, array in enumerate(arrays):
            if index in constants:
                data = ov.Tensor(array.astype(str)) if array.dtype.kind == "O" else ov.Tensor(np.ascontiguousarray(array))
                nodes.append(ov.op.Constant(data, shared_memory=False))
            else:
                shape = [-1] * array.ndim if dynamic else list(array.shape)
                nodes.append(ops.parameter(shape, _type(array), f"p{index}"))
                parameters.append(nodes[-1])
        return ov.Model([ops.result(value) for value in emit(ops, *nodes)], parameters)

    return build


def _extension(name, *inputs, **attributes):
    """A layer of openvino_tokenizers; of a function, since importing that package changes OpenVINO's factories."""
    import openvino_tokenizers

    outputs = [output for node in inputs for output in (node.outputs() if hasattr(node, "outputs") else [node])]
    return openvino_tokenizers._get_factory().create(name, outputs, attributes)


# -- StringTensorUnpack and StringTensorPack -------------------------------------------------------------------------------


def _unpack(ops, x):
    return ops.string_tensor_unpack(x).outputs()


def _pack(ops, begins, ends, symbols):
    return [ops.string_tensor_pack(begins, ends, symbols)]


def _repack(ops, x):
    """Apart and together again; and every string without its first byte."""
    begins, ends, symbols = ops.string_tensor_unpack(x).outputs()
    later = ops.minimum(ops.add(begins, ops.constant(np.int32(1))), ends)
    return [ops.string_tensor_pack(begins, ends, symbols), ops.string_tensor_pack(later, ends, symbols)]


SYMBOLS = np.frombuffer(b"emersonlakepalmer", np.uint8)
BEGINS, ENDS = np.array([0, 7, 11], np.int32), np.array([7, 11, 17], np.int32)
CASES = [
    Case("StringTensorUnpack", "opset15", "vector", _model(_unpack, TEXTS), [(TEXTS,)]),
    Case("StringTensorUnpack", "opset15", "matrix", _model(_unpack, FEW), [(FEW,)]),
    Case("StringTensorUnpack", "opset15", "dynamic", _model(_unpack, FEW, dynamic=True), [(FEW,), (FEW[:1, :1],)]),
    Case("StringTensorUnpack", "opset15", "no-strings", _model(_unpack, FEW, dynamic=True), [(FEW[:0],)], "expected",
         "the CPU plugin leaves the outputs' shapes as they were",
         expected=[[np.zeros((0, 2), np.int32), np.zeros((0, 2), np.int32), np.zeros(0, np.uint8)]]),
    Case("StringTensorUnpack", "opset15", "constant", _model(_unpack, TEXTS, constants=(0,)), [()]),
    Case("StringTensorUnpack", "opset15", "empty-strings", _model(_unpack, TEXTS), [(np.full(7, "", object),)]),
    Case("StringTensorUnpack", "opset15", "repacked", _model(_repack, np.array(["ab", "", "c"], object)),
         [(np.array(["ab", "", "c"], object),)]),
    Case("StringTensorPack", "opset15", "vector", _model(_pack, BEGINS, ENDS, SYMBOLS), [(BEGINS, ENDS, SYMBOLS)]),
    Case("StringTensorPack", "opset15", "i64", _model(_pack, BEGINS.astype(np.int64), ENDS.astype(np.int64), SYMBOLS),
         [(BEGINS.astype(np.int64), ENDS.astype(np.int64), SYMBOLS)]),
    Case("StringTensorPack", "opset15", "dynamic", _model(_pack, BEGINS, ENDS, SYMBOLS, dynamic=True),
         [(BEGINS, ENDS, SYMBOLS), (BEGINS[:1], ENDS[1:2], SYMBOLS), (BEGINS[:0], ENDS[:0], SYMBOLS)]),
    Case("StringTensorPack", "opset15", "gaps-overlaps-and-repetitions", _model(_pack, BEGINS, ENDS, SYMBOLS),
         [(np.array([2, 0, 2], np.int32), np.array([9, 17, 2], np.int32), SYMBOLS)]),
    Case("StringTensorPack", "opset15", "matrix", _model(_pack, BEGINS[None], ENDS[None], SYMBOLS),
         [(BEGINS[None], ENDS[None], SYMBOLS)]),
    Case("StringTensorPack", "opset15", "characters-of-several-bytes",
         _model(_pack, BEGINS[:2], ENDS[:2], np.frombuffer("Grüße漢".encode(), np.uint8)),
         [(np.array([0, 7], np.int32), np.array([7, 10], np.int32), np.frombuffer("Grüße漢".encode(), np.uint8))]),
    Case("StringTensorPack", "opset15", "constants", _model(_pack, BEGINS, ENDS, SYMBOLS, constants=(0, 1, 2)), [()],
         "expected", "the CPU plugin cannot hold strings that it computes while it compiles",
         expected=[[np.array(["emerson", "lake", "palmer"], object)]]),
    Case("StringTensorPack", "opset15", "repacked", _model(_repack, np.array(["ab", "", "c"], object)),
         [(np.array(["ab", "", "c"], object),)]),
]  # fmt: skip
