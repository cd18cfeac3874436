"""Other opsets: what the builder emits at its own opset, said in an older or a newer one.

`Lower` goes through a graph and says each node whose operator is another one in the opset aimed at in that opset's terms:
the modules beside this one hold an adapter for each such operator (`adapters`), `same` lists where only element types
changed. `Stamp` makes sure of the result and names the opset.
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
