"""Create the example for MatMul-1: every combination of ranks, with and without transpositions, and constant weights.

Run `python -m models.matmul.make` in the root of the checkout. The second oracle is NumPy.
"""

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from models import making

RNG = np.random.default_rng(20)


def small(*shape: int) -> np.ndarray:
    """Return multiples of 1/8 between -1 and 1, whose products and short sums are exact even in float16."""
    return (RNG.integers(-8, 9, shape) / 8).astype(np.float32)


def transposed(value: np.ndarray) -> np.ndarray:
    return value if value.ndim == 1 else np.swapaxes(value, -1, -2)


INPUTS = {
    "vector": small(6),
    "rows": small(5, 6),
    "columns": small(6, 5),
    "square": small(6, 6),
    "batch": small(3, 5, 6),
    "batch_of_columns": small(3, 6, 4),
    "grid": small(2, 1, 5, 6),
    "grid_of_columns": small(2, 3, 6, 4),
    "half": small(5, 6).astype(np.float16),
    "double": small(5, 6).astype(np.float64),
    "whole": RNG.integers(-9, 10, (5, 6)).astype(np.int32),
    # bfloat16 exists only in the model (NumPy has no such type). It represents products of halves exactly.
    "brain": (RNG.integers(-2, 3, (5, 6)) / 2).astype(np.float32),
}
# Every dimension is dynamic except where a constant weight needs the inner one.
SHAPES = {name: [-1] * value.ndim for name, value in INPUTS.items()}
SHAPES |= {"half": [-1, 6], "double": [-1, 6], "whole": [-1, 6], "brain": [-1, 6]}

# output: (a, b, transpose_a, transpose_b)
CASES = {
    "vector_vector": ("vector", "vector", False, False),
    "vector_vector_both_transposed": ("vector", "vector", True, True),
    "vector_matrix": ("vector", "columns", False, False),
    "vector_matrix_transposed": ("vector", "rows", False, True),
    "vector_transposed_matrix": ("vector", "columns", True, False),
    "vector_batch": ("vector", "batch_of_columns", False, False),
    "vector_batch_transposed": ("vector", "batch", True, True),
    "matrix_vector": ("rows", "vector", False, False),
    "matrix_transposed_vector": ("columns", "vector", True, False),
    "matrix_vector_transposed": ("rows", "vector", False, True),
    "batch_vector": ("batch", "vector", False, False),
    "batch_transposed_vector": ("batch_of_columns", "vector", True, True),
    "matrix_matrix": ("rows", "columns", False, False),
    "matrix_transposed_matrix": ("columns", "columns", True, False),
    "matrix_matrix_transposed": ("rows", "rows", False, True),
    "matrix_transposed_matrix_transposed": ("columns", "rows", True, True),
    "matrix_itself": ("square", "square", False, False),
    "matrix_batch": ("rows", "batch_of_columns", False, False),
    "matrix_transposed_batch": ("columns", "batch_of_columns", True, False),
    "batch_matrix": ("batch", "columns", False, False),
    "batch_matrix_transposed": ("batch", "rows", False, True),
    "batch_batch": ("batch", "batch_of_columns", False, False),
    "batch_transposed_batch_transposed": ("batch_of_columns", "batch", True, True),
    "grid_batch": ("grid", "batch_of_columns", False, False),
    "grid_grid": ("grid", "grid_of_columns", False, False),
    "grid_transposed_grid_transposed": ("grid_of_columns", "grid", True, True),
    "grid_vector": ("grid", "vector", False, False),
}
# output: (a, constant weight, transpose_b)
WEIGHTED = {
    "layer": ("rows", small(6, 8), False),
    "layer_transposed_weight": ("rows", small(8, 6), True),
    "layer_of_batch": ("batch", small(8, 6), True),
    "layer_of_grid_with_a_weight_each": ("grid", small(3, 7, 6), True),
    "layer_of_vector": ("vector", small(8, 6), True),
    "layer_to_one": ("rows", small(6), False),
    "half_layer": ("half", small(8, 6).astype(np.float16), True),
    "double_layer": ("double", small(8, 6).astype(np.float64), True),
    "whole_layer": ("whole", RNG.integers(-9, 10, (8, 6)).astype(np.int32), True),
}


def main() -> None:
    ports = {name: making.parameter(name, ov.Type(v.dtype), SHAPES[name]) for name, v in INPUTS.items()}
    outputs, want = {}, {}
    for name, (a, b, transpose_a, transpose_b) in CASES.items():
        outputs[name] = ops.matmul(ports[a], ports[b], transpose_a, transpose_b)
        left = transposed(INPUTS[a]) if transpose_a else INPUTS[a]
        want[name] = np.asarray(np.matmul(left, transposed(INPUTS[b]) if transpose_b else INPUTS[b]))
    for name, (a, weight, transpose_b) in WEIGHTED.items():
        outputs[name] = ops.matmul(ports[a], ops.constant(weight), False, transpose_b)
        want[name] = np.asarray(np.matmul(INPUTS[a], transposed(weight) if transpose_b else weight))
    weight = (RNG.integers(-2, 3, (8, 6)) / 2).astype(np.float32)
    narrow = [ops.convert(value, "bf16") for value in (ports["brain"], ops.constant(weight))]
    outputs["brain_layer"] = ops.convert(ops.matmul(*narrow, False, True), "f32")
    want["brain_layer"] = INPUTS["brain"] @ weight.T
    making.make(__file__, making.model("matmul", ports.values(), outputs), INPUTS, second_opinion=want)


if __name__ == "__main__":
    main()
