"""Replace nodes of a model by custom operators whose native kernels are faster than ONNX Runtime's.

Models keep ONNX's operators, which every runtime supports. A session replaces them when it loads the model.
"""

from __future__ import annotations

from onnx import ModelProto

from onnx_specops.optimizing.convolutions import use_volume_conv
from onnx_specops.optimizing.functions import use_elementwise
from onnx_specops.optimizing.graph import Graph
from onnx_specops.optimizing.resizes import use_interpolate

_OPERATORS = frozenset(("Conv", "Elu", "Gelu", "Resize"))


def optimize(model: ModelProto) -> ModelProto:
    """Return a copy of ``model`` in which custom operators replace nodes that their native kernels compute faster.

    - Convolutions of images with 3x3 kernels and stride 1 become VolumeConv, with Relu and LeakyRelu after them.
    - Linear Resize of images becomes Interpolate.
    - Elu and Gelu become Elementwise.

    `InferenceSession` does this itself when it loads a model with the native kernels. Use the function for sessions that you
    create otherwise, for example in C++ (see `register`). The model does not have to be a converted one.

    To run the copy without the plugin, too, add the bodies of the operators with `add_bodies`.

    Args:
        model: any ONNX model. Its weights may be external.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    if not optimize_in_place(copy):
        copy.CopyFrom(model)
    return copy


def optimize_in_place(model: ModelProto, *, convolutions: bool = True) -> bool:
    """Change a model as `optimize` does; return whether it changed. If not, discard the model.

    Only nodes of the outermost graph change.

    Args:
        model: the model. The elements of its large initializers are not needed (see `read_without_data`).
        convolutions: whether to replace convolutions. ONNX Runtime's are faster with SSE2 and NEON.
    """
    if not any(node.domain == "" and node.op_type in _OPERATORS for node in model.graph.node):
        return False
    try:
        graph = Graph(model)
        if convolutions:
            use_volume_conv(graph)
        use_interpolate(graph)
        use_elementwise(graph)
    except (TypeError, ValueError):  # attributes of other types: ONNX Runtime reports them
        return False
    return graph.finish()
