"""Create the example for ScatterElementsUpdate-3 and -12: every reduction, with and without initial values, along every
axis.

Run `python -m models.scatter_elements_update.make` in the root of the checkout. The outputs include the examples of the
specification. The second oracle is a loop over the elements.
"""

import numpy as np
import openvino as ov
from openvino import opset3, opset12, opset13

from models import making

RNG = np.random.default_rng(12)


def halves(*shape: int) -> np.ndarray:
    return (RNG.integers(-6, 7, shape) / 2).astype(np.float32)


def distinct(shape: tuple[int, ...], axis: int, size: int) -> np.ndarray:
    """Return distinct indices along `axis`, so that the order of updates does not matter."""
    lines = [RNG.permutation(size)[: shape[axis]] for _ in range(int(np.prod(shape)) // shape[axis])]
    rest = [n for k, n in enumerate(shape) if k != axis]
    return np.moveaxis(np.array(lines).reshape(*rest, shape[axis]), -1, axis)


# Indices along the last axis of [4, 6] that meet elements several times, some counted from the end.
MANY = RNG.integers(-6, 6, (3, 9)).astype(np.int64)
INPUTS: making.Arrays = {
    "data": halves(4, 6),
    "many": MANY,
    "many_updates": halves(3, 9),
    "few": (distinct((2, 6), 0, 4) - 4).astype(np.int32),
    "few_updates": halves(2, 6),
    "cube": halves(3, 4, 5),
    "cube_indices": RNG.integers(0, 4, (2, 7, 5)).astype(np.int32),
    "cube_updates": halves(2, 7, 5),
    "line": halves(7),
    "line_indices": np.array([6, -7, 6, 3, 6, -1, 0], np.int64),
    "line_updates": halves(7),
    "half": halves(4, 6).astype(np.float16),
    "double": halves(4, 6).astype(np.float64),
    "flags": RNG.integers(0, 2, (4, 6)).astype(bool),
    "flag_updates": RNG.integers(0, 2, (3, 9)).astype(bool),
    # Not negative: for integer means OpenVINO's CPU plugin rounds toward zero where its specification, like
    # its reference implementation, rounds down.
    "int32": RNG.integers(0, 50, (4, 6)).astype(np.int32),
    "int64": RNG.integers(0, 50, (4, 6)).astype(np.int64),
    "uint8": RNG.integers(0, 3, (4, 6)).astype(np.uint8),
    "int8": RNG.integers(-3, 4, (4, 6)).astype(np.int8),
}
SHAPES = {name: [-1] * value.ndim for name, value in INPUTS.items()}


def counts(dtype: str) -> np.ndarray:
    return RNG.integers(0, 4, (3, 9)).astype(dtype)


# Updates that are constants of the model.
CONSTANTS: making.Arrays = {
    "half_updates": halves(3, 9).astype(np.float16),
    "double_updates": halves(3, 9).astype(np.float64),
    "int32_updates": counts("int32"),
    "int64_updates": counts("int64"),
    "uint8_updates": counts("uint8"),
    "int8_updates": counts("int8"),
    "uint8_indices": RNG.integers(0, 6, (3, 9)).astype(np.uint8),
    "int8_indices": RNG.integers(-6, 6, (3, 9)).astype(np.int8),
    "uint64_indices": RNG.integers(0, 6, (3, 9)).astype(np.uint64),
}

# The specification's examples 1 to 5: data, indices, updates, axis, reduction, use_init_val, result
LINE = (np.array([2, 3, 4, 6], np.float32), np.array([10, 20, 30, 40, 70, 60], np.float32))
TABLE_UPDATES = np.array([[11, 12], [13, 14]], np.int32)
MET_TWICE = np.array([[1, 1], [0, 3]], np.int32)
EXAMPLES = [
    (LINE[0], np.array([1, 0, 0, -2, -1, 2]), LINE[1], 0, "sum", True, [52, 13, 104, 76]),
    (LINE[0], np.array([1, 0, 0, 2, 3, 2]), LINE[1], 0, "sum", False, [50, 10, 100, 70]),
    (
        np.zeros((3, 4), np.int32),
        np.array([[1, 2], [0, 3]]),
        TABLE_UPDATES,
        1,
        "none",
        True,
        [[0, 11, 12, 0], [13, 0, 0, 14], [0, 0, 0, 0]],
    ),
    (
        np.full((3, 4), 1, np.int32),
        MET_TWICE,
        TABLE_UPDATES,
        1,
        "sum",
        True,
        [[1, 24, 1, 1], [14, 1, 1, 15], [1, 1, 1, 1]],
    ),
    (
        np.full((3, 4), 2, np.int32),
        MET_TWICE,
        TABLE_UPDATES,
        1,
        "prod",
        True,
        [[2, 264, 2, 2], [26, 2, 2, 28], [2, 2, 2, 2]],
    ),
]

REDUCTIONS = ("sum", "prod", "min", "max", "mean")
COMBINE = {"sum": np.add, "mean": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}

# output: (data, indices, updates, axis, reduction, use_init_val)
CASES: dict[str, tuple[str, str, str, int, str, bool]] = {
    "none": ("data", "few", "few_updates", -2, "none", True),
    "none_without_init": ("data", "few", "few_updates", 0, "none", False),
    "mean_without_init_along_a_line": ("line", "line_indices", "line_updates", -1, "mean", False),
    "max_along_a_line": ("line", "line_indices", "line_updates", 0, "max", True),
}
for reduction in REDUCTIONS:
    for init in (True, False):
        suffix = "" if init else "_without_init"
        CASES[reduction + suffix] = ("data", "many", "many_updates", 1, reduction, init)
        axis = 1 if init else -2
        CASES[f"cube_{reduction}{suffix}"] = ("cube", "cube_indices", "cube_updates", axis, reduction, init)
        CASES[f"int32_{reduction}{suffix}"] = ("int32", "many", "int32_updates", -1, reduction, init)
        if reduction != "mean":
            CASES[f"flags_{reduction}{suffix}"] = ("flags", "many", "flag_updates", -1, reduction, init)
CASES |= {
    "half_sum": ("half", "many", "half_updates", 1, "sum", True),
    "double_max": ("double", "many", "double_updates", 1, "max", False),
    "int64_sum": ("int64", "many", "int64_updates", 1, "sum", False),
    "uint8_sum": ("uint8", "many", "uint8_updates", 1, "sum", True),
    "int8_min": ("int8", "many", "int8_updates", 1, "min", True),
    "indices_uint8": ("data", "uint8_indices", "many_updates", 1, "sum", True),
    "indices_int8": ("data", "int8_indices", "many_updates", 1, "max", False),
    "indices_uint64": ("data", "uint64_indices", "many_updates", 1, "sum", False),
}


def loop(
    data: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int, reduction: str, use_init_val: bool
) -> np.ndarray:
    """Implement the specification literally, one element at a time."""
    out = data.copy()
    met: dict[tuple[int, ...], int] = {}
    for place in np.ndindex(indices.shape):
        target = list(place)
        target[axis] = int(indices[place]) % data.shape[axis]
        key = tuple(target)
        if reduction == "none" or (key not in met and not use_init_val):
            out[key] = updates[place]
        else:
            out[key] = COMBINE[reduction](out[key], updates[place])
        met[key] = met.get(key, 0) + 1
    if reduction == "mean":
        for key, times in met.items():
            count = times + use_init_val
            out[key] = out[key] // count if data.dtype.kind in "iu" else out[key] / count
    return out


def main() -> None:
    ports = {name: making.parameter(name, ov.Type(v.dtype), SHAPES[name]) for name, v in INPUTS.items()}
    nodes = ports | {name: opset13.constant(value, name=name) for name, value in CONSTANTS.items()}
    values = INPUTS | CONSTANTS
    outputs, want = {}, {}
    outputs["opset3"] = opset3.scatter_elements_update(nodes["data"], nodes["few"], nodes["few_updates"], np.int32(0))
    want["opset3"] = loop(values["data"], values["few"], values["few_updates"], 0, "none", True)
    for name, (data, indices, updates, axis, reduction, init) in CASES.items():
        # The axis may be a scalar or have one element.
        axis_value = np.array([axis], np.int64) if init else np.int32(axis)
        outputs[name] = opset12.scatter_elements_update(
            nodes[data], nodes[indices], nodes[updates], axis_value, reduction, init
        )
        want[name] = loop(values[data], values[indices], values[updates], axis, reduction, init)
    for number, (*example, axis, reduction, init, result) in enumerate(EXAMPLES, 1):
        tensors = [opset13.constant(x) for x in example]
        name = f"specification_example_{number}"
        outputs[name] = opset12.scatter_elements_update(*tensors, np.array([axis]), reduction, init)
        want[name] = np.array(result, example[0].dtype)
    graph = making.model("scatter_elements_update", ports.values(), outputs)
    making.make(__file__, graph, INPUTS, second_opinion=want)


if __name__ == "__main__":
    main()
