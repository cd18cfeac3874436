"""ONNX Runtime sessions with the domain's kernels."""

from __future__ import annotations

import functools
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import onnx
import onnxruntime as ort

from onnx_specops.domain import DOMAIN, operators
from onnx_specops.inlining import graphs_and_functions
from onnx_specops.optimizing import optimize_in_place
from onnx_specops.optimizing.reading import encoded_with_data, read_without_data
from onnx_specops.runtime import models
from onnx_specops.runtime.errors import MissingKernelError
from onnx_specops.runtime.extensions import adapt
from onnx_specops.runtime.extensions import kernels as python_kernels
from onnx_specops.runtime.library import description, has_library, has_wide_vectors, library_path, native_operators, remedy
from onnx_specops.runtime.state import Held, State
from onnx_specops.runtime.variables import as_array, as_ort_value, inputs_of, variables_of

Kernels = Literal["auto", "native", "python", "none"]

_registered: weakref.WeakKeyDictionary[ort.SessionOptions, str] = weakref.WeakKeyDictionary()
_own: weakref.WeakSet[ort.SessionOptions] = weakref.WeakSet()  # options with Python kernels that plain sessions do not find
_EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
_exact: weakref.WeakSet[ort.SessionOptions] = weakref.WeakSet()  # options with exact products that no caller chose
_EXACT_PRODUCTS = "session.x64quantprecision"
"""On x86-64 without VNNI, ONNX Runtime (1.31) adds products of u8 and s8 in 16 bits, which saturate, unless this is 1."""
_FLOAT_PRODUCTS = "session.disable_quant_qdq"
_SHARED_WEIGHTS = "Attempt to replace the existing tensor"
"""ONNX Runtime's message if exact products need the same weights or zero points twice."""


def register(session_options: ort.SessionOptions, kernels: Literal["auto", "native", "python"] = "auto") -> None:
    """Register the domain's kernels in session options. Registering the same kernels again has no effect.

    The function also sets ``session.x64quantprecision`` to ``1``, unless it already has a value. Otherwise, 8-bit sums in
    ONNX Runtime's own operators saturate on x86-64 processors without VNNI.

    Args:
        session_options: the session options.
        kernels: ``"native"`` selects the shared library (see `library_path`), and ``"python"`` the NumPy kernels, through
            onnxruntime-extensions. ``"auto"`` selects the native kernels if they are built, otherwise the Python kernels if
            onnxruntime-extensions is installed, and otherwise none. In the last two cases, it emits a warning. Without
            kernels, only models whose custom operators all have bodies run.

    An ``onnxruntime.InferenceSession`` cannot raise the exceptions of Python kernels. If a kernel fails, the output of the
    node is empty, and a ``RuntimeWarning`` reports the error. Python kernels in such a session have more restrictions. Every
    node must specify all attributes and inputs (an empty tensor represents an omitted input). float16 and bfloat16 are not
    supported, and float attributes are rounded to six digits. Strings must be valid UTF-8 without NUL characters.
    Elementwise and VolumeConv run as their bodies. In an `onnx_specops.InferenceSession`, only the restriction on strings
    applies, and a string that violates it raises an error.

    The Python kernels use the library of onnxruntime-extensions. Do not register that library again in the same options.

    Raises:
        MissingKernelError: ``kernels`` is ``"native"``, but the native library is not built.
        MissingExtraError: ``kernels`` is ``"python"``, but onnxruntime-extensions is not installed.
        ValueError: ``kernels`` has an invalid value, or the options already contain other kernels.
    """
    if session_options in _own:
        raise ValueError(
            "these session options were used for a session of onnx_specops; use separate options for other sessions"
        )
    _register(session_options, kernels, plain_too=True)
    _set_exact_products(session_options)


def _register(session_options: ort.SessionOptions, kernels: str, *, plain_too: bool) -> None:
    chosen = _choose(kernels)
    before = _registered.get(session_options)
    if before is not None and (kernels == "auto" or before == chosen):
        return
    if before is not None:
        raise ValueError(
            f"these session options already have the {before} kernels; use separate options for the {chosen} kernels"
        )
    if chosen == "none":
        warnings.warn(
            "the kernels of onnx_specops are not available: the native library is not built, and onnxruntime-extensions is "
            "not installed "
            f'(pip install "onnx-specops[python-kernels]"); only models whose custom operators have bodies run. {remedy()}',
            RuntimeWarning,
            stacklevel=3,
        )
        return
    if kernels == "auto" and chosen == "python":
        _warn_of_python_kernels(remedy())
    if chosen == "native":
        library = library_path()
    else:
        library = python_kernels.register_python_kernels(plain_too=plain_too)
        if not plain_too:
            _own.add(session_options)
    session_options.register_custom_ops_library(library)
    _registered[session_options] = chosen


@functools.cache  # cached: once per process
def _warn_of_python_kernels(how: str) -> None:
    warnings.warn(
        "onnx_specops uses its Python kernels, which are many times slower, because the native kernels are not built. "
        f'{how}. kernels="python" disables this warning',
        RuntimeWarning,
        stacklevel=4,
    )


def _choose(kernels: str) -> str:
    if kernels in ("native", "python"):
        return kernels
    if kernels != "auto":
        raise ValueError(f'kernels={kernels!r} is not one of "auto", "native", "python"')
    return "native" if has_library() else "python" if python_kernels.is_available() else "none"


class InferenceSession(ort.InferenceSession):
    """An ``onnxruntime.InferenceSession`` that uses the domain's kernels.

    Args:
        path_or_bytes: the model: a path, its bytes, or an ``onnx.ModelProto``.
        sess_options: the session options. The session registers the kernels in them and sets ``session.x64quantprecision``,
            as `register` does. Without options, a session on the CPU logs errors only, because ONNX Runtime warns about
            every variable that has an initial value.
        kernels: ``"auto"``, ``"native"`` or ``"python"``, as in `register`, or ``"none"``, which runs the function bodies in
            the model. If the native library lacks an operator of the model (for example, because PCRE2 is not installed),
            ``"auto"`` uses the Python kernels and emits a warning.
        providers, provider_options, kwargs: as in ``onnxruntime.InferenceSession``.

    On the CPU, custom operators replace nodes that their native kernels compute faster, in any model (see `optimize`). If
    ``graph_optimization_level`` of the options is below ``ORT_ENABLE_ALL``, all nodes stay.

    If a Python kernel fails, ``run`` and similar methods raise its exception, and ``run_async`` passes the message to the
    callback. Python kernels support 16-bit floats and omitted inputs in this session. They run one at a time, regardless of
    ``execution_mode``, because they hold Python's global interpreter lock. If the model contains the body of VolumeConv, the
    body runs instead of the Python kernel, because it is ONNX Runtime's Conv.

    The variables of a converted model (OpenVINO's ReadValue and Assign) keep their values between runs, as in an OpenVINO
    infer request. `reset_state` resets them. The session exposes only the model's own inputs and outputs, and serializes
    runs from several threads. With IO binding, the caller passes the variables.

    This also applies to a key-value cache that consists of inputs and outputs. If the model's attention extends the cache in
    place, runs do not copy it. They do not copy the keys and values of cross-attention either. A caller that passes a cache
    must pass all variables of the run.

    Raises:
        MissingKernelError: ``kernels`` is ``"native"``, but the native library is not built; or ``kernels`` is ``"none"``,
            but a custom operator of the model has no body.
        MissingExtraError: ``kernels`` is ``"python"``, but onnxruntime-extensions is not installed.
        ValueError: a ModelProto is too large for protobuf even without its initializers.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str] | onnx.ModelProto,
        sess_options: ort.SessionOptions | None = None,
        providers: Sequence[str | tuple[str, dict[Any, Any]]] | None = None,
        provider_options: Sequence[dict[Any, Any]] | None = None,
        *,
        kernels: Kernels = "auto",
        **kwargs: Any,
    ) -> None:
        options = _own_options(providers) if sess_options is None else sess_options
        self._folder = ""  # the folder of external weights, if the model is not loaded from there
        if isinstance(path_or_bytes, onnx.ModelProto):
            path_or_bytes = self._loadable(path_or_bytes)
        elif isinstance(path_or_bytes, (str, os.PathLike)):
            _check_path(os.fspath(path_or_bytes))
        if kernels == "auto" and options not in _registered and has_library():
            kernels = _supported_kernels(path_or_bytes)
        if kernels == "none":
            if options in _registered:
                raise ValueError(f'kernels="none", but these session options have the {_registered[options]} kernels')
        else:
            _register(options, kernels, plain_too=False)
        _set_exact_products(options)
        self.kernels = _registered.get(options, "none")
        self._shares_options = sess_options is not None  # the options may be shared with other sessions
        optimized, folder = path_or_bytes, ""
        if self.kernels == "python":
            path_or_bytes, folder = _adapted(path_or_bytes)
            optimized = path_or_bytes
        elif self.kernels == "native" and _optimizes(options, providers):
            optimized, folder = _optimized(path_or_bytes)
        self._folder = folder or self._folder
        try:
            super().__init__(optimized, options, providers, provider_options, **kwargs)
        except Exception:
            if optimized is path_or_bytes:
                raise
            super().__init__(path_or_bytes, options, providers, provider_options, **kwargs)
        if isinstance(path_or_bytes, (str, os.PathLike)):  # ONNX Runtime would keep the bytes
            self._model_path: Any = os.fspath(path_or_bytes)
            self._model_bytes: Any = None
        self._input_types = {value.name: value.type for value in super().get_inputs()}
        variables = variables_of(self)
        self._has_strings = any(value.type == "tensor(string)" for value in (*inputs_of(self), *super().get_outputs()))
        self._state = State(self, variables, native=self.kernels == "native", arrays=self._has_strings)

    def _loadable(self, model: onnx.ModelProto) -> bytes | Path:
        """Return a model's bytes, or a file that exists as long as the session if the model is too large for protobuf."""
        if _has_external(model):  # relative to the working directory, as for a model without a path
            self._folder = os.getcwd()
        if models.is_serializable(model):
            return model.SerializeToString()
        self._written = TemporaryDirectory(prefix="onnx-specops-", ignore_cleanup_errors=True)
        return models.write(model, Path(self._written.name))

    def get_inputs(self) -> Any:
        """Return the inputs of the model, without the inputs of variables."""
        hidden = {name for variable in self._state.variables for name in (variable.input, variable.is_set)}
        return [value for value in super().get_inputs() if value.name not in hidden]

    def get_outputs(self) -> Any:
        """Return the outputs of the model, without the outputs of variables."""
        hidden = set(self._state.outputs)
        return [output for output in super().get_outputs() if output.name not in hidden]

    def reset_state(self) -> None:
        """Reset the model's variables to their initial values."""
        self._state.reset()

    def select_rows(self, rows: Sequence[int]) -> None:
        """Select the rows of the variables for the next run, such as the texts that a beam search continues.

        This is for models without an input such as ``beam_idx``. Caches that are extended in place copy only the tokens of
        rows that change. Before the first run, it has no effect.

        Args:
            rows: for each row of the next run, the row of the previous run that it continues. Their number may differ.

        Raises:
            ValueError: a row does not exist, a variable has no rows, or an input of the model selects them.
        """
        self._state.select_rows(rows)

    def swap_state(self, state: Held | None = None) -> Held:
        """Replace the values of the model's variables, and return the previous ones.

        With it, a session runs several sequences in turns, without copying their caches.

        Args:
            state: a result of this method of the same session, which can be passed once. ``None`` resets the variables.
        """
        return self._state.swap(state)

    def _create_inference_session(self, *args: Any, **kwargs: Any) -> None:
        options = self._sess_options_initial
        mode, folder = options.execution_mode, _config_entry(options, _EXTERNAL_FOLDER)
        if self.kernels == "python":
            options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        if self._folder:
            options.add_session_config_entry(_EXTERNAL_FOLDER, self._folder)
        try:
            try:
                super()._create_inference_session(*args, **kwargs)
            except Exception as error:
                if options not in _exact or _SHARED_WEIGHTS not in str(error):
                    raise
                with _in_floats(options):
                    super()._create_inference_session(*args, **kwargs)
        except Exception as error:
            if self.kernels == "none" and (bodiless := self._operators_without_body()):
                raise MissingKernelError(_missing(bodiless)) from error
            raise
        finally:
            options.execution_mode = mode
            if self._folder and self._shares_options:  # other models' weights may have the same names
                options.add_session_config_entry(_EXTERNAL_FOLDER, folder)

    def _operators_without_body(self) -> list[str]:
        """Return the operators of the domain that the model uses without a body."""
        try:
            if self._model_path:
                model = onnx.load(self._model_path, load_external_data=False)
            else:
                model = onnx.load_from_string(self._model_bytes)
        except Exception:  # not an ONNX file: ONNX Runtime reports it
            return []
        bodies = {(f.name, f.overload) for f in model.functions if f.domain == DOMAIN}
        return sorted({n.op_type for n in adapt.domain_nodes(model) if (n.op_type, n.overload) not in bodies})

    def _guarded(self, method: Callable[..., Any], *args: Any, run_options: ort.RunOptions | None) -> Any:
        if self.kernels != "python":
            return method(*args, run_options)
        for argument in args:
            if isinstance(argument, Mapping):
                for name, value in argument.items():
                    adapt.check_text(name, value)
        # the caller's options may be shared with other runs, so this run must not terminate them
        if run_options is not None:
            with python_kernels.guarded():
                return method(*args, run_options)
        run_options = ort.RunOptions()
        with python_kernels.guarded(lambda: setattr(run_options, "terminate", True)):
            return method(*args, run_options)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: ort.RunOptions | None = None,
    ) -> Any:
        """Run as ``onnxruntime.InferenceSession.run``; raise the exceptions of Python kernels."""
        if not self._state.variables:
            return self._guarded(super().run, output_names, input_feed, run_options=run_options)
        if self._has_strings:  # Python cannot create an OrtValue of strings
            plain = super().run
            names = [output.name for output in self.get_outputs()] if output_names is None else list(output_names)
            return self._state.run(
                lambda wanted, feeds, _: self._guarded(
                    plain,
                    wanted,
                    {name: as_array(value, self._input_types.get(name)) for name, value in feeds.items()},
                    run_options=run_options,
                ),
                names,
                input_feed,
            )
        feeds = {name: as_ort_value(value, self._input_types.get(name)) for name, value in input_feed.items()}
        return [value.numpy() for value in self.run_with_ort_values(output_names, feeds, run_options)]

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, ort.OrtValue],
        run_options: ort.RunOptions | None = None,
    ) -> Any:
        """Run as ``onnxruntime.InferenceSession.run_with_ort_values``; raise the exceptions of Python kernels."""
        plain = super().run_with_ort_values
        if not self._state.variables:
            return self._guarded(plain, output_names, input_dict_ort_values, run_options=run_options)
        names = [output.name for output in self.get_outputs()] if output_names is None else list(output_names)

        def run(wanted: Sequence[str], feeds: Mapping[str, Any], memory: Mapping[str, ort.OrtValue]) -> Sequence[Any]:
            if not memory:
                return self._guarded(plain, wanted, feeds, run_options=run_options)
            binding = self.io_binding()
            for name, value in feeds.items():
                binding.bind_ortvalue_input(name, value)
            for name in wanted:
                binding.bind_output(name)
            for name, value in memory.items():
                binding.bind_ortvalue_output(name, value)
            self.run_with_iobinding(binding, run_options)
            return binding.get_outputs()[: len(wanted)]

        return self._state.run(run, names, input_dict_ort_values)

    def run_with_iobinding(self, iobinding: ort.IOBinding, run_options: ort.RunOptions | None = None) -> None:
        """Run as ``onnxruntime.InferenceSession.run_with_iobinding``; raise the exceptions of Python kernels."""
        self._guarded(super().run_with_iobinding, iobinding, run_options=run_options)

    def run_with_ortvaluevector(self, run_options: ort.RunOptions, *args: Any) -> None:
        """Run as ``onnxruntime.InferenceSession.run_with_ortvaluevector``; raise the exceptions of Python kernels."""
        if self.kernels != "python":
            super().run_with_ortvaluevector(run_options, *args)
            return
        with python_kernels.guarded():
            super().run_with_ortvaluevector(run_options, *args)

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[Any, Any, str], None],
        user_data: Any,
        run_options: ort.RunOptions | None = None,
    ) -> None:
        """Run as ``onnxruntime.InferenceSession.run_async``; the callback receives the error message of a Python kernel."""
        if self.kernels != "python" and not self._state.variables:
            super().run_async(output_names, input_feed, callback, user_data, run_options)
            return

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as raised:
                results, error = [], str(raised) or type(raised).__name__
            callback(results, user_data, error)

        threading.Thread(target=work, name="onnx_specops.run_async", daemon=True).start()


def _own_options(providers: Sequence[Any] | None) -> ort.SessionOptions:
    options = ort.SessionOptions()
    if _is_for_cpu(providers):
        options.log_severity_level = 3
    return options


def _supported_kernels(path_or_bytes: Any) -> Kernels:
    """Return the kernels for a model if the library is built: Python if the library lacks an operator of the model."""
    absent = {operator.name for operator in operators()} - native_operators()
    if not absent:
        return "native"
    try:
        is_bytes = isinstance(path_or_bytes, bytes)
        model = onnx.load_from_string(path_or_bytes) if is_bytes else onnx.load(path_or_bytes, load_external_data=False)
    except Exception:  # ONNX Runtime reports it
        return "native"
    if not (needed := sorted(absent.intersection(node.op_type for node in adapt.domain_nodes(model)))):
        return "native"
    reason = f"the native kernels of {', '.join(needed)} need PCRE2: {description()['regular_expressions']}"
    cure = "Install PCRE2 10.40 or later (Debian: libpcre2-8-0, Homebrew: pcre2, conda: pcre2)"
    if not python_kernels.is_available():
        raise MissingKernelError(f'{reason}. {cure}, or pip install "onnx-specops[python-kernels]"')
    warnings.warn(f"{reason}. The slower Python kernels run the model instead. {cure}", RuntimeWarning, stacklevel=3)
    return "python"


def _set_exact_products(options: ort.SessionOptions) -> None:
    """Avoid sums that saturate, unless the caller chose."""
    if not _config_entry(options, _EXACT_PRODUCTS):
        options.add_session_config_entry(_EXACT_PRODUCTS, "1")
        _exact.add(options)


@contextmanager
def _in_floats(options: ort.SessionOptions) -> Iterator[None]:
    """Compute graphs with DequantizeLinear in floats. ONNX Runtime's own operators for 8-bit integers may saturate."""
    before = _config_entry(options, _FLOAT_PRODUCTS) or "0"
    options.add_session_config_entry(_EXACT_PRODUCTS, "0")
    options.add_session_config_entry(_FLOAT_PRODUCTS, "1")
    try:
        yield
    finally:
        options.add_session_config_entry(_EXACT_PRODUCTS, "1")
        options.add_session_config_entry(_FLOAT_PRODUCTS, before)


def _config_entry(options: ort.SessionOptions, name: str) -> str:
    """Return a config entry of the options, or an empty string."""
    try:
        return options.get_session_config_entry(name)
    except RuntimeError:
        return ""


def _optimizes(options: ort.SessionOptions, providers: Sequence[Any] | None) -> bool:
    """Return whether ONNX Runtime optimizes the layout of convolutions, and runs them on the CPU."""
    everything = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    return options.graph_optimization_level == everything and _is_for_cpu(providers)


def _is_for_cpu(providers: Sequence[Any] | None) -> bool:
    return all(provider == "CPUExecutionProvider" for provider in providers or ())


def _optimized(path_or_bytes: Any) -> tuple[Any, str]:
    """Return the model with faster operators, and the folder of its weights, as `_adapted` does."""
    try:
        model = read_without_data(path_or_bytes)
    except Exception:  # ORT format or an invalid model: ONNX Runtime reports it
        return path_or_bytes, ""
    folder = _folder_of(model, path_or_bytes)
    if not optimize_in_place(model, convolutions=has_wide_vectors()):
        return path_or_bytes, ""
    return encoded_with_data(model, path_or_bytes), folder


def _adapted(path_or_bytes: Any) -> tuple[Any, str]:
    """Return the model in a form that Python kernels support (unchanged if possible), and the folder of its weights.

    The folder is empty unless a changed model has external weights, which it no longer finds by its own location.
    """
    try:
        is_bytes = isinstance(path_or_bytes, bytes)
        model = onnx.load_from_string(path_or_bytes) if is_bytes else onnx.load(path_or_bytes, load_external_data=False)
    except Exception:  # ORT format or an invalid model: ONNX Runtime reports it
        return path_or_bytes, ""
    if not adapt.adapt(model):
        return path_or_bytes, ""
    return model.SerializeToString(), _folder_of(model, path_or_bytes)


def _folder_of(model: onnx.ModelProto, path_or_bytes: Any) -> str:
    """Return the folder of a model's external weights; an empty string if it has none, or no path."""
    if isinstance(path_or_bytes, bytes) or not _has_external(model):
        return ""
    return os.path.dirname(os.path.abspath(path_or_bytes))


def _has_external(model: onnx.ModelProto) -> bool:
    """Return whether the model has external weights."""
    return any(
        tensor.data_location == onnx.TensorProto.EXTERNAL and tensor.external_data  # empty if only the data were not read
        for holder in graphs_and_functions(model)
        for tensor in (*getattr(holder, "initializer", ()), *(a.t for node in holder.node for a in node.attribute))
    )


def _check_path(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = path.encode(errors="backslashreplace").decode()
        raise ValueError(f"{shown} is not UTF-8, so ONNX Runtime cannot open it; rename the file or its folder") from None


def _missing(names: Sequence[str]) -> str:
    return (
        f'kernels="none" requires function bodies, but the model contains no bodies for {", ".join(names)}. If standard '
        "ONNX can represent these operators, add their bodies with onnx_specops.add_bodies(model). Otherwise, use "
        'kernels="native", or kernels="python" (pip install "onnx-specops[python-kernels]")'
    )
