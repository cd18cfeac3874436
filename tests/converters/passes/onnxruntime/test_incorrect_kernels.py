"""`--verify` does not compare replacements with nodes that ONNX Runtime computes incorrectly."""

from __future__ import annotations

import importlib
import pkgutil

from converters.passes import onnxruntime
from converters.passes.onnxruntime.block_layouts import KeepBlocks
from converters.passes.onnxruntime.column_sums import SumsByProducts
from converters.passes.onnxruntime.more_dimensions import ConstantsOfMoreDimensions
from converters.passes.onnxruntime.moved_images import StopMovedTransposes, StopMovedTransposesOfBodies
from converters.passes.onnxruntime.row_norms import NormsBySums
from converters.passes.workaround import KernelWorkaround, Workaround

_OF_CORRECT_NODES = {
    ConstantsOfMoreDimensions,
    KeepBlocks,
    NormsBySums,
    SumsByProducts,
    StopMovedTransposes,
    StopMovedTransposesOfBodies,
}
"""The workarounds for nodes that ONNX Runtime computes correctly, but slowly, or that one of its fusions changes later."""


def test_each_workaround_states_whether_the_node_is_correct() -> None:
    names = [f"{onnxruntime.__name__}.{module.name}" for module in pkgutil.iter_modules(onnxruntime.__path__)]
    classes = [one for name in names for one in vars(importlib.import_module(name)).values() if isinstance(one, type)]
    found = {one for one in classes if issubclass(one, Workaround)} - {Workaround, KernelWorkaround}
    assert {one for one in found if not issubclass(one, KernelWorkaround)} == _OF_CORRECT_NODES
    assert not {one for one in found if "equal" in vars(one)}
    assert all(one.equal is (one in _OF_CORRECT_NODES) for one in found)
