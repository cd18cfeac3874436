"""What ONNX spells in several ways, in the spelling that a target reads; `converters.targets` names them."""

from collections.abc import Callable, Mapping

from onnx_ir.passes import InPlacePass

from converters.passes.spellings.booleans import WithoutBooleanConstants
from converters.passes.spellings.elements import WithOneElement
from converters.passes.spellings.pairs import InPairs
from converters.passes.spellings.reshapes import StaticReshape
from converters.passes.spellings.short import WithShortConstants
from converters.passes.spellings.topk import SortedTopK

SPELLINGS: Mapping[str, Callable[[], InPlacePass]] = {
    "no boolean constants": WithoutBooleanConstants,
    "one element": WithOneElement,
    "pairwise": InPairs,
    "short constants": WithShortConstants,
    "sorted TopK": SortedTopK,
    "static Reshape": StaticReshape,
}

LAST = frozenset(("no boolean constants",))
"""Spellings that folding constants would undo."""
