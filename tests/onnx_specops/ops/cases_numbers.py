"""RandomUniform and Inverse: types, corner cases, errors."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.onnx_specops.ops.case import Case

F, I32, I64 = np.float32, np.int32, np.int64
FLOATS = (np.float16, ml_dtypes.bfloat16, F, np.float64)
ONCE = "measured once, by OpenVINO's reference or PyTorch"


def _drawn(name, shape, low, high, type_, expected=None, alignment="TENSORFLOW", seeds=(80, 100), **options):
    inputs = {
        "shape": np.array(shape, I64),
        "minval": np.asarray(low).astype(type_),
        "maxval": np.asarray(high).astype(type_),
    }
    attributes = {"global_seed": seeds[0], "op_seed": seeds[1], "alignment": alignment}
    if expected is not None:
        options |= {"expected": np.array(expected).astype(type_).reshape(shape), "reason": ONCE, "atol": 0.0}
    # The rank of the result is the length of the shape.
    return Case("RandomUniform", name, inputs, attributes, constants=["shape"], **options)


def _random_uniform():
    yield _drawn("example-1", [3, 3], 0, 1, F, [0.7011236, 0.30539632, 0.93931055, 0.9456035, 0.11694777, 0.50770056,
                 0.5197197, 0.22727466, 0.991374], seeds=(150, 10))  # fmt: skip
    yield _drawn("example-2", [2, 2], 2, 10, np.float64, [5.65927959, 4.23122376, 2.67008206, 2.36423758])
    yield _drawn("example-3", [2, 3], 50, 100, I32, [65, 70, 56, 59, 82, 92])
    yield _drawn("int64", [2, 3], 50, 100, I64, [65, 70, 56, 59, 82, 92])
    yield _drawn("float16", [4], 0, 1, np.float16, [0.3876953125, 0.861328125, 0.595703125, 0.1943359375])
    yield _drawn("bfloat16", [4], 0, 1, ml_dtypes.bfloat16, [0.1015625, 0.890625, 0.765625, 0.5546875])
    yield _drawn("twister-float", [2, 2], 0, 1, F, [0.5974867343902588, 0.5445820093154907, 0.04074066877365112,
                 0.5810561776161194], "PYTORCH", (150, 10))  # fmt: skip
    yield _drawn("twister-int32", [6], 50, 100, I32, [77, 58, 62, 69, 60, 94], "PYTORCH")
    yield _drawn("twister-int64", [6], 50, 100, I64, [77, 58, 62, 69, 60, 94], "PYTORCH")
    yield _drawn("twister-int64-wide", [3], -5, 2**41, I64, [754501455373, 1814720801301, 43604542424], "PYTORCH")
    yield _drawn(
        "twister-double", [3], 2, 10, np.float64, [9.067076401353173, 5.073877446908415, 7.533241863666989], "PYTORCH"
    )
    yield _drawn("twister-float16", [3], 0, 1, np.float16, [0.58544921875, 0.591796875, 0.4560546875], "PYTORCH")
    yield _drawn("twister-bfloat16", [3], 0, 1, ml_dtypes.bfloat16, [0.68359375, 0.734375, 0.6484375], "PYTORCH")
    yield _drawn("scalar", [], 0, 1, F, 0.7011236, seeds=(150, 10))
    yield _drawn("empty", [2, 0], 0, 1, F, [])
    yield _drawn("vectors", [2], [50], [100], I32, [65, 70])
    for alignment in ("TENSORFLOW", "PYTORCH"):
        yield _drawn(f"no-seed-{alignment.lower()}", [700], 3, 4, I32, [3] * 700, alignment, (0, 0))
    yield _drawn("error-alignment", [2], 0, 1, F, alignment="NUMPY", error="attribute alignment = 'NUMPY'")
    yield _drawn("error-shape", [2, -1], 0, 1, F, error="shape = ")
    yield _drawn("error-range", [2], 4, 4, I32, error="minval = 4 is not less than maxval = 4")
    yield _drawn("error-range-64", [2], 4, -4, I64, error="minval = 4 is not less than maxval = -4")
    yield _drawn("error-minval", [2], [0, 1], 1, F, error="minval has 2 elements")


def _inverse_layer(input, adjoint=0):
    from openvino import opset14

    return opset14.inverse(input, adjoint=bool(adjoint))


def _inverted(name, matrices, adjoint=0, **options):
    options = {"rtol": 1e-3, "atol": 1e-4, **options}
    return Case("Inverse", name, {"input": np.asarray(matrices)}, {"adjoint": adjoint}, layer=_inverse_layer, **options)


def _inverse():
    matrix = np.array([[4, 7, 2], [3, 6, 1], [2, 5, 3]], F)
    random = np.random.default_rng(0).normal(size=(2, 3, 6, 6)).astype(F)
    for adjoint in (0, 1):
        suffix = "-adjoint" if adjoint else ""
        yield _inverted(f"matrix{suffix}", matrix, adjoint)
        yield _inverted(f"batches{suffix}", random, adjoint)
        for type_ in FLOATS:
            yield _inverted(f"{np.dtype(type_).name}{suffix}", matrix.astype(type_), adjoint, oracle_type=F)
    yield _inverted("pivots", np.array([[0, 2, 1], [1, 1, 0], [3, 0, 1]], F))
    yield _inverted("one", np.array([[4]], F))
    yield _inverted("singular", np.array([[1, 2], [2, 4]], F))
    yield _inverted("none", np.zeros((0, 2, 2), F))
    yield _inverted("nothing", np.zeros((2, 0, 0), F), expected=np.zeros((2, 0, 0), F), reason="OpenVINO leaves it open")
    yield _inverted("error-not-square", np.ones((2, 3), F), error="input has the shape")
    yield _inverted("error-vector", np.ones(3, F), error="input has the shape")


CASES = [*_random_uniform(), *_inverse()]
