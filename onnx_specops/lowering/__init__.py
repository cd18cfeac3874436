"""Other opsets: graphs in the builder's opset are rewritten in an older or newer one.

`Lower` visits the nodes of a graph and rewrites those whose operator differs in the target opset. The modules of this
package have an adapter for each such operator (`adapters`). `same` lists the operators whose versions have the same meaning.
`Stamp` checks the result and sets the opset.
"""

from onnx_specops.lowering.least import least_opset_of
from onnx_specops.lowering.lower import Lower, Stamp
from onnx_specops.lowering.unsupported import LoweringError, UnsupportedNode
from onnx_specops.lowering.versions import OLDEST, check_opset, ir_version, newest, opset_imports

__all__ = [
    "OLDEST",
    "Lower",
    "LoweringError",
    "Stamp",
    "UnsupportedNode",
    "check_opset",
    "ir_version",
    "least_opset_of",
    "newest",
    "opset_imports",
]
