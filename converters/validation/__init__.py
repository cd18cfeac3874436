"""The same inputs through OpenVINO, ONNX Runtime and ONNX's reference evaluator, compared."""

from converters.validation.compare import Comparison, Tolerance
from converters.validation.runtimes import NAMES
from converters.validation.validate import LayerDifference, RuntimeResult, Validation, validate

__all__ = ["NAMES", "Comparison", "LayerDifference", "RuntimeResult", "Tolerance", "Validation", "validate"]
