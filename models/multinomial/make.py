"""Create the example for Multinomial-13: with and without replacement, probabilities and their logarithms, both index types.

Run `python -m models.multinomial.make` in the root of the checkout. All seeds are nonzero, so OpenVINO's CPU plugin
generates the same samples in each run. No sample is so close to a boundary between classes that float32 rounding could
change it.
"""

from typing import NamedTuple

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from models import making

RNG = np.random.default_rng(13)


def distributions(rows: int, classes: int, sharpness: float = 1.0) -> np.ndarray:
    weights = RNG.gamma(1.0 / sharpness, size=(rows, classes)) + 0.05
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


SURE = np.zeros((3, 4), np.float32)
SURE[[0, 1, 2], [2, 0, 3]] = 1.0

INPUTS: making.Arrays = {
    "probabilities": distributions(3, 5),
    # They need not sum to one.
    "weights": (distributions(2, 8) * np.array([[7.0], [0.25]])).astype(np.float32),
    "logarithms": np.log(distributions(3, 6)).astype(np.float32),
    "half": distributions(2, 4).astype(np.float16),
    "sure": SURE,
    "num_samples": np.array(6, np.int32),
    "num_samples_i64": np.array([4], np.int64),
}
SHAPES: dict[str, list[int]] = {name: [-1] * value.ndim for name, value in INPUTS.items()}
SHAPES |= {"num_samples_i64": [1]}


class Case(NamedTuple):
    """The operands (names of inputs, or constants) and the attributes of a Multinomial."""

    probabilities: str | np.ndarray
    num_samples: str | int
    convert_type: str
    with_replacement: bool
    log_probs: bool
    global_seed: int
    op_seed: int

    def values(self) -> tuple[np.ndarray, int]:
        """Return the values of the probabilities and of the number of samples."""
        probabilities, samples = self[:2]
        if isinstance(probabilities, str):
            probabilities = INPUTS[probabilities]
        return probabilities, int(INPUTS[samples].ravel()[0]) if isinstance(samples, str) else samples


ONE = np.array([[0.1, 0.5, 0.4]], np.float32)
TWO = np.array([[-1, 1, 2], [50, 1, 21]], np.float32)
CASES = {
    "with_replacement": Case("probabilities", 12, "i64", True, False, 1, 2),
    "with_replacement_i32": Case("probabilities", 12, "i32", True, False, 3, 4),
    "without_replacement": Case("probabilities", 5, "i64", False, False, 1, 2),
    "without_replacement_i32": Case("probabilities", 3, "i32", False, False, 5, 6),
    "of_weights": Case("weights", 9, "i64", True, False, 7, 8),
    "of_weights_without_replacement": Case("weights", 4, "i32", False, False, 9, 10),
    "of_logarithms": Case("logarithms", 10, "i32", True, True, 11, 12),
    "of_logarithms_without_replacement": Case("logarithms", 6, "i64", False, True, 13, 14),
    "of_halves": Case("half", 8, "i64", True, False, 15, 16),
    "as_many_as_asked": Case("probabilities", "num_samples", "i32", True, False, 17, 18),
    "as_many_as_asked_i64": Case("weights", "num_samples_i64", "i64", False, False, 19, 20),
    "global_seed_alone": Case("probabilities", 7, "i64", True, False, 21, 0),
    "op_seed_alone": Case("probabilities", 7, "i64", True, False, 0, 22),
    "large_seeds": Case("probabilities", 7, "i64", True, False, 2**40 + 1, 2**33 + 5),
    # One class has all the probability: the only Multinomial whose samples need no seed.
    "of_sure_classes": Case("sure", 5, "i64", True, False, 23, 24),
    "of_sure_classes_i32": Case("sure", 5, "i32", True, False, 0, 0),
    # The specification's examples, with its seeds.
    "specification_example_1": Case(ONE, 5, "i32", True, False, 234, 148),
    "specification_example_2": Case(TWO, 10, "i32", True, True, 234, 148),
    "specification_example_3": Case(ONE, 2, "i32", False, False, 234, 148),
}


def graph(ports: dict[str, ov.Node], case: Case) -> ov.Node:
    source, samples, *attributes = case
    probabilities = ports[source] if isinstance(source, str) else ops.constant(source)
    number = ports[samples] if isinstance(samples, str) else ops.constant(np.array(samples, np.int32))
    return ops.multinomial(probabilities, number, *attributes)


def check_draws() -> None:
    """Check that small changes of the probabilities do not change the samples of any case."""
    for name, case in CASES.items():
        probabilities, number = case.values()
        sample = making.sampler(number, *case[2:])
        if case.log_probs:
            probabilities = np.exp(probabilities.astype(np.float64))
        try:
            making.assert_draws_are_stable(sample, probabilities.astype(np.float32))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def main() -> None:
    ports = {name: making.parameter(name, ov.Type(v.dtype), SHAPES[name]) for name, v in INPUTS.items()}
    outputs = {name: graph(ports, case) for name, case in CASES.items()}
    # bfloat16 exists only in the model: NumPy has no such type. It represents these eighths exactly.
    eighths = np.array([[0.125, 0.5, 0.375], [0.25, 0.25, 0.5]], np.float32)
    outputs["of_brain_floats"] = ops.multinomial(
        ops.convert(ops.constant(eighths), "bf16"), np.int32(8), "i64", True, False, 29, 30
    )
    check_draws()
    making.make(__file__, making.model("multinomial", ports.values(), outputs), INPUTS)


if __name__ == "__main__":
    main()
