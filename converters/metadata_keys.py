"""The keys in ``metadata_props`` that conversions write and read."""

LAYOUT = "layout"
"""The layout of an input or output in OpenVINO's notation: ``[N,C,H,W]``."""

FRIENDLY_NAME = "openvino.friendly_name"
"""The friendly name of the layer of an input or output, if the value has another name."""

SHAPE = "openvino.shape"
"""The shape of an input whose dimensions have bounds that ONNX cannot represent: ``[1..8,3,?,..640]``."""

MODEL_API = "onnx_specops.model_api"
"""The channel order of the image that the Model API wrapper takes: ``rgb`` or ``bgr``."""

SIGNATURE = "tensorflow.signature"
"""The signature of a SavedModel that a user chose."""

INTERFACE = "openvino.interface"
"""The inputs and outputs that a user selected, and their new names, as a JSON object."""
