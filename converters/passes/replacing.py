"""One value in the place of another, as the passes need it; see `onnx_specops.replacing`."""

from onnx_specops.replacing import take_place

__all__ = ["take_place"]
