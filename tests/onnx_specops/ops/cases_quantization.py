"""FakeQuantize: limits of all shapes, in both orders."""

from __future__ import annotations

import numpy as np

from tests.onnx_specops.ops.case import Case

LIMITS = ("input_low", "input_high", "output_low", "output_high")
F, NAN = np.float32, np.nan
OPTIMISED = "the CPU plugin's kernel for constant limits differs from the specification here"


def _layer(*nodes, levels, ordered=0):
    from openvino import opset1

    return opset1.fake_quantize(*nodes, levels=levels)


def _case(name, data, *limits, levels=16, ordered=0, **options):
    inputs = {"data": np.asarray(data), **dict(zip(LIMITS, map(np.asarray, limits), strict=True))}
    if not options:
        options = {"source": "evaluate", "reason": OPTIMISED, "layer": _layer}
    return Case("FakeQuantize", name, inputs, {"levels": levels, "ordered": ordered}, **options)


def _random(*shape, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 2).astype(F)


def _cases():
    x = _random(2, 3, 5, 7)
    yield _case("whole", x, F(-1.5), F(2), F(-1.5), F(2))
    yield _case("whole-ordered", x, F(-1.5), F(2), F(-1.5), F(2), ordered=1)
    yield _case("long", _random(70000), F([-1.5]), F([2]), F([-3]), F([4]), levels=256, ordered=1)
    low, high = -np.abs(_random(3, 1, 1, seed=1)), np.abs(_random(3, 1, 1, seed=2))
    yield _case("channels", x, low, high, low, high, levels=255, ordered=1)
    yield _case("channels-in-only", x, low, high, F(0), F(1), levels=256)
    columns = np.abs(_random(7, seed=3))
    yield _case("columns", x, -columns, columns, -columns, columns)
    yield _case(
        "each", _random(2, 3), *(np.full((2, 3), v, F) + _random(2, 3, seed=i) / 9 for i, v in enumerate((-1, 1, 0, 2)))
    )
    yield _case("wrong-order", x, F(2), F(-1.5), F(-1), F(1))
    yield _case("empty-range", x, F(0.5), F(0.5), F(-1), F(1))
    yield _case("two-levels", x, F(0), F(0), F(-1), F(1), levels=2)
    yield _case("scalar", F(0.3), F(0), F(1), F(0), F(1))
    yield _case("empty", np.zeros((0, 3), F), F(0), F(1), F(0), F(1))
    yield _case("double", _random(3, 4).astype(np.float64), *np.float64([[0], [1], [0], [1]]), oracle_type=F,
                source="evaluate", reason=OPTIMISED, layer=_layer)  # fmt: skip
    halves = {"expected": F([0, 0, 2, 2, NAN, 4, 0]), "reason": "halves to even, by the specification; NaN stays"}
    yield _case("halves", F([0, 0.5, 1.5, 2.5, NAN, np.inf, -np.inf]), F(0), F(4), F(0), F(4), levels=5, **halves)
    yield _case("error-limits", x, F([0, 0]), F(1), F(0), F(1), error="a limit does not broadcast")


CASES = list(_cases())
