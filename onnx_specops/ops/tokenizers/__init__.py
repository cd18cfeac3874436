"""Tokenizers and detokenizers: strings to the ids of a vocabulary and back, as in openvino_tokenizers.

Operators exchange strings as bytes: string i is ``symbols[begins[i]:ends[i]]``. The bytes need not be valid UTF-8. Rows of
strings have two more tensors: row r contains the strings ``ragged_begins[r]`` to ``ragged_ends[r]``.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
