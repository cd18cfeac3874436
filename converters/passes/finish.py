"""The passes over a converted graph, in their order."""

from __future__ import annotations

from collections.abc import Collection

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassError, PassResult, Sequential
from onnx_ir.passes.common import RemoveUnusedNodesPass, RemoveUnusedOpsetsPass

from converters.passes.activations import FuseHardSigmoid, FuseHardSwish
from converters.passes.constant_transposes import FoldConstantTransposes
from converters.passes.pads import KeepPads
from converters.passes.vocabulary_tables import FuseVocabularyTables, LabelVocabularyTables
from onnx_specops.bodies import BodyError, attach_bodies
from onnx_specops.kernel_types import insert_casts


class InsertCasts(InPlacePass):
    """Casts for the types that ONNX Runtime's CPU kernels lack; arguments as of `onnx_specops.kernel_types.insert_casts`."""

    def __init__(self, *, keep_float32: bool = False, converted_unrounded: Collection[ir.DataType] = ()) -> None:
        self.keep_float32, self.converted_unrounded = keep_float32, converted_unrounded

    def call(self, model: ir.Model) -> PassResult:
        count = insert_casts(model.graph, keep_float32=self.keep_float32, converted_unrounded=self.converted_unrounded)
        return PassResult(model, modified=count > 0)


class AttachBodies(InPlacePass):
    """Each node of the domain gets its body.

    Attributes:
        without_body: after the pass: the operators that have none, by name.
    """

    def __init__(self) -> None:
        self.without_body: list[str] = []

    def call(self, model: ir.Model) -> PassResult:
        self.without_body = attach_bodies(model)
        return PassResult(model, modified=bool(model.functions))


def finish(
    model: ir.Model, *, fold: bool, keep_float32: bool = False, converted_unrounded: Collection[ir.DataType] = ()
) -> list[str]:
    """Turn the rules' output into the final model; returns the operators that have no body.

    Args:
        model: changed in place.
        fold: whether constants may be laid out anew; not where they must stay as the source's file has them.
        keep_float32, converted_unrounded: what the source's runtime does to 16-bit floats, see `InsertCasts`.

    Raises:
        BodyError: where the inputs or attributes of a node of the domain do not fit together.
    """
    bodies = AttachBodies()
    passes: list[InPlacePass] = [FuseVocabularyTables(), LabelVocabularyTables(), FuseHardSigmoid(), FuseHardSwish()]
    if fold:
        passes.append(FoldConstantTransposes())
    passes += [
        InsertCasts(keep_float32=keep_float32, converted_unrounded=converted_unrounded),
        RemoveUnusedNodesPass(),
        KeepPads(),
        bodies,
        RemoveUnusedOpsetsPass(),
    ]
    try:
        Sequential(*passes)(model)
    except PassError as error:
        if isinstance(error.__cause__, BodyError):
            raise error.__cause__ from error.__cause__.__cause__
        raise
    return bodies.without_body
