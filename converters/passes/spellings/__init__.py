"""Alternative spellings in ONNX that targets need. `converters.targets` selects them."""

from collections.abc import Callable, Mapping

from onnx_ir.passes import InPlacePass

from converters.passes.spellings.attributes import WithoutDefaults
from converters.passes.spellings.booleans import WithoutBooleanConstants
from converters.passes.spellings.comparisons import OfOneShape
from converters.passes.spellings.elements import WithOneElement
from converters.passes.spellings.lines import WithoutLines
from converters.passes.spellings.matrices import OfMatrices
from converters.passes.spellings.maxima import AsArgMax
from converters.passes.spellings.order import ByLevel
from converters.passes.spellings.padding import EvenPads, WithPads
from converters.passes.spellings.pairs import InPairs
from converters.passes.spellings.pictures import OfPictures
from converters.passes.spellings.reshapes import StaticReshape
from converters.passes.spellings.short import WithShortConstants
from converters.passes.spellings.slopes import OfChannels
from converters.passes.spellings.squares import AsProducts
from converters.passes.spellings.topk import SortedTopK

SPELLINGS: Mapping[str, Callable[[], InPlacePass]] = {
    "by level": ByLevel,
    "ArgMax": AsArgMax,
    "channel slopes": OfChannels,
    "even padding": EvenPads,
    "explicit padding": WithPads,
    "matrices": OfMatrices,
    "no boolean constants": WithoutBooleanConstants,
    "no defaults": WithoutDefaults,
    "no lines": WithoutLines,
    "one element": WithOneElement,
    "one shape": OfOneShape,
    "pairwise": InPairs,
    "pictures": OfPictures,
    "products": AsProducts,
    "short constants": WithShortConstants,
    "sorted TopK": SortedTopK,
    "static Reshape": StaticReshape,
}

LAST = frozenset(("by level", "no boolean constants"))
"""Spellings that simplification would revert."""
