"""OpenVINO as the oracle, in a process of its own: on some inputs it crashes."""

from __future__ import annotations

import atexit
import multiprocessing
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from converters.openvino.reader.constants import Constant
from converters.openvino.reader.element_types import ElementType
from converters.openvino.tensors import decoded

Outputs = list[list[np.ndarray]]
TIMEOUT = 120

# Computing in float32: also where weights are compressed, whose layers' inputs the plugin would round to 8 bits.
FLOAT32 = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}


class OracleError(Exception):
    """OpenVINO refused the model, failed, or crashed."""


def _to_numpy(tensor: Any) -> np.ndarray:
    import openvino as ov

    if tensor.element_type == ov.Type.string:
        return np.asarray(tensor.str_data, dtype=object)
    data, kind = np.array(tensor.data), ElementType.from_name(tensor.element_type.get_type_name())
    if kind is None or not (kind.is_packed or kind.value.startswith("f8") or kind is ElementType.BF16):
        return data
    # Of a type that NumPy lacks come the bytes: the numbers in the type that stands for it in ONNX.
    raw = memoryview(data.tobytes())
    return decoded(Constant(kind, tuple(tensor.shape), 0, len(raw), raw))


def _cpu(path: str, runs: list[list[np.ndarray]], state: bool) -> Outputs:
    import openvino as ov

    core = ov.Core()
    model = core.read_model(path)
    unranked = any(port.partial_shape.rank.is_dynamic for port in model.inputs)
    compiled = request = None
    results = []
    for arrays in runs:
        if unranked:  # the plugin knows no inputs of unknown rank: whoever has one reshapes the model first
            shapes = {port: ov.PartialShape(list(a.shape)) for port, a in zip(model.inputs, arrays, strict=True)}
            model.reshape(shapes)
        if compiled is None or unranked:
            compiled = core.compile_model(model, "CPU", FLOAT32)
        if request is None or not state:
            request = compiled.create_infer_request()
        request.infer(_tensors(compiled.inputs, arrays))
        results.append([_to_numpy(request.get_output_tensor(i)) for i in range(len(compiled.outputs))])
    return results


def _evaluate(path: str, runs: list[list[np.ndarray]], state: bool) -> Outputs:
    import openvino as ov

    if state:
        raise RuntimeError("Model.evaluate keeps no state")
    model = ov.Core().read_model(path)
    results = []
    for arrays in runs:
        outputs = [ov.Tensor(output.get_element_type(), _static(output.partial_shape)) for output in model.outputs]
        if not model.evaluate(outputs, list(_tensors(model.inputs, arrays).values())):
            raise RuntimeError("Model.evaluate cannot run this model")
        results.append([_to_numpy(tensor) for tensor in outputs])
    return results


def low_precision_bytes(array: np.ndarray) -> bytes | None:
    """The elements as OpenVINO and ONNX store them where they have 4 bits, or 8 as floats; ``None`` for other types."""
    name = str(array.dtype)
    if name.startswith("float8"):
        return array.tobytes()
    if name not in ("int4", "uint4", "float4_e2m1fn"):
        return None
    codes = array.reshape(-1).view(np.uint8) & 15
    codes = np.append(codes, np.zeros(codes.size % 2, np.uint8))
    return (codes[0::2] | codes[1::2] << 4).tobytes()


def _static(shape: Any) -> Any:
    import openvino as ov

    return shape.to_shape() if shape.is_static else ov.Shape([0])


def _tensors(inputs: Any, arrays: list[np.ndarray]) -> dict[int, Any]:
    import openvino as ov

    tensors = {}
    for index, (port, array) in enumerate(zip(inputs, arrays, strict=True)):
        kind = port.get_element_type()
        if kind == ov.Type.string:
            tensors[index] = ov.Tensor(np.asarray(array, dtype=str))
        elif kind == ov.Type.bf16:
            tensor = ov.Tensor(kind, ov.Shape(list(array.shape)))
            tensor.data[...] = np.asarray(array).view(tensor.data.dtype) if array.dtype.itemsize == 2 else array
            tensors[index] = tensor
        elif (raw := low_precision_bytes(array)) is not None:
            tensor = ov.Tensor(kind, ov.Shape(list(array.shape)))
            tensor.data.reshape(-1).view(np.uint8)[...] = np.frombuffer(raw, np.uint8)
            tensors[index] = tensor
        else:
            tensors[index] = ov.Tensor(np.ascontiguousarray(array).reshape(array.shape))
    return tensors


def _import_onnx(model: bytes, path: str, dynamic: bool) -> list[str]:
    """Read an ONNX model and write it as IR."""
    import openvino as ov

    imported = ov.Core().read_model(model)
    if dynamic:
        shapes = {port: port.partial_shape for port in imported.inputs}
        imported.reshape({port: [-1] * len(shape) for port, shape in shapes.items() if shape.rank.is_static})
    ov.save_model(imported, path, compress_to_fp16=False)
    return [port.node.friendly_name for port in imported.inputs]


def _serve(connection: Connection) -> None:
    while True:
        steps, extensions = connection.recv()
        if extensions:
            import openvino_tokenizers  # noqa: F401
        for name, function, arguments in steps:
            connection.send(("begin", name))
            try:
                answer = {"value": function(*arguments)}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            connection.send((name, answer))


class Oracle:
    """A worker process that answers what OpenVINO computes; started anew after a crash."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Any = None
        atexit.register(self.close)

    def run(
        self,
        path: Path,
        runs: list[list[np.ndarray]],
        *,
        state: bool = False,
        extensions: bool = False,
        names: Sequence[str] = ("cpu", "evaluate"),
    ) -> dict[str, Outputs | OracleError]:
        """The outputs of each run by the CPU plugin (``"cpu"``) and by ``Model.evaluate`` (``"evaluate"``), or why not.

        ``names`` are those to ask: one that is not needed may crash, or spoil the process's memory for the next case.
        """
        functions = {"cpu": _cpu, "evaluate": _evaluate}
        return self._call([(name, functions[name], (str(path), runs, state)) for name in names], extensions)

    def import_onnx(self, model: bytes, path: Path, *, dynamic: bool = False) -> list[str]:
        """Let OpenVINO read an ONNX model and write it as IR to ``path``; raises `OracleError` where it cannot.

        ``dynamic`` makes every dimension of every input unknown. Returns the names of the inputs: OpenVINO leaves out those
        that nothing uses.
        """
        answer = self._call([("import", _import_onnx, (model, str(path), dynamic))])["import"]
        if isinstance(answer, OracleError):
            raise answer
        return answer

    def _call(self, steps: list[tuple[str, Any, tuple[Any, ...]]], extensions: bool = False) -> dict[str, Any]:
        """What each step returned, or the `OracleError` that tells why it did not; a crash ends those after it too."""
        self._start()
        answers: dict[str, Any] = {}
        current = steps[0][0] if steps else ""
        try:
            self._connection.send((steps, extensions))
            while len(answers) < len(steps):
                if not self._connection.poll(TIMEOUT):
                    raise EOFError("no answer in time")
                kind, answer = self._connection.recv()
                if kind == "begin":
                    current = answer
                else:
                    answers[kind] = answer["value"] if "value" in answer else OracleError(answer["error"])
        except (EOFError, OSError) as error:
            answers[current] = OracleError(f"OpenVINO crashed or hung: {error}")
            self.close()
            for name, _, _ in steps:
                answers.setdefault(name, OracleError("not run: OpenVINO crashed before"))
        return answers

    def _start(self) -> None:
        if self._process is not None and self._process.is_alive():
            return
        context = multiprocessing.get_context("spawn")
        self._connection, remote = context.Pipe()
        self._process = context.Process(target=_serve, args=(remote,), daemon=True)
        self._process.start()
        remote.close()

    def close(self) -> None:
        """Stop the worker."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None
