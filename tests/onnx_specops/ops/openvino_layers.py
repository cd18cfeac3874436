"""OpenVINO models of the layers that operators replace: how they run, are stored, and loop over tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset14 as ops


def by_openvino(model: ov.Model, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of OpenVINO for the inputs that the model's parameters name."""
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = compiled([given[parameter.get_friendly_name()] for parameter in model.get_parameters()])
    return [found[port] for port in compiled.outputs]


def saved(model: ov.Model, folder: Path, compressed: bool = False) -> Path:
    ov.save_model(model, folder / "model.xml", compress_to_fp16=compressed)
    return folder / "model.xml"


@dataclass(frozen=True)
class TokenLoop:
    """A Loop over tokens that carries a state and writes an output for each token, as optimum-intel exports it.

    Attributes:
        token: the parameter of the body with the token's number.
        slices: the parameters of the body with a token's rows, and the values that have rows for all tokens.
        axis: the axis of the tokens.
        before, after: the state before and after a token.
        sizes: the dimensions of the state after the batch.
        written, result: the outputs before and after a token.
        extra: a value of the body that is written out for each token, if there is one.
    """

    token: ov.Node
    slices: Sequence[tuple[ov.Node, ov.Node]]
    axis: int
    before: ov.Node
    after: ov.Node
    sizes: Sequence[int]
    written: ov.Node
    result: ov.Node
    extra: ov.Node | None = None

    def outputs(
        self, state: ov.Node, shape: ov.Node, *, reverse: bool, trips: int, joined: bool, stops: bool
    ) -> list[ov.Output]:
        """Return the outputs, the last state and, if there is one, the extra value for all tokens.

        Args:
            state: the first state.
            shape: the shape of the outputs.
            reverse: whether the loop goes from the last token to the first.
            trips: a number that is added to the number of iterations.
            joined: whether the outputs are concatenated and sliced, as by a module with one output.
            stops: whether the condition of the body is computed.
        """
        condition = ops.less(self.token, np.int32(2)) if stops else ops.constant(np.array([True]))
        more = [] if self.extra is None else [self.extra]
        parameters = [self.token, *(parameter for parameter, _ in self.slices), self.before, self.written]
        body = ov.Model([condition, self.after, self.result, *more], parameters)
        count = ops.convert(ops.gather(shape, np.int32(self.axis), np.int32(0)), "i32")
        loop = ops.loop(ops.add(count, np.int32(trips)) if trips else count, ops.constant(np.array(True)))
        loop.set_function(body)
        ends = (-1, -1, 1, 0) if reverse else (0, 1, 1, -1)
        for parameter, value in self.slices:
            loop.set_sliced_input(parameter, value.output(0), *ends, self.axis)
        loop.set_merged_input(self.before, state.output(0), self.after.output(0))
        loop.set_merged_input(self.written, ops.broadcast(np.float32(0), shape).output(0), self.result.output(0))
        loop.set_special_body_ports([0, 0])
        y, present = (loop.get_iter_value(value.output(0), -1) for value in (self.result, self.after))
        extras = [loop.get_concatenated_slices(value.output(0), 0, 1, 1, -1, 1) for value in more]
        if joined:
            flat = ops.concat([ops.reshape(value, np.array([-1]), False) for value in (y, present)], 0)
            end = ops.reshape(ops.reduce_prod(shape, np.int32(0)), np.array([1]), False)
            zero, step = np.array([0]), np.array([1])
            y = ops.reshape(ops.slice(flat, zero, end, step), shape, False).output(0)
            rest = ops.slice(flat, end, np.array([2**31 - 1]), step)
            present = ops.reshape(rest, np.array([-1, *self.sizes]), False).output(0)
        return [y, present, *extras]
