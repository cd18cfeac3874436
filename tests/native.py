"""The available native kernels; the library or PCRE2 may be missing."""

from __future__ import annotations

import pytest

from onnx_specops.runtime.library import has_library, native_operators, unregistered_operators

BUILT = native_operators() if has_library() else frozenset()
REGISTERED = BUILT - unregistered_operators() if has_library() else frozenset()
"""The operators whose kernels run on this processor. For the others, the body is faster."""

OF_PCRE2 = frozenset({"RegexNormalization", "RegexSplit", "SpecialTokensSplit"})
"""The operators that need PCRE2, which the library opens."""

needs_library = pytest.mark.skipif(not BUILT, reason="no native library is built here")
needs_pcre2 = pytest.mark.skipif(not BUILT >= OF_PCRE2, reason="no native library, or no PCRE2 (Debian: libpcre2-8-0)")
