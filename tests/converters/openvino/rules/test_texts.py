"""Strings in constants."""

from __future__ import annotations

import numpy as np
import pytest

from converters.errors import Malformed
from converters.openvino.rules._texts import tokens_of
from onnx_specops.building import constant_value


@pytest.mark.parametrize(("count", "is_small"), [(1000, True), (20_000, False)])
def test_strings_of_the_same_symbols(count: int, is_small: bool) -> None:
    """A file of 360 kB with 20,000 strings of all its symbols would need 4 GB of memory."""
    size = 200_000
    arrays = np.zeros(count, np.int32), np.full(count, size, np.int32), np.full(size, ord("a"), np.uint8)
    strings = [constant_value(array) for array in arrays]
    if is_small:
        assert tokens_of(strings, "vocabulary") == [b"a" * size] * count
    else:
        with pytest.raises(Malformed, match="its vocabulary would have 4000000000 elements"):
            tokens_of(strings, "vocabulary")
