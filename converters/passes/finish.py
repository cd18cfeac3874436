"""The passes over a converted graph, in order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult
from onnx_ir.passes.common import RemoveUnusedNodesPass, RemoveUnusedOpsetsPass

from converters.options import Activations, Precision, Quantized
from converters.passes.activations import DecomposeLogSigmoid, DecomposeMish, FuseHardSigmoid, FuseHardSwish, FuseMish
from converters.passes.attention.encoder import FUSE_ATTENTION
from converters.passes.attention.regular_scores import REGULAR
from converters.passes.attention.standard import LowerToStandardAttention
from converters.passes.biases import FlattenBiases
from converters.passes.branches import MoveIntoBranches
from converters.passes.causal_conv import FuseCausalConv
from converters.passes.column_images import Col2ImByAddition
from converters.passes.compressed_weights import KeepWeightsCompressed
from converters.passes.compressed_weights.n_bits import ConvertToMatMulNBits
from converters.passes.constant_transposes import FoldConstantTransposes
from converters.passes.copies import DropCopies
from converters.passes.elementwise import FuseElementwise
from converters.passes.few_columns import NeighborsAsColumns
from converters.passes.four_bits import LookUpFourBits
from converters.passes.gated_delta_rule import FuseGatedDeltaRule
from converters.passes.newer_forms import newer_forms
from converters.passes.normalizations import FuseScaleAndBias
from converters.passes.onnxruntime import (
    ConstantsOfMoreDimensions,
    CopyCapturedValues,
    CopyMovedOutputs,
    InstancesWithoutElements,
    KeepFloatWeights,
    KeepPads,
    SeparateWeights,
    StopMovedTransposes,
    TransposeAfterCasts,
    forms_before_lowering,
    fusion_guards,
    kernel_workarounds,
)
from converters.passes.pixel_shuffles import ShuffleRows
from converters.passes.precision import InFloat16, InFloat32
from converters.passes.quantized import AddFloatResiduals, ConvertToIntegers, is_quantized
from converters.passes.recurrent_loops import FuseRecurrentLoops
from converters.passes.rms_normalization import CanonicalizeRMSNormalization
from converters.passes.running import run_in_order
from converters.passes.selected_rows import SelectRowsOnce
from converters.passes.selective_scan import FuseSelectiveScan
from converters.passes.simplification import FusePads, MergeDataMovement, Simplify
from converters.passes.spellings import spelling_passes
from converters.passes.state_space_scan import FuseStateSpaceScan
from converters.passes.vocabulary_tables import FuseVocabularyTables, LabelVocabularyTables
from converters.passes.while_loops import while_loops
from converters.passes.workaround import Workaround
from converters.targets.assumptions import assumptions_of
from converters.targets.fitting import TargetError, UnsupportedItem, check, supported_by
from converters.targets.onnxruntime import ONNXRUNTIME
from converters.targets.target import Target
from onnx_specops.bodies import DOMAINS, attach_bodies, inline_bodies
from onnx_specops.building import OPSET
from onnx_specops.domain import CONTRIB_DOMAIN
from onnx_specops.folding import FOLDED_ELEMENTS
from onnx_specops.graphs import origin
from onnx_specops.kernel_types import insert_casts
from onnx_specops.lowering import Lower, Stamp, UnsupportedNode, least_opset_of
from onnx_specops.replacing import rewriting


class InsertCasts(InPlacePass):
    """Insert casts for types that ONNX Runtime's CPU kernels lack; see `onnx_specops.kernel_types.insert_casts`."""

    def __init__(
        self,
        *,
        keep_float32: bool = False,
        converted_unrounded: Collection[ir.DataType] = (),
        opset: int = OPSET,
        spared: Collection[ir.DataType] = (),
        fit_kernels: bool = True,
    ) -> None:
        self.fit_kernels = fit_kernels
        self.keep_float32, self.converted_unrounded, self.opset = keep_float32, converted_unrounded, opset
        self.spared = spared

    def call(self, model: ir.Model) -> PassResult:
        count = insert_casts(
            model.graph,
            keep_float32=self.keep_float32,
            converted_unrounded=self.converted_unrounded,
            opset=self.opset,
            spared=self.spared,
            fit_kernels=self.fit_kernels,
        )
        return PassResult(model, modified=count > 0)


class AttachBodies(InPlacePass):
    """Attach bodies to nodes of the domain and of ONNX Runtime's own operators; see `onnx_specops.bodies.attach_bodies`.

    Attributes:
        without_body: after the pass, the names of the domain's operators without a body.
    """

    def __init__(self, opset: int = OPSET, *, contrib: bool = True) -> None:
        self.opset, self.contrib = opset, contrib
        self.without_body: list[str] = []

    def call(self, model: ir.Model) -> PassResult:
        self.without_body = attach_bodies(model, self.opset, contrib=self.contrib)
        return PassResult(model, modified=bool(model.functions))


class InlineBodies(InPlacePass):
    """Replace each node of some domains by its body. Several bodies of one operator need opset 21.

    Attributes:
        domains: the domains.
        inlined: after the pass, the names of the inlined operators of the domain.
        refusals: after the pass, the nodes of the domains without a body.
    """

    def __init__(self, domains: Collection[str] = DOMAINS) -> None:
        self.domains = domains
        self.inlined: list[str] = []
        self.unsupported: list[UnsupportedNode] = []

    def call(self, model: ir.Model) -> PassResult:
        self.inlined, without = inline_bodies(model, self.domains)
        message = "{}, which has no equivalent in standard ONNX"
        self.unsupported += [
            UnsupportedNode(node.name or "", message.format(node.op_type), OPSET, origin(node)) for node in without
        ]
        return PassResult(model, modified=True)


class Check(InPlacePass):
    """Raise `TargetError` for forms of operators that a target computes incorrectly."""

    def __init__(self, target: Target) -> None:
        self.target = target

    def call(self, model: ir.Model) -> PassResult:
        check(model, self.target)
        return PassResult(model, modified=False)


@dataclass(frozen=True)
class Finished:
    """The results of the passes that a report contains.

    Attributes:
        without_body: the domain's operators in the model without a body.
        inlined: those that are inlined as standard ONNX, which no kernel replaces.
        clamped: the constants with numbers beyond float16's range.
        opset: the model's opset.
        assumptions: the name of a value -> the condition under which the results are equal on the target.
    """

    without_body: list[str]
    inlined: list[str]
    clamped: list[str]
    opset: int
    assumptions: Mapping[str, str] = field(default_factory=dict)


def finish(
    model: ir.Model,
    *,
    fold: bool,
    keep_float32: bool = False,
    converted_unrounded: Collection[ir.DataType] = (),
    opset: int = OPSET,
    precision: Precision = "model",
    contrib: bool = True,
    quantized: Quantized = "integer",
    activations: Activations = "float",
    target: Target = ONNXRUNTIME,
    first: Sequence[InPlacePass] = (),
    few_rows: bool = False,
) -> Finished:
    """Run the passes on the model that the rules emitted.

    Args:
        model: the model; changed in place.
        fold: whether the layout of constants may change; false if they must stay as in the source's file.
        keep_float32, converted_unrounded: the runtime's treatment of 16-bit floats, see `InsertCasts`.
        opset: the opset of the result.
        precision: the type of weights and computation.
        contrib: whether the model may contain ONNX Runtime's own operators, with their bodies.
        quantized: the arithmetic of quantized networks.
        activations: the activations that are multiplied by compressed weights.
        target: the default target, or another with functions and the domain's operators.
        first: the passes for caches, which run before the others.
        few_rows: whether the model mostly multiplies few rows, such as a language model that generates tokens.

    Raises:
        BodyError: the inputs or attributes of a node of the domain contradict each other.
        LoweringError: the opset cannot represent the model.
    """
    bodies, inline, halves = AttachBodies(opset, contrib=contrib), InlineBodies(), InFloat16(opset)
    # ONNX Runtime inserts casts for float16 nodes for which a device has no kernel.
    spared = [ir.DataType.FLOAT16] if precision == "float16" or target.cache == "float16" else []
    # Before caches, which are recognized by evaluation: it does not support Loops over data.
    recurrences = (FuseStateSpaceScan(), FuseGatedDeltaRule(), FuseCausalConv())
    passes: list[InPlacePass] = [
        *recurrences,
        *first,
        *while_loops(),
        FuseRecurrentLoops(),
        *kernel_workarounds(opset),
        Col2ImByAddition(),
        FuseVocabularyTables(),
        LabelVocabularyTables(),
        FuseHardSigmoid(),
        FuseHardSwish(),
    ]
    passes += [DropCopies(), FuseScaleAndBias(), CanonicalizeRMSNormalization(), FlattenBiases(), DecomposeLogSigmoid()]
    if contrib and opset >= OPSET and precision != "float16":
        passes += [step() for step in FUSE_ATTENTION]
    passes.append(FuseSelectiveScan())
    casts = partial(InsertCasts, keep_float32=keep_float32, converted_unrounded=converted_unrounded, spared=spared)
    # QuantizeLinear got its axis in opset 13.
    has_integers = quantized == "integer" and opset >= 13 and is_quantized(model)
    if quantized == "integer" and opset >= 13:
        if has_integers:
            # Integers represent float32 in networks of 16 bits, too. A quantization is directly before its convolution.
            passes += [casts(), FusePads()]
        passes += [RemoveUnusedNodesPass(), ConvertToIntegers(opset, contrib=contrib), RemoveUnusedNodesPass()]
    in_one_pass = contrib and opset >= OPSET and precision == "model"
    if precision != "float16" and not in_one_pass:  # the terms of the decomposition would overflow in float16
        passes.append(DecomposeMish())
    if opset >= OPSET:  # the plugin's kernels do not apply to older opsets
        if target.n_bits and precision != "float32":
            passes += [KeepWeightsCompressed("float", fold=fold, halves=False), ConvertToMatMulNBits()]
        elif precision == "model":
            passes.append(KeepWeightsCompressed(activations, fold=fold, floats=few_rows))
    if fold:
        passes.append(FoldConstantTransposes())
    passes.append(LookUpFourBits())
    if precision != "model":
        passes.append(halves if precision == "float16" else InFloat32())
    passes += [
        RemoveUnusedNodesPass(),
        Simplify(limit=FOLDED_ELEMENTS, halves=precision == "float32", fold=fold, fused=True),
        SelectRowsOnce(),
        *spelling_passes(target),
    ]
    if in_one_pass:
        if has_integers:
            passes += [FuseElementwise(), RemoveUnusedNodesPass(), MergeDataMovement(), ShuffleRows(), NeighborsAsColumns()]
            passes += [MergeDataMovement(), AddFloatResiduals(), RemoveUnusedNodesPass()]
        passes += [FuseMish(), DecomposeMish()]
    if target.limits:
        passes.append(Check(target))
    is_for_cpu = target == ONNXRUNTIME
    if opset < OPSET:
        passes += [inline, RemoveUnusedNodesPass(), *forms_before_lowering(opset, is_for_cpu=is_for_cpu)]
        passes.append(Lower(opset, inline.unsupported))
    elif not contrib:
        passes.append(InlineBodies((CONTRIB_DOMAIN,)))
    if precision != "float16":
        passes += newer_forms(opset, swish=False)
    passes += [
        casts(opset=opset),
        RemoveUnusedNodesPass(),
        *fusion_guards(opset, is_for_cpu=is_for_cpu),
        RemoveUnusedNodesPass(),
        MoveIntoBranches(),
        bodies,
        *spelling_passes(target, "last"),
        RemoveUnusedOpsetsPass(),
    ]
    if opset != OPSET:
        passes.append(Stamp(opset))
    _run(passes, model)
    return Finished(bodies.without_body, inline.inlined, halves.clamped, opset)


def finish_for(
    model: ir.Model,
    target: Target,
    *,
    keep_float32: bool = False,
    converted_unrounded: Collection[ir.DataType] = (),
    opset: int | None = None,
    precision: Precision = "model",
    quantized: Quantized = "integer",
    first: Sequence[InPlacePass] = (),
) -> Finished:
    """Run the passes for a target other than the default.

    Args:
        model: the model; changed in place.
        target: the target.
        keep_float32, converted_unrounded, precision, quantized, first: see `finish`.
        opset: the opset of the result; by default the oldest of the target's that represents it.

    Raises:
        BodyError: the inputs or attributes of a node of the domain contradict each other.
        LoweringError: the opset cannot represent the model.
        TargetError: the target does not support the model.
    """
    inline, halves = InlineBodies(), InFloat16(min(target.opsets[1], OPSET))
    spared = [ir.DataType.FLOAT16] if precision == "float16" else []
    casts = partial(
        InsertCasts,
        keep_float32=keep_float32,
        converted_unrounded=converted_unrounded,
        spared=spared,
        fit_kernels=target.onnxruntime,
    )
    passes: list[InPlacePass] = [
        *first,
        *spelling_passes(target, "first"),
        *while_loops(),
        FuseRecurrentLoops(),
        *(kernel_workarounds() if target.onnxruntime else ()),
        Col2ImByAddition(),
        LabelVocabularyTables(),
        FuseHardSigmoid(),
        FuseHardSwish(),
        DropCopies(),
        FuseScaleAndBias(),
        *([DecomposeLogSigmoid()] if target.onnxruntime else ()),
    ]
    if quantized == "integer" and target.quantized == "qdq":
        if is_quantized(model):
            passes += [casts(), FusePads()]
        newest = min(opset or target.opsets[1], OPSET)
        passes += [RemoveUnusedNodesPass(), ConvertToIntegers(newest, contrib=False), RemoveUnusedNodesPass()]
    passes.append(FoldConstantTransposes())
    in_float32 = precision != "float16" and (target.float32 or precision == "float32")
    if precision == "float16":
        passes += [halves, inline]
    else:  # a body depends on the limits and random numbers of the model's type
        passes += [inline, InFloat32()] if in_float32 else [inline]
    passes += [
        RemoveUnusedNodesPass(),
        Simplify(stored=True, halves=in_float32, fused=True),  # the halves that are left are rounded
        *spelling_passes(target),
        casts(),
        Simplify(stored=True),
        *spelling_passes(target, "newer", newest=opset),
        RemoveUnusedNodesPass(),
    ]
    if target.onnxruntime:
        passes += [KeepPads(OPSET), TransposeAfterCasts(), KeepFloatWeights(), StopMovedTransposes()]
        passes += [ConstantsOfMoreDimensions(), InstancesWithoutElements()]
    _run(passes, model)
    if inline.unsupported:
        untaken = [
            UnsupportedItem(r.node_name, r.message.partition(",")[0], r.message, origin=r.origin) for r in inline.unsupported
        ]
        raise TargetError(target, untaken, supported_by(model, target))
    check(model, target)
    if opset is None:
        opset = min(least_opset_of(model, target.opsets[0]), target.opsets[1])
    assumptions = {name: text for step in passes if isinstance(step, Workaround) for name, text in step.assumptions.items()}
    last: list[InPlacePass] = []
    if opset >= 23 and target.has("Attention"):
        last += [*(step() for step in REGULAR), RemoveUnusedNodesPass(), LowerToStandardAttention()]
    if opset < OPSET:
        last += [Lower(opset), casts(opset=opset)]
        if target.onnxruntime and opset < 13:  # weights with several scales became floats
            last.append(KeepFloatWeights())
    elif precision != "float16":
        last += [*newer_forms(opset, has=target.has), Simplify(stored=True)]
    last += [
        RemoveUnusedNodesPass(),
        Stamp(opset),
        *spelling_passes(target, "last"),
        RemoveUnusedOpsetsPass(),
        Stamp(opset),
    ]
    _run(last, model)
    check(model, target)
    if target.onnxruntime:  # also if a device lacks Identity: the CPU copies the output
        _run([CopyMovedOutputs()], model)
        if target.operators is None:  # the CPU computes all nodes
            _run([SeparateWeights()], model)
    _run([CopyCapturedValues()], model)  # for any target, because ONNX Runtime checks the files
    assumptions |= assumptions_of(model, target.assumptions, halves=target.halves)
    return Finished([], inline.inlined, halves.clamped, opset, assumptions)


def _run(passes: Sequence[InPlacePass], model: ir.Model) -> None:
    # Integers cannot represent NaN.
    run_in_order(passes, model, lambda step: rewriting(type(step).__name__, finite=isinstance(step, ConvertToIntegers)))
