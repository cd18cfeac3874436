"""The processor of the tests, on which OpenVINO's results depend."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_FLAGS = frozenset(_CPUINFO.read_text().split()) if _CPUINFO.exists() else frozenset()

HAS_AVX512 = "avx512f" in _FLAGS
SATURATES = platform.machine() == "x86_64" and bool(_FLAGS) and not {"avx512_vnni", "avx_vnni"} & _FLAGS
"""Whether OpenVINO adds products of bytes in 16 bits, which saturate, because the processor lacks VNNI."""

_NEEDED = {
    "portable": frozenset[str](),
    "avx2": {"avx2", "fma"},
    "avx2_vnni": {"avx_vnni"},
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "avx512_vnni": {"avx512_vnni"},
    "amx": {"amx_int8"},
}
"""The values of ``ONNX_SPECOPS_SIMD`` -> the flags of processors that have the set."""


def instruction_sets(*names: str) -> list[str]:
    """Return the instruction sets that this processor has. An emulation has all."""
    if not _FLAGS or "ONNX_SPECOPS_SIMD" in os.environ:
        return list(names)
    return [name for name in names if _NEEDED[name] <= _FLAGS]
