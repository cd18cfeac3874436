"""Forms that MNN requires."""

from __future__ import annotations

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from converters.passes.copied_nodes import copy_outputs
from onnx_specops.graphs import all_nodes

_POOLINGS = frozenset(("AveragePool", "LpPool", "MaxPool"))
_FUSED = frozenset(("BatchNormalization", "Clip", "Relu"))
_RANK_OF_VOLUMES = 5
_MERGED = frozenset(("Add", "Div", "Gemm", "MatMul", "Max", "Min", "Mul", "Pow", "Sub"))


class StateWindows(InPlacePass):
    """Add the default ``strides`` and ``pads`` to each AveragePool, LpPool and MaxPool.

    MNN (3.6) crashes if the strides are missing, or the pads of a three-dimensional pooling operator.
    """

    def call(self, model: ir.Model) -> PassResult:
        count = 0
        for node in all_nodes(model.graph):
            if node.domain or node.op_type not in _POOLINGS:
                continue
            rank = len(node.attributes.get_ints("kernel_shape", ()) or ())
            added = [ir.AttrInt64s("strides", [1] * rank)]
            if node.attributes.get_string("auto_pad", "NOTSET") == "NOTSET":
                added.append(ir.AttrInt64s("pads", [0] * 2 * rank))
            for attribute in added:
                if attribute.name not in node.attributes:
                    node.attributes.add(attribute)
                    count += 1
        return PassResult(model, modified=count > 0)


class CopiedVolumes(InPlacePass):
    """Copy three-dimensional images that a BatchNormalization, Clip or Relu returns as outputs of the model.

    MNN (3.6) merges these operators into a three-dimensional convolution, and loses the name of the output.
    """

    def call(self, model: ir.Model) -> PassResult:
        return PassResult(model, modified=copy_outputs(model.graph, _is_volume, "of_volume"))


class SeparateOutputs(InPlacePass):
    """Copy an output of the model that an arithmetic operator of two tensors computes and other operators read.

    The copy is the maximum of the output and itself. MNN (3.6) merges these operators with the next one, such as Relu. It
    then lacks the output, or returns the result of the next operator, or reads a constant matrix in another layout.
    """

    def call(self, model: ir.Model) -> PassResult:
        return PassResult(model, modified=copy_outputs(model.graph, _is_read, "read", "Max", 2))


def _is_read(value: ir.Value) -> bool:
    node = value.producer()
    if node is None or node.domain or node.op_type not in _MERGED or value.dtype != ir.DataType.FLOAT:
        return False
    return bool(value.uses())


def _is_volume(value: ir.Value) -> bool:
    node = value.producer()
    if node is None or node.domain or node.op_type not in _FUSED:
        return False
    return value.shape is None or len(value.shape) == _RANK_OF_VOLUMES
