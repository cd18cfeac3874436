"""The processor of the tests, on which OpenVINO's results depend."""

from __future__ import annotations

import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_FLAGS = frozenset(_CPUINFO.read_text().split()) if _CPUINFO.exists() else frozenset()

HAS_AVX512 = "avx512f" in _FLAGS
SATURATES = platform.machine() == "x86_64" and bool(_FLAGS) and not {"avx512_vnni", "avx_vnni"} & _FLAGS
"""Whether OpenVINO adds products of bytes in 16 bits, which saturate, because the processor lacks VNNI."""
