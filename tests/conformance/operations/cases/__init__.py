"""The cases by family, one module each with its list ``CASES``."""

import importlib
import pkgutil

from tests.conformance.case import Case

CASES: list[Case] = []
for _module in pkgutil.iter_modules(__path__):
    CASES += importlib.import_module(f"{__name__}.{_module.name}").CASES
