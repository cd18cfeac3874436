"""Fourier transforms."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import Input, decided, dynamic, dynamics, layer_case, static, statics, unranked

F16 = np.float16


def _values(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(dtype)


def _transform(kind, version, name, data, axes, sizes=None, **settings):
    """A case of a transform along ``axes``, to ``sizes``: numbers for constants, or inputs."""
    given = [numbers for numbers in (axes, sizes) if numbers is not None]
    inputs = [data, *(numbers if isinstance(numbers, Input) else np.array(numbers) for numbers in given)]
    return layer_case(kind, version, kind, name, inputs, **settings)


def _complex():
    for kind in ("DFT", "IDFT"):
        case = partial(_transform, kind, "opset7")
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
            # OpenVINO's own error grows with the length.
            yield case(name, static(_values(*shape)), axes, sizes, **({"atol": 2e-4} if shape[1] > 100 else {}))
        images = partial(dynamic, dims=(-1, -1, -1, 2))
        yield case("dynamic", images(_values(2, 6, 8, 2), _values(1, 4, 9, 2)), [1, -1])
        data, axes = images(_values(2, 6, 8, 2), _values(4, 5, 3, 2)), static(np.array([1, 2]), np.array([-1, 0]))
        yield case("run-time-axes", data, axes)
        yield case("run-time-sizes", data, axes, static(np.array([4, -1]), np.array([5, 6])))
        yield case("float16", static(_values(2, 6, 2, dtype=F16)), [1])


def _of_nothing():
    """Axes without elements, and the spectrum of one bin, which is empty."""
    for kind, version in (("DFT", "opset7"), ("IDFT", "opset7"), ("RDFT", "opset9")):
        pairs = () if kind == "RDFT" else (2,)
        for shape, axes in (((0,), [0]), ((3, 0), [0]), ((3, 0), [1]), ((0, 3), [1, 0]), ((2, 0, 3), [0, 1])):
            name = f"nothing-{'x'.join(map(str, shape))}-along-{'-'.join(map(str, axes))}"
            data, dims = _values(*shape, *pairs), (*(-1 for _ in shape), *pairs)
            yield _transform(kind, version, name, static(data), axes)
            yield _transform(kind, version, f"{name}-dynamic", dynamic(data, data, dims=dims), axes)
    reason = "the CPU plugin ends the process; the shape by the specification, 2 * (bins - 1)"
    for shape, axes, result in (((1,), [0], (0,)), ((3, 1), [1], (3, 0)), ((1, 3), [1, 0], (0, 3))):
        name, data = f"one-bin-{'x'.join(map(str, shape))}", _values(*shape, 2)
        for suffix, given in (("", static(data)), ("-dynamic", dynamic(data, dims=(*(-1 for _ in shape), 2)))):
            settings = decided("expected", reason, np.empty(result, np.float32))
            yield _transform("IRDFT", "opset9", name + suffix, given, axes, **settings)

    def joined(ops, x):
        return ops.concat([x, ops.irdft(np.array([[0.375, -2.625]], np.float32), np.array([0]))], 0)

    yield layer_case("IRDFT", "opset9", joined, "one-bin-constant", [static(_values(4))])


def _real():
    forward, back = partial(_transform, "RDFT", "opset9"), partial(_transform, "IRDFT", "opset9")
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
        yield forward(name, static(_values(*shape)), axes, sizes, **({"atol": 2e-4} if shape[1] > 100 else {}))
    yield forward("dynamic", dynamic(_values(2, 6, 8), _values(1, 4, 9)), [1, -1])
    yield forward("float16", static(_values(2, 6, dtype=F16)), [1])

    def signs(ops, *inputs):
        return ops.sign(ops.rdft(*inputs))

    for name, data in (("static", static(_values(2, 7))), ("dynamic", dynamic(_values(3, 7), _values(5, 7)))):
        # Bins without an imaginary part have exactly 0.
        yield layer_case("RDFT", "opset9", signs, f"no-imaginary-part-{name}", [data, np.array([0, 1])])
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
        yield back(name, static(_values(*shape)), axes, sizes)
    yield back("dynamic", dynamic(_values(2, 6, 5, 2), _values(1, 4, 6, 2), dims=(-1, -1, -1, 2)), [1, -1])


def _real_by_numpy():
    """Cases that the CPU plugin rejects (run-time axes, -1 as a size) or computes incorrectly (sizes beyond the data's)."""
    reason = "the CPU plugin rejects it or reads out of bounds; values by NumPy"
    for name, shape, axes, sizes in (
        ("longer", (2, 3), [1], [5]),
        ("both-longer", (2, 3, 4), [1, 2], [5, 9]),
        ("size-kept", (2, 6, 5), [2, 1], [-1, 4]),
        ("run-time-axes", (2, 6, 8), [1, 2], None),
        ("run-time-negative-axes", (4, 5, 3), [-1, 0], None),
    ):
        for kind, transform in (("RDFT", _rdft), ("IRDFT", _irdft)):
            data = _values(*shape, 2) if kind == "IRDFT" else _values(*shape)
            expected = transform(data, [a % len(shape) for a in axes], sizes).astype(np.float32)
            along = static(np.array(axes)) if "run-time" in name else axes
            yield _transform(kind, "opset9", name, static(data), along, sizes, **decided("expected", reason, expected))


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


def _stfts():
    for transpose in (False, True):
        suffix = "-transposed" if transpose else ""
        case = partial(layer_case, "STFT", "opset15", "stft", attributes={"transpose_frames": transpose})
        for name, shape, window, size, step in (
            ("batch", (3, 56), 11, 11, 3),
            ("single", (56,), 11, 11, 3),
            ("short-window", (2, 48), 7, 11, 3),
            ("even-short-window", (2, 48), 5, 16, 4),
            ("power-of-two", (2, 64), 16, 16, 8),
            ("one-frame", (2, 16), 16, 16, 40),
            ("gaps", (2, 40), 4, 4, 7),
        ):
            inputs = [*statics([_values(*shape), _values(window)]), np.array(size), np.array(step)]
            yield case(f"{name}{suffix}", inputs)
        runs = (
            (_values(2, 40), _values(10), np.array(12), np.array(5)),
            (_values(1, 50), _values(16), np.array(16), np.array(3)),
        )
        yield case(f"run-time{suffix}", dynamics(*runs))
    inputs = [*statics([_values(2, 48, dtype=F16), _values(12, dtype=F16)]), np.array(12), np.array(4)]
    yield layer_case("STFT", "opset15", "stft", "float16", inputs, {"transpose_frames": False})


def _any_ranks():
    window = np.abs(_values(7)) + 0.5
    windows, numbers = static(window, window), [np.array(11), np.array(3)]
    for operation, version, signal, attributes in (
        ("STFT", "opset15", _values(3, 56), {"transpose_frames": True}),
        ("ISTFT", "opset16", _values(2, 6, 16, 2), {"center": True, "normalized": False}),
    ):
        inputs = [unranked(signal, signal[0]), windows, *numbers]
        yield layer_case(operation, version, operation, "any-rank", inputs, attributes)


def _istfts():
    def case(name, inputs, center, normalized):
        attributes = {"center": center, "normalized": normalized}

        def make(ops, data, window, size, step, length=None, **attributes):
            return ops.istft(data, window, size, step, signal_length=length, **attributes)

        return layer_case("ISTFT", "opset16", make, name, inputs, attributes)

    for center in (False, True):
        for normalized in (False, True):
            for name, shape, window, *numbers in (
                ("batch", (2, 6, 16, 2), 7, 11, 3),
                ("single", (6, 16, 2), 11, 11, 3),
                ("length", (2, 6, 16, 2), 7, 11, 3, 40),
                ("longer", (2, 6, 16, 2), 11, 11, 3, 64),
                ("power-of-two", (2, 9, 6, 2), 16, 16, 4),
                ("gaps", (1, 3, 4, 2), 4, 4, 6),
            ):
                flags = f"{'-center' if center else ''}{'-normalized' if normalized else ''}"
                inputs = [*statics([_values(*shape), np.abs(_values(window)) + 0.5]), *map(np.array, numbers)]
                yield case(f"{name}{flags}", inputs, center, normalized)
    data = dynamic(_values(2, 6, 9, 2), _values(1, 9, 5, 2), dims=(-1, -1, -1, 2))
    window = dynamic(np.abs(_values(9)) + 0.5, np.abs(_values(16)) + 0.5)
    numbers = [static(np.array(a), np.array(b)) for a, b in ((10, 16), (4, 8), (30, 36))]
    yield case("run-time", [data, window, *numbers], True, False)


def _unknown_ranks():
    """An input that was reshaped to a shape of unknown length."""
    for kind, transform in (("DFT", np.fft.fft2), ("IDFT", np.fft.ifft2)):

        def make(ops, x, shape, kind=kind):
            return getattr(ops, kind.lower())(ops.reshape(x, shape, False), ops.constant(np.array([-1, 0])))

        runs, expected = [], []
        for shape in ((6, 5, 2), (3, 2, 4, 2)):
            data = _values(int(np.prod(shape))).reshape(shape)
            result = transform(data[..., 0] + 1j * data[..., 1], axes=(-1, 0))
            runs.append((data.reshape(-1), np.array(shape)))
            expected.append([np.stack([result.real, result.imag], -1).astype(np.float32)])
        settings = decided("expected", "OpenVINO does not support inputs of unknown rank; values by NumPy", runs=expected)
        yield layer_case(kind, "opset7", make, "unknown-rank", dynamics(*runs), **settings)


CASES = [
    *_any_ranks(), *_unknown_ranks(), *_complex(), *_of_nothing(), *_real(), *_real_by_numpy(), *_stfts(), *_istfts(),
]  # fmt: skip
