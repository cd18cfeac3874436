"""The OpenVINO part of the example: an extension with the operation Sparsemax, and a model that uses it.

``python sparsemax_openvino.py`` writes sparsemax.xml and sparsemax.bin to its own folder. (Extensions are usually shared
libraries in C++. OpenVINO's Python package also accepts a class, so this example does not require a compiler.)
"""

from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as opset


class Sparsemax(ov.Op):
    """Sparsemax (arXiv:1602.02068) along an axis. It is similar to Softmax, but some results are exactly 0."""

    class_type_info = ov.DiscreteTypeInfo("Sparsemax", "extension")

    def __init__(self, inputs=None, axis=-1):
        super().__init__(self)
        self.axis = axis
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()

    def get_type_info(self):
        return Sparsemax.class_type_info

    def validate_and_infer_types(self):
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, new_inputs):
        return Sparsemax(new_inputs, self.axis)

    def visit_attributes(self, visitor):
        attributes = {"axis": self.axis}
        visitor.on_attributes(attributes)
        self.axis = attributes["axis"]
        return True

    def has_evaluate(self):
        return True

    def evaluate(self, outputs, inputs):
        # By bisection: find the threshold for which the clipped differences add up to 1.
        z = np.moveaxis(inputs[0].data.astype(np.float64), self.axis, -1)
        low, high = z.max(-1, keepdims=True) - 1, z.max(-1, keepdims=True)
        for _ in range(60):
            middle = (low + high) / 2
            too_much = np.maximum(z - middle, 0).sum(-1, keepdims=True) > 1
            low, high = np.where(too_much, middle, low), np.where(too_much, high, middle)
        outputs[0].data[...] = np.moveaxis(np.maximum(z - low, 0), -1, self.axis)
        return True


def main() -> None:
    rng = np.random.default_rng(0)
    x = opset.parameter([-1, 8], np.float32, name="x")
    hidden = opset.matmul(x, opset.constant(rng.standard_normal((8, 5)).astype(np.float32)), False, False)
    attention = Sparsemax([hidden.output(0)], axis=1)
    attention.output(0).set_names({"attention"})
    ov.save_model(ov.Model([attention.output(0)], [x], "sparsemax"), Path(__file__).with_name("sparsemax.xml"))


if __name__ == "__main__":
    main()
