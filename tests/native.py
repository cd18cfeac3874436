"""Which native kernels this build has: there may be no library, or one without PCRE2."""

from __future__ import annotations

import pytest

from onnx_specops.runtime.library import has_library, native_operators

BUILT = native_operators() if has_library() else frozenset()
OF_PCRE2 = frozenset({"RegexNormalization", "RegexSplit", "SpecialTokensSplit"})
"""What a library that is built where there is no PCRE2 lacks."""

needs_library = pytest.mark.skipif(not BUILT, reason="no native library is built here")
needs_pcre2 = pytest.mark.skipif(not BUILT >= OF_PCRE2, reason="no native library with PCRE2 is built here")
