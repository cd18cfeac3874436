"""Uses of operators that a program computes incorrectly or does not support.

`tests.conformance.targets.operations` found them, or they occurred in a network. Files that contain one are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnx_specops.graphs import all_nodes, computed_before, constant_array, nested, producer_of


@dataclass(frozen=True)
class Limit:
    """A use of some operators that a target computes incorrectly or does not support.

    Attributes:
        operators: the operators.
        reason: a short description of the use.
        applies: a function that returns whether the limit applies to a node.
        silent: whether the target computes incorrect results. If not, it raises an error or crashes.
    """

    operators: frozenset[str]
    reason: str
    applies: Callable[[ir.Node], bool]
    silent: bool = True


def limit(operators: str, reason: str, *, silent: bool = True) -> Callable[[Callable[[ir.Node], bool]], Limit]:
    """Decorate a function that returns whether the limit applies to a node of the operators."""
    return lambda applies: Limit(frozenset(operators.split()), reason, applies, silent)


_MAX_VALUES = 64
"""The maximum number of values whose computation a limit examines."""


def _ints(node: ir.Node, name: str) -> list[int]:
    return list(node.attributes.get_ints(name, ()) or ())


def _constant(node: ir.Node, index: int) -> np.ndarray | None:
    return constant_array(node.inputs[index]) if index < len(node.inputs) else None


def _dims(value: ir.Value | None) -> list[int] | None:
    if value is None or value.shape is None or not all(isinstance(dim, int) for dim in value.shape):
        return None
    return [int(dim) for dim in value.shape if isinstance(dim, int)]


def _given(node: ir.Node, index: int) -> bool:
    return index < len(node.inputs) and node.inputs[index] is not None


def _rank(node: ir.Node) -> int:
    x = node.inputs[0]
    return 0 if x is None or x.shape is None else len(x.shape)


_DIRECTIONS = {"GRU": (["Sigmoid", "Tanh"]), "LSTM": (["Sigmoid", "Tanh", "Tanh"]), "RNN": (["Tanh"])}


def is_usual_recurrence(node: ir.Node) -> bool:
    """Return whether a GRU, LSTM or RNN has whole sequences, no clip, no peepholes, and the default functions."""
    usual = _DIRECTIONS[node.op_type]
    found = list(node.attributes.get_strings("activations", ()) or ())
    x, lengths = _dims(node.inputs[0]), _constant(node, 4)
    whole = not _given(node, 4) or (lengths is not None and x is not None and bool((lengths == x[0]).all()))
    others = {"clip", "input_forget"} & set(node.attributes) or _given(node, 7)
    return whole and not others and found == usual * (len(found) // len(usual))


@limit("GRU LSTM RNN", "with only the reverse direction, sequence lengths, a clip, peepholes or other activations")
def recurrent(node: ir.Node) -> bool:
    """Match anything except whole sequences, forward or bidirectional, with the default functions."""
    return node.attributes.get_string("direction", "forward") == "reverse" or not is_usual_recurrence(node)


@limit("GRU LSTM", "with activation functions other than Relu, Sigmoid and Tanh", silent=False)
def other_functions(node: ir.Node) -> bool:
    """Match float32 with another function. WebGPU (0.4) fails when it runs the node; float16 runs on the CPU."""
    x = node.inputs[0]
    found = {name.capitalize() for name in node.attributes.get_strings("activations", ()) or ()}
    return not found <= {"Relu", "Sigmoid", "Tanh"} and (x is None or x.dtype != ir.DataType.FLOAT16)


@limit("GRU LSTM RNN", "of a batch of several sequences, with the steps on the first axis or the last states as results")
def several_sequences(node: ir.Node) -> bool:
    """Match a batch of more than one, or of an unknown number, unless it is the first axis of the data before a Transpose.

    If the last states of such a batch are used, the node matches, too.
    """
    dims = _dims(node.inputs[0])
    if dims is None:
        return True
    has_states = any(value.uses() or value.is_graph_output() for value in node.outputs[1:])
    return dims[1] != 1 and (has_states or not _is_batch_first(node.inputs[0]))


def _is_batch_first(value: ir.Value | None) -> bool:
    """Return whether a Transpose moves the first axis of other data to the second one before a stack of recurrent layers."""
    node = None if value is None else value.producer()
    while node is not None and not node.domain:
        order = list(node.attributes.get_ints("perm", ()) or ())
        if node.op_type == "Transpose" and order in ([1, 0, 2], [2, 0, 1]):
            return True
        if node.op_type not in ("Reshape", "Squeeze", *_DIRECTIONS) and order != [0, 2, 1, 3]:
            return False
        node = None if node.inputs[0] is None else node.inputs[0].producer()
    return False


@limit("GRU", "with linear_before_reset=0")
def reset_before(node: ir.Node) -> bool:
    """Match the form of the original paper."""
    return not node.attributes.get_int("linear_before_reset", 0)


@limit("GRU", "with linear_before_reset=0 and unknown sizes")
def reset_before_of_unknown_sizes(node: ir.Node) -> bool:
    """Match the form of the original paper with an unknown number of steps or sequences, which runs in a branch of an If."""
    return not node.attributes.get_int("linear_before_reset", 0) and _dims(node.inputs[0]) is None


@limit("Resize", "with scales that differ from the ratios of the sizes")
def free_scales(node: ir.Node) -> bool:
    """Match coordinates that depend on the scales, where the program uses the sizes."""
    scales, before, after = _constant(node, 2), _dims(node.inputs[0]), _dims(node.outputs[0])
    if not _given(node, 2) or (scales is not None and not scales.size):
        return False
    if scales is None or before is None or after is None or len(scales) != len(before):
        return True
    if node.attributes.get_string("coordinate_transformation_mode", "half_pixel") == "align_corners":
        return False
    return any(abs(scale * size - result) > 1e-3 for scale, size, result in zip(scales, before, after, strict=True))


@limit("Resize", "with align_corners and scales that differ from the ratios of the sizes")
def free_scales_of_corners(node: ir.Node) -> bool:
    """Match `free_scales` with aligned corners."""
    if node.attributes.get_string("coordinate_transformation_mode", "half_pixel") != "align_corners":
        return False
    scales, before, after = _constant(node, 2), _dims(node.inputs[0]), _dims(node.outputs[0])
    if scales is None or not scales.size or before is None or after is None or len(scales) != len(before):
        return False
    return any(abs(scale * size - result) > 1e-3 for scale, size, result in zip(scales, before, after, strict=True))


@limit("Resize", "nearest, with scales that differ from the ratios of the sizes")
def free_nearest_scales(node: ir.Node) -> bool:
    """Match `free_scales` of nearest pixels."""
    return node.attributes.get_string("mode", "nearest") == "nearest" and free_scales.applies(node)


@limit("Conv ConvTranspose", "with computed kernels", silent=False)
def computed_kernels(node: ir.Node) -> bool:
    """Match kernels that are not constants."""
    return _constant(node, 1) is None


@limit("NonZero", "of a tensor whose rank is not 1")
def rows_of_elements(node: ir.Node) -> bool:
    """Match tensors with several indices for each element."""
    return _rank(node) != 1


@limit("Resize", "nearest, rounding up")
def rounded_up(node: ir.Node) -> bool:
    """Match rounding modes other than down."""
    nearest = node.attributes.get_string("nearest_mode", "round_prefer_floor")
    return node.attributes.get_string("mode", "nearest") == "nearest" and nearest in ("ceil", "round_prefer_ceil")


@limit("Resize", "cubic, with half_pixel coordinates or another cubic_coeff_a")
def cubic_centers(node: ir.Node) -> bool:
    """Match cubic interpolation with half pixels."""
    if node.attributes.get_string("mode", "nearest") != "cubic":
        return False
    mode = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
    return mode in ("half_pixel", "pytorch_half_pixel") or node.attributes.get_float("cubic_coeff_a", -0.75) != -0.75


@limit("Resize", "with antialias")
def smoothed_images(node: ir.Node) -> bool:
    """Match interpolation with a wider filter, which is ignored."""
    return bool(node.attributes.get_int("antialias", 0))


@limit("GridSample", "bicubic")
def cubic_samples(node: ir.Node) -> bool:
    """Match cubic interpolation of samples."""
    return node.attributes.get_string("mode", "bilinear") in ("bicubic", "cubic")


@limit("GridSample", "of several images at constant positions")
def constant_places(node: ir.Node) -> bool:
    """Match a constant grid for a batch, whose first dimension is lost."""
    sizes = _dims(node.inputs[0])
    return _constant(node, 1) is not None and (sizes is None or sizes[0] != 1)


def is_positive(x: ir.Value | None) -> bool:
    """Return whether a value is positive: a constant, a maximum with one, or with 1 where the number is not positive."""
    maximum = producer_of(x, "Max")
    terms = [x] if maximum is None else list(maximum.inputs)
    if len(terms) == 2 and _is_one_unless_positive(terms[1], terms[0]):
        return True
    return any(array is not None and array.size > 0 and bool((array > 0).all()) for array in map(constant_array, terms))


def _is_one_unless_positive(value: ir.Value | None, x: ir.Value | None) -> bool:
    difference = producer_of(value, "Sub")
    sign = None if difference is None else producer_of(difference.inputs[1], "Sign")
    positive = None if sign is None else producer_of(sign.inputs[0], "Relu")
    if difference is None or positive is None or positive.inputs[0] is not x:
        return False
    one = constant_array(difference.inputs[0])
    return one is not None and bool((one == 1).all())


@limit("Pow", "of values that may be 0 or negative, with this exponent")
def computed_powers(node: ir.Node) -> bool:
    """Match powers that a program computes by logarithms: all but squares."""
    exponent = _constant(node, 1)
    is_square = exponent is not None and exponent.size > 0 and bool((exponent == 2).all())
    return not is_square and not is_positive(node.inputs[0])


@limit("GridSample", "nearest")
def nearest_samples(node: ir.Node) -> bool:
    """Match nearest samples, which may be ties."""
    return node.attributes.get_string("mode", "bilinear") == "nearest"


@limit("GridSample", "with reflection")
def reflected_samples(node: ir.Node) -> bool:
    """Match samples beyond the image that are reflected."""
    return node.attributes.get_string("padding_mode", "zeros") == "reflection"


@limit("MaxPool", "with indices")
def indices_of_maxima(node: ir.Node) -> bool:
    """Match a used second output."""
    return len(node.outputs) > 1 and bool(node.outputs[1].uses() or node.outputs[1].is_graph_output())


@limit("MaxPool", "with indices into the whole tensor")
def indices_of_tensors(node: ir.Node) -> bool:
    """Match `indices_of_maxima`, except indices within each image of a channel."""
    return indices_of_maxima.applies(node) and not are_of_planes(node)


def are_of_planes(node: ir.Node) -> bool:
    """Return whether all nodes that read the indices of a MaxPool divide them by the size of a plane for the remainder."""
    dims, indices = _dims(node.inputs[0]), node.outputs[1]
    if dims is None or indices.is_graph_output() or node.attributes.get_int("storage_order", 0) != 0:
        return False
    divisors = [_constant(use.node, 1) for use in indices.uses() if use.node.op_type == "Mod" and use.idx == 0]
    size = int(np.prod(dims[2:]))
    return len(divisors) == len(indices.uses()) and all(one is not None and bool((one == size).all()) for one in divisors)


@limit("MaxPool", "with indices and auto_pad")
def indices_with_auto_pad(node: ir.Node) -> bool:
    """Match a used second output, with padding that depends on the sizes."""
    same = node.attributes.get_string("auto_pad", "NOTSET").startswith("SAME")
    return same and len(node.outputs) > 1 and bool(node.outputs[1].uses() or node.outputs[1].is_graph_output())


@limit("AveragePool", "with ceil_mode and count_include_pad")
def counted_padding(node: ir.Node) -> bool:
    """Match windows that extend beyond the padding."""
    both = node.attributes.get_int("ceil_mode", 0) and node.attributes.get_int("count_include_pad", 0)
    return bool(both and any(_ints(node, "pads")))


@limit("AveragePool MaxPool", "with asymmetric padding, or three-dimensional with padding")
def uneven_padding(node: ir.Node) -> bool:
    """Match asymmetric pads, for which the program has one number."""
    pads = _ints(node, "pads")
    same = node.attributes.get_string("auto_pad", "NOTSET").startswith("SAME")
    return same or pads[: len(pads) // 2] != pads[len(pads) // 2 :] or (_rank(node) > 4 and any(pads))


@limit("AveragePool MaxPool", "with ceil_mode and a window that contains only padding")
def last_windows(node: ir.Node) -> bool:
    """Match rounding up with windows that would begin in the padding at the end, which ONNX omits."""
    pads, kernel, strides = (_ints(node, name) for name in ("pads", "kernel_shape", "strides"))
    before = _dims(node.inputs[0])
    if not node.attributes.get_int("ceil_mode", 0):
        return False
    if not any(pads) and all(step <= k for step, k in zip(strides, kernel, strict=False)):
        return False
    pads = pads or [0] * 2 * len(kernel)
    if before is None or not strides or any(step != 1 for step in _ints(node, "dilations")):
        return True
    count = len(kernel)
    for size, begin, end, k, step in zip(before[2:], pads[:count], pads[count:], kernel, strides, strict=True):
        windows = -(-(begin + size + end - k) // step) + 1
        if (windows - 1) * step >= begin + size:
            return True
    return False


@limit("MaxPool", "with windows whose elements are all padding except for the last one")
def narrow_maxima(node: ir.Node) -> bool:
    """Match padding at the beginning of all but one element of the kernel."""
    kernel, pads = _ints(node, "kernel_shape"), _ints(node, "pads")
    return any(pad and pad >= size - 1 for pad, size in zip(pads, kernel, strict=False))


@limit("Resize", "of integers")
def resized_integers(node: ir.Node) -> bool:
    """Match images of integers."""
    dtype = None if node.inputs[0] is None else node.inputs[0].dtype
    return dtype is not None and dtype.is_integer()


@limit("RoiAlign", "with the mode avg and the coordinates output_half_pixel")
def means_of_regions(node: ir.Node) -> bool:
    """Match the coordinates of RoiAlign-10."""
    mode = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
    return mode == "output_half_pixel" and node.attributes.get_string("mode", "avg") == "avg"


@limit("Conv ConvTranspose", "three-dimensional with dilations, or transposed with groups")
def three_dimensional(node: ir.Node) -> bool:
    """Match three-dimensional convolutions."""
    groups = node.op_type == "ConvTranspose" and node.attributes.get_int("group", 1) > 1
    return _rank(node) > 4 and (groups or any(step != 1 for step in _ints(node, "dilations")))


@limit("AveragePool GlobalAveragePool GlobalMaxPool MaxPool", "three-dimensional, of several images or with ceil_mode")
def pooled_volumes(node: ir.Node) -> bool:
    """Match three-dimensional poolings."""
    dims = _dims(node.inputs[0])
    several = dims is None or dims[0] != 1
    return _rank(node) > 4 and (several or bool(node.attributes.get_int("ceil_mode", 0)))


@limit("MaxPool", "with dilations")
def dilated_maxima(node: ir.Node) -> bool:
    """Match dilations, which are ignored."""
    return any(step != 1 for step in _ints(node, "dilations"))


@limit("Gemm", "with transA=1")
def transposed_products(node: ir.Node) -> bool:
    """Match a transposed first matrix."""
    return bool(node.attributes.get_int("transA", 0))


@limit("GatherND", "of boxes that NonMaxSuppression selects", silent=False)
def selected_boxes(node: ir.Node) -> bool:
    """Match indices whose number is unknown before the model runs."""
    producer = None if node.inputs[1] is None else node.inputs[1].producer()
    return producer is not None and producer.op_type == "NonMaxSuppression"


@limit("ConvTranspose", "with output_shape")
def stated_shape(node: ir.Node) -> bool:
    """Match an output shape that determines the padding."""
    return "output_shape" in node.attributes


@limit("ScatterElements ScatterND", "with a reduction")
def reductions(node: ir.Node) -> bool:
    """Match all reductions."""
    return node.attributes.get_string("reduction", "none") != "none"


_VIEWS = frozenset(
    ("Cast", "Clip", "Expand", "Identity", "Pad", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze")
)
"""Operators whose result may be their input."""


@limit("ScatterND", "of an input, a constant or data that another node reads")
def scattered_in_place(node: ir.Node) -> bool:
    """Match data that the program changes, and that is read again."""
    data = node.inputs[0]
    if data is None:
        return False
    producer = data.producer()
    return producer is None or producer.op_type in _VIEWS or data.is_graph_output() or len(data.uses()) > 1


@limit("ScatterND", "of slices")
def blocks(node: ir.Node) -> bool:
    """Match indices with fewer dimensions than the data."""
    indices = None if node.inputs[1] is None or node.inputs[1].shape is None else node.inputs[1].shape[-1]
    return indices != _rank(node)


@limit("GatherElements ScatterElements", "with negative indices")
def negative_indices(node: ir.Node) -> bool:
    """Match negative indices, as far as they are known."""
    indices = _constant(node, 1)
    return indices is not None and bool((indices < 0).any())


@limit("Pad", "with negative pads")
def negative_pads(node: ir.Node) -> bool:
    """Match negative pads."""
    pads = _constant(node, 1)
    return pads is not None and bool((pads < 0).any())


@limit("Mod", "with fmod=1")
def remainders(node: ir.Node) -> bool:
    """Match the remainder of C, where its operands are not integers."""
    dtype = None if node.inputs[0] is None else node.inputs[0].dtype
    return bool(node.attributes.get_int("fmod", 0)) and (dtype is None or not dtype.is_integer())


@limit("Einsum", "with a repeated index in a term")
def diagonals(node: ir.Node) -> bool:
    """Match an index that is repeated in a term."""
    terms = node.attributes.get_string("equation", "").replace(" ", "").partition("->")[0].split(",")
    return any(len(set(letters)) < len(letters) for letters in (term.replace("...", "") for term in terms))


@limit("Einsum", "of three or more operands", silent=False)
def several_operands(node: ir.Node) -> bool:
    """Match more than two operands."""
    return len(node.inputs) > 2


@limit("ConvTranspose", "three-dimensional", silent=False)
def transposed_volumes(node: ir.Node) -> bool:
    """Match volumes."""
    return _rank(node) > 4


@limit("Celu", "with any attributes")
def celu(node: ir.Node) -> bool:
    """Match all nodes."""
    return True


@limit(
    "Abs Add Clip Div Einsum Gemm MatMul Max Min Mod Mul Neg Pow ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin "
    "ReduceProd ReduceSum ReduceSumSquare Relu Sign Sub",
    "of integers",
)
def integers(node: ir.Node) -> bool:
    """Match arithmetic of integers, whose bits are computed as if they were floats."""
    dtype = None if node.inputs[0] is None else node.inputs[0].dtype
    return dtype is not None and dtype.is_integer()


@limit("Reshape ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Unsqueeze", "from or to a scalar", silent=False)
def scalars(node: ir.Node) -> bool:
    """Match computed tensors without dimensions."""
    values = (node.inputs[0], node.outputs[0])
    return any(value is not None and value.const_value is None and _dims(value) == [] for value in values)


@limit("GRU", "with a computed initial state", silent=False)
def computed_states(node: ir.Node) -> bool:
    """Match an initial state that is not a constant."""
    return _given(node, 5) and _constant(node, 5) is None


@limit("ScatterElements ScatterND", "of a tensor of one dimension", silent=False)
def lines_of_updates(node: ir.Node) -> bool:
    """Match updates of one-dimensional data."""
    return _rank(node) == 1


@limit("NonMaxSuppression", "with a negative score threshold", silent=False)
def negative_thresholds(node: ir.Node) -> bool:
    """Match a threshold that may be negative."""
    threshold = _constant(node, 4)
    return _given(node, 4) and (threshold is None or bool((threshold < 0).any()))


@limit("NonMaxSuppression", "without a score threshold")
def absent_thresholds(node: ir.Node) -> bool:
    """Match a missing threshold, for which the program uses 0."""
    return not _given(node, 4)


@limit("CumSum", "along a computed axis", silent=False)
def computed_axis(node: ir.Node) -> bool:
    """Match an axis that is not a constant."""
    return _constant(node, 1) is None


@limit("Expand", "to computed dimensions")
def computed_dimensions(node: ir.Node) -> bool:
    """Match a target that is not a constant."""
    return _constant(node, 1) is None


@limit("Reshape", "to a computed shape that is not the shape of a tensor", silent=False)
def computed_targets(node: ir.Node) -> bool:
    """Match a target that is neither a constant nor the result of Shape."""
    return _constant(node, 1) is None and producer_of(node.inputs[1], "Shape") is None


@limit("Expand", "of unknown dimensions", silent=False)
def unknown_dimensions(node: ir.Node) -> bool:
    """Match data whose dimensions depend on the inputs."""
    return _dims(node.inputs[0]) is None


_OF_SHAPES = frozenset(("Cast", "Concat", "Slice", "Squeeze", "Where"))


@limit(
    "Add Div Max Min Mul ScatterElements ScatterND Sub TopK", "with dimensions that are unknown until run time", silent=False
)
def computed_from_dimensions(node: ir.Node) -> bool:
    """Match an input that is computed from unknown dimensions by operators that select, convert or join those."""
    pending, seen = [value for value in node.inputs if value is not None], set[ir.Value]()
    while pending and len(seen) < _MAX_VALUES:
        value = pending.pop()
        before = value.producer()
        if value in seen or before is None:
            continue
        seen.add(value)
        if before.op_type == "Shape" and _dims(before.inputs[0]) is None:
            return True
        if before.op_type in _OF_SHAPES:
            pending += [given for given in before.inputs if given is not None]
    return False


_SMALL_FLOATS = (
    ir.DataType.FLOAT8E4M3FN,
    ir.DataType.FLOAT8E4M3FNUZ,
    ir.DataType.FLOAT8E5M2,
    ir.DataType.FLOAT8E5M2FNUZ,
)


@limit("Cast", "to 8-bit floats")
def small_floats(node: ir.Node) -> bool:
    """Match a result of an 8-bit float type, to which the program rounds differently."""
    return node.outputs[0].dtype in _SMALL_FLOATS


@limit("Cast", "to unsigned integers of more than 8 bits", silent=False)
def wide_unsigned(node: ir.Node) -> bool:
    """Match a result of a type that the program lacks."""
    return node.outputs[0].dtype in (ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64)


@limit("Cast", "from or to integers or booleans", silent=False)
def casts_of_integers(node: ir.Node) -> bool:
    """Match computed integers and booleans, which the program cannot convert."""
    value = node.inputs[0]
    if value is None or constant_array(value) is not None:
        return False
    return any(dtype is not None and not dtype.is_floating_point() for dtype in (value.dtype, node.outputs[0].dtype))


@limit("LayerNormalization", "with a computed scale", silent=False)
def computed_factors(node: ir.Node) -> bool:
    """Match a scale or bias that is not a constant."""
    return any(_given(node, index) and _constant(node, index) is None for index in (1, 2))


@limit("Reshape Transpose", "to more than four dimensions and a batch of 1", silent=False)
def many_dimensions(node: ir.Node) -> bool:
    """Match a result of more dimensions than the program's tensors have."""
    dims = _dims(node.outputs[0])
    return dims is not None and (len(dims) > 5 or (len(dims) == 5 and dims[0] != 1))


_VOLUMES = 5
"""The number of dimensions of three-dimensional images."""


@limit(
    "Concat Gather LogSoftmax ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare Slice Softmax Split",
    "of five dimensions, one of which Unsqueeze adds",
)
def unsqueezed_volumes(node: ir.Node) -> bool:
    """Match five-dimensional data that an Unsqueeze computes without a convolution after it, or whose origin is too many
    operators away. The program uses a dimension other than that of the axis.
    """
    return any(computed_before(value, _before_volume) is None for value in node.inputs if value is not None)


def _before_volume(value: ir.Value) -> Sequence[ir.Value] | None:
    """Return the five-dimensional values that a value is computed from, up to a convolution; ``None`` for the result of an
    Unsqueeze.
    """
    before = value.producer()
    if before is None or value.shape is None or len(value.shape) != _VOLUMES or before.op_type in ("Conv", "ConvTranspose"):
        return ()
    return None if before.op_type == "Unsqueeze" else [given for given in before.inputs if given is not None]


@limit("Transpose", "of more than seven dimensions", silent=False)
def long_transpositions(node: ir.Node) -> bool:
    """Match more dimensions than the program transposes."""
    return _rank(node) > 7


@limit("Gemm MatMul", "of integers", silent=False)
def products_of_integers(node: ir.Node) -> bool:
    """Match integers, for which the program has no kernel."""
    x = node.inputs[0]
    return x is not None and x.dtype is not None and x.dtype.is_integer()


@limit("Cast", "to 32-bit or 64-bit unsigned integers", silent=False)
def long_unsigned_casts(node: ir.Node) -> bool:
    """Match types that the program does not have."""
    return node.attributes.get_int("to", 0) in (ir.DataType.UINT32, ir.DataType.UINT64)


@limit("LRN", "with an even size")
def even_windows(node: ir.Node) -> bool:
    """Match windows without a center."""
    return node.attributes.get_int("size", 1) % 2 == 0


@limit("AveragePool", "with dilations")
def dilated_means(node: ir.Node) -> bool:
    """Match dilations, which are ignored."""
    return any(step != 1 for step in _ints(node, "dilations"))


@limit("ReduceMean", "of integers")
def means_of_integers(node: ir.Node) -> bool:
    """Match a mean of integers, which ONNX truncates."""
    dtype = None if node.inputs[0] is None else node.inputs[0].dtype
    return dtype is not None and dtype.is_integer()


@limit("Pad", "of integers with a constant other than 0")
def padded_integers(node: ir.Node) -> bool:
    """Match an integer number, whose bits are read as a float."""
    dtype = None if node.inputs[0] is None else node.inputs[0].dtype
    if dtype is None or dtype.is_floating_point() or not _given(node, 2):
        return False
    fill = _constant(node, 2)
    return fill is None or bool(fill.any())


@limit("Slice", "of floats, with negative steps from an element that may not be the last, or with computed steps")
def backward_slices(node: ir.Node) -> bool:
    """Match a negative or computed step, unless the slice begins at or after the last element."""
    x, dims = node.inputs[0], _dims(node.inputs[0])
    if x is None or (x.dtype is not None and not x.dtype.is_floating_point()) or not _given(node, 4):
        return False
    starts, axes, steps = (_constant(node, index) for index in (1, 3, 4))
    if steps is None:
        return True
    if (steps > 0).all():
        return False
    if starts is None or axes is None:
        return True
    sizes = [_UNKNOWN_SIZE if dims is None else dims[int(axis)] for axis in axes.reshape(-1)]
    return any(
        step < 0 and start != -1 and start < size - 1
        for start, step, size in zip(starts.reshape(-1), steps.reshape(-1), sizes, strict=True)
    )


@limit("Slice", "with negative or computed steps")
def backward_or_computed_steps(node: ir.Node) -> bool:
    """Match steps of which one is negative or not a constant."""
    steps = _constant(node, 4)
    return _given(node, 4) and (steps is None or bool((steps < 0).any()))


_UNKNOWN_SIZE = 2**31
"""The assumed size of an unknown dimension. Only larger numbers, such as the largest int64, are beyond its last element."""


@limit("Div", "by a constant 0")
def divisors_of_0(node: ir.Node) -> bool:
    """Match a constant divisor with a 0, such as the number of elements of empty windows, where the program gives 0."""
    divisor = _constant(node, 1)
    return divisor is not None and not divisor.all()


@limit("Mod", "of integers, with fmod=0")
def floored_remainders(node: ir.Node) -> bool:
    """Match the remainder of Python."""
    dtype = None if node.inputs[0] is None else node.inputs[0].dtype
    return not node.attributes.get_int("fmod", 0) and (dtype is None or dtype.is_integer())


@limit("ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum", "along computed axes")
def computed_axes(node: ir.Node) -> bool:
    """Match axes that are not constant."""
    return _given(node, 1) and _constant(node, 1) is None


@limit("Loop", "with stacked results, if the number of iterations may be 0", silent=False)
def stacked_iterations(node: ir.Node) -> bool:
    """Match a result of each iteration, unless there is at least one. MNN (3.6) crashes if there is none."""
    if len(node.outputs) <= len(node.inputs) - 2:
        return False
    for value in node.inputs[:2]:
        cast = producer_of(value, "Cast")  # MNN has no boolean constants
        number = constant_array(value if cast is None else cast.inputs[0])
        if value is not None and (number is None or not (number > 0).all()):
            return True
    return False


_ALLOWED = """
    Abs Add And ArgMax Cast Ceil Clip Concat Constant CumSum Div Einsum Equal Erf Exp Expand Floor Gather GatherElements
    GatherND Gemm Greater GreaterOrEqual Identity If LayerNormalization LeakyRelu Less LessOrEqual Log MatMul Max Min Mul Neg
    NonMaxSuppression NonZero Not Or Pad Pow ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape Shape Sigmoid
    Slice Softmax Split Sqrt Squeeze Sub Tanh Tile Transpose Unsqueeze Where
"""
_IN_BRANCHES = frozenset(_ALLOWED.split())
"""Operators that are allowed in branches. OpenCV (5.0.0) and MNN (3.6) computed most of them correctly there. Some
elementwise ones, such as Log and Tanh, were not measured one by one.
"""


def _in_branches(node: ir.Node) -> set[str]:
    return {one.op_type for branch in nested(node) for one in all_nodes(branch)}


@limit("If Loop", "with untested operators in its branches or body", silent=False)
def untested_branches(node: ir.Node) -> bool:
    """Match operators in branches or bodies that are not `_IN_BRANCHES`."""
    return not _in_branches(node) <= _IN_BRANCHES | {"TopK"}


@limit("If Loop", "with TopK in a branch or body")
def largest_in_branches(node: ir.Node) -> bool:
    """Match TopK in a branch or body, whose result has a wrong size, or which ends the process."""
    return "TopK" in _in_branches(node)


@limit("If", "with branches whose results differ in shape", silent=False)
def shapes_of_branches(node: ir.Node) -> bool:
    """Match results of the two branches with different dimensions, of which at least one is known."""
    first, second = (branch.outputs for branch in nested(node))
    return any(_numbers(one) != _numbers(other) for one, other in zip(first, second, strict=True))


def _numbers(value: ir.Value) -> list[int | None] | None:
    """Return the known dimensions, and ``None`` for each unknown one."""
    return None if value.shape is None else [dim if isinstance(dim, int) else None for dim in value.shape]


@limit("If", "with branches that read, compute or return images")
def images_in_branches(node: ir.Node) -> bool:
    """Match branches that may read or return tensors of more than two dimensions, which may be in blocks of channels."""
    for branch in nested(node):
        inside = {value for one in all_nodes(branch) for value in one.outputs}
        read = {value for one in all_nodes(branch) for value in one.inputs if value is not None and value not in inside}
        for value in (*read, *branch.outputs):
            if constant_array(value) is None and (value.shape is None or len(value.shape) > 2):
                return True
    return False
