"""The two forms of simd.h, with and without the compiler's vectors, agree and never overflow."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

# The checkout's sources; an installed package only has the library.
NATIVE = Path(__file__).parents[3] / "onnx_specops" / "native"

PROGRAM = """
#include "simd.h"

#include <cstdio>
#include <initializer_list>
#include <limits>

using specops::Pack;

// Prints what the operations make of extreme values.
template <class T>
void show() {
  T values[2][Pack<T>::size];
  for (std::size_t i = 0; i < Pack<T>::size; ++i) {
    values[0][i] = static_cast<T>(std::numeric_limits<T>::max() / static_cast<T>(i + 1));
    values[1][i] = static_cast<T>(std::numeric_limits<T>::max() - static_cast<T>(i));
  }
  Pack<T> sum, product, both, greater, other;
  sum.load(values[0]), product.load(values[0]), both.load(values[0]), greater.load(values[0]), other.load(values[1]);
  sum.add(other);
  product.multiply(values[1][1]);
  both.add_product(other, other);
  greater.raise(other);
  for (const Pack<T>* pack : {&sum, &product, &both, &greater}) {
    T lanes[Pack<T>::size];
    pack->store(lanes);
    for (const T lane : lanes) std::printf("%.9g ", static_cast<double>(lane));
  }
  std::printf("\\n");
}

int main() {
  show<std::uint8_t>();
  show<std::uint16_t>();
  show<std::uint32_t>();
  show<std::uint64_t>();
  show<float>();
  show<double>();
  const specops::Words words = specops::Words{} + (std::uint64_t{1} << 63), more = (words >> 3) * 40;
  std::printf("%llu\\n", static_cast<unsigned long long>(more[7]));
}
"""


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_with_and_without_vectors(tmp_path: Path) -> None:
    source = tmp_path / "show.cc"
    source.write_text(PROGRAM)
    said = []
    for options in ([], ["-DSPECOPS_PORTABLE"]):
        program = tmp_path / "show"
        flags = ["-std=c++17", "-Wall", "-Wextra", "-fsanitize=undefined", "-fno-sanitize-recover=all", "-I", NATIVE]
        subprocess.run(["c++", *flags, *options, source, "-o", program], check=True)
        said.append(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == 7
