"""The domain's operators, a module each: schema, NumPy kernel and body side by side."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
