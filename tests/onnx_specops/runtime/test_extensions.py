"""Python kernels in sessions: errors, threads, 16-bit floats, strings. Nothing may crash the process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import warnings
from collections import Counter
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_specops
from converters.validation.ort_values import to_array
from onnx_specops.runtime.extensions import kernels
from tests.onnx_specops.ops.one_node import run
from tests.onnx_specops.runtime.graphs import PLACES, TABLE, bag, constants, in_if, model, sum_of_rows, value

GOOD = {"indices": np.array([1, 3])}
BAD = {"indices": np.array([1, 17])}
SUM = TABLE[[1]] + TABLE[[3]]
MESSAGE = r"EmbeddingBagOffsetsSum: indices\[1\] = 17 is out of range \[0, 3\]"


def session(made, options: ort.SessionOptions | None = None) -> onnx_specops.InferenceSession:
    options = options or ort.SessionOptions()
    options.log_severity_level = 4
    return onnx_specops.InferenceSession(made.SerializeToString(), options, kernels="python")


def full_form() -> bytes:
    """Return a model with all inputs and attributes, which a plain session can run."""
    absent = [
        numpy_helper.from_array(np.zeros(0, np.int64), "no_default"),
        numpy_helper.from_array(TABLE[0, :0], "no_weights"),
    ]
    node = helper.make_node(
        "EmbeddingBagOffsetsSum",
        ["table", "indices", "offsets", "no_default", "no_weights"],
        ["sum"],
        domain=onnx_specops.DOMAIN,
    )
    indices, output = value("indices", TensorProto.INT64, ["n"]), value("sum", TensorProto.FLOAT, None)
    return model([node], [indices], [output], [*constants(), *absent]).SerializeToString()


# -- errors --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mode", [ort.ExecutionMode.ORT_SEQUENTIAL, ort.ExecutionMode.ORT_PARALLEL], ids=["sequential", "parallel"]
)
@pytest.mark.parametrize("place", PLACES)
def test_run_raises_the_exception_of_a_kernel(place, mode) -> None:
    options = ort.SessionOptions()
    options.execution_mode = mode
    runner = session(place(), options)
    assert options.execution_mode == mode
    for _ in range(3):
        with pytest.raises(IndexError, match=MESSAGE):
            runner.run(None, BAD)
        np.testing.assert_array_equal(runner.run(None, GOOD)[0], SUM)


def test_nothing_runs_after_an_error() -> None:
    """Not even another kernel of the same graph: the first error is raised."""
    made = sum_of_rows()
    made.graph.node.append(bag("sum", "indices", "offsets", "again"))
    made.graph.output.append(value("again", TensorProto.FLOAT, None))
    with pytest.raises(IndexError, match=MESSAGE):
        session(made).run(None, BAD)


def test_every_way_to_run_raises() -> None:
    runner = session(sum_of_rows())
    values = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in BAD.items()}
    with pytest.raises(IndexError, match=MESSAGE):
        runner.run_with_ort_values(None, values)
    binding = runner.io_binding()
    binding.bind_cpu_input("indices", BAD["indices"])
    binding.bind_output("sum")
    with pytest.raises(IndexError, match=MESSAGE):
        runner.run_with_iobinding(binding)
    binding.bind_cpu_input("indices", GOOD["indices"])
    runner.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], SUM)


def test_run_async_passes_the_error_to_the_callback() -> None:
    runner, done, seen = session(sum_of_rows()), threading.Event(), {}

    def callback(results, user_data, error) -> None:
        seen[user_data] = (results, error)
        if len(seen) == 2:
            done.set()

    runner.run_async(None, BAD, callback, "bad")
    runner.run_async(None, GOOD, callback, "good")
    assert done.wait(30)
    assert "indices[1] = 17" in seen["bad"][1]
    assert len(seen["bad"][0]) == 0
    np.testing.assert_array_equal(seen["good"][0][0], SUM)
    assert seen["good"][1] == ""


def test_the_caller_s_run_options_stay_usable() -> None:
    runner, run_options = session(sum_of_rows()), ort.RunOptions()
    with pytest.raises(IndexError, match=MESSAGE):
        runner.run(None, BAD, run_options)
    assert not run_options.terminate
    np.testing.assert_array_equal(runner.run(None, GOOD, run_options)[0], SUM)


@pytest.mark.parametrize(
    "mode", [ort.ExecutionMode.ORT_SEQUENTIAL, ort.ExecutionMode.ORT_PARALLEL], ids=["sequential", "parallel"]
)
def test_errors_are_raised_in_their_own_thread(mode) -> None:
    """Threads of two sessions, each with its own errors, and some without."""
    options = [ort.SessionOptions(), ort.SessionOptions()]
    for each in options:
        each.execution_mode = mode
    runners = [session(PLACES[i](), options[i]) for i in range(2)]
    failures: list[str] = []

    def work(number: int) -> None:
        for turn in range(30):
            runner = runners[(number + turn) % 2]
            index = 100 * number + turn + 4
            try:
                if turn % 3 == 0:
                    np.testing.assert_array_equal(runner.run(None, GOOD)[0], SUM)
                    continue
                runner.run(None, {"indices": np.array([0, index])})
                failures.append(f"{index}: no error")
            except IndexError as error:
                if f"indices[1] = {index} " not in str(error):
                    failures.append(f"{index}: {error}")
            except Exception as error:
                failures.append(f"{index}: {type(error)} {error}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_an_unforeseen_exception_names_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_, **__):
        raise ZeroDivisionError("something else")

    monkeypatch.setattr(onnx_specops.domain.find("EmbeddingBagOffsetsSum"), "kernel", broken)
    with pytest.raises(ZeroDivisionError) as caught:
        session(sum_of_rows()).run(None, GOOD)
    assert any("EmbeddingBagOffsetsSum" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (None, "the kernel returned NoneType instead of an array"),
        ("text", "the kernel returned str instead of an array"),
        (np.zeros((2, 2), complex), "Cannot cast array data"),
        ([[1, 2], [3]], "the kernel returned list instead of an array"),
        ((1, 2, 3), "the kernel returned int instead of an array"),
    ],
    ids=repr,
)
def test_invalid_results_of_a_kernel(result, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_specops.domain.find("EmbeddingBagOffsetsSum"), "kernel", lambda *_, **__: result)
    runner = session(sum_of_rows())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(TypeError, match=message) as caught:
            runner.run(None, GOOD)
    assert any("EmbeddingBagOffsetsSum" in note for note in caught.value.__notes__)


def test_an_interrupt_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(onnx_specops.domain.find("EmbeddingBagOffsetsSum"), "kernel", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session(sum_of_rows()).run(None, GOOD)


# -- operands that are sorted by type -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "integers"),
    [
        ("dequantize 2 0 3;add 10 1", (2, 3)),  # after floats
        ("add 4 1;dequantize 5 0 2;mul 10 11", (2, 5)),  # X3 is not used
        ("mul 0 1;max 10 4", ()),
        ("mul 1 4", (0,)),  # not used
    ],
)
def test_operands_of_any_order(program: str, integers: tuple[int, ...]) -> None:
    generator = np.random.default_rng(3)
    arrays = [generator.integers(0, 255, (2, 3)) for _ in range(6)]
    operands = [x.astype(np.uint8 if i in integers else np.float32) for i, x in enumerate(arrays)]
    inputs = {"zero_point": np.array(0, np.float32), **{f"X{i}": x for i, x in enumerate(operands)}}
    expected = run("numpy", "Elementwise", inputs, {"program": program})
    np.testing.assert_array_equal(run("python", "Elementwise", inputs, {"program": program}), expected)


@pytest.mark.parametrize(
    ("program", "message"), [("mul 0 6", "uses X6, which is missing"), ("mul 0", "'mul 0' is not an instruction")]
)
def test_nodes_whose_operands_cannot_be_sorted(program: str, message: str) -> None:
    inputs = {"X0": np.ones(3, np.float32), "zero_point": np.array(0, np.float32)}
    with pytest.raises(ValueError, match=message):
        run("python", "Elementwise", inputs, {"program": program})


def test_few_kernels_are_registered() -> None:
    """One for each combination of an operator's types; each costs time when a session is created."""
    kernels.register_python_kernels()
    counts = Counter(kernel.operator.name for kernel in kernels._kernels.values())
    assert counts["Elementwise"] == 22  # 0 to 10 integers before floats, and two types of results
    assert max(counts.values()) < 400


# -- plain sessions ------------------------------------------------------------------------------------------------------


def test_a_plain_session_warns_and_leaves_the_output_empty() -> None:
    options = ort.SessionOptions()
    onnx_specops.register(options, "python")
    runner = ort.InferenceSession(full_form(), options)
    with pytest.warns(RuntimeWarning, match=MESSAGE + r".*output is empty"):
        assert runner.run(None, BAD)[0].size == 0
    np.testing.assert_array_equal(runner.run(None, GOOD)[0], SUM)


def in_a_process(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    prelude = """
        import numpy as np, onnxruntime as ort, onnx_specops, sys
        from onnx import helper, TensorProto
        ort.set_default_logger_severity(4)
    """
    script = textwrap.dedent(prelude) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, *options, "-c", script], capture_output=True, text=True, timeout=120, input=full_form().hex()
    )


PLAIN = """
    options = ort.SessionOptions()
    onnx_specops.register(options, "python")
    session = ort.InferenceSession(bytes.fromhex(sys.stdin.read()), options)
    print(session.run(None, {"indices": np.array([1, 17])})[0].size)
    print(session.run(None, {"indices": np.array([1, 3])})[0].tolist())
"""


@pytest.mark.parametrize("options", [(), ("-W", "error"), ("-W", "ignore")], ids=["warnings", "errors", "ignored"])
def test_a_failing_kernel_does_not_crash_the_process(options) -> None:
    done = in_a_process(PLAIN, *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0", str(SUM.tolist())]
    assert ("indices[1] = 17" in done.stderr) == (options != ("-W", "ignore"))


def test_an_error_in_a_pool_thread_does_not_crash_the_process() -> None:
    """A plain session in parallel mode uses threads that are not ours."""
    code = PLAIN.replace(
        "onnx_specops.register", "options.execution_mode = ort.ExecutionMode.ORT_PARALLEL\n    onnx_specops.register"
    )
    done = in_a_process(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0", str(SUM.tolist())]


def test_a_branch_of_declared_shape_does_not_crash_the_process() -> None:
    """ONNX Runtime allocates such an output before the node runs; another shape would crash the process."""
    code = """
    sys.path.insert(0, PATH)
    from tests.onnx_specops.runtime.graphs import in_if
    import onnx
    model = in_if()
    branch = next(a.g for a in model.graph.node[2].attribute if a.name == "then_branch")
    for name, type_ in (("no_default", "int64"), ("no_weights", "float32")):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(0, type_), name))
    branch.node[0].input.extend(["no_default", "no_weights"])
    options = ort.SessionOptions()
    onnx_specops.register(options, "python")
    session = ort.InferenceSession(model.SerializeToString(), options)
    print(np.isnan(session.run(None, {"indices": np.array([1, 17])})[0]).all())
    print(session.run(None, {"indices": np.array([1, 3])})[0].tolist())
    """
    done = in_a_process(f"PATH = {str(Path(__file__).parents[3])!r}\n" + textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True", str(SUM.tolist())]
    assert "indices[1] = 17" in done.stderr


@pytest.mark.parametrize("kernels", ["ours", "plain"])
def test_bound_memory_does_not_crash_the_process(kernels) -> None:
    code = """
    model = bytes.fromhex(sys.stdin.read())
    if KERNELS == "ours":
        session = onnx_specops.InferenceSession(model, kernels="python")
    else:
        options = ort.SessionOptions()
        onnx_specops.register(options, "python")
        session = ort.InferenceSession(model, options)
    for shape in ((1, 3), (2, 3)) if KERNELS == "ours" else ((1, 3),):
        for indices in (np.array([1, 17]), np.array([1, 3])):
            binding = session.io_binding()
            binding.bind_cpu_input("indices", indices)
            binding.bind_ortvalue_output("sum", ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32)))
            try:
                session.run_with_iobinding(binding)
                print(binding.copy_outputs_to_cpu()[0].tolist())
            except Exception as error:
                print(type(error).__name__)
    """
    done = in_a_process(f"KERNELS = {kernels!r}\n" + textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    good = str(SUM.tolist())
    if kernels == "ours":
        assert done.stdout.splitlines()[:3] == ["IndexError", good, "IndexError"]
        assert len(done.stdout.splitlines()) == 4
    else:
        assert done.stdout.splitlines() == ["[[nan, nan, nan]]", good]


TEXT = """
    node = helper.make_node("StringTensorUnpack", ["text"], ["begins", "ends", "symbols"], domain="onnx_specops")
    outputs = [helper.make_tensor_value_info(n, t, None) for n, t in zip(["begins", "ends", "symbols"], [6, 6, 2])]
    text = helper.make_tensor_value_info("text", TensorProto.STRING, [None])
    graph = helper.make_graph([node], "g", [text], outputs)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("onnx_specops", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
"""


@pytest.mark.parametrize("text", [r"[b'fine', b'\xff']", r"['a\udcff']"])
def test_strings_that_are_not_utf8(text) -> None:
    code = f"""
    session = onnx_specops.InferenceSession(model.SerializeToString(), kernels="python")
    try:
        session.run(None, {{"text": np.array({text})}})
    except Exception as error:
        print(type(error).__name__, str(error).replace("\\n", " "))
    print(session.run(None, {{"text": np.array(["é", "a"])}})[2].tolist())
    """
    done = in_a_process(TEXT + code)
    assert done.returncode == 0, done.stderr
    error, result = done.stdout.splitlines()
    assert "ValueError text: " in error or "UnicodeEncodeError" in error
    assert result == "[195, 169, 97]"


def test_constants_that_are_not_utf8() -> None:
    code = r"""
    del model.graph.input[:]
    model.graph.initializer.append(TensorProto(name="text", data_type=8, dims=[1], string_data=[b"\xff"]))
    try:
        onnx_specops.InferenceSession(model.SerializeToString(), kernels="python").run(None, {})
    except ValueError as error:
        print(error)
    """
    done = in_a_process(TEXT + code)
    assert done.returncode == 0, done.stderr
    assert "is not UTF-8" in done.stdout


# -- 16-bit floats, omitted inputs, omitted attributes ---------------------------------------------------------------------


@pytest.mark.parametrize("type_", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("place", PLACES)
def test_16_bit_floats_everywhere(place, type_) -> None:
    runner = session(place(TABLE.astype(type_)))
    indices = {"indices": ort.OrtValue.ortvalue_from_numpy(GOOD["indices"])}
    output = to_array(runner.run_with_ort_values(None, indices)[0])
    assert output.dtype == type_
    np.testing.assert_array_equal(output.astype(np.float32), SUM)
    with pytest.raises(IndexError, match=MESSAGE):
        runner.run(None, BAD)


def test_kernels_see_the_16_bit_type() -> None:
    """The kernel rounds once: 2048 + 1 + 1 is 2048 in float16 arithmetic, and 2050 when summed in float32."""
    runner = session(sum_of_rows(np.array([[2048, 0], [1, 0]], np.float16)))
    assert runner.run(None, {"indices": np.array([0, 1, 1])})[0].tolist() == [[2050, 0]]


def test_16_bit_floats_with_large_weights() -> None:
    table = np.ones((3000, 300), np.float16)
    assert session(sum_of_rows(table)).run(None, {"indices": np.array([0, 2999])})[0].tolist() == [[2.0] * 300]


@pytest.mark.parametrize("opset", [11, 13, 17, 21, 23])
def test_models_of_other_opsets(opset: int) -> None:
    made = sum_of_rows(TABLE.astype(np.float16))
    made.opset_import[0].version = opset
    np.testing.assert_array_equal(session(made).run(None, GOOD)[0], SUM.astype(np.float16))


def test_omitted_attributes_have_their_defaults() -> None:
    node = helper.make_node("ScatterElementsUpdate", ["data", "i", "u", "axis"], ["output"], domain=onnx_specops.DOMAIN)
    shapes = {"data": TensorProto.FLOAT, "i": TensorProto.INT64, "u": TensorProto.FLOAT}
    axis = numpy_helper.from_array(np.array(0), "axis")
    made = model(
        [node], [value(n, t, [None]) for n, t in shapes.items()], [value("output", TensorProto.FLOAT, [None])], [axis]
    )
    feeds = {"data": np.zeros(3, np.float32), "i": np.array([2, 2]), "u": np.array([5, 6], np.float32)}
    assert session(made).run(None, feeds)[0].tolist() == [0, 0, 6]


def test_a_branch_and_its_outer_graph_both_have_kernels() -> None:
    made = in_if()
    made.graph.node.append(bag("table", "indices", "offsets", "again"))
    made.graph.output.append(value("again", TensorProto.FLOAT, [1, 3]))
    for output in session(made).run(None, GOOD):
        np.testing.assert_array_equal(output, SUM)


def test_python_operators_of_others_keep_working() -> None:
    from onnxruntime_extensions import PyCustomOpDef, onnx_op

    @onnx_op(op_type="TestRuntimeTwice", inputs=[PyCustomOpDef.dt_float], outputs=[PyCustomOpDef.dt_float])
    def twice(x):
        return 2 * x

    made = sum_of_rows()
    made.graph.node.append(helper.make_node("TestRuntimeTwice", ["sum"], ["twice"], domain="ai.onnx.contrib"))
    made.graph.output.append(value("twice", TensorProto.FLOAT, [1, 3]))
    made.opset_import.append(helper.make_opsetid("ai.onnx.contrib", 1))
    np.testing.assert_array_equal(session(made).run(["twice"], GOOD)[0], 2 * SUM)


def test_attributes_keep_all_their_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """onnxruntime-extensions passes floats with six digits."""
    operator = onnx_specops.domain.find("ROIPooling")
    seen: list[float] = []

    def spy(features, rois, **attributes):
        seen.append(attributes["spatial_scale"])
        return features[:1]

    monkeypatch.setattr(operator, "kernel", spy)
    scale = float(np.float32(0.123456789))
    node = helper.make_node(
        "ROIPooling", ["x", "rois"], ["output"], domain=onnx_specops.DOMAIN, pooled_h=1, pooled_w=1, spatial_scale=scale
    )
    output = value("output", TensorProto.FLOAT, None)
    made = model([node], [value("x", TensorProto.FLOAT, None), value("rois", TensorProto.FLOAT, None)], [output])
    session(made).run(None, {"x": np.zeros((1, 1, 2, 2), np.float32), "rois": np.zeros((1, 5), np.float32)})
    assert seen == [scale]


def test_the_operators_of_onnxruntime_extensions_stay_usable() -> None:
    """In one session with the native kernels, too: two libraries must not share a domain."""
    root = Path(__file__).parents[3]
    code = f"""
        import sys
        sys.path.append({str(root)!r})
        import numpy as np, onnxruntime as ort, onnxruntime_extensions, onnx_specops
        from onnx import TensorProto, helper
        from tests.onnx_specops.runtime.graphs import sum_of_rows

        made = sum_of_rows()
        python = onnx_specops.InferenceSession(made.SerializeToString(), kernels="python")
        rows = {{"indices": np.array([1, 3])}}
        assert python.run(None, rows)[0].tolist() == [[12, 14, 16]]

        made.graph.node.append(helper.make_node("StringUpper", ["text"], ["upper"], domain="ai.onnx.contrib"))
        made.graph.input.append(helper.make_tensor_value_info("text", TensorProto.STRING, ["n"]))
        made.graph.output.append(helper.make_tensor_value_info("upper", TensorProto.STRING, ["n"]))
        made.opset_import.append(helper.make_opsetid("ai.onnx.contrib", 1))
        options = ort.SessionOptions()
        options.register_custom_ops_library(onnxruntime_extensions.get_library_path())
        onnx_specops.register(options, "native")
        both = ort.InferenceSession(made.SerializeToString(), options)
        total, upper = both.run(None, rows | {{"text": np.array(["a"], object)}})
        assert (total.tolist(), upper.tolist()) == ([[12, 14, 16]], ["A"])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# -- bodies --------------------------------------------------------------------------------------------------------------


def _convolution(bodies: bool) -> onnx.ModelProto:
    node = helper.make_node("VolumeConv", ["x", "w"], ["y"], domain=onnx_specops.DOMAIN, pads="1,1,1,1", slope=0.0)
    weights = numpy_helper.from_array(np.ones((2, 3, 3, 3), np.float32), "w")
    x, y = (value(name, TensorProto.FLOAT, [1, channels, 4, 5]) for name, channels in (("x", 3), ("y", 2)))
    made = model([node], [x], [y], [weights])
    return onnx_specops.add_bodies(made) if bodies else made


@pytest.mark.parametrize(("bodies", "calls"), [(True, 0), (False, 1)])
def test_volume_conv_runs_as_its_body_if_there_is_one(monkeypatch, bodies, calls) -> None:
    found = []
    compute = kernels._Kernel.__call__
    monkeypatch.setattr(kernels._Kernel, "__call__", lambda *given: found.append(given) or compute(*given))
    x = np.random.default_rng(0).standard_normal((1, 3, 4, 5)).astype(np.float32)
    (got,) = session(_convolution(bodies)).run(None, {"x": x})
    (expected,) = onnx_specops.InferenceSession(_convolution(True), kernels="none").run(None, {"x": x})
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert len(found) == calls


def test_volume_conv_runs_as_its_body_in_plain_sessions() -> None:
    options = ort.SessionOptions()
    onnx_specops.register(options, "python")
    x = np.ones((1, 3, 4, 5), np.float32)
    (got,) = ort.InferenceSession(_convolution(True).SerializeToString(), options).run(None, {"x": x})
    assert got[0, 0, 1, 1] == 27
