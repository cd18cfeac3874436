"""Properties of public IR files, each in a minimal file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.conformance.files.lesson import Lesson, Net, saved

F16, F32, I32, I64 = np.float16, np.float32, np.int32, np.int64


def _values(*shape: int, dtype=F32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# -- interfaces of early files ------------------------------------------------------------------------------------------


def half_inputs():
    net = Net()
    x = net.parameter((2, 3), "f16")
    y = net.layer("ReLU", [x], [(2, 3)], [(2, 3)], precision="FP16")
    return net.result(y, (2, 3)).built()


def half_weights():
    net = Net()
    x = net.parameter((1, 2, 5, 5), "f16")
    k = net.constant(_values(3, 2, 3, 3, dtype=F16))
    data = 'strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1" auto_pad="explicit"'
    y = net.layer("Convolution", [x, k], [(1, 2, 5, 5), (3, 2, 3, 3)], [(1, 3, 5, 5)], data, precision="FP16")
    return net.result(y, (1, 3, 5, 5)).built()


def integer_inputs():
    net = Net()
    x, i = net.parameter((3, 4), "f16"), net.parameter((2,), "i64")
    axis = net.constant(np.array(0, I64))
    y = net.layer("Gather", [x, i, axis], [(3, 4), (2,), ()], [(2, 4)], precision="FP16")
    z = net.layer("Convert", [i], [(2,)], [(2,)], 'destination_type="i32"', precision="I32")
    return net.result(y, (2, 4)).result(z, (2,)).built()


def mean_values():
    net = Net()
    x = net.parameter((1, 3, 2, 2))
    y = net.layer("ReLU", [x], [(1, 3, 2, 2)], [(1, 3, 2, 2)])
    net.extra = (
        '<pre-process mean-precision="FP32" reference-layer-name="Parameter_0">'
        + "".join(f'<channel id="{c}"><mean value="{c + 0.5}"/></channel>' for c in range(3))
        + "</pre-process>"
    )
    return net.result(y, (1, 3, 2, 2)).built()


def border() -> Iterator[Lesson]:
    yield Lesson("f16 inputs and outputs of version 10 are f32", "Open Model Zoo, Luxonis, ROS", half_inputs)
    yield Lesson("f16 weights in version 10", "Open Model Zoo", half_weights)
    indices = np.array([2, 0], I64)
    yield Lesson("i64 inputs of version 10", "Open Model Zoo", integer_inputs, inputs=(_values(3, 4), indices))
    yield Lesson("mean values in pre-process", "Open Model Zoo 2020", mean_values)


# -- content that OpenVINO ignores ----------------------------------------------------------------------------------------


def pad_value():
    net = Net()
    x = net.parameter((2, 3))
    begin, end = net.constant(np.array([0, 1], I64)), net.constant(np.array([1, 0], I64))
    fill = net.constant(np.array(7, F32))
    data = 'pad_mode="constant" pad_value="3"'
    y = net.layer("Pad", [x, begin, end, fill], [(2, 3), (2,), (2,), ()], [(3, 4)], data)
    return net.result(y, (3, 4)).built()


def clustered_priors():
    net = Net()
    sizes = [net.constant(np.array(pair, I64)) for pair in ([3, 4], [30, 40])]
    data = (
        'width="9.4,25.1" height="15.0,39.6" clip="0" step="0" step_w="10" step_h="10" offset="0.5" '
        'variance="0.1,0.1,0.2,0.2" flip="1" img_h="0" img_w="0" img_size="0"'
    )
    y = net.layer("PriorBoxClustered", sizes, [(2,), (2,)], [(2, 96)], data)
    return net.result(y, (2, 96)).built()


_DETECTION = (
    'num_classes="2" background_label_id="0" top_k="4" keep_top_k="3" code_type="caffe.PriorBoxParameter.CENTER_SIZE" '
    'share_location="1" nms_threshold="0.45" confidence_threshold="0.01" variance_encoded_in_target="0" '
    'normalized="1" '
)
_UNREAD = (
    "eta", "visualize", "visualize_threshold", "pad_mode", "pad_value", "resize_mode", "interp_mode", "prob", "width",
    "height", "height_scale", "width_scale",
)  # fmt: skip


def detection(boxes: str = "f32", precision: str = "FP32", extra: str = ""):
    priors = 4
    net = Net()
    x = net.parameter((1, 4 * priors), boxes)
    scores = net.parameter((1, 2 * priors), boxes)
    corners = np.sort(np.random.default_rng(3).random((priors, 2, 2)), axis=1).reshape(1, 1, 4 * priors)
    variances = np.tile([0.1, 0.1, 0.2, 0.2], priors).reshape(1, 1, 4 * priors)
    proposals = net.constant(np.concatenate([corners, variances], 1).astype(F32))
    shapes = [(1, 4 * priors), (1, 2 * priors), (1, 2, 4 * priors)]
    y = net.layer("DetectionOutput", [x, scores, proposals], shapes, [(1, 1, 3, 7)], _DETECTION + extra, precision=precision)
    return net.result(y, (1, 1, 3, 7)).built()


def unread_of_detection():
    return detection(extra=" ".join(f'{name}="1"' for name in _UNREAD))


def for_deformable():
    net = Net()
    x, boxes, info = net.parameter((1, 2, 3, 3)), net.parameter((1, 4, 3, 3)), net.constant(np.array([48, 48, 1], F32))
    data = (
        'base_size="16" pre_nms_topn="9" post_nms_topn="4" nms_thresh="0.7" feat_stride="16" min_size="1" ratio="1" '
        'scale="2" for_deformable="0" clip_before_nms="1" clip_after_nms="0" normalize="0" box_size_scale="1" '
        'box_coordinate_scale="1" framework=""'
    )
    y = net.layer("Proposal", [x, boxes, info], [(1, 2, 3, 3), (1, 4, 3, 3), (3,)], [(4, 5)], data)
    return net.result(y, (4, 5)).built()


def unread() -> Iterator[Lesson]:
    yield Lesson("Pad with pad_value", "Model Optimizer of 2020", pad_value, ("the attribute pad_value of Pad",))
    names = tuple(f"the attribute {name} of PriorBoxClustered" for name in ("flip", "img_h", "img_size", "img_w"))
    yield Lesson("PriorBoxClustered with attributes of PriorBox", "Open Model Zoo", clustered_priors, names)
    names = tuple(f"the attribute {name} of DetectionOutput" for name in _UNREAD)
    yield Lesson(
        "DetectionOutput with Caffe's attributes", "Open Model Zoo, MobileNet-SSD everywhere", unread_of_detection, names
    )
    names = ("the attribute for_deformable of Proposal",)
    yield Lesson("Proposal with for_deformable", "Open Model Zoo, Faster R-CNN", for_deformable, names)


# -- contradicting types ---------------------------------------------------------------------------------------------------


def prelu():
    net = Net()
    x, slope = net.parameter((1, 3, 2), "f16"), net.constant(_values(3))
    y = net.layer("PReLU", [x, slope], [(1, 3, 2), (3,)], [(1, 3, 2)], precision="FP16")
    return net.result(y, (1, 3, 2)).built()


def pooling_indices():
    net = Net(11)
    x = net.parameter((1, 1, 4, 4))
    data = (
        'strides="2,2" dilations="1,1" pads_begin="0,0" pads_end="0,0" kernel="2,2" rounding_type="floor" '
        'auto_pad="explicit" index_element_type="i64" axis="0"'
    )
    number, port = net.layer("MaxPool", [x], [(1, 1, 4, 4)], [(1, 1, 2, 2)] * 2, data, version="opset8")
    return net.result((number, port), (1, 1, 2, 2)).result((number, port + 1), (1, 1, 2, 2)).built()


def one_output_of_two():
    net = Net(11)
    x = net.parameter((1, 1, 4, 4))
    data = (
        'strides="2,2" dilations="1,1" pads_begin="0,0" pads_end="0,0" kernel="2,2" rounding_type="floor" '
        'auto_pad="explicit" index_element_type="i64" axis="0"'
    )
    y = net.layer("MaxPool", [x], [(1, 1, 4, 4)], [(1, 1, 2, 2)], data, version="opset8")
    return net.result(y, (1, 1, 2, 2)).built()


def parameter_of_two_minds():
    net = Net(11)
    x = net.parameter((2, 3), "i32", "FP32")
    y = net.layer("Convert", [x], [(2, 3)], [(2, 3)], 'destination_type="f32"')
    return net.result(y, (2, 3)).built()


def bytes_read_twice():
    """Constants of two types at one offset, which is not a multiple of their size."""
    net = Net(11)
    x = net.parameter((4,))
    net.weights = b"odd"
    ones = net.constant(np.array([1, 2, 3, 4], F32))
    same = net.constant(np.zeros(4, I32), offset=3)
    widened = net.layer("Convert", [same], [(4,)], [(4,)], 'destination_type="f32"')
    y = net.layer("Multiply", [x, ones], [(4,)] * 2, [(4,)], 'auto_broadcast="numpy"')
    z = net.layer("Add", [y, widened], [(4,)] * 2, [(4,)], 'auto_broadcast="numpy"')
    return net.result(z, (4,)).built()


def types() -> Iterator[Lesson]:
    yield Lesson("PReLU of f16 with a slope of f32", "Open Model Zoo FP16", prelu)
    yield Lesson(
        "DetectionOutput of f16 with priors of f32", "Open Model Zoo FP16", lambda: detection("f16", "FP16"), tolerance=1e-3
    )
    remark = "FP32 as the type of output 1 of MaxPool, which is i64"
    yield Lesson("MaxPool's indices called FP32", "OpenVINO's importers of 2022", pooling_indices, (remark,))
    yield Lesson(
        "MaxPool with one output of its two", "Luxonis", one_output_of_two, ("outputs of MaxPool that the file omits",)
    )
    yield Lesson(
        "a Parameter whose port states another type",
        "ROS",
        parameter_of_two_minds,
        inputs=(np.arange(6, dtype=I32).reshape(2, 3),),
    )
    yield Lesson("constants of two types at one odd offset", "Synet", bytes_read_twice)


# -- structures of graphs -------------------------------------------------------------------------------------------------


def constant_result():
    net = Net(11)
    x, c = net.parameter((2,)), net.constant(np.array([1, 2], I64))
    y = net.layer("ReLU", [x], [(2,)], [(2,)])
    return net.result(y, (2,)).result(c, (2,)).built()


def unknown_layer_that_no_one_needs():
    net = Net(11)
    x = net.parameter((2,))
    net.layer("NeverSeenBefore", [x], [(2,)], [(2,)], version="opset99")
    y = net.layer("ReLU", [x], [(2,)], [(2,)])
    return net.result(y, (2,)).built()


def blanks_in_lists():
    net = Net()
    x = net.parameter((1, 1, 4, 5))
    data = 'strides="2 , 1" kernel="2,  2" pads_begin="0,0" pads_end=" 0, 1" rounding_type="floor" auto_pad="explicit"'
    y = net.layer("MaxPool", [x], [(1, 1, 4, 5)], [(1, 1, 2, 5)], data)
    return net.result(y, (1, 1, 2, 5)).built()


def information_in_a_port():
    net = Net(11)
    x = net.parameter((2,))
    y = net.layer("ReLU", [x], [(2,)], [(2,)])
    text, weights = net.result(y, (2,)).built()
    told = '<rt_info><attribute name="layout" version="0" layout="[N]"/></rt_info>'
    return text.replace("<dim>2</dim></port>", f"<dim>2</dim>{told}</port>"), weights


def flat_response():
    """LRN that divides by a constant, because ONNX Runtime's LRN rejects an alpha of 0."""
    net = Net()
    x, axes = net.parameter((1, 4, 2, 2)), net.constant(np.array([1], I64))
    data = 'alpha="0" beta="0.75" bias="2" size="5"'
    y = net.layer("LRN", [x, axes], [(1, 4, 2, 2), (1,)], [(1, 4, 2, 2)], data)
    return net.result(y, (1, 4, 2, 2)).built()


def negative_response():
    net = Net()
    x, axes = net.parameter((1, 4, 2, 2)), net.constant(np.array([1], I64))
    y = net.layer("LRN", [x, axes], [(1, 4, 2, 2), (1,)], [(1, 4, 2, 2)], 'alpha="0.5" beta="-0.5" bias="1" size="3"')
    return net.result(y, (1, 4, 2, 2)).built()


def variable_without_a_type():
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([2, 3], F32, name="x")
    state = ops.read_value(ops.constant(_values(2, 3)), "state", ov.Type.f32, ov.PartialShape([2, 3]))
    total = ops.add(x, state)
    return ov.Model([total.output(0)], [ops.assign(total, "state")], [x])


def half_hard_swish():
    """x * min(relu(x + 3), 6) * c with one sixth rounded to 16 bits as c; OpenVINO's CPU plugin treats it as one sixth."""
    net = Net()
    x = net.parameter((1, 4, 3, 3))
    three, sixth = net.constant(np.array(3, F16)), net.constant(np.array(1 / 6, F16))
    six = net.constant(np.array(6, F16))
    shape, scalar = (1, 4, 3, 3), ()
    wide = [net.layer("Convert", [c], [scalar], [scalar], 'destination_type="f32"') for c in (three, six, sixth)]
    numpy = 'auto_broadcast="numpy"'
    shifted = net.layer("Add", [x, wide[0]], [shape, scalar], [shape], numpy)
    positive = net.layer("ReLU", [shifted], [shape], [shape])
    bounded = net.layer("Minimum", [positive, wide[1]], [shape, scalar], [shape], numpy)
    gated = net.layer("Multiply", [x, bounded], [shape, shape], [shape], numpy)
    y = net.layer("Multiply", [gated, wide[2]], [shape, scalar], [shape], numpy)
    return net.result(y, shape).built()


def resize_between_transpositions():
    """MediaPipe's networks from TensorFlow Lite have this form: ONNX Runtime moves the Transpose past the Resize."""
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([1, 3, 4, 4], F32, name="x")
    last = ops.transpose(ops.relu(x), np.array([0, 2, 3, 1]))
    wide = ops.interpolate(
        last, np.array([8, 8], I32), "linear_onnx", "sizes", axes=np.array([1, 2], I32),
        coordinate_transformation_mode="half_pixel",
    )  # fmt: skip
    return ov.Model([ops.transpose(wide, np.array([0, 3, 1, 2]))], [x])


def output_called_as_a_layer():
    """The tensor's name is the friendly name of another layer, as in TensorFlow Lite's networks."""
    import openvino as ov
    from openvino import opset13 as ops

    x = ops.parameter([1, 4], F32, name="x")
    inner = ops.relu(x, name="scores")
    y = ops.reshape(inner, np.array([2, 2]), False, name="scores0")
    y.output(0).tensor.set_names({"scores"})
    return ov.Model([y, ops.abs(inner)], [x])


def pooling_without_names():
    """An operation with two outputs. The file contains only the first one."""
    net = Net()
    x = net.parameter((1, 1, 4, 5))
    data = 'strides="1,1" dilations="1,1" kernel="2,2" pads_begin="0,0" pads_end="0,0" index_element_type="i64" axis="0"'
    y = net.layer("MaxPool", [x], [(1, 1, 4, 5)], [(1, 1, 3, 4)], data, version="opset8")
    return net.result(y, (1, 1, 3, 4)).built()


def graphs() -> Iterator[Lesson]:
    yield Lesson("a constant as an output", "OpenVINO's own tests", constant_result)
    yield Lesson(
        "an unknown layer that no output needs",
        "FPGA projects",
        unknown_layer_that_no_one_needs,
        ("layers without effect on a result",),
    )
    yield Lesson("an output called as another layer", "Luxonis", saved(output_called_as_a_layer))
    remark = "outputs of MaxPool that the file omits"
    yield Lesson("one output of two without names", "OpenVINO's own tests", pooling_without_names, (remark,))
    yield Lesson("lists with blanks", "hand-written files", blanks_in_lists)
    yield Lesson("run-time information in ports", "OpenVINO from 2022 on", information_in_a_port)
    yield Lesson("LRN with an alpha of 0", "OpenVINO's own tests", flat_response)
    yield Lesson("LRN with a negative beta", "OpenVINO's own tests", negative_response)
    typeless = saved(
        variable_without_a_type, (' variable_type="f32"', ""), (' variable_shape="2,3"', ""),
    )  # fmt: skip
    yield Lesson("ReadValue-6 without a type and a shape", "OpenVINO 2021, Kaldi's networks", typeless)
    yield Lesson("a HardSwish whose sixth has 16 bits", "YSU, MobileNetV3 FP16", half_hard_swish)
    yield Lesson(
        "a Resize between two transpositions",
        "MediaPipe by way of OpenVINO",
        saved(resize_between_transpositions),
        tolerance=1e-4,
    )


LESSONS = [*border(), *unread(), *types(), *graphs()]
