"""ONNX Runtime's own operators (the domain ``com.microsoft``) that converted models use, one module each, with bodies.

ONNX Runtime uses its own kernel for such a node even if the file has a body. Other runtimes, and ONNX's reference evaluator,
use the body. These nodes are therefore fast in ONNX Runtime without a plugin, and correct everywhere. Rules, passes and the
bodies of the domain's own operators emit them as ``op.contrib.FastGelu(x)``; `onnx_specops.bodies` attaches the bodies.

An operator is declared by decorating its body: see `onnx_specops.contrib.declaring`.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
