"""Sessions that run a model node by node, without optimizations."""

from __future__ import annotations

import onnx_ir as ir
import onnxruntime as ort

from converters.passes.verification.regions import NotEvaluated
from onnx_specops.runtime.library import has_library
from onnx_specops.runtime.session import InferenceSession


def session(model: ir.Model) -> ort.InferenceSession:
    """Create a single-threaded session without optimizations. Raise `NotEvaluated` if ONNX Runtime cannot load the model."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        data = ir.to_proto(model).SerializeToString()
        return InferenceSession(data, options, ["CPUExecutionProvider"], kernels="native" if has_library() else "none")
    except Exception as error:  # ONNX Runtime's exceptions have no common base class
        raise NotEvaluated(f"ONNX Runtime cannot load it: {str(error).splitlines()[0][:200]}") from error
