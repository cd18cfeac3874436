"""Random numbers."""

from __future__ import annotations

from typing import Literal

import onnx_ir as ir

from converters.errors import Malformed
from converters.openvino.onnx_types import data_type
from converters.openvino.reader.element_types import ElementType
from converters.openvino.rule import Departure, rule
from converters.openvino.rules._indices import scalar, vector
from onnx_specops.building import Builder, Value


@rule("Multinomial", since="opset13")
def multinomial(
    op: Builder,
    probs: Value,
    num_samples: Value,
    *,
    convert_type: ElementType,
    with_replacement: bool,
    log_probs: bool,
    global_seed: int = 0,
    op_seed: int = 0,
):
    """Multinomial-13."""
    samples = op.specops.Multinomial(
        probs,
        num_samples if num_samples.rank == 0 else scalar(op, num_samples),
        with_replacement=int(with_replacement),
        log_probs=int(log_probs),
        global_seed=_signed(global_seed),
        op_seed=_signed(op_seed),
    )
    to = data_type(convert_type)
    return samples if to == ir.DataType.INT64 else op.Cast(samples, to=to)


@rule(
    "RandomUniform",
    since="opset8",
    departs=[
        Departure(
            where="f16 and f64",
            cpu="generates f32 numbers and converts them",
            specification="builds each number of the type from the generator's bits",
            follows="specification",
        ),
        Departure(
            where="i32 with a range wider than that of i32",
            cpu="overflows",
            specification="samples the whole range",
            follows="specification",
        ),
        Departure(
            where="i64 with `TENSORFLOW`",
            cpu="uses one 32-bit number for each, as in the specification",
            reference="uses two",
            follows="cpu",
        ),
        Departure(
            where="a layer that runs again, in a model or in the body of a loop",
            cpu="continues the random sequence, as the reference kernel does",
            specification="restarts from its seeds",
            follows="specification",
        ),
        Departure(where="a scalar", cpu="generates nothing", specification="generates a number", follows="specification"),
    ],
)
def random_uniform(
    op: Builder,
    shape: Value,
    minval: Value,
    maxval: Value,
    *,
    output_type: ElementType,
    global_seed: int = 0,
    op_seed: int = 0,
    alignment: Literal["TENSORFLOW", "PYTORCH"] = "TENSORFLOW",
):
    """RandomUniform-8: every run, and every iteration of a loop, generates the numbers of OpenVINO's first run."""
    to = data_type(output_type)
    if minval.dtype != to or maxval.dtype != to:
        raise Malformed(f"the type of its bounds differs from its output_type, {output_type}")
    seeds = {"global_seed": _signed(global_seed), "op_seed": _signed(op_seed)}
    return op.specops.RandomUniform(vector(op, shape), minval, maxval, **seeds, alignment=alignment)


def _signed(seed: int) -> int:
    """Return the signed integer with the bits of an unsigned 64-bit seed, because an ONNX attribute is signed."""
    return (seed + 2**63) % 2**64 - 2**63
