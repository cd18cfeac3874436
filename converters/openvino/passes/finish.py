"""The passes over a converted graph, in their order."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass, RemoveUnusedOpsetsPass

from converters.openvino.passes.constant_transposes import fold_constant_transposes
from converters.openvino.passes.integer_tables import fuse_integer_tables
from converters.openvino.passes.vocabulary_tables import fuse_vocabulary_tables, label_vocabulary_tables
from onnx_specops.bodies import attach_bodies
from onnx_specops.kernel_types import insert_casts


def finish(model: ir.Model, *, fold: bool) -> list[str]:
    """Turn the rules' output into the final model; returns the operators that have no body.

    Args:
        model: changed in place.
        fold: whether constants may be laid out anew; not where they must stay as the .bin has them.
    """
    fuse_integer_tables(model.graph)
    fuse_vocabulary_tables(model.graph)
    label_vocabulary_tables(model.graph)
    if fold:
        fold_constant_transposes(model.graph)
    insert_casts(model.graph)
    RemoveUnusedNodesPass()(model)
    without_body = attach_bodies(model)
    RemoveUnusedOpsetsPass()(model)
    return without_body
