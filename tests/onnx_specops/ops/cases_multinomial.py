"""Multinomial: seeds, with and without replacement, logarithms, types, errors."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.onnx_specops.ops.case import Case

NAME = "Multinomial"
F = np.float32
TWO_ROWS = [[0.1, 0.5, 0.4], [0.3, 0.3, 0.4]]


def layer(probs, num_samples, with_replacement, log_probs=0, global_seed=0, op_seed=0):
    from openvino import opset13

    return opset13.multinomial(probs, num_samples, "i64", bool(with_replacement), bool(log_probs), global_seed, op_seed)


def case(name, probs, num_samples, with_replacement=1, *, type_=F, count_type=np.int32, count_dims=(), **options):
    attributes = {key: options.pop(key) for key in ("log_probs", "global_seed", "op_seed") if key in options}
    if not attributes.keys() & {"global_seed", "op_seed"}:
        attributes |= {"global_seed": 1, "op_seed": 2}
    inputs = {"probs": np.asarray(probs, F).astype(type_), "num_samples": np.full(count_dims, num_samples, count_type)}
    attributes["with_replacement"] = with_replacement
    return Case(NAME, name, inputs, attributes, layer=layer, same_values=False, **options)


def random_case(name, batch, classes, samples, with_replacement, log_probs=0, **options):
    probs = np.random.default_rng(len(name)).random((batch, classes))
    probs = np.log(probs) if log_probs else probs
    return case(name, probs, samples, with_replacement, log_probs=log_probs, global_seed=7, op_seed=11, **options)


CASES = [
    case("facts", TWO_ROWS, 8),
    case("facts-printed", TWO_ROWS, 8, expected=np.array([[2, 2, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 2, 1, 2, 2]]),
         reason="measured once, to keep the oracle itself from changing"),
    case("facts-without-replacement", TWO_ROWS, 3, 0),
    case("facts-without-replacement-printed", TWO_ROWS, 3, 0, expected=np.array([[2, 1, 0], [0, 1, 2]]),
         reason="measured once, to keep the oracle itself from changing"),
    # The specification's examples.
    case("example-1", [[0.1, 0.5, 0.4]], 5, global_seed=234, op_seed=148),
    case("example-2", [[-1, 1, 2], [50, 1, 21]], 10, log_probs=1, global_seed=234, op_seed=148),
    case("example-3", [[0.1, 0.5, 0.4]], 2, 0, global_seed=234, op_seed=148),
    # Seeds.
    case("only-global-seed", TWO_ROWS, 20, global_seed=5, op_seed=0),
    case("only-op-seed", TWO_ROWS, 20, global_seed=0, op_seed=5),
    case("seed-beyond-32-bits", TWO_ROWS, 20, global_seed=2**33 + 5, op_seed=7),
    case("low-32-bits-of-the-seed-zero", TWO_ROWS, 20, global_seed=2**32, op_seed=0),
    case("largest-positive-seed", TWO_ROWS, 20, global_seed=2**63 - 1, op_seed=2**62 + 3),
    # num_samples.
    case("int64-count", TWO_ROWS, 4, count_type=np.int64),
    case("count-of-one-element", TWO_ROWS, 4, count_dims=(1,)),
    case("constant-count", TWO_ROWS, 4, constants=["num_samples"]),
    case("constant-count-without-replacement", TWO_ROWS, 2, 0, constants=["num_samples"]),
    case("no-samples", TWO_ROWS, 0, expected=np.zeros((2, 0), np.int64), reason="OpenVINO has no result to compare"),
    case("no-rows", np.zeros((0, 3)), 4, expected=np.zeros((0, 4), np.int64), reason="OpenVINO has no result to compare"),
    # Probabilities.
    case("not-normalised", [[3, 1, 0.25, 12]], 40),
    case("classes-of-zero", [[0, 0.5, 0, 0.5, 0]], 40),
    case("one-class", [[2.5]], 3),
    random_case("many-classes", 3, 2000, 50, 1),
    random_case("many-classes-logarithms", 3, 2000, 50, 1, 1),
    random_case("many-classes-without-replacement", 3, 500, 100, 0),
    random_case("many-classes-without-replacement-logarithms", 3, 500, 100, 0, 1),
    case("minus-infinity", [[-np.inf, 0, 1]], 10, log_probs=1),
    case("all-classes-without-replacement", np.tile([[0.1, 0.2, 0.3, 0.4]], (6, 1)), 4, 0),
    # Types. For bfloat16 inputs OpenVINO computes in bfloat16, with its own rounding, which differs without AVX-512.
    *[random_case(f"{type_.__name__}-{way}{'-log' * log}", 4, 50, 30, way == "with", log, type_=type_,
                  avx512=type_ == ml_dtypes.bfloat16)
      for type_ in (np.float16, ml_dtypes.bfloat16, np.float64) for way in ("with", "without") for log in (0, 1)],
    # Errors.
    case("negative-probability", [[0.5, 0.5], [0.5, -0.5]], 2,
         error=r"probs: row 1 contains a negative probability, -0.5, at class 1", body_error="probs_"),
    case("nan", [[np.nan, 0.5]], 2, error="probs: row 0 contains a NaN at class 0", body_error="probs_"),
    case("infinite", [[0.5, np.inf]], 2, error="probs: row 0 contains inf at class 1", body_error="probs_"),
    case("infinite-logarithm", [[0.5, np.inf]], 2, log_probs=1, error="probs: row 0 contains inf at class 1",
         body_error="probs_"),
    case("nan-logarithm", [[0.5, np.nan]], 2, log_probs=1, error="probs: row 0 contains a NaN at class 1",
         body_error="probs_"),
    case("all-zero", [[0.5, 0.5], [0, 0]], 2, error="probs: row 1 sums to 0; it must be positive",
         body_error="probs_sum_to_zero_or_infinity"),
    case("no-classes", np.zeros((2, 0)), 2, error="probs: row 0 sums to 0; it must be positive"),
    case("logarithms-too-large", [[200, 1]], 2, log_probs=1, error="probs: row 0 sums to inf; it must be finite"),
    case("logarithms-too-small", [[-200, -300]], 2, log_probs=1, error="probs: row 0 sums to 0; it must be positive"),
    case("sum-overflows", [[3e38, 3e38]], 2, error="probs: row 0 sums to inf; it must be finite"),
    case("more-samples-than-classes", TWO_ROWS, 4, 0, error="num_samples = 4 is more than the 3 classes",
         body_error="more_samples_than_classes"),
    case("more-samples-than-possible-classes", [[0.5, 0.25, 0.25], [0.5, 0, 0.5]], 3, 0,
         error="num_samples = 3 is more than the 2 classes of nonzero probability in row 1",
         body_error="more_samples_than_classes"),
    case("negative-count", TWO_ROWS, -1, error="num_samples = -1 is negative", body_error="num_samples_is_negative"),
    case("negative-count-without-replacement", TWO_ROWS, -1, 0, error="num_samples = -1 is negative",
         body_error="num_samples_is_negative"),
]  # fmt: skip
