"""Inputs, mean subtraction, outputs, and blobs."""

from __future__ import annotations

import numpy as np

from tests.conformance.inference_engine.case import Case, random
from tests.conformance.inference_engine.model import Net


def _mean(name, channels, dims=(1, 3, 4, 5), reference="in0", version=6, precision="FP32", input="FP32") -> Case:
    def make(net: Net) -> None:
        x = net.input(*dims, precision=input)
        if input == "U8":  # its activations round
            net.layer("Power", [x], [dims], {"power": 1, "scale": 0.5, "shift": 0}, name="out")
        else:
            net.layer("ReLU", [x], [dims], {"negative_slope": 0.5}, name="out")
        texts = [f'<channel id="{i}">{channel(net)}</channel>' for i, channel in enumerate(channels)]
        named = f' reference-layer-name="{reference}"' if reference else ""
        net.extra = f'<pre-process{named} mean-precision="{precision}">{"".join(texts)}</pre-process>'

    return Case("Input", name, make, version, feeds={"in0": (0, 200)} if input == "U8" else None)


def _value_and_image(number, seed, *dims):
    return lambda net: net.segment("mean", random(seed, *dims)).replace("<mean", f'<mean value="{number}"')


def _value(number):
    return lambda net: f'<mean value="{number}"/>'


def _image(seed, *dims):
    return lambda net: net.segment("mean", random(seed, *dims))


def _outputs(name, version) -> Case:
    def make(net: Net) -> None:
        x = net.input(2, 6)
        a, b = net.layer("Split", [x], [(2, 2), (2, 4)], {"axis": 1}, name="parts")
        net.layer("ReLU", [a], [(2, 2)], {}, name="first")
        del b  # one of two outputs has no consumer

    return Case("Input", name, make, version)


def _two(name, version) -> Case:
    def make(net: Net) -> None:
        x, y = net.input(2, 6, name="left"), net.input(2, 6, name="a/right")
        net.layer("Eltwise", [x, y], [(2, 6)], {"operation": "sub"}, name="difference")
        net.layer("Eltwise", [y, x], [(2, 6)], {"operation": "mul"}, name="product")

    return Case("Input", name, make, version)


def _bytes(name) -> Case:
    def make(net: Net) -> None:
        x = net.input(1, 3, 4, 4, precision="U8")
        net.layer("ScaleShift", [x], [(1, 3, 4, 4)], {}, blobs={"weights": random(1, 3), "biases": random(2, 3)}, name="out")

    return Case("Input", name, make, 7, feeds={"in0": (0, 255)})


def _constant(name, value, version=7, precision="FP32") -> Case:
    def make(net: Net) -> None:
        x = net.input(2, 3)
        c = net.const(value)
        net.layer("Eltwise", [x, c], [(2, 3)], {"operation": "sum"}, name="out")

    return Case("Const", name, make, version, precision)


CASES = [
    _mean("mean_values", [_value(0.5), _value(-0.25), _value(2)]),
    _mean("mean_values_without_reference", [_value(0.5), _value(-0.25), _value(2)], reference=""),
    _mean("mean_image", [_image(1, 4, 5), _image(2, 4, 5), _image(3, 4, 5)]),
    _mean("mean_values_and_images", [_value_and_image(i, i, 4, 5) for i in range(3)]),
    _mean("mean_values_of_bytes", [_value(100.5), _value(200), _value(3.7)], version=7, input="U8"),
    _mean("mean_image_of_bytes", [_image(1, 4, 5), _image(2, 4, 5), _image(3, 4, 5)], version=7, input="U8"),
    _mean("scale", [lambda net: '<mean value="1"/><scale value="2"/>'] * 3),
    _mean("mean_values_of_version_2", [_value(104), _value(117), _value(123)], version=2),
    _outputs("output_that_nothing_takes", 6),
    _outputs("output_that_nothing_takes_of_version_7", 7),
    _two("two_inputs_and_outputs", 6),
    _two("two_inputs_and_outputs_of_version_3", 3),
    _bytes("bytes"),
    _constant("row", random(1, 1, 3)),
    _constant("whole", random(1, 2, 3)),
    _constant("half", random(1, 2, 3), precision="FP16"),
    _constant("version6", random(1, 1, 3), version=6),
    _constant("zeros", np.zeros((2, 3), np.float32)),
]
