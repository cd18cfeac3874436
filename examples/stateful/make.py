"""Create a stateful network. Its input is an event, and its output is a visitor's interest in five shelves.

Run `python -m examples.stateful.make` in the root of the checkout. This requires openvino. The state of a GRU is a variable
(ReadValue and Assign). A ScatterElementsUpdate, which becomes a custom operator, averages two shelves with a fixed weight.
"""

from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from models import making

HIDDEN, FEATURES, SHELVES = 8, 4, 5


def build() -> ov.Model:
    """Build event f32[1, 4] -> interest f32[1, 5], with the variable "visit" f32[1, 8]."""
    rng = np.random.default_rng(12)

    def weights(*shape: int) -> ov.Node:
        return ops.constant((rng.standard_normal(shape) * shape[-1] ** -0.5).astype(np.float32))

    event = making.parameter("event", ov.Type.f32, [1, FEATURES])
    start = ops.constant(np.full((1, HIDDEN), 0.125, np.float32))
    memory = ops.read_value(start, "visit", ov.Type.f32, ov.PartialShape([1, HIDDEN]))
    state = ops.gru_cell(
        event, memory, weights(3 * HIDDEN, FEATURES), weights(3 * HIDDEN, HIDDEN), weights(3 * HIDDEN), HIDDEN
    )
    interest = ops.softmax(ops.matmul(state, weights(SHELVES, HIDDEN), False, True), 1)
    fixed, weight = ops.constant(np.array([[1, 3, 1]], np.int64)), ops.constant(np.full((1, 3), 0.25, np.float32))
    drawn = ops.scatter_elements_update(interest, fixed, weight, ops.constant(np.int64(1)), "mean", True)
    model = making.model("visit", [event], {"interest": drawn})
    model.add_sinks([ops.assign(state, "visit")])
    return model


def main() -> None:
    ov.save_model(build(), Path(__file__).with_name("model.xml"), compress_to_fp16=False)


if __name__ == "__main__":
    main()
