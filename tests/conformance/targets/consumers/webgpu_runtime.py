"""ONNX Runtime's WebGPU execution provider on SwiftShader, a software Vulkan driver, without CPU nodes."""

import atexit
import ctypes
import json
import os
import sys
import tempfile

CHROMIUM = "/usr/lib/chromium"  # Debian's package, which includes the driver and its loader
ctypes.CDLL(f"{CHROMIUM}/libvulkan.so.1", ctypes.RTLD_GLOBAL)
with tempfile.TemporaryDirectory() as folder:
    driver = os.path.join(folder, "swiftshader.json")
    with open(driver, "w") as file:
        json.dump(
            {
                "file_format_version": "1.0.0",
                "ICD": {"library_path": f"{CHROMIUM}/libvk_swiftshader.so", "api_version": "1.0.5"},
            },
            file,
        )
    os.environ |= {"VK_ICD_FILENAMES": driver, "VK_DRIVER_FILES": driver, "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1"}
    import numpy as np
    import onnxruntime as ort
    import onnxruntime_ep_webgpu as webgpu

    model, given, results = sys.argv[1:4]
    if all(device.ep_name != webgpu.get_ep_name() for device in ort.get_ep_devices()):
        ort.register_execution_provider_library(webgpu.get_ep_name(), webgpu.get_library_path())
    devices = [device for device in ort.get_ep_devices() if device.ep_name == webgpu.get_ep_name()]
    options = ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    options.add_provider_for_devices(devices[:1], {"enableInt64": "1"})
    try:
        session = ort.InferenceSession(model, options)
        outputs = session.run(None, dict(np.load(given)))
    except Exception:
        atexit.register(os._exit, 1)  # the driver's threads do not end after an error
        raise
    np.savez(results, **{str(index): array for index, array in enumerate(outputs)})
