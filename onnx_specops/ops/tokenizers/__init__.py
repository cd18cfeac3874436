"""Tokenizers and detokenizers: strings to the ids of a vocabulary and back, as openvino_tokenizers has them.

Between one operator and the next, strings are bytes: string i is ``symbols[begins[i]:ends[i]]``, of any bytes, also such as
are no UTF-8. Rows of strings add two tensors: row r holds the strings ``ragged_begins[r]`` to ``ragged_ends[r]``.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
