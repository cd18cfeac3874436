"""The NumPy kernels as custom ops of ONNX Runtime, through onnxruntime-extensions.

onnxruntime-extensions copies each input into an array, calls one hook for all Python ops, and copies the hook's result. It
does not support

- optional inputs: an empty tensor represents an omitted one;
- 16-bit floats: `adapt` converts their nodes to float32 and renames them; the kernel still receives the 16-bit type;
- lists as attributes, and floats with more than six digits: `adapt` encodes both as text, and renames the nodes;
- inputs of several types: each combination of types is registered separately. Thousands of them would slow down every
  session, so `adapt` sorts the operands of Elementwise by type;
- exceptions: an exception would crash the process. `guarded` calls collect them; otherwise they become
  warnings, and the output is empty.

Its functions are in one registry per process, so they exist in every session that uses its library, and a session cannot
have two libraries for one domain. `onnx_specops.InferenceSession` therefore uses a private domain for the kernels. They are
registered in the domain of the operators only if `register_python_kernels` is called for plain sessions.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from onnx_specops.domain import DOMAIN, Operator, operators
from onnx_specops.runtime.errors import MissingExtraError
from onnx_specops.runtime.extensions import plain

PYTHON_DOMAIN = f"{DOMAIN}.python"
"""The domain of the Python kernels in our sessions."""

SIXTEEN_BITS = ("float16", "bfloat16")

SORTED = {"Elementwise": ("uint8", "float")}
"""Operators with operands in any order, and the order of their types in nodes of our sessions."""


BY_BODY = frozenset(("VolumeConv",))
"""Operators that run as their bodies, which are faster because they are one operator of ONNX Runtime. Only our sessions use
the kernels, for models without the bodies."""


def kernel_name(operator: Operator, narrow: Mapping[str, str]) -> str:
    """Return the name under which an operator is registered for the nodes of our sessions.

    Args:
        operator: the operator.
        narrow: type variables of 16-bit floats, which are passed as float32, -> ``"float16"`` or ``"bfloat16"``.
    """
    variables = [f"{variable}_{type_}" for variable, type_ in sorted(narrow.items())]
    return "__".join([operator.name, *(["text"] if text_attributes(operator) else []), *variables])


def text_attributes(operator: Operator) -> set[str]:
    """Return the attributes that are passed as text (JSON): lists, and floats, which the library truncates to six digits."""
    return {name for name, attribute in operator.attributes.items() if attribute.type not in (int, str)}


@dataclass
class _Kernel:
    """An operator for one combination of element types."""

    operator: Operator
    inputs: list[np.dtype]
    outputs: list[np.dtype]

    def __call__(self, feed: Sequence[np.ndarray], texts: Mapping[str, str]) -> list[np.ndarray]:
        optional = self.operator.optional
        arrays = [
            None if is_optional and array.size == 0 else array.astype(dtype, copy=False)
            for array, is_optional, dtype in zip(feed, optional, self.inputs, strict=True)
        ]
        results = self.operator(*arrays, **self.attributes(texts))
        return list(results) if isinstance(results, tuple) else [results]

    def attributes(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Decode attributes, which onnxruntime-extensions passes as text."""
        return {
            name: attribute.type(texts[name]) if attribute.type in (int, float, str) else tuple(json.loads(texts[name]))
            for name, attribute in self.operator.attributes.items()
        }


@dataclass
class _Call:
    """A guarded call into ONNX Runtime."""

    on_error: Callable[[], None] | None
    error: BaseException | None = field(default=None)


_kernels: dict[int, _Kernel] = {}
_defined: set[str] = set()
_definitions: list[Any] = []
_calls: dict[int, _Call] = {}  # by thread: with sequential execution a session's kernels run in the calling thread
_lock = threading.Lock()


def is_available() -> bool:
    """Return whether onnxruntime-extensions is installed."""
    import importlib.util

    return importlib.util.find_spec("onnxruntime_extensions") is not None


def register_python_kernels(*, plain_too: bool = False) -> str:
    """Register the kernels with onnxruntime-extensions, once per process; return the path of its library.

    Args:
        plain_too: also in the operators' own domain, which plain sessions use.

    Raises:
        MissingExtraError: onnxruntime-extensions is not installed.
    """
    try:
        import onnxruntime_extensions
        from onnxruntime_extensions import _ocos as extensions
    except ImportError as error:
        raise MissingExtraError("onnxruntime-extensions", 'kernels="python"', "python-kernels") from error
    with _lock:
        if not _kernels:
            _install_hook(extensions)
        for domain in (PYTHON_DOMAIN, *([DOMAIN] if plain_too else [])):
            # All kernels of a domain at once: sessions have pointers into a vector of the library, which must not grow
            # later.
            if domain not in _defined:
                _defined.add(domain)
                for operator in operators():
                    _define(operator, domain, extensions)
    return onnxruntime_extensions.get_library_path()


def _install_hook(extensions: Any) -> None:
    """Handle calls of our kernels; pass the others on."""
    foreign = extensions._on_pyop_invocation

    def invoke(identifier: int, feed: Sequence[np.ndarray], attributes: Mapping[str, str]) -> tuple[Any, ...]:
        kernel = _kernels.get(identifier)
        if kernel is None:
            return foreign(identifier, feed, attributes)
        return (identifier, *_run(kernel, feed, attributes))

    extensions.PyCustomOpDef.install_hooker(invoke)


def _define(operator: Operator, domain: str, extensions: Any) -> None:
    in_plain = domain == DOMAIN
    if in_plain and text_attributes(operator) - {n for n, a in operator.attributes.items() if a.type is float}:
        return  # it has list attributes, which plain sessions cannot pass
    if in_plain and (operator.name in SORTED or operator.name in BY_BODY):
        return  # plain sessions run its body
    for choice in _choices(operator):
        types = dict(zip(operator.types, choice, strict=True))
        narrow = {variable: name for variable, name in types.items() if name in SIXTEEN_BITS}
        if in_plain and narrow:
            continue
        inputs, outputs = (
            [types.get(type_) or operator.element_types(type_)[0] for type_ in parameters.values()]
            for parameters in (operator.inputs, operator.outputs)
        )
        name = operator.name if in_plain else kernel_name(operator, narrow)
        definition = extensions.PyCustomOpDef()
        definition.op_type = f"{domain}::{name}"
        definition.input_types = [_extension_type(extensions.PyCustomOpDef, type_) for type_ in inputs]
        definition.output_types = [_extension_type(extensions.PyCustomOpDef, type_) for type_ in outputs]
        definition.attrs = _attribute_types(operator, extensions.PyCustomOpDef, as_text=not in_plain)
        kernel = _Kernel(operator, [_dtype(type_) for type_ in inputs], [_dtype(type_) for type_ in outputs])
        definition.obj_id = id(kernel)
        _kernels[id(kernel)] = kernel
        _definitions.append(definition)
        extensions.add_custom_op(definition)


def _choices(operator: Operator) -> Iterator[tuple[str, ...]]:
    """Iterate over the combinations of element types for the nodes of our sessions."""
    rank = SORTED.get(operator.name, ()).index
    operands = {variable for variable in operator.types if variable not in operator.outputs.values()}
    for choice in itertools.product(*operator.types.values()):
        given = [type_ for variable, type_ in zip(operator.types, choice, strict=True) if variable in operands]
        if operator.name not in SORTED or given == sorted(given, key=rank):
            yield choice


def _attribute_types(operator: Operator, definition_type: Any, *, as_text: bool) -> dict[str, int]:
    kinds = {int: definition_type.dt_int64, float: definition_type.dt_float, str: definition_type.dt_string}
    texts = text_attributes(operator) if as_text else set()
    return {
        name: definition_type.dt_string if name in texts else kinds[attribute.type]
        for name, attribute in operator.attributes.items()
    }


def _extension_type(definition_type: Any, name: str) -> int:
    return getattr(definition_type, "dt_float" if name in SIXTEEN_BITS else f"dt_{name}")


def _dtype(name: str) -> np.dtype:
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(getattr(onnx.TensorProto, name.upper())))


def _run(kernel: _Kernel, feed: Sequence[np.ndarray], attributes: Mapping[str, str]) -> list[Any]:
    """Return shape and elements of every output, one after the other. Never raises."""
    call = _calls.get(threading.get_ident())
    try:
        if call is None or call.error is None:
            results = kernel(feed, attributes)
            return [part for result, dtype in zip(results, kernel.outputs, strict=True) for part in _output(result, dtype)]
    except BaseException as error:
        if call is None:
            return _warn(kernel, feed, attributes, error)
        _collect(kernel.operator.name, error, call)
    return [part for dtype in kernel.outputs for part in _output(np.empty(0, dtype), dtype)]


def _output(result: Any, dtype: np.dtype) -> tuple[tuple[int, ...], Any]:
    if not isinstance(result, (np.ndarray, np.generic)):
        raise TypeError(f"the kernel returned {type(result).__name__} instead of an array")
    shape = result.shape
    if dtype.kind == "O":
        # As str: strings that are not UTF-8 must not be returned, because the next Python op could not read them.
        try:
            texts = [str(text).encode() for text in result.reshape(-1)]
        except UnicodeEncodeError as error:
            raise ValueError(f"{error.object[:60]!r} is not UTF-8, which the strings of Python kernels must be") from error
        if nul := [text for text in texts if b"\0" in text]:
            raise ValueError(f"{nul[0][:60]!r} contains a NUL, which ends a string in Python kernels")
        return shape, texts
    carrier = np.dtype(np.float32) if dtype.name in SIXTEEN_BITS else dtype
    # Contiguous, because the library copies a block of memory.
    return shape, np.ascontiguousarray(result.astype(carrier, casting="same_kind", copy=False))


def _collect(name: str, error: BaseException, call: _Call) -> None:
    """Store the first error for `guarded` to raise."""
    if name not in str(error):
        error.add_note(f"raised by the NumPy kernel of {DOMAIN}.{name}")
    call.error = error
    if call.on_error is not None:
        call.on_error()


def _warn(kernel: _Kernel, feed: Sequence[np.ndarray], attributes: Mapping[str, str], error: BaseException) -> list[Any]:
    """Warn, and return empty outputs; if these would crash the process, outputs with arbitrary values."""
    name, text, fate = kernel.operator.name, "", "the node's output is empty"
    outputs = [np.empty(0, dtype) for dtype in kernel.outputs]
    try:
        text = str(error) if name in str(error) else f"{name}: {type(error).__name__}: {error}"
        if plain.may_have_allocated(name):
            shapes = plain.output_shapes(kernel.operator, feed, kernel.attributes(attributes))
            outputs = [plain.meaningless(shape, dtype) for shape, dtype in zip(shapes, kernel.outputs, strict=True)]
            fate = "the node's output is undefined"
        warnings.warn(f"{text} ({fate})", RuntimeWarning, stacklevel=2)
    except BaseException as escaped:  # warnings may be configured as errors
        sys.stderr.write(f"{text or name}: {escaped}\n")
    return [part for array, dtype in zip(outputs, kernel.outputs, strict=True) for part in _output(array, dtype)]


@contextmanager
def guarded(on_error: Callable[[], None] | None = None) -> Iterator[None]:
    """Raise at the end the exception of a kernel called in this thread; ``on_error`` is called immediately.

    It replaces ONNX Runtime's own error about the outputs that are empty.
    """
    thread, call = threading.get_ident(), _Call(on_error)
    outer = _calls.get(thread)
    _calls[thread] = call
    try:
        yield
    except Exception:
        if call.error is None:
            raise
    finally:
        if outer is None:
            del _calls[thread]
        else:
            _calls[thread] = outer
    if call.error is not None:
        raise call.error
