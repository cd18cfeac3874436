"""Fourier transforms."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case
from tests.conformance.models import layer_case, static, unranked


def _values(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(dtype)


def _transform(kind, version, shape, axes, sizes=None, dtype=np.float32, run_time=()):
    """``run_time``: which of "axes" and "sizes" are inputs of the model."""

    def build():
        import openvino as ov
        from openvino import opset1
        from openvino.utils.node_factory import NodeFactory

        x = opset1.parameter(ov.PartialShape(list(shape)), dtype)
        nodes, inputs = [x], [x]
        for name, numbers in (("axes", axes), ("sizes", sizes)):
            if numbers is None:
                continue
            if name in run_time:
                nodes.append(opset1.parameter([len(numbers)], np.int64))
                inputs.append(nodes[-1])
            else:
                nodes.append(opset1.constant(np.array(numbers, np.int64)))
        return ov.Model([NodeFactory(f"opset{version}").create(kind, nodes, {})], inputs)

    return build


def _complex():
    for kind in ("DFT", "IDFT"):
        for name, shape, axes, sizes in (
            ("last", (3, 8, 2), [1], None),
            ("first", (6, 3, 2), [0], None),
            ("two", (2, 5, 8, 2), [1, 2], None),
            ("negative", (2, 5, 7, 2), [-1, 0], None),
            ("all", (3, 4, 5, 2), [2, 0, 1], None),
            ("shorter", (2, 9, 8, 2), [1, 2], [5, 4]),
            ("longer", (2, 3, 5, 2), [1, -1], [8, 7]),
            ("size-kept", (2, 3, 5, 2), [2, 1], [-1, 4]),
            ("one", (2, 1, 2), [1], None),
            ("prime", (2, 101, 2), [1], None),
            ("large-power-of-two", (1, 2048, 2), [1], None),
        ):
            # OpenVINO's own error grows with the size.
            close = {"atol": 2e-4} if shape[1] > 100 else {}
            yield Case(kind, "opset7", name, _transform(kind, 7, shape, axes, sizes), [(_values(*shape),)], **close)
        yield Case(
            kind,
            "opset7",
            "dynamic",
            _transform(kind, 7, (-1, -1, -1, 2), [1, -1]),
            [(_values(2, 6, 8, 2),), (_values(1, 4, 9, 2),)],
        )
        yield Case(
            kind,
            "opset7",
            "run-time-axes",
            _transform(kind, 7, (-1, -1, -1, 2), [0, 0], run_time=("axes",)),
            [(_values(2, 6, 8, 2), np.array([1, 2])), (_values(4, 5, 3, 2), np.array([-1, 0]))],
        )
        yield Case(
            kind,
            "opset7",
            "run-time-sizes",
            _transform(kind, 7, (-1, -1, -1, 2), [0, 0], [0, 0], run_time=("axes", "sizes")),
            [
                (_values(2, 6, 8, 2), np.array([1, 2]), np.array([4, -1])),
                (_values(4, 5, 3, 2), np.array([-1, 0]), np.array([5, 6])),
            ],
        )
        yield Case(
            kind,
            "opset7",
            "float16",
            _transform(kind, 7, (2, 6, 2), [1], dtype=np.float16),
            [(_values(2, 6, 2, dtype=np.float16),)],
        )


def _real():
    for name, shape, axes, sizes in (
        ("last", (3, 8), [1], None),
        ("odd", (3, 7), [1], None),
        ("first", (6, 3), [0], None),
        ("two", (2, 5, 8), [1, 2], None),
        ("reversed", (2, 5, 8), [2, 1], None),
        ("negative", (2, 5, 7), [-1, 0], None),
        ("shorter", (2, 9, 8), [1, 2], [5, 4]),
        ("one", (2, 1), [1], None),
        ("prime", (2, 101), [1], None),
        ("large-power-of-two", (1, 2048), [1], None),
    ):
        close = {"atol": 2e-4} if shape[1] > 100 else {}
        yield Case("RDFT", "opset9", name, _transform("RDFT", 9, shape, axes, sizes), [(_values(*shape),)], **close)
    yield Case(
        "RDFT",
        "opset9",
        "dynamic",
        _transform("RDFT", 9, (-1, -1, -1), [1, -1]),
        [(_values(2, 6, 8),), (_values(1, 4, 9),)],
    )
    half = _values(2, 6, dtype=np.float16)
    yield Case("RDFT", "opset9", "float16", _transform("RDFT", 9, half.shape, [1], dtype=np.float16), [(half,)])
    for name, shape, axes, sizes in (
        ("last", (3, 5, 2), [1], None),
        ("first", (4, 3, 2), [0], None),
        ("two", (2, 5, 4, 2), [1, 2], None),
        ("reversed", (2, 5, 4, 2), [2, 1], None),
        ("negative", (2, 5, 4, 2), [-1, 0], None),
        ("odd-size", (3, 5, 2), [1], [9]),
        ("even-size", (3, 5, 2), [1], [8]),
        ("shorter", (2, 6, 6, 2), [1, 2], [4, 7]),
        ("prime", (2, 51, 2), [1], [101]),
        ("large-power-of-two", (1, 1025, 2), [1], None),
        ("two-powers", (2, 4, 5, 2), [1, 2], [4, 8]),
    ):
        yield Case("IRDFT", "opset9", name, _transform("IRDFT", 9, shape, axes, sizes), [(_values(*shape),)])
    yield Case(
        "IRDFT",
        "opset9",
        "dynamic",
        _transform("IRDFT", 9, (-1, -1, -1, 2), [1, -1]),
        [(_values(2, 6, 5, 2),), (_values(1, 4, 6, 2),)],
    )
    yield from _real_by_numpy()


def _real_by_numpy():
    """What the CPU plugin does not take (axes at run time, -1 for a size) or gets wrong (sizes beyond the data's)."""
    reason = "the CPU plugin refuses it or reads beyond its input; values by NumPy"
    for name, shape, axes, sizes in (
        ("longer", (2, 3), [1], [5]),
        ("both-longer", (2, 3, 4), [1, 2], [5, 9]),
        ("size-kept", (2, 6, 5), [2, 1], [-1, 4]),
        ("run-time-axes", (2, 6, 8), [1, 2], None),
        ("run-time-negative-axes", (4, 5, 3), [-1, 0], None),
    ):
        for kind in ("RDFT", "IRDFT"):
            data = _values(*shape, 2) if kind == "IRDFT" else _values(*shape)
            real_axes = [a % len(shape) for a in axes]
            run_time = ("axes",) if "run-time" in name else ()
            expected = _irdft(data, real_axes, sizes) if kind == "IRDFT" else _rdft(data, real_axes, sizes)
            yield Case(
                kind,
                "opset9",
                name,
                _transform(kind, 9, data.shape, axes, sizes, run_time=run_time),
                [(data, *([np.array(axes)] if run_time else []))],
                oracle="expected",
                reason=reason,
                expected=[[expected.astype(np.float32)]],
            )


def _rdft(data, axes, sizes):
    sizes = [None if n == -1 else n for n in sizes or [-1] * len(axes)]
    result = np.fft.rfft(data, sizes[-1], axes[-1])
    for axis, size in zip(axes[:-1], sizes[:-1], strict=True):
        result = np.fft.fft(result, size, axis)
    return np.stack([result.real, result.imag], -1)


def _irdft(data, axes, sizes):
    sizes = [None if n == -1 else n for n in sizes or [-1] * len(axes)]
    result = data[..., 0] + 1j * data[..., 1]
    for axis, size in zip(axes[:-1], sizes[:-1], strict=True):
        result = np.fft.ifft(result, size, axis)
    return np.fft.irfft(result, sizes[-1], axes[-1])


def _stft(shape, window, size, step, transpose, dtype=np.float32, run_time=False):
    def build():
        import openvino as ov
        from openvino import opset15

        x = opset15.parameter(ov.PartialShape(list(shape)), dtype)
        w = opset15.parameter([window], dtype)
        inputs = [x, w]
        if run_time:
            numbers = [opset15.parameter([], np.int64) for _ in range(2)]
            inputs += numbers
        else:
            numbers = [opset15.constant(np.array(n, np.int64)) for n in (size, step)]
        return ov.Model([opset15.stft(x, w, *numbers, transpose)], inputs)

    return build


def _stfts():
    for transpose in (False, True):
        for name, shape, window, size, step in (
            ("batch", (3, 56), 11, 11, 3),
            ("single", (56,), 11, 11, 3),
            ("short-window", (2, 48), 7, 11, 3),
            ("even-short-window", (2, 48), 5, 16, 4),
            ("power-of-two", (2, 64), 16, 16, 8),
            ("one-frame", (2, 16), 16, 16, 40),
            ("gaps", (2, 40), 4, 4, 7),
        ):
            yield Case(
                "STFT",
                "opset15",
                f"{name}{'-transposed' if transpose else ''}",
                _stft(shape, window, size, step, transpose),
                [(_values(*shape), _values(window))],
            )
        yield Case(
            "STFT",
            "opset15",
            f"run-time{'-transposed' if transpose else ''}",
            _stft((-1, -1), -1, None, None, transpose, run_time=True),
            [
                (_values(2, 40), _values(10), np.array(12), np.array(5)),
                (_values(1, 50), _values(16), np.array(16), np.array(3)),
            ],
        )
    yield Case(
        "STFT",
        "opset15",
        "float16",
        _stft((2, 48), 12, 12, 4, False, np.float16),
        [(_values(2, 48, dtype=np.float16), _values(12, dtype=np.float16))],
    )


def _any_ranks():
    window = np.abs(_values(7)) + 0.5
    windows, numbers = static(window, window), [np.array(11), np.array(3)]
    for operation, version, signal, attributes in (
        ("STFT", "opset15", _values(3, 56), {"transpose_frames": True}),
        ("ISTFT", "opset16", _values(2, 6, 16, 2), {"center": True, "normalized": False}),
    ):
        inputs = [unranked(signal, signal[0]), windows, *numbers]
        yield layer_case(operation, version, operation, "any-rank", inputs, attributes)


def _istft(shape, window, size, step, length, center, normalized, dtype=np.float32, run_time=False):
    def build():
        import openvino as ov
        from openvino import opset15, opset16

        x = opset15.parameter(ov.PartialShape(list(shape)), dtype)
        w = opset15.parameter([window], dtype)
        inputs = [x, w]
        values = [size, step] + ([] if length is None else [length])
        if run_time:
            numbers = [opset15.parameter([], np.int64) for _ in values]
            inputs += numbers
        else:
            numbers = [opset15.constant(np.array(n, np.int64)) for n in values]
        rest = [*numbers, None] if length is None else numbers
        return ov.Model([opset16.istft(x, w, rest[0], rest[1], center, normalized, rest[2])], inputs)

    return build


def _istfts():
    for center in (False, True):
        for normalized in (False, True):
            for name, shape, window, size, step, length in (
                ("batch", (2, 6, 16, 2), 7, 11, 3, None),
                ("single", (6, 16, 2), 11, 11, 3, None),
                ("length", (2, 6, 16, 2), 7, 11, 3, 40),
                ("longer", (2, 6, 16, 2), 11, 11, 3, 64),
                ("power-of-two", (2, 9, 6, 2), 16, 16, 4, None),
                ("gaps", (1, 3, 4, 2), 4, 4, 6, None),
            ):
                flags = f"{'-center' if center else ''}{'-normalized' if normalized else ''}"
                yield Case(
                    "ISTFT",
                    "opset16",
                    f"{name}{flags}",
                    _istft(shape, window, size, step, length, center, normalized),
                    [(_values(*shape), np.abs(_values(window)) + 0.5)],
                )
    yield Case(
        "ISTFT",
        "opset16",
        "run-time",
        _istft((-1, -1, -1, 2), -1, 0, 0, 0, True, False, run_time=True),
        [
            (_values(2, 6, 9, 2), np.abs(_values(9)) + 0.5, np.array(10), np.array(4), np.array(30)),
            (_values(1, 9, 5, 2), np.abs(_values(16)) + 0.5, np.array(16), np.array(8), np.array(36)),
        ],
    )


def _unknown_ranks():
    """An input that a shape of unknown length has been given."""

    def model(kind, version):
        def build():
            import openvino as ov
            from openvino import opset1
            from openvino.utils.node_factory import NodeFactory

            x, shape = opset1.parameter([-1], np.float32), opset1.parameter([-1], np.int64)
            axes = opset1.constant(np.array([-1, 0], np.int64))
            data = opset1.reshape(x, shape, False)
            return ov.Model([NodeFactory(f"opset{version}").create(kind, [data, axes], {})], [x, shape])

        return build

    for kind, version, shapes in (("DFT", 7, [(6, 5, 2), (3, 2, 4, 2)]), ("IDFT", 7, [(6, 5, 2), (3, 2, 4, 2)])):
        runs = [(_values(int(np.prod(shape))), np.array(shape)) for shape in shapes]
        transform = np.fft.fft2 if kind == "DFT" else np.fft.ifft2
        expected = []
        for flat, shape in runs:
            data = flat.reshape(shape)
            result = transform(data[..., 0] + 1j * data[..., 1], axes=(-1, 0))
            expected.append([np.stack([result.real, result.imag], -1).astype(np.float32)])
        yield Case(
            kind,
            f"opset{version}",
            "unknown-rank",
            model(kind, version),
            runs,
            oracle="expected",
            reason="OpenVINO takes no inputs of unknown rank; values by NumPy",
            expected=expected,
        )


CASES = [*_any_ranks(), *_unknown_ranks(), *_complex(), *_real(), *_stfts(), *_istfts()]
