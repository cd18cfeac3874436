"""Create the example for EmbeddingBagOffsetsSum-3: empty bags, default rows, weights, and tables of every rank and type.

Run `python -m models.embedding_bag_offsets_sum.make` in the root of the checkout. The second oracle is torch.
"""

import numpy as np
import openvino as ov
import torch
from openvino import opset3, opset13

from models import making

RNG = np.random.default_rng(3)


def eighths(*shape: int) -> np.ndarray:
    """Return multiples of 1/8 between -2 and 2, whose sums and weighted sums are exact in every float type used here."""
    return (RNG.integers(-16, 17, shape) / 8).astype(np.float32)


INPUTS: making.Arrays = {
    "indices": np.array([0, 2, 3, 4, 4, 9, 1, 0, 7], np.int64),
    # Bags of 3, 0, 0, 1, 3 and 2.
    "offsets": np.array([0, 3, 3, 3, 4, 7], np.int64),
    # Bags of 2 (the first two indices belong to none), 0, 4 and 1.
    "late_offsets": np.array([2, 4, 4, 8], np.int64),
    "indices_i32": np.array([5, 5, 1, 0, 8], np.int32),
    "pool": np.array([3, 3, 8, 1, 0, 6, 2, 9, 5], np.int64),
    "pool_i32": np.array([7, 0, 0, 4, 9], np.int32),
    "offsets_i32": np.array([0, 0, 2, 4], np.int32),
    "weights": np.array([0.5, 1.0, -0.25, 2.0, 0.0, 1.5, 1.0, -1.0, 0.5], np.float32),
    "weights_i32": np.array([1, -1, 3, 2, 0], np.int32),
    "table": eighths(10, 5),
    "default_index": np.array(6, np.int64),
    "default_index_i32": np.array(3, np.int32),
}
# OpenVINO's CPU plugin compiles a weighted bag only if the numbers of indices and of weights are fixed; the
# number of bags may be dynamic even then, and without weights everything is.
FIXED = ("pool", "pool_i32", "weights", "weights_i32")
SHAPES = {name: value.shape if name in FIXED else [-1] * value.ndim for name, value in INPUTS.items()}

TABLES: making.Arrays = {
    "floats": eighths(10, 4),
    "images": eighths(10, 2, 3),
    "volumes": eighths(10, 2, 1, 3),
    "column": eighths(10, 1),
    "half": eighths(10, 4).astype(np.float16),
    "double": eighths(10, 4).astype(np.float64),
    "int32": RNG.integers(-50, 50, (10, 3)).astype(np.int32),
    "int64": RNG.integers(-50, 50, (10, 3)).astype(np.int64),
    "uint8": RNG.integers(0, 40, (10, 3)).astype(np.uint8),
    "int8": RNG.integers(-20, 20, (10, 3)).astype(np.int8),
}

# The table, indices, offsets and weights of the specification's examples.
EXAMPLE_TABLE = np.array([[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]], np.float32)
EXAMPLE = (np.array([0, 2, 3, 4], np.int64), np.array([0, 2, 2], np.int64))

# The name of an input or a table, or the value of a constant.
Operand = str | np.ndarray

# output: (table, indices, offsets, default_index, per_sample_weights)
CASES: dict[str, tuple[Operand, Operand, Operand, str | int | None, Operand | None]] = {
    "plain": ("floats", "indices", "offsets", None, None),
    "default_row": ("floats", "indices", "offsets", 2, None),
    "default_none": ("floats", "indices", "offsets", -1, None),
    "weighted_default_row": ("floats", "pool", "offsets", 0, "weights"),
    "weighted_default_none": ("floats", "pool", "offsets", -1, "weights"),
    "late": ("floats", "indices", "late_offsets", None, None),
    "late_weighted": ("floats", "pool", "late_offsets", 9, "weights"),
    "images_bag": ("images", "indices", "offsets", None, None),
    "images_weighted": ("images", "pool", "offsets", 1, "weights"),
    "volumes_bag": ("volumes", "indices_i32", "offsets_i32", 4, None),
    "column_bag": ("column", "indices_i32", "offsets_i32", None, None),
    "half_bag": ("half", "indices", "offsets", None, None),
    "double_bag": ("double", "indices", "offsets", 5, None),
    "int32_bag": ("int32", "indices_i32", "offsets_i32", None, None),
    "int32_weighted": ("int32", "pool_i32", "offsets_i32", -1, "weights_i32"),
    "int64_bag": ("int64", "indices", "offsets", 7, None),
    "uint8_bag": ("uint8", "indices_i32", "offsets_i32", 2, None),
    "int8_bag": ("int8", "indices_i32", "offsets_i32", None, None),
    "table_of_the_caller": ("table", "pool", "offsets", "default_index", "weights"),
    "table_of_the_caller_i32": ("table", "indices_i32", "offsets_i32", "default_index_i32", None),
    "specification_example_1": (EXAMPLE_TABLE, *EXAMPLE, 0, np.full(4, 0.5, np.float32)),
    "specification_example_2": (EXAMPLE_TABLE, *EXAMPLE, -1, np.full(4, 0.5, np.float32)),
}


def torch_bags(
    table: np.ndarray,
    indices: np.ndarray,
    offsets: np.ndarray,
    default_index: int | None,
    weights: np.ndarray | None,
) -> np.ndarray:
    """Compute the bags with torch, which supports only two-dimensional float tables, offsets that start at 0, and no default
    rows.
    """
    first = int(offsets[0])
    flat = torch.from_numpy(table.reshape(len(table), -1).astype(np.float64))
    bags = torch.nn.functional.embedding_bag(
        torch.from_numpy(indices[first:]).long(),
        flat,
        torch.from_numpy(offsets - first).long(),
        mode="sum",
        per_sample_weights=None if weights is None else torch.from_numpy(weights[first:].astype(np.float64)),
    )
    empty = torch.from_numpy(np.diff(offsets, append=len(indices)) == 0)
    if default_index is not None and default_index != -1:
        bags[empty] = flat[default_index]
    return bags.numpy().astype(table.dtype).reshape(len(offsets), *table.shape[1:])


def main() -> None:
    ports = {name: making.parameter(name, ov.Type(v.dtype), SHAPES[name]) for name, v in INPUTS.items()}
    tables = {name: opset13.constant(value, name=name) for name, value in TABLES.items()}
    values = INPUTS | TABLES
    nodes = ports | tables

    def value(operand: Operand) -> np.ndarray:
        return values[operand] if isinstance(operand, str) else operand

    def node(operand: Operand | None) -> ov.Node | None:
        if operand is None:
            return None
        return nodes[operand] if isinstance(operand, str) else opset13.constant(operand)

    outputs, want = {}, {}
    for name, (table, indices, offsets, default, weights) in CASES.items():
        row = int(value(default)) if isinstance(default, str) else default
        if isinstance(default, int):
            default_node = opset13.constant(np.array(default, value(indices).dtype))
        else:
            default_node = node(default)
        outputs[name] = opset3.embedding_bag_offsets_sum(
            node(table), node(indices), node(offsets), default_node, node(weights)
        )
        want[name] = torch_bags(
            value(table), value(indices), value(offsets), row, None if weights is None else value(weights)
        )
    # bfloat16 exists only in the model: NumPy has no such type.
    narrow = opset13.convert(tables["floats"], "bf16")
    bag = opset3.embedding_bag_offsets_sum(narrow, ports["indices"], ports["offsets"])
    outputs["brain_bag"] = opset13.convert(bag, "f32")
    want["brain_bag"] = want["plain"]
    graph = making.model("embedding_bag_offsets_sum", ports.values(), outputs)
    making.make(__file__, graph, INPUTS, second_opinion=want)


if __name__ == "__main__":
    main()
