"""``python -m benchmarks.state_spaces mamba|granite|qwen3_5|lfm2``: a prompt and a token of a hybrid, with its recurrence as
one operator and as separate nodes.

The recurrence of the first layer follows, without the rest of the model. ``--weights int8`` compresses the weights with
NNCF. Needs transformers and optimum-intel. optimum-intel 2.2 exports Mamba
with transformers up to 5.3, the hybrid of Granite with 5.5 or newer, Qwen3.5 with 5.2 and LFM2 with up to 5.4. Times are
single-threaded processor times.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnxruntime as ort
import openvino as ov
from onnx_ir.passes import InPlacePass, PassResult

import onnx_specops
from converters.openvino import convert
from converters.passes import finish

TOKENS, RUNS = 512, 5
FLOATS = {
    "INFERENCE_PRECISION_HINT": "f32",
    "INFERENCE_NUM_THREADS": "1",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
PASSES = {"mamba": "FuseSelectiveScan", "granite": "FuseStateSpaceScan", "qwen3_5": "FuseGatedDeltaRule", "lfm2": ""}
"""The pass that recognizes the recurrence of each family."""


class Nothing(InPlacePass):
    """A pass that leaves the separate nodes unchanged."""

    def call(self, model):  # type: ignore[no-untyped-def]
        return PassResult(model, modified=False)


def make(folder: Path, family: str, weights: str = "float32") -> Path:
    """Create a model of random weights with the dimensions of mamba-130m, mamba2-130m, a Qwen3.5 of 1,024 channels or
    LFM2-350M.

    It has two layers. Qwen3.5 and LFM2 have a third one, of attention, without which optimum-intel cannot export them.
    """
    import torch
    import transformers
    from optimum.intel import OVModelForCausalLM

    torch.manual_seed(1)
    config: transformers.PretrainedConfig
    if family == "mamba":
        config = transformers.MambaConfig(
            vocab_size=320, hidden_size=768, state_size=16, num_hidden_layers=2, time_step_rank=48
        )
    elif family == "qwen3_5":
        config = transformers.Qwen3_5TextConfig(
            vocab_size=320,
            hidden_size=1024,
            intermediate_size=3584,
            num_hidden_layers=3,
            layer_types=["linear_attention", "linear_attention", "full_attention"],
            num_attention_heads=8,
            num_key_value_heads=2,
            head_dim=256,
            linear_num_key_heads=16,
            linear_num_value_heads=16,
            linear_key_head_dim=128,
            linear_value_head_dim=128,
        )
    elif family == "lfm2":
        config = transformers.Lfm2Config(
            vocab_size=320,
            hidden_size=1024,
            intermediate_size=6656,
            num_hidden_layers=3,
            layer_types=["conv", "conv", "full_attention"],
            num_attention_heads=16,
            num_key_value_heads=8,
        )
    else:
        config = transformers.GraniteMoeHybridConfig(
            vocab_size=320,
            hidden_size=768,
            shared_intermediate_size=1024,
            num_hidden_layers=2,
            layer_types=["mamba", "mamba"],
            num_attention_heads=4,
            num_key_value_heads=2,
            num_local_experts=0,
            mamba_n_heads=24,
            mamba_d_head=64,
            mamba_d_state=128,
            mamba_expand=2,
        )
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():  # an IR lacks scales of 1, which no trained model has
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(folder / "torch")
    exported = OVModelForCausalLM.from_pretrained(folder / "torch", export=True, compile=False, load_in_8bit=False)
    exported.save_pretrained(folder / "ir")
    path = folder / "ir" / "openvino_model.xml"
    if weights == "int8":
        import nncf

        compressed = nncf.compress_weights(ov.Core().read_model(path), mode=nncf.CompressWeightsMode.INT8_ASYM)
        path = folder / "int8.xml"
        ov.save_model(compressed, path)
    return path


def seconds(run: Callable[[], object]) -> float:
    """Return the processor time of the fastest run."""
    run()
    found = []
    for _ in range(RUNS):
        started = time.process_time()
        run()
        found.append(time.process_time() - started)
    return min(found)


def main() -> None:
    ids = np.random.default_rng(0).integers(1, 300, (1, TOKENS))
    parser = argparse.ArgumentParser()
    parser.add_argument("family", choices=PASSES)
    parser.add_argument("path", nargs="?", help="an IR that the benchmark made before")
    parser.add_argument("--weights", choices=("float32", "int8"), default="float32")
    arguments = parser.parse_args()
    name = PASSES[arguments.family]
    prompt = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    token = {"input_ids": ids[:, :1], "attention_mask": np.ones((1, 1), np.int64)}
    prompt["beam_idx"] = token["beam_idx"] = np.zeros(1, np.int32)
    if arguments.family == "mamba":
        prompt["cache_position"], token["cache_position"] = np.arange(4), np.array([TOKENS])
    else:
        token["attention_mask"] = np.ones((1, TOKENS + 1), np.int64)
    if arguments.family == "qwen3_5":
        prompt["position_ids"], token["position_ids"] = np.arange(TOKENS)[None], np.array([[TOKENS]])
    with tempfile.TemporaryDirectory() as place:
        path = Path(arguments.path or make(Path(place), arguments.family, arguments.weights))
        request = ov.Core().compile_model(path, "CPU", FLOATS).create_infer_request()
        expected = measure("OpenVINO", request.reset_state, lambda feeds: np.array(request.infer(feeds)[0]), prompt, token)
        for title in ("one operator", "separate nodes") if name else ("standard ONNX",):
            with mock.patch.object(finish, name, Nothing) if title == "separate nodes" else nullcontext():
                convert(path, Path(place) / "model.onnx")
            options = ort.SessionOptions()
            options.intra_op_num_threads, options.log_severity_level = 1, 3
            session = onnx_specops.InferenceSession(Path(place) / "model.onnx", options)
            found = measure(title, session.reset_state, partial(_first, session), prompt, token)
            print(f"{title}: {_difference(found, expected):.1e} from OpenVINO")
        if name:
            measure_recurrence(path, Path(place), arguments.family, prompt, token)


def measure_recurrence(path: Path, place: Path, family: str, prompt: Any, token: Any) -> None:
    """Print the times of the recurrence of the first layer, for its inputs in the model."""
    whole = ov.Core().read_model(path)
    begin, _ = _recurrence(whole, family)
    whole.add_outputs([(output.get_node().get_friendly_name(), output.get_index()) for output in begin])
    request = ov.Core().compile_model(whole, "CPU", FLOATS).create_infer_request()
    given = []
    for feeds in (prompt, token):
        found = [np.array(value) for value in request.infer(feeds).values()]
        given.append(found[len(found) - len(begin) :])
    sizes = [[a if a == b else -1 for a, b in zip(x.shape, y.shape, strict=True)] for x, y in zip(*given, strict=True)]
    ov.save_model(_alone(ov.Core().read_model(path), family, sizes), place / "alone.xml", compress_to_fp16=False)
    request = ov.Core().compile_model(place / "alone.xml", "CPU", FLOATS).create_infer_request()

    def in_openvino(arrays: list[np.ndarray]) -> list[np.ndarray]:
        return [np.array(value) for value in request.infer(arrays).values()]

    expected = _measure_alone("OpenVINO", in_openvino, given)
    for title in ("one operator", "separate nodes"):
        with mock.patch.object(finish, PASSES[family], Nothing) if title == "separate nodes" else nullcontext():
            convert(place / "alone.xml", place / "alone.onnx")
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        session = onnx_specops.InferenceSession(place / "alone.onnx", options)
        names = [value.name for value in session.get_inputs()]
        found = _measure_alone(title, partial(_run_alone, session, names), given)
        print(f"{title}: {_difference(found, expected):.1e} from OpenVINO")


def _run_alone(session: onnx_specops.InferenceSession, names: list[str], arrays: list[np.ndarray]) -> list[np.ndarray]:
    return session.run(None, dict(zip(names, arrays, strict=True)))


def _measure_alone(
    title: str, run: Callable[[list[np.ndarray]], list[np.ndarray]], given: list[list[np.ndarray]]
) -> list[np.ndarray]:
    """Print the times of the recurrence alone for a prompt and a token. Return its results."""
    times = [seconds(partial(run, arrays)) * 1e3 for arrays in given]
    print(f"{title}, recurrence alone: prompt {times[0]:.1f} ms, token {times[1]:.3f} ms")
    return [array for arrays in given for array in run(arrays)]


def _recurrence(model: ov.Model, family: str) -> tuple[list[ov.Output], list[ov.Output]]:
    """Return the values that the first recurrence of a model reads, and those that it computes."""
    if family == "mamba":
        nodes = {op.get_friendly_name(): op for op in model.get_ordered_ops()}
        mixer, shared = (f"__module.backbone.layers.{layer}.mixer" for layer in (0, 1))  # the export names layers once
        split, scan = nodes[f"{mixer}/aten::split_with_sizes/VariadicSplit"], f"{shared}.selective_scan"
        names = (f"{mixer}/aten::softplus/SoftPlus", f"{shared}/aten::neg/Multiply", f"{scan}/aten::mul/Multiply")
        state = next(op for op in model.get_ordered_ops() if _is_state(op))
        begin = [nodes[name].output(0) for name in names] + [split.output(1), split.output(2), state.output(0)]
        return begin, [nodes[f"{scan}/aten::sum/ReduceSum"].output(0), nodes[f"{scan}/aten::select/Gather_1"].output(0)]
    loop = _loop(model)
    read = list[ov.Output]()
    for value in loop.inputs():
        source = value.get_source_output()
        kind, rank = source.get_node().get_type_name(), len(source.get_partial_shape())
        if kind == "Multiply" and rank == 5:  # the update of the state of Mamba 2, for all tokens
            read += [factor.get_source_output() for factor in source.get_node().inputs()]
        elif rank and kind != "Broadcast":  # neither the number of tokens nor zeros for the outputs
            read.append(_before_transpose(source))
    return read, list(loop.outputs())


def _before_transpose(value: ov.Output) -> ov.Output:
    """Return the value before a Transpose and a Divide; the value itself if there are none."""
    node = value.get_node()
    if node.get_type_name() == "Divide":
        node = node.input_value(0).get_node()
    return node.input_value(0) if node.get_type_name() == "Transpose" else value


def _is_state(op: ov.Node) -> bool:
    """Return whether a node selects the rows of the first state of a recurrence."""
    if op.get_type_name() != "Gather":
        return False
    read = op.input_value(0).get_node()
    return read.get_type_name() == "ReadValue" and "ssm.0" in read.get_attributes()["variable_id"]


def _loop(model: ov.Model) -> ov.Node:
    return next(op for op in model.get_ordered_ops() if op.get_type_name() == "Loop")


def _alone(model: ov.Model, family: str, sizes: list[list[int]]) -> ov.Model:
    """Return the first recurrence of a model, with the sizes of its inputs."""
    begin, end = _recurrence(model, family)
    given = [ov.opset13.parameter(size, output.get_element_type()) for size, output in zip(sizes, begin, strict=True)]
    for output, parameter in zip(begin, given, strict=True):
        for target in output.get_target_inputs():
            target.replace_source_output(parameter.output(0))
    if family != "mamba":
        loop = _loop(model)
        wanted = [None if size.is_dynamic else size.get_length() for size in end[0].get_partial_shape()]
        # an input with the batch, the heads, the tokens and the channels of the outputs
        place, order = next(
            (i, order)
            for i, size in enumerate(sizes)
            for order in ((0, 1, 2, 3), (0, 2, 1, 3))
            if len(size) > 3 and all(axis in (None, size[at]) for axis, at in zip(wanted, order, strict=True))
        )
        shape = ov.opset13.shape_of(given[place])
        tokens = ov.opset13.gather(shape, np.int64(sizes[place].index(-1)), np.int64(0))
        steps = loop.input(0)
        steps.replace_source_output(ov.opset13.convert(tokens, steps.get_element_type()).output(0))
        zeros = ov.opset13.broadcast(np.float32(0), ov.opset13.gather(shape, np.array(order), np.int64(0)))
        written = next(x for x in loop.inputs() if x.get_source_output().get_node().get_type_name() == "Broadcast")
        written.replace_source_output(zeros.output(0))
    return ov.Model(end, given)


def _difference(found: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """Return the largest error, relative to the largest element of each array."""
    return float(max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(found, expected, strict=True)))


def _first(session: onnx_specops.InferenceSession, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    return session.run(None, dict(feeds))[0]


def measure(
    title: str, reset: Callable[[], None], run: Callable[[Any], np.ndarray], prompt: Any, token: Any
) -> list[np.ndarray]:
    """Print the times of a prompt and of a token after it. Return their results."""

    def first() -> np.ndarray:
        reset()
        return run(prompt)

    results = [first(), run(token)]
    print(f"{title}: prompt {seconds(first) * 1e3:.0f} ms, token {seconds(lambda: run(token)) * 1e3:.2f} ms")
    return results


if __name__ == "__main__":
    main()
