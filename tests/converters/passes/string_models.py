"""Models with the layers of openvino_tokenizers, and OpenVINO's results for them.

    python string_models.py FOLDER

Importing openvino_tokenizers changes OpenVINO's factories, so the tests run this in a separate process.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

VOCABULARY = ["emerson", "lake", "palmer"]
STRINGS = np.array(["emerson", "lake", "and", "palmer", "dad", "mom", "hello", ""])
NUMBERS = np.array([7, 9, -3, 0, 2**31 - 1, 8, 7])


class Tables:
    """The layers as OpenVINO's TensorFlow frontend emits them."""

    def __init__(self) -> None:
        import openvino as ov
        import openvino_tokenizers
        from openvino import opset13 as ops

        self.ov, self.ops, self.create = ov, ops, openvino_tokenizers._get_factory().create
        self.parameters: list = []

    def parameter(self, array: np.ndarray, name: str):
        kind = self.ov.Type.string if array.dtype.kind == "U" else self.ov.Type(array.dtype)
        node = self.ops.parameter([-1] * array.ndim, kind, name=name)
        self.parameters.append(node)
        return node

    def unpack(self, x):
        return self.create("StringTensorUnpack", x.outputs(), {}).outputs()

    def constant(self, data, dtype=np.int64):
        if isinstance(data, list) and data and isinstance(data[0], str):
            return self.ov.op.Constant(self.ov.Tensor(np.array(data)), shared_memory=False)
        return self.ops.constant(np.array(data, dtype))

    def look_up(self, keys, vocabulary=VOCABULARY, values=None, default=-1, *, wide=True):
        values = list(range(len(vocabulary))) if values is None else values
        inputs = [
            *self.unpack(keys),
            *self.unpack(self.constant(vocabulary)),
            self.constant(values, np.int32).output(0),
            self.constant(default, np.int32).output(0),
        ]
        found = self.create("VocabEncoder", inputs, {})
        return self.ops.convert(found, "i64") if wide else found

    def hashed(self, keys, buckets=10):
        return self.create("StringToHashBucket", self.unpack(keys), {"num_buckets": buckets})

    def table(
        self, keys, *, hashed=None, buckets=10, offset=3, miss=-1, swapped=False, test="not_equal", found=None, **look_up
    ):
        """The whole chain: the id if it is found, otherwise a bucket."""
        ops = self.ops
        found = self.look_up(keys, **look_up) if found is None else found
        bucket = self.hashed(keys if hashed is None else hashed, buckets)
        shifted = [bucket, self.constant([offset])]
        bucket = ops.add(*(shifted[::-1] if swapped else shifted))
        operands = [found, self.constant([miss])]
        condition = getattr(ops, test)(*(operands[::-1] if swapped else operands))
        return ops.select(condition, *((found, bucket) if test == "not_equal" else (bucket, found)))

    def text(self, numbers):
        return self.create("NumericToString", numbers.outputs(), {})

    def numbers(
        self, keys, vocabulary=(7, 8, 9), values=None, default=-1, dtype=np.int64, *, places=None, miss=None, axis=-1
    ):
        """The lookup of integers by comparison."""
        ops, size = self.ops, len(vocabulary)
        rank = keys.get_partial_shape().rank.get_length()
        row = np.array(vocabulary, dtype).reshape([1] * rank + [size])
        values = list(range(size)) if values is None else values
        equal = ops.equal(self.constant(row, dtype), ops.unsqueeze(keys, self.constant([axis], np.int32)))
        anywhere = ops.reduce_logical_or(equal, self.constant([-1], np.int32), False)
        chosen = ops.select(equal, self.constant(1, dtype), self.constant(0, dtype))
        positions = np.array(range(size) if places is None else places, dtype).reshape(row.shape)
        place = ops.reduce_max(ops.multiply(chosen, self.constant(positions, dtype)), self.constant([-1], np.int32), False)
        index = ops.select(anywhere, place, self.constant(size if miss is None else miss, dtype))
        return ops.gather(self.constant([*values, default], dtype), index, self.constant([0], np.int32))


def strings(emit):
    return lambda t: ([emit(t, t.parameter(STRINGS, "keys"))], [STRINGS])


def numbers(emit, dtype=np.int64):
    return lambda t: ([emit(t, t.parameter(NUMBERS.astype(dtype), "keys"))], [NUMBERS.astype(dtype)])


def _other_keys(t: Tables):
    keys, others = t.parameter(STRINGS, "keys"), t.parameter(STRINGS[::-1].copy(), "others")
    return [t.table(keys, hashed=others)], [STRINGS, STRINGS[::-1].copy()]


def _shared(t: Tables):
    """The lookup is also a result, and there is a second table."""
    keys = t.parameter(STRINGS.reshape(2, 4), "keys")
    found = t.look_up(keys)
    return [t.table(keys, found=found), found, t.table(keys, vocabulary=["lake"], offset=1, buckets=3)], [
        STRINGS.reshape(2, 4)
    ]


# name -> a function that returns the results and the inputs.
MODELS = {
    # Recognized: a table with buckets is one node.
    "table": strings(lambda t, x: t.table(x)),
    "table-swapped": strings(lambda t, x: t.table(x, swapped=True)),
    "table-other-miss": strings(lambda t, x: t.table(x, default=-7, miss=-7)),
    "table-miss-above": strings(lambda t, x: t.table(x, default=99, miss=99)),
    "table-one-bucket": strings(lambda t, x: t.table(x, buckets=1)),
    "table-shared": _shared,
    "table-numbers": numbers(lambda t, x: t.table(t.text(x), found=t.numbers(x))),
    "table-numbers-i32": numbers(
        lambda t, x: t.table(t.text(x), found=t.ops.convert(t.numbers(x, dtype=np.int32), "i64")), np.int32
    ),
    # Near misses: other structures must not become a table.
    "miss-inside-the-ids": strings(lambda t, x: t.table(x, default=1, miss=1)),
    "miss-of-another-number": strings(lambda t, x: t.table(x, default=-1, miss=-2)),
    "other-offset": strings(lambda t, x: t.table(x, offset=4)),
    "other-keys": _other_keys,
    "values-in-another-order": strings(lambda t, x: t.table(x, values=[2, 1, 0])),
    "values-with-a-gap": strings(lambda t, x: t.table(x, values=[0, 1, 5])),
    "equal-instead": strings(lambda t, x: t.table(x, test="equal")),
    "greater-instead": strings(lambda t, x: t.ops.select(
        t.ops.greater(found := t.look_up(x), t.constant([-1])), found, t.ops.add(t.hashed(x), t.constant([3])))),
    "numbers-of-other-keys": numbers(
        lambda t, x: t.table(t.text(t.ops.subtract(x, t.constant(1))), found=t.numbers(x))
    ),
    # Lookups only.
    "look-up": strings(lambda t, x: t.look_up(x)),
    "look-up-i32": strings(lambda t, x: t.look_up(x, wide=False)),
    "look-up-values": strings(lambda t, x: t.look_up(x, values=[10, 5, 7], default=3)),
    "look-up-first-of-equals": strings(lambda t, x: t.look_up(x, vocabulary=["lake", "and", "lake"], values=[4, 5, 6])),
    "look-up-ids-of-equals": strings(lambda t, x: t.look_up(x, vocabulary=["lake", "and", "lake"])),
    "hash": strings(lambda t, x: t.hashed(x, 2**31 - 1)),
    "text": numbers(lambda t, x: t.hashed(t.text(x), 1000)),
    "text-i32": numbers(lambda t, x: t.hashed(t.text(x), 1000), np.int32),
    "text-boolean": lambda t: ([t.hashed(t.text(t.parameter(NUMBERS > 0, "keys")), 1000)], [NUMBERS > 0]),
    "numbers": numbers(lambda t, x: t.numbers(x)),
    "numbers-i32": numbers(lambda t, x: t.numbers(x, dtype=np.int32), np.int32),
    "numbers-matrix": lambda t: ([t.numbers(t.parameter(NUMBERS[:6].reshape(2, 3), "keys"))], [NUMBERS[:6].reshape(2, 3)]),
    "numbers-values": numbers(lambda t, x: t.numbers(x, values=[5, -6, 5], default=77)),
    "numbers-large": numbers(lambda t, x: t.numbers(x, vocabulary=range(-5000, 5000), values=range(0, 20000, 2))),
    "numbers-positive-axis": numbers(lambda t, x: t.numbers(x, axis=1)),
    # Near misses of lookups by comparison.
    "numbers-equal-entries": numbers(lambda t, x: t.numbers(x, vocabulary=(7, 9, 7), values=[1, 2, 3])),
    "numbers-other-places": numbers(lambda t, x: t.numbers(x, places=[0, 2, 1])),
    "numbers-other-miss": numbers(lambda t, x: t.numbers(x, miss=0)),
}  # fmt: skip


def main(folder: Path) -> None:
    """Write every model, its inputs and OpenVINO's outputs."""
    import openvino as ov
    import openvino_tokenizers  # noqa: F401

    for name, build in MODELS.items():
        tables = Tables()
        results, arrays = build(tables)
        path = folder / name / "model.xml"
        path.parent.mkdir()
        ov.save_model(ov.Model([tables.ops.result(r) for r in results], tables.parameters), path, compress_to_fp16=False)
        request = ov.Core().compile_model(path, "CPU").create_infer_request()
        request.infer({i: ov.Tensor(np.ascontiguousarray(array)) for i, array in enumerate(arrays)})
        outputs = [np.array(request.get_output_tensor(i).data) for i in range(len(results))]
        np.savez(path.with_name("inputs.npz"), *arrays)
        np.savez(path.with_name("expected.npz"), *outputs)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
