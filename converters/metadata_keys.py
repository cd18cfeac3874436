"""The keys of what an ONNX model says of itself in ``metadata_props``, as conversions write it and as it is read again."""

LAYOUT = "layout"
"""The layout of an input or output, as OpenVINO writes it: ``[N,C,H,W]``."""

FRIENDLY_NAME = "openvino.friendly_name"
"""The friendly name of the layer of an input or output, where the value is known by another."""

SHAPE = "openvino.shape"
"""An input's shape where its dimensions have bounds that ONNX cannot say: ``[1..8,3,?,..640]``."""

INTERFACE = "openvino.interface"
"""Which of the IR's values are inputs and outputs, and their new names, where a user chose them: a JSON object."""
