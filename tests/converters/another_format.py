"""A source format with three lines: the minimal package of another format.

::

    toy
    x 2 3
    relu y
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.errors import ConversionError, MalformedError, Problem, Remarks
from converters.inspection import Contents, InspectedType, Inspection, Tensor
from converters.saving import Source as SavedSource
from converters.source import BaselineError, Emitted, Executed, Inference, Layer, LayerOutput, Port
from onnx_specops.building import IR_VERSION, OPSET_IMPORTS, Builder, new_value

FUNCTIONS = {"relu": ("Relu", lambda x: np.maximum(x, 0)), "double": ("Add", lambda x: x + x)}


class ToyBaseline:
    runtime, title, has_low_precision = "toy", "Toy, CPU", False

    def __init__(self, function: str) -> None:
        self._function = FUNCTIONS[function][1]

    def run(
        self, inputs: Sequence[np.ndarray], layers: Sequence[LayerOutput] = (), *, low_precision: bool = False
    ) -> Inference:
        outputs = self.run_all([inputs])
        return Inference(outputs, [outputs[0][0] for _ in layers], 0.001)

    def run_all(self, samples: Sequence[Sequence[np.ndarray]], *, low_precision: bool = False) -> list[list[np.ndarray]]:
        return [[self._function(x)] for (x,) in samples]

    def times(self, inputs: Sequence[np.ndarray]) -> tuple[float, list[Executed]]:
        raise BaselineError("no times")


class ToySource:
    def __init__(self, path: Path) -> None:
        magic, given, computed = path.read_text().splitlines()
        if magic != "toy":
            raise MalformedError([Problem("it does not begin with toy", str(path))])
        self.path, self.remarks = path, Remarks(str(path))
        self.name, *dims = given.split()
        self.dims: tuple[int | None, ...] = tuple(map(int, dims))
        self.function, self.result = computed.split()

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.path,)

    @property
    def inputs(self) -> list[Port]:
        return [Port((self.name,), self.dims, aliases=(self.name,))]

    @property
    def outputs(self) -> list[Port]:
        return [Port((self.result,), self.dims)]

    @property
    def layers(self) -> list[Layer]:
        return [
            Layer(0, self.name, "input", 2, "input", (), (self.dims,), (True,)),
            Layer(1, self.result, self.function, 3, "operation", (0,), (self.dims,), (True,)),
        ]

    @property
    def layer_types(self) -> Mapping[str, int]:
        return Counter(layer.type for layer in self.layers)

    @property
    def information(self) -> Mapping[str, str]:
        return {"author": "nobody"}

    def reshape(self, shapes: Mapping[str, Sequence[int]]) -> None:
        for dims in shapes.values():
            self.dims = tuple(None if size < 0 else size for size in dims)

    def choose(self, outputs: Sequence[str], names: Mapping[str, str]) -> None:
        self.result = names.get(self.result, self.result)

    def chosen(self) -> str:
        return self.result

    def restore(self, chosen: str) -> None:
        self.result = chosen

    def emit(self) -> Emitted:
        if self.function not in FUNCTIONS:
            raise ConversionError.of(Problem(f"no rule converts {self.function}", str(self.path), 3))
        graph = ir.Graph([], [], nodes=[], name="toy", opset_imports=dict(OPSET_IMPORTS))
        op = Builder(graph)
        x = new_value(ir.DataType.FLOAT, self.dims, self.name)
        graph.inputs.append(x)
        operator = FUNCTIONS[self.function][0]
        y = op.node(operator, *([x] if operator == "Relu" else [x, x]))
        y.name = self.result
        graph.outputs.append(y)
        model = ir.Model(graph, ir_version=IR_VERSION, producer_name="onnx_specops")
        return Emitted(model, {(0, 0): x, (1, 0): y}, {(self.function, "1"): Counter([operator])}, [], [])

    def describe(self, model: ir.Model, *, values: bool = True) -> None:
        model.metadata_props.update(self.information)

    def weights(self, *, unchanged: bool) -> SavedSource:
        return SavedSource(self.path, memoryview(b""), None, self.files)

    def problems_of(self, error: Exception, opset: int) -> list[Problem]:
        return [Problem(str(error), str(self.path))]

    def baseline(self, folder: Path, extensions: Sequence[str] = ()) -> ToyBaseline:
        return ToyBaseline(self.function)


class ToyFormat:
    name = "Toy"
    suffixes = (".toy",)

    def load(self) -> None:
        pass

    def recognizes(self, model: object) -> bool:
        return isinstance(model, (str, Path)) and Path(model).is_file() and Path(model).read_bytes()[:3] == b"toy"

    @contextmanager
    def open(self, model: Any, bin: str | Path | None = None, *, without_weights: bool = False) -> Iterator[ToySource]:
        yield ToySource(Path(model))

    def inspect(self, path: Path, bin: str | Path | None = None) -> Inspection:
        source = ToySource(path)
        rows = [InspectedType(source.function, "1", 1, ["Relu"], True)]
        ports = [[Tensor(p.names[0], "f32", p.dims, "") for p in ports] for ports in (source.inputs, source.outputs)]
        return Inspection([path], rows, [], [], Contents(1, 2, *ports, [], {"f32": 1}, []))

    def coverage(self) -> None:
        return None


FORMAT = ToyFormat()
