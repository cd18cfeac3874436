"""The keys of what an ONNX model says of itself in ``metadata_props``, as conversions write it and as it is read again."""

LAYOUT = "layout"
"""The layout of an input or output, as OpenVINO writes it: ``[N,C,H,W]``."""

FRIENDLY_NAME = "openvino.friendly_name"
"""The friendly name of the layer of an input or output, where the value is known by another."""

SHAPE = "openvino.shape"
"""An input's shape where its dimensions have bounds that ONNX cannot say: ``[1..8,3,?,..640]``."""

MODEL_API = "onnx_specops.model_api"
"""With Model API's wrapper in the graph: the order of the channels of its image, ``rgb`` or ``bgr``."""

INTERFACE = "openvino.interface"
"""Which of the IR's values are inputs and outputs, and their new names, where a user chose them: a JSON object."""
