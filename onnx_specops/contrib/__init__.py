"""ONNX Runtime's own operators (the domain ``com.microsoft``) that converted models use, a module each, with their bodies.

ONNX Runtime takes its kernel for such a node whatever body the file carries; every other runtime, and ONNX's reference
evaluator, takes the body. So a node of these is quick in ONNX Runtime with no plugin, and right everywhere. Rules, passes
and the bodies of the domain's own operators emit them as ``op.contrib.FastGelu(x)``; `onnx_specops.bodies` attaches the
bodies.

An operator is declared by decorating its body: see `onnx_specops.contrib.declaring`.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
