"""ONNX Runtime's QNN execution provider: graphs for the HTP, compiled and simulated on x86-64, without CPU nodes."""

import sys

import numpy as np
import onnxruntime as ort
import onnxruntime_qnn as qnn

model, given, results = sys.argv[1:4]
if all(device.ep_name != qnn.get_ep_name() for device in ort.get_ep_devices()):
    ort.register_execution_provider_library(qnn.get_ep_name(), qnn.get_library_path())
devices = [device for device in ort.get_ep_devices() if device.ep_name == qnn.get_ep_name()]
options = ort.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
settings = {"backend_path": qnn.get_qnn_htp_path(), "soc_model": "60", "offload_graph_io_quantization": "0"}
options.add_provider_for_devices(devices[:1], settings)
session = ort.InferenceSession(model, options)
outputs = session.run(None, dict(np.load(given)))
np.savez(results, **{str(index): array for index, array in enumerate(outputs)})
