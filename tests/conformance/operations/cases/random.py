"""Random numbers."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, of_no_bytes, static

I32, I64, F16, F32, F64 = np.int32, np.int64, np.float16, np.float32, np.float64

_SPECIFIED = decided("evaluate", "the CPU plugin converts numbers drawn as f32, against the specification")
_FUSED = decided("cpu", "the CPU plugin rounds once, the reference twice")


def _random_uniform():
    def case(name, shape, low, high, kind, alignment="TENSORFLOW", seeds=(150, 10), **settings):
        attributes = {"output_type": kind, "global_seed": seeds[0], "op_seed": seeds[1], "alignment": alignment}
        inputs = [shape, low, high]
        settings = {"rtol": 0.0, "atol": 0.0, **settings}
        name = f"{name}-{alignment.lower()}"
        return layer_case("RandomUniform", "opset8", "RandomUniform", name, inputs, attributes, **settings)

    for alignment in ("TENSORFLOW", "PYTORCH"):
        zero, one = np.array(0, F32), np.array(1, F32)
        yield case("f32", np.array([3, 3]), zero, one, "f32", alignment)
        yield case("f32-many", np.array([7, 300]), zero, one, "f32", alignment, (2**33 + 5, 2**40 + 7))
        fused = _FUSED if alignment == "TENSORFLOW" else {}
        yield case("f32-range", np.array([999]), np.array(-3.7, F32), np.array(11.3, F32), "f32", alignment, **fused)
        yield case("f16", np.array([50]), np.array(-2, F16), np.array(5, F16), "f16", alignment, **_SPECIFIED)
        yield case("f64", np.array([2, 51]), np.array(2, F64), np.array(10, F64), "f64", alignment, (80, 100), **_SPECIFIED)
        yield case("i32", np.array([2, 3]), np.array(50, I32), np.array(100, I32), "i32", alignment, (80, 100))
        yield case("i32-whole-range", np.array([50]), np.array(-(2**31), I32), np.array(2**31 - 1, I32), "i32", alignment,
                   **decided("evaluate", "the CPU plugin overflows"))  # fmt: skip
        specified = decided("cpu", "the reference uses two numbers for each, the specification one")
        yield case("i64", np.array([50]), np.array(-50), np.array(100), "i64", alignment, (80, 100),
                   **(specified if alignment == "TENSORFLOW" else {}))  # fmt: skip
        yield case("empty", np.array([0, 3]), zero, one, "f32", alignment)
        yield case("scalar", of_no_bytes(I64), zero, one, "f32", alignment,
                   **decided("evaluate", "the CPU plugin draws no scalar"))  # fmt: skip
        # One run each, because OpenVINO continues the sequence in later ones.
        for shape, high in (([2, 3], one), ([5, 1], one * 3)):
            inputs = [static(np.array(shape, I32)), static(zero), static(high)]
            yield case(f"at-run-time-{shape[0]}", *inputs, "f32", alignment)
        yield case("vectors-of-one", np.array([4]), np.array([1], I32), np.array([9], I32), "i32", alignment)
    for low, high in ((-5, 2**41), (2**40, 2**62 + 11), (-(2**62), 2**62)):
        yield case(f"i64-{low}-{high}", np.array([40]), np.array(low), np.array(high), "i64", "PYTORCH", (80, 1),
                   **decided("evaluate", "the CPU plugin stores 64-bit integers in 32 bits"))  # fmt: skip
    yield case("no-seed-of-operation", np.array([9]), np.array(0, F32), np.array(1, F32), "f32", seeds=(7, 0))
    yield case("no-global-seed", np.array([9]), np.array(0, F32), np.array(1, F32), "f32", seeds=(0, 7))


def _multinomial():
    def case(name, probs, samples, replacement, logs=False, kind="i64", seeds=(1, 2), **settings):
        attributes = {"convert_type": kind, "with_replacement": replacement, "log_probs": logs}
        attributes |= {"global_seed": seeds[0], "op_seed": seeds[1]}
        settings = {"seeded_body": False, "oracle": "cpu", "reason": "the reference draws other numbers", **settings}
        inputs = [probs, samples]
        return layer_case("Multinomial", "opset13", "Multinomial", name, inputs, attributes, **settings)

    probs = np.array([[0.1, 0.5, 0.4], [0.3, 0.3, 0.4]], F32)
    for replacement in (True, False):
        suffix = "with" if replacement else "without"
        yield case(f"{suffix}-replacement", dynamic(probs, probs[:1]), np.array(3), replacement)
        yield case(f"{suffix}-replacement-i32", dynamic(probs), np.array([2], I32), replacement, kind="i32")
        yield case(
            f"{suffix}-replacement-logs", dynamic(np.log(probs)), np.array(3), replacement, True, seeds=(2**33 + 5, 9)
        )
        yield case(f"{suffix}-replacement-f16", dynamic(probs.astype(F16)), np.array(3), replacement)
        yield case(f"{suffix}-replacement-unnormalised", static(probs * 7), np.array(2, I32), replacement, seeds=(0, 5))
    yield case("run-time", dynamic(probs, probs), static(np.array(2, I32), np.array(5, I32)), True)


CASES = [*_random_uniform(), *_multinomial()]
