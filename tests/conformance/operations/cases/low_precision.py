"""Constants of few bits: every code of every type, and the chains in which compressed weights stand."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np

from tests.conformance.case import Case, IRText

F = np.float32
BITS = {"u1": 1, "u2": 2, "u3": 3, "u4": 4, "u6": 6, "i4": 4, "nf4": 4, "f4e2m1": 4, "f8e4m3": 8, "f8e5m2": 8, "f8e8m0": 8}
WIDE = {"i8": np.int8, "u8": np.uint8, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
# Codes of these types that are NaN or infinite, which weights are not.
NOT_FINITE = {"f8e4m3": {0x7F, 0xFF}, "f8e5m2": {*range(0x7C, 0x80), *range(0xFC, 0x100)}, "f8e8m0": {0xFF}}


def _filled(build, fillings):
    """The model with other bytes in its constants: OpenVINO's API cannot set those of every type.

    Args:
        build: the model; its constants of the types in ``fillings`` are zeros.
        fillings: element type -> the bytes of all constants of that type, one after the other in the file's order.
    """

    def text() -> IRText:
        import tempfile
        from pathlib import Path

        import openvino as ov

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            ov.save_model(build(), path, compress_to_fp16=False)
            xml, weights = path.read_text(), bytearray(path.with_suffix(".bin").read_bytes())
        for kind, content in fillings.items():
            places = re.findall(rf'element_type="{kind}" shape="[^"]*" offset="(\d+)" size="(\d+)"', xml)
            assert sum(int(size) for _, size in places) == len(content), (kind, places, len(content))
            for offset, size in places:
                weights[int(offset) : int(offset) + int(size)] = content[: int(size)]
                content = content[int(size) :]
        return IRText(xml, bytes(weights))

    return text


def _bytes(kind: str, count: int, seed: int = 0) -> bytes:
    """Random codes, all of which appear where there are enough elements."""
    bits = BITS.get(kind) or np.dtype(WIDE[kind]).itemsize * 8
    groups = {3: 8, 6: 4}.get(bits)
    size = -(-count // groups) * 3 if groups else -(-count * bits // 8)
    codes = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    codes[:256] = np.arange(256, dtype=np.uint8)[: len(codes)]
    for code in NOT_FINITE.get(kind, ()):
        codes[codes == code] = 0x35
    return codes.tobytes()


def _zeros(kind: str, shape: list[int]):
    import openvino as ov

    return ov.op.Constant(getattr(ov.Type, kind), ov.Shape(shape), [0] * int(np.prod(shape)))


def _through(shape: list[int], kind: str, target: str = "f32", emit=None):
    """The constant, converted, and added to an input so that nothing else than a constant folds."""

    def build():
        import openvino as ov
        from openvino import opset13 as ops

        x = ops.parameter([1], np.float32, "x")
        value = _zeros(kind, shape) if emit is None else emit(ops, _zeros(kind, shape))
        value = ops.convert(value, target)
        value = value if target == "f32" else ops.convert(value, "f32")
        return ov.Model([ops.result(ops.add(value, x))], [x])

    return build


X0 = (np.zeros(1, F),)
DENORMALS = {"oracle": "evaluate", "reason": "the CPU plugin takes 2^-127, which is no normal number of float32, for 0"}
CASES = []
for _kind in BITS:
    _settings = DENORMALS if _kind == "f8e8m0" else {}
    for _shape in ([7], [16, 16], [197, 211]):
        _name = f"{_kind}-{'x'.join(map(str, _shape))}"
        _content = {_kind: _bytes(_kind, int(np.prod(_shape)))}
        CASES.append(Case("Constant", "opset1", _name, _filled(_through(_shape, _kind), _content), [X0], **_settings))
    _content = {_kind: _bytes(_kind, 197 * 211, 1)}
    if _kind != "f8e8m0":
        _half = _filled(_through([197, 211], _kind, "f16"), _content)
        CASES.append(Case("Constant", "opset1", f"{_kind}-through-f16", _half, [X0]))
CASES += [
    Case("Constant", "opset1", f"{kind}-not-finite", _filled(_through([256], kind), {kind: bytes(range(256))}), [X0],
         **(DENORMALS if kind == "f8e8m0" else {}))
    for kind in ("f8e4m3", "f8e5m2", "f8e8m0")
]  # fmt: skip
CASES += [
    Case("Constant", "opset1", f"{kind}-moved",
         _filled(_through([70, 60], kind, emit=lambda ops, c: ops.transpose(ops.reshape(c, ops.constant([60, 70]), False),
                                                                            ops.constant([1, 0]))),
                 {kind: _bytes(kind, 4200)}), [X0])
    for kind in ("u4", "i4", "f8e4m3")
]  # fmt: skip


# -- compressed weights ----------------------------------------------------------------------------------------------------


def _weights(kind, rows, groups, size, *, zero_point=None, middle="f16", scale_kind=None, dynamic=False):
    """A dense layer whose weights are codes, minus a zero point, times a scale, for each group of columns."""

    def build():
        import openvino as ov
        from openvino import opset13 as ops

        grouped = groups > 1
        columns = groups * size
        x = ops.parameter([-1 if dynamic else 3, columns], np.float32, "x")
        per_group = [rows, groups, 1] if grouped else [rows, 1]
        value = ops.convert(_zeros(kind, [rows, groups, size] if grouped else [rows, columns]), middle)
        if zero_point:
            value = ops.subtract(value, ops.convert(_zeros(zero_point, per_group), middle))
        if scale_kind:
            scale = ops.convert(_zeros(scale_kind, per_group), middle)
        else:
            numbers = (np.random.default_rng(5).random(per_group) * 0.01 + 0.001).astype(F)
            scale = ops.constant(numbers.astype(np.float16) if middle == "f16" else numbers)
        value = ops.multiply(value, scale)
        if grouped:
            value = ops.reshape(value, ops.constant([rows, columns]), False)
        if middle != "f32":
            value = ops.convert(value, "f32")
        return ov.Model([ops.result(ops.matmul(x, value, False, True))], [x])

    return build


def _weights_case(name, kind, rows, groups, size, zero_point=None, scale_kind=None, middle="f16", dynamic=False, **settings):
    contents = {kind: _bytes(kind, rows * groups * size, 2)}
    if zero_point == kind:
        contents[kind] += _bytes(kind, rows * groups, 3)
    elif zero_point:
        contents[zero_point] = _bytes(zero_point, rows * groups, 3)
    if scale_kind:
        contents[scale_kind] = bytes(np.random.default_rng(4).integers(118, 124, rows * groups, np.uint8))
    build = _weights(kind, rows, groups, size, zero_point=zero_point, middle=middle, scale_kind=scale_kind, dynamic=dynamic)
    generator = np.random.default_rng(6)
    runs = [(generator.standard_normal((3, groups * size)).astype(F),)]
    if dynamic:
        runs.append((generator.standard_normal((1, groups * size)).astype(F),))
    if middle == "f16":
        settings |= {
            "oracle": "cpu",
            "reason": "the CPU plugin scales in float32 what the reference kernels scale in float16",
        }
    return Case("MatMul", "opset1", f"weights-{name}", _filled(build, contents), runs, **settings)


CASES += [
    _weights_case("u8", "u8", 24, 1, 200, "u8", middle="f32"),
    _weights_case("u8-f16", "u8", 24, 1, 200, "u8"),
    _weights_case("i8", "i8", 24, 1, 200, middle="f32"),
    _weights_case("i8-f16", "i8", 24, 1, 200),
    _weights_case("u4-groups", "u4", 24, 4, 64, "u4"),
    _weights_case("u4-groups-u8-zero-point", "u4", 24, 4, 64, "u8"),
    _weights_case("u4-dynamic", "u4", 24, 4, 64, "u4", dynamic=True),
    _weights_case("i4-groups", "i4", 24, 4, 64),
    _weights_case("i4-rows", "i4", 24, 1, 256, middle="f32"),
    _weights_case("u2-groups", "u2", 24, 4, 64, "u2"),
    # The CPU plugin does not round nf4's numbers to f16, as the file asks it to.
    _weights_case("nf4-groups", "nf4", 24, 4, 64, atol=5e-5),
    _weights_case("nf4-groups-f32", "nf4", 24, 4, 64, middle="f32"),
    _weights_case("f4e2m1-f8e8m0", "f4e2m1", 24, 8, 32, scale_kind="f8e8m0", middle="f32"),
    _weights_case("f4e2m1-f16", "f4e2m1", 24, 8, 32),
    _weights_case("f8e4m3", "f8e4m3", 24, 1, 256),
    _weights_case("f8e5m2", "f8e5m2", 24, 1, 256, middle="f32"),
]
