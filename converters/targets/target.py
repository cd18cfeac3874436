"""The description of a target: a program that reads ONNX, and the part of ONNX that it supports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from converters.targets.assumptions import Assumption
from converters.targets.limits import Limit

Spelling = Literal[
    "2D ConvTranspose",
    "added bias of volumes",
    "stated windows",
    "copied volumes",
    "separate outputs",
    "4D InstanceNormalization",
    "ArgMax",
    "flat NonZero",
    "one row of NonZero",
    "copied outputs",
    "assertions by Reshape",
    "Div for Mod",
    "whole dividends",
    "absolute remainders",
    "biased attention",
    "binary operators",
    "Cast through integers",
    "channel slopes",
    "wrapped integers",
    "positive scores",
    "bounded Slice",
    "Concat for Tile",
    "uniform constants",
    "Reshape before Expand",
    "counted Slice",
    "clipped Tanh",
    "computed indices",
    "compared numbers",
    "compared non-numbers",
    "counted padding",
    "cropped kernels",
    "equal shapes",
    "Floor for Round",
    "Gather for GridSample",
    "Gather for nearest GridSample",
    "Gather for Resize",
    "Gather for nearest Resize",
    "Gather for aligned Resize",
    "Gather for unclear Resize",
    "Gather for inexact Resize",
    "rows for ScatterND",
    "positive axes",
    "strict comparisons",
    "Xor for Equal",
    "selected int64",
    "indices of planes",
    "scaled regions",
    "Gather for reversed Slice",
    "Gather for strided Slice",
    "expanded LogSoftmax",
    "expanded Resize",
    "explicit padding",
    "float biases",
    "float32 products",
    "indices in shape",
    "last Softmax axis",
    "last of equal indices",
    "last states",
    "matrix operands",
    "Mul for And",
    "Mul for squares",
    "Pow for cubes",
    "no boolean constants",
    "no byte constants",
    "no named dimensions",
    "wide sizes",
    "reduced numbers",
    "counted outputs",
    "no defaults",
    "no leading 1s",
    "no scalar constants",
    "odd Asinh",
    "expanded Pow",
    "Elu for Selu",
    "extremes of single axes",
    "separate functions",
    "pairs of reduced axes",
    "rounded integer Pow",
    "several elements",
    "sorted by depth",
    "sorted TopK",
    "reversed TopK",
    "split groups",
    "stable Softplus",
    "stated dimensions",
    "stated kernels",
    "stated modes",
    "static Reshape",
    "symmetric padding",
    "symmetric 1D padding",
    "transposed batches",
    "truncated integers",
    "undilated ConvTranspose",
    "unfused RMS normalization",
    "unpadded 1x1 kernels",
    "Greater for Cast",
    "Expand for scalars",
    "scattering to columns",
    "rows of indices",
    "rows of operands",
    "float limits",
    "Gather for reflection",
    "sliced ConvTranspose",
    "selected numbers",
    "Reshape for Unsqueeze",
    "images for reflection",
    "truncated quotients",
    "MatMul for Resize",
    "MatMul for every Resize",
    "MatMul for DFT",
    "ConvTranspose for Col2Im",
    "Slice for negative pads",
    "separate constants",
    "scattering within data",
    "whole residuals",
    "Sub for residuals of volumes",
    "unfused GroupNormalization",
    "forward GRU",
    "whole addends",
    "separate patterns",
    "signs of integers",
    "matrices for vectors",
    "half-pixel Resize",
    "Slice for Gather",
    "unchecked rows",
    "rows of matrices",
    "merged directions",
    "ReduceMean for ReduceSum",
    "Conv for SpaceToDepth",
    "normalized lines",
    "copied products",
    "Gather for Expand",
    "Reshape for scalars",
    "looked-up masks",
    "biased normalization",
    "DepthToSpace for Transpose",
    "Split before Transpose",
    "Slice before Transpose",
    "Conv for im2col",
    "merged axes",
    "narrow integers",
    "Gather for integer Slice",
    "Slice from the last element",
    "Gather for integer GatherElements",
    "And for Or",
    "expanded Sign",
    "compared Sign",
    "separate activations",
    "separate Transposes",
    "separate products",
    "expanded Softplus",
    "bounded Exp",
    "bounded Atan",
    "asymmetric Resize",
    "floor pooling",
    "Conv for AveragePool",
    "Conv for ConvTranspose",
    "Pad before Conv",
    "Gather for edges",
    "Gather for every reflection",
    "Concat for ends",
    "Concat for integer Pad",
    "Atan for Acos",
    "Where for If",
    "Where for Loop",
    "wrapped angles",
    "expanded Softmax",
    "sums of parts",
    "bytes through integers",
    "wrapped bytes",
    "exact quotients",
    "Equal for Cast",
    "Max before Pad",
    "five dimensions",
    "kernels of strides",
    "merged elements",
    "merged lines",
    "quantized moves",
    "scales of quantizations",
    "separate quantizations",
    "weights of float results",
    "scalar exponents",
    "padded channels",
    "nested Split",
    "Slice for Split",
    "odd groups",
    "several transposed kernels",
    "normalized rows",
    "normalized matrices",
    "expanded Tile",
    "Less for Greater",
    "MatMul for CumSum",
    "MatMul for float CumSum",
    "ReduceSum for norms",
    "MatMul for bags",
    "MatMul for NonMaxSuppression",
    "MatMul for RoiAlign",
    "sums for LRN",
    "NaN of recurrence",
    "NaN of LSTM",
    "NaN of float16",
    "added NaN",
    "unrolled Loop",
    "unrolled recurrence",
    "unrolled forms of recurrence",
    "unseeded RandomUniform",
]
"""The name of a pass in `converters.passes.spellings`, for targets that need a particular spelling."""

SELECTIONS: tuple[Spelling, ...] = ("Where for If", "Where for Loop")
"""The spellings of If and Loop for programs without control flow."""

CONTROL_FLOW = frozenset(("If", "Loop", "Scan"))
"""The operators with graphs as attributes."""


@dataclass(frozen=True)
class Target:
    """A program or device that models are converted for.

    Attributes:
        name: its name in ``convert(target=)`` and ``specops convert --target``.
        title: a short description.
        evidence: the release that the lists below were measured with, or the page that publishes them.
        opsets: the oldest and newest opset that it reads. A file has the oldest of them whose operators represent it.
        functions: whether it inlines model-local functions. If not, the bodies are in the graph.
        contrib: whether it has ONNX Runtime's own operators (``com.microsoft``).
        domain: whether it loads the plugin, so that the domain's operators have kernels.
        onnxruntime: whether ONNX Runtime loads the file. Its CPU provider computes the nodes that the target does not
            support.
        static: whether it needs the shape of every tensor before the model runs.
        float32: whether 16-bit weights must become float32.
        quantized: the form of quantized networks: QuantizeLinear and DequantizeLinear around float operators (``"qdq"``), or
            floats that emulate them (``"float"``).
        operators: the standard operators that it has; ``None`` for all of an opset.
        lacks: operators that it does not have, with the reason or the remedy.
        limits: forms of operators that it computes incorrectly.
        assumptions: conditions on the numbers, under which it computes the same results.
        halves: whether it computes floats in float16.
        types: the supported element types of tensors, by ONNX's names; ``None`` for all of an operator's.
        control_flow: those of If, Loop and Scan that it has.
        spellings: the passes that it needs.
        cache: the type of the keys and values of its GroupQueryAttention.
        n_bits: whether MatMulNBits is its only multiplication by compressed weights.
        command: the next command for the file, for docs/targets.md.
    """

    name: str
    title: str
    evidence: str
    opsets: tuple[int, int]
    functions: bool = False
    contrib: bool = False
    domain: bool = False
    onnxruntime: bool = False
    static: bool = False
    float32: bool = True
    quantized: Literal["qdq", "float"] = "float"
    operators: frozenset[str] | None = None
    lacks: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[Limit, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    halves: bool = False
    types: Collection[str] | None = None
    control_flow: frozenset[str] = CONTROL_FLOW
    spellings: tuple[Spelling, ...] = ()
    cache: Literal["float32", "float16"] = "float32"
    n_bits: bool = False
    command: str = ""

    def has(self, operator: str) -> bool:
        """Return whether it has a standard operator."""
        return operator not in self.lacks and (self.operators is None or operator in self.operators)

    @property
    def has_kernels(self) -> bool:
        """Whether its files have functions and operators with kernels."""
        return self.functions and self.contrib and self.domain
