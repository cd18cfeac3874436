"""An OpenVINO IR as a source for the driver, validation and reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import onnx_ir as ir

from converters.errors import ConversionError, Malformed, Problem
from converters.inference_engine.baseline import weights_of_old_ir
from converters.inference_engine.compared import InferenceEngineBaseline
from converters.openvino.baseline import OpenVINOBaseline, RequestedInterface
from converters.openvino.information import information, layout
from converters.openvino.metadata import describe
from converters.openvino.reader import graph
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.interface import choose, described, restore
from converters.openvino.reader.reshape import reshape
from converters.openvino.reader.tensor_names import input_aliases, output_names
from converters.openvino.stated import Corrections
from converters.openvino.walk import all_layers, body_problem, emit, node_problems, opset_problems, target_problems
from converters.passes.valid_nodes import InvalidNodes
from converters.saving import Source as SavedSource
from converters.source import Baseline, Emitted, Layer, Port
from converters.targets.fitting import TargetError
from onnx_specops.bodies import BodyError
from onnx_specops.lowering import LoweringError

# Values of these types have no NumPy arrays.
_NO_ARRAY = {ElementType.U1, ElementType.U2, ElementType.U3, ElementType.U6, ElementType.NF4, ElementType.DYNAMIC}
_OTHER_SHAPE = "use an --input-shape that the model supports, or check that the file is intact"
_KINDS = {"Parameter": "input", "Const": "constant", "Result": "output"}


class OpenVINOSource:
    """An open IR; see `converters.source.Source`.

    Args:
        model: its typed graph.
        in_memory: whether the model is in memory, so that its files are temporary.
        own_bin: whether the .bin is the one next to the .xml.
    """

    def __init__(self, model: graph.Model, *, in_memory: bool = False, own_bin: bool = True) -> None:
        self.model, self.in_memory, self._own_bin = model, in_memory, own_bin
        self.path, self.remarks = model.path, model.remarks
        self._inputs = [layer.name for layer in model.parameters]
        self._outputs = [layer.inputs[0].source for layer in model.results]
        self._restored = self._reshaped = False
        self._corrections = Corrections()

    @property
    def files(self) -> tuple[Path, ...]:
        """The .xml and the .bin."""
        if self.in_memory:
            return ()
        return tuple(path for path in (self.model.path, self.model.weights_path) if path is not None)

    @property
    def inputs(self) -> list[Port]:
        """The Parameters."""
        layers = zip(self.model.parameters, self.model.input_names, strict=True)
        return [
            Port(names, layer.outputs[0].dims, layout(layer.outputs[0]), tuple(input_aliases(layer)))
            for layer, names in layers
        ]

    @property
    def outputs(self) -> list[Port]:
        """The inputs of the Results."""
        layers = zip(self.model.results, output_names(self.model, self._corrections.omitted), strict=True)
        return [
            Port(names, self._corrections.dims_of(layer.inputs[0].source), layout(layer.inputs[0]))
            for layer, names in layers
        ]

    @cached_property
    def layers(self) -> list[Layer]:
        """The layers of the outermost graph."""
        return [
            Layer(
                layer.id,
                layer.name,
                layer.type,
                layer.line,
                _KINDS.get(layer.type, "operation"),  # type: ignore[arg-type]
                tuple(port.source.layer.id for port in layer.inputs),
                tuple(self._corrections.dims_of(port) for port in layer.outputs),
                tuple(self._corrections.type_of(port) not in _NO_ARRAY for port in layer.outputs),
            )
            for layer in self.model.layers
        ]

    @property
    def layer_types(self) -> Mapping[str, int]:
        """Layer type -> the number of layers."""
        return Counter(layer.type for layer in all_layers(self.model))

    @property
    def information(self) -> Mapping[str, str]:
        """Run-time information."""
        return information(self.model)

    def reshape(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Reshape the inputs as OpenVINO's ``Model.reshape`` does."""
        reshape(self.model, shapes)
        self._reshaped = bool(shapes)

    def choose(self, outputs: Sequence[str], names: Mapping[str, str]) -> None:
        """See `converters.openvino.reader.interface.choose`."""
        choose(self.model, outputs, names)

    def chosen(self) -> str:
        """See `converters.openvino.reader.interface.described`."""
        return described(self.model)

    def restore(self, chosen: str) -> None:
        """See `converters.openvino.reader.interface.restore`."""
        restore(self.model, chosen)
        self._restored = True
        self.__dict__.pop("layers", None)

    def emit(self) -> Emitted:
        """See `converters.openvino.walk.emit`."""
        self._corrections = Corrections()
        try:
            return emit(self.model, self._corrections)
        except ConversionError as error:
            if not self._reshaped:
                raise
            problems = [
                replace(problem, remedy=_OTHER_SHAPE) if problem.remedy == Malformed.usual_remedy else problem
                for problem in error.problems
            ]
            raise ConversionError.of(problems) from error.__cause__

    def describe(self, model: ir.Model, *, values: bool = True) -> None:
        """See `converters.openvino.metadata.describe`."""
        describe(model, self.model, self._corrections.omitted, values=values)

    def weights(self, *, unchanged: bool) -> SavedSource:
        """Return the .bin."""
        weights = None if self.in_memory or not unchanged else self.model.weights_path
        return SavedSource(self.model.path, self.model.weights, weights, self.files, self.model.check)

    def problems_of(self, error: Exception, opset: int) -> list[Problem]:
        """Return the problems of the layers from which the nodes were emitted."""
        if isinstance(error, BodyError):
            return [body_problem(self.model, error)]
        if isinstance(error, LoweringError):
            return opset_problems(self.model, error, opset, self._corrections)
        if isinstance(error, TargetError):
            return target_problems(self.model, error)
        assert isinstance(error, InvalidNodes)
        return node_problems(self.model, error)

    def baseline(self, folder: Path, extensions: Sequence[str] = ()) -> Baseline:
        """Return OpenVINO's CPU plugin with the model's inputs and outputs, or the Inference Engine for IR 2 to 7."""
        if (weights := weights_of_old_ir(self.path)) is not None:
            names = [[port.names[0] for port in ports] for ports in (self.inputs, self.outputs)]
            return InferenceEngineBaseline(self.path, self.model.weights_path or weights, *names)
        weights = None if self._own_bin else self.model.weights_path
        return OpenVINOBaseline(self.path, weights, self._requested(), folder, extensions)

    def _requested(self) -> RequestedInterface | None:
        """Return the inputs and outputs that `restore` selected; ``None`` for the file's own."""
        if not self._restored:
            return None
        ports = [layer.inputs[0].source for layer in self.model.results]
        variables = [layer.attributes.get("variable_id", "") for layer in self.model.layers if layer.type == "Assign"]
        return RequestedInterface(
            [self._inputs.index(layer.name) for layer in self.model.parameters],
            [(p.layer.name, p.index, self._outputs.index(p) if p in self._outputs else None) for p in ports],
            variables,
        )
