"""Constants of a few bits: every code of every type, and the chains of compressed weights."""

from __future__ import annotations

import re
from functools import partial

import ml_dtypes
import numpy as np

from tests.conformance.case import Case
from tests.conformance.operation_models import decided, dynamic, edited, layer_case, static

F = np.float32
BITS = {"u1": 1, "u2": 2, "u3": 3, "u4": 4, "u6": 6, "i4": 4, "nf4": 4, "f4e2m1": 4, "f8e4m3": 8, "f8e5m2": 8, "f8e8m0": 8}
WIDE = {"i8": np.int8, "u8": np.uint8, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
# Codes of these types that are NaN or infinite, which do not occur in weights.
NOT_FINITE = {"f8e4m3": {0x7F, 0xFF}, "f8e5m2": {*range(0x7C, 0x80), *range(0xFC, 0x100)}, "f8e8m0": {0xFF}}


def filled(model: Case, fillings: dict[str, bytes]) -> Case:
    """Return the case with other bytes in its constants, because OpenVINO's API cannot set those of every type.

    Args:
        model: a case whose constants of the types in ``fillings`` are zeros.
        fillings: element type -> the concatenated bytes of all constants of that type, in the file's order.
    """

    def edit(xml: str, weights: bytes) -> tuple[str, bytes]:
        content = bytearray(weights)
        for kind, rest in fillings.items():
            places = re.findall(rf'element_type="{kind}" shape="[^"]*" offset="(\d+)" size="(\d+)"', xml)
            assert sum(int(size) for _, size in places) == len(rest), (kind, places, len(rest))
            for offset, size in places:
                content[int(offset) : int(offset) + int(size)] = rest[: int(size)]
                rest = rest[int(size) :]
        return xml, bytes(content)

    return edited(model, edit)


def codes_of(kind: str, count: int, seed: int = 0) -> bytes:
    """Return random codes, with all codes included if there are enough elements."""
    bits = BITS.get(kind) or np.dtype(WIDE[kind]).itemsize * 8
    groups = {3: 8, 6: 4}.get(bits)
    size = -(-count // groups) * 3 if groups else -(-count * bits // 8)
    codes = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    codes[:256] = np.arange(256, dtype=np.uint8)[: len(codes)]
    for code in NOT_FINITE.get(kind, ()):
        codes[codes == code] = 0x35
    return codes.tobytes()


def zeros(kind: str, *shape: int):
    """Return an input: a constant of zeros."""

    def make():
        import openvino as ov

        return ov.op.Constant(getattr(ov.Type, kind), ov.Shape(list(shape)), [0] * int(np.prod(shape)))

    return make


def through(
    name: str, kind: str, shape: tuple[int, ...], content: bytes, target: str = "f32", emit=None, **settings
) -> Case:
    """A converted constant, added to an input so that only the constant folds."""

    def make(ops, x, value):
        value = ops.convert(value if emit is None else emit(ops, value), target)
        return ops.add(value if target == "f32" else ops.convert(value, "f32"), x)

    inputs = [static(np.zeros(1, F)), zeros(kind, *shape)]
    return filled(layer_case("Constant", "opset1", make, name, inputs, **settings), {kind: content})


def _constants():
    denormals = decided("evaluate", "the CPU plugin treats 2^-127, which is not a normal float32, as 0")
    for kind in BITS:
        settings = denormals if kind == "f8e8m0" else {}
        for shape in ((7,), (16, 16), (197, 211)):
            name = f"{kind}-{'x'.join(map(str, shape))}"
            yield through(name, kind, shape, codes_of(kind, int(np.prod(shape))), **settings)
        for shape in ((16, 16), (197, 211)):
            name = f"{kind}-through-bf16-{'x'.join(map(str, shape))}"
            yield through(name, kind, shape, codes_of(kind, int(np.prod(shape)), 1), "bf16", **settings)
        if kind != "f8e8m0":
            yield through(f"{kind}-through-f16", kind, (197, 211), codes_of(kind, 197 * 211, 1), "f16")
    for kind in ("f8e4m3", "f8e5m2", "f8e8m0"):
        settings = denormals if kind == "f8e8m0" else {}
        yield through(f"{kind}-not-finite", kind, (256,), bytes(range(256)), **settings)

    def moved(ops, value):
        return ops.transpose(ops.reshape(value, ops.constant([60, 70]), False), ops.constant([1, 0]))

    for kind in ("u4", "i4", "f8e4m3"):
        yield through(f"{kind}-moved", kind, (70, 60), codes_of(kind, 4200), emit=moved)


def _moved_at_run_time():
    """8-bit floats that are moved by run-time indices, orders and counts."""
    for kind in ("f8e4m3", "f8e5m2"):
        for operation, opset, emit, numbers in (
            ("Gather", "opset8", lambda ops, x, n: ops.gather(x, n, np.int64(0)), [3, 0, -1]),
            ("GatherND", "opset8", lambda ops, x, n: ops.gather_nd(x, n), [[3], [0]]),
            ("Transpose", "opset1", lambda ops, x, n: ops.transpose(x, n), [1, 0]),
            ("Tile", "opset1", lambda ops, x, n: ops.tile(x, n), [2, 1]),
            ("Concat", "opset1", lambda ops, x, n: ops.concat([x, ops.gather(x, n, np.int64(0))], 0), [1, 0]),
        ):

            def make(ops, n, value, emit=emit):
                return ops.convert(emit(ops, value, n), "f32")

            inputs = [static(np.array(numbers, np.int64)), zeros(kind, 5, 7)]
            case = layer_case(operation, opset, make, f"{kind}-at-run-time", inputs)
            yield filled(case, {kind: codes_of(kind, 35, 1)})


# -- compressed weights ----------------------------------------------------------------------------------------------------


def _weights(name, kind, rows, groups, size, zero_point=None, scale_kind=None, middle="f16", several=False, **settings):
    """A dense layer whose weights are codes, minus a zero point, times a scale, for each group of columns."""
    columns, grouped = groups * size, groups > 1
    per_group = [rows, groups, 1] if grouped else [rows, 1]
    numbers = (np.random.default_rng(5).random(per_group) * 0.01 + 0.001).astype(F)
    contents = {kind: codes_of(kind, rows * columns, 2)}
    inputs = [zeros(kind, *([rows, groups, size] if grouped else [rows, columns]))]
    if zero_point:
        inputs.append(zeros(zero_point, *per_group))
        contents[zero_point] = contents.get(zero_point, b"") + codes_of(zero_point, rows * groups, 3)
    if scale_kind:
        contents[scale_kind] = bytes(np.random.default_rng(4).integers(118, 124, rows * groups, np.uint8))
    scales = numbers.astype({"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": F}[middle])
    inputs.append(zeros(scale_kind, *per_group) if scale_kind else scales)

    def make(ops, x, codes, *rest):
        value, scale = ops.convert(codes, middle), rest[-1]
        if zero_point:
            value = ops.subtract(value, ops.convert(rest[0], middle))
        value = ops.multiply(value, ops.convert(scale, middle) if scale_kind else scale)
        if grouped:
            value = ops.reshape(value, ops.constant([rows, columns]), False)
        if middle != "f32":
            value = ops.convert(value, "f32")
        return ops.matmul(x, value, False, True)

    generator = np.random.default_rng(6)
    x = static(generator.standard_normal((3, columns)).astype(F))
    if several:
        x = dynamic(*x.arrays, generator.standard_normal((1, columns)).astype(F), dims=[-1, columns])
    if middle != "f32":
        settings |= decided("cpu", "the CPU plugin scales in float32, the reference kernels in 16 bits")
    return filled(layer_case("MatMul", "opset1", make, f"weights-{name}", [x, *inputs], **settings), contents)


def _compressed():
    wide = partial(_weights, middle="f32")
    yield wide("u8", "u8", 24, 1, 200, "u8")
    yield _weights("u8-f16", "u8", 24, 1, 200, "u8")
    yield wide("i8", "i8", 24, 1, 200)
    yield _weights("i8-f16", "i8", 24, 1, 200)
    yield _weights("u4-groups", "u4", 24, 4, 64, "u4")
    yield _weights("u4-groups-u8-zero-point", "u4", 24, 4, 64, "u8")
    yield _weights("u4-dynamic", "u4", 24, 4, 64, "u4", several=True)
    yield _weights("i4-groups", "i4", 24, 4, 64)
    yield wide("i4-rows", "i4", 24, 1, 256)
    yield _weights("u2-groups", "u2", 24, 4, 64, "u2")
    # The CPU plugin does not round nf4's numbers to f16, as the file specifies.
    yield _weights("nf4-groups", "nf4", 24, 4, 64, atol=5e-5)
    yield wide("nf4-groups-f32", "nf4", 24, 4, 64)
    yield wide("f4e2m1-f8e8m0", "f4e2m1", 24, 8, 32, scale_kind="f8e8m0")
    yield _weights("f4e2m1-f16", "f4e2m1", 24, 8, 32)
    yield _weights("f8e4m3", "f8e4m3", 24, 1, 256)
    # The CPU plugin rounds the scaled weights to bf16.
    half = partial(_weights, middle="bf16")
    yield half("u8-bf16", "u8", 24, 1, 200, "u8", atol=0.2)
    yield half("nf4-bf16", "nf4", 24, 1, 256, atol=1e-3)
    yield half("i4-bf16", "i4", 24, 4, 64, atol=1e-2)
    # Terms of up to 1,000 add up to 0.1, so the order of summation matters.
    yield wide("f8e5m2", "f8e5m2", 24, 1, 256, atol=5e-3)


CASES = [*_constants(), *_moved_at_run_time(), *_compressed()]
