"""An IR's weights with the names of transformers: the assignment of constants to parameters, and the written bytes.

`Architecture` needs transformers and torch, which may be missing; a stub replaces it then.
"""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.errors import ConversionError
from converters.folders import weights
from converters.folders.weights import pack, write_weights
from converters.outputs import OverInputError
from tests.converters.cli.specops import as_json, specops

IN, OUT, GROUP = 64, 16, 32
LLAMA = Path(__file__).parents[2] / "language" / "models" / "llama.zip"


class Stub:
    """A norm, a linear layer with a bias, a transposed one, and one for the logits."""

    name = "StubForCausalLM"
    linear = ("a.proj", "head")

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.shapes = {
            "norm.weight": (IN,), "a.proj.weight": (OUT, IN), "a.proj.bias": (OUT,), "conv.weight": (OUT, OUT),
            "head.weight": (IN, OUT),
        }  # fmt: skip

    def known(self, name: str) -> str | None:
        return name if name in self.shapes else None

    def experts(self, module: str, use: str) -> list[str]:
        return []

    def is_linear(self, module: str) -> bool:
        return module == "a.proj"

    def is_product(self, module: str) -> bool:
        return module in ("a.proj", "conv", "head")

    def takes_inputs_first(self, module: str) -> bool:
        return module == "conv"

    def convolution_in(self, module: str) -> str | None:
        return None

    def neutral(self, name: str) -> float | None:
        return 1.0 if name == "norm.weight" else None

    def as_stored(self, name: str, value: np.ndarray) -> np.ndarray:
        return value


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "real" not in request.keywords:
        monkeypatch.setattr(weights, "Architecture", Stub)


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def _decoded(kind: ov.Type, codes: np.ndarray, scale: np.ndarray, zero: np.ndarray | None) -> ov.Node:
    """Return ``(codes - zero) * scale`` as NNCF exports it."""
    constant = _constant(kind, codes)
    constant.set_friendly_name("self.a.proj.weight")
    value = ops.convert(constant, np.float16)
    if zero is not None:
        value = ops.subtract(value, ops.convert(_constant(kind, zero), np.float16))
    value = ops.multiply(value, ops.constant(scale.astype(np.float16)), name="self.a.proj.weight/fq_weights_1")
    if codes.ndim == 3:
        value = ops.reshape(value, np.array([OUT, IN]), False)
    return ops.convert(value, np.float32)


def _constant(kind: ov.Type, codes: np.ndarray) -> ov.Node:
    flat = codes.reshape(-1).astype(np.uint8)
    data = flat if kind.bitwidth == 8 else flat[::2] & 15 | flat[1::2] << 4
    tensor = ov.Tensor(kind, list(codes.shape))
    np.asarray(tensor.data).view(np.uint8).reshape(-1)[: data.size] = data
    return ops.constant(tensor)


def save(folder: Path, weight: ov.Node | None = None, norm: np.ndarray | None = None) -> Path:
    x = ops.parameter([-1, IN], np.float32, name="x")
    y = x
    if norm is not None:
        y = ops.multiply(ops.add(y, ops.constant(np.float32([[1e-5]])), name="__module.norm/add"), ops.constant(norm[None]))
        y.set_friendly_name("__module.norm/aten::mul/Multiply_1")
    if weight is None:
        weight = ops.constant(_numbers(OUT, IN))
        weight.set_friendly_name("self.a.proj.weight")
    y = ops.matmul(y, weight, False, True)
    y.set_friendly_name("__module.a.proj/aten::linear/MatMul")
    y = ops.add(y, ops.constant(_numbers(1, OUT)), name="__module.a.proj/aten::linear/Add")
    y = ops.matmul(y, ops.constant(_numbers(OUT, OUT)), False, True, name="__module.conv/aten::addmm/MatMul")
    head = ops.constant(_numbers(IN, OUT).astype(np.float16))
    head.set_friendly_name("self.head.weight_compressed")
    y = ops.matmul(y, ops.convert(head, np.float32), False, True, name="__module.head/aten::linear/MatMul")
    folder.mkdir(exist_ok=True)
    ov.save_model(ov.Model([y], [x]), folder / "openvino_model.xml", compress_to_fp16=False)
    (folder / "config.json").write_text(json.dumps({"model_type": "stub"}))
    (folder / "tokenizer.json").write_text("{}")
    return folder


def read(path: Path) -> dict[str, np.ndarray]:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    assert size % 8 == 0
    header = json.loads(content[8 : 8 + size])
    kinds = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I32": np.int32, "I64": np.int64}
    found = {}
    for name, told in header.items():
        if name != "__metadata__":
            begin, end = told["data_offsets"]
            data = content[8 + size + begin : 8 + size + end]
            found[name] = np.frombuffer(data, kinds[told["dtype"]]).reshape(told["shape"])
    return found


def test_constants_are_assigned_to_parameters(tmp_path: Path) -> None:
    norm = _numbers(IN)
    written = write_weights(save(tmp_path / "ir", norm=norm), tmp_path / "out")
    found = read(tmp_path / "out/model.safetensors")
    assert np.array_equal(found["norm.weight"], norm)  # not the epsilon of 1e-5, which is also an input of the norm
    assert np.array_equal(found["a.proj.weight"], _numbers(OUT, IN))
    assert np.array_equal(found["a.proj.bias"], _numbers(1, OUT)[0])
    assert np.array_equal(found["conv.weight"], _numbers(OUT, OUT).T)
    assert found["head.weight"].dtype == np.float16
    assert np.array_equal(found["head.weight"], _numbers(IN, OUT).astype(np.float16))
    assert (written.parameters, written.compressed, written.supplied) == (5, 0, [])
    config = json.loads((tmp_path / "out/config.json").read_text())
    assert config == {"model_type": "stub", "architectures": ["StubForCausalLM"]}
    assert (tmp_path / "out/tokenizer.json").is_file()


def test_a_bias_may_have_the_name_of_a_conversion(tmp_path: Path) -> None:
    """GPT-J's logits are converted to float32, which OpenVINO removes. The addition before then has its name."""
    folder = save(tmp_path / "ir")
    xml = folder / "openvino_model.xml"
    xml.write_text(xml.read_text().replace("__module.a.proj/aten::linear/Add", "__module/aten::to/Convert"))
    write_weights(folder, tmp_path / "out")
    assert np.array_equal(read(tmp_path / "out/model.safetensors")["a.proj.bias"], _numbers(1, OUT)[0])


def test_a_missing_scale_is_ones(tmp_path: Path) -> None:
    written = write_weights(save(tmp_path / "ir"), tmp_path / "out")
    assert written.supplied == ["norm.weight"]
    assert np.array_equal(read(tmp_path / "out/model.safetensors")["norm.weight"], np.ones(IN))


def test_decompressed_codes(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    codes, zero = draw.integers(0, 256, (OUT, IN), np.uint8), draw.integers(0, 256, (OUT, 1), np.uint8)
    scale = draw.random((OUT, 1)).astype(np.float16)
    folder = save(tmp_path / "ir", _decoded(ov.Type.u8, codes, scale, zero))
    assert write_weights(folder, tmp_path / "out", decompress=True).compressed == 0
    found = read(tmp_path / "out/model.safetensors")
    assert np.array_equal(found["a.proj.weight"], (codes.astype(np.float32) - zero) * scale.astype(np.float32))
    assert "quantization_config" not in json.loads((tmp_path / "out/config.json").read_text())


def unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    shifts = np.arange(0, 32, bits, dtype=np.uint32)
    return (packed.view(np.uint32)[..., None] >> shifts & (2**bits - 1)).reshape(packed.shape[0], -1)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", ["i8", "i4"])
def test_codes_and_scales_are_unchanged(kind: str, grouped: bool, tmp_path: Path) -> None:
    bits = int(kind[1])
    shape = (OUT, IN // GROUP, GROUP) if grouped else (OUT, IN)
    draw = np.random.default_rng(3)
    codes = draw.integers(0, 2**bits, shape, np.uint8)
    scale = draw.random((*shape[:-1], 1)).astype(np.float16)
    types = {"i8": ov.Type.i8, "i4": ov.Type.i4}
    folder = save(tmp_path / "ir", _decoded(types[kind], codes, scale, None))
    assert write_weights(folder, tmp_path / "out").compressed == 1
    found = read(tmp_path / "out/model.safetensors")
    assert np.array_equal(unpacked(found["a.proj.weight_packed"], bits), codes.reshape(OUT, IN) ^ (1 << (bits - 1)))
    assert np.array_equal(found["a.proj.weight_scale"], scale.reshape(OUT, -1))
    assert found["a.proj.weight_shape"].tolist() == [OUT, IN]
    (group,) = json.loads((tmp_path / "out/config.json").read_text())["quantization_config"]["config_groups"].values()
    told = group["weights"]
    assert group["targets"] == ["a.proj"] and told["num_bits"] == bits and told["symmetric"]
    assert (told["strategy"], told["group_size"]) == (("group", GROUP) if grouped else ("channel", None))


@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("kind", ["u8", "u4"])
def test_codes_with_zero_points_stay(kind: str, each: bool, tmp_path: Path) -> None:
    bits, draw = int(kind[1]), np.random.default_rng(3)
    codes = draw.integers(0, 2**bits, (OUT, IN // GROUP, GROUP), np.uint8)
    scale = draw.random((OUT, IN // GROUP, 1)).astype(np.float16)
    zero = draw.integers(0, 2**bits, scale.shape if each else (2, 1, 1), np.uint8)[: None if each else 1]
    if not each and bits == 4:
        zero = np.repeat(zero, OUT, 0)
    folder = save(tmp_path / "ir", _decoded({"u8": ov.Type.u8, "u4": ov.Type.u4}[kind], codes, scale, zero))
    assert write_weights(folder, tmp_path / "out").compressed == 1
    found = read(tmp_path / "out/model.safetensors")
    assert np.array_equal(unpacked(found["a.proj.weight_packed"], bits), codes.reshape(OUT, IN))
    assert np.array_equal(found["a.proj.weight_scale"], scale[..., 0])
    points = unpacked(found["a.proj.weight_zero_point"].T, bits).T  # packed along the rows
    assert np.array_equal(points, np.broadcast_to(zero[..., 0], (OUT, IN // GROUP)))
    config = json.loads((tmp_path / "out/config.json").read_text())["quantization_config"]
    (group,) = config["config_groups"].values()
    assert group["weights"]["symmetric"] is False and group["weights"]["group_size"] == GROUP


def test_symmetric_and_asymmetric_codes_are_different_groups() -> None:
    schemes = {"a": (4, 32, True), "b": (4, 32, False), "c": (4, 32, True), "d": (8, None, False)}
    groups = weights._quantization(schemes, Stub(Path(), {}))["config_groups"].values()  # type: ignore[arg-type]
    assert sorted(group["targets"] for group in groups) == [["a", "c"], ["b"], ["d"]]
    assert {group["weights"]["symmetric"] for group in groups if group["targets"] == ["a", "c"]} == {True}


@pytest.mark.parametrize(("point", "symmetric"), [(8, True), (7, False)])
def test_zero_points_in_the_middle_are_symmetric(point: int, symmetric: bool, tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    codes, zero = draw.integers(0, 16, (OUT, IN), np.uint8), np.full((OUT, 1), point, np.uint8)
    write_weights(
        save(tmp_path / "ir", _decoded(ov.Type.u4, codes, draw.random((OUT, 1)).astype(np.float16), zero)), tmp_path / "out"
    )
    assert ("a.proj.weight_zero_point" not in read(tmp_path / "out/model.safetensors")) == symmetric
    (group,) = json.loads((tmp_path / "out/config.json").read_text())["quantization_config"]["config_groups"].values()
    assert group["weights"]["symmetric"] == symmetric


def test_other_zero_points_are_computed(tmp_path: Path) -> None:
    """compressed-tensors does not support a zero point for each input."""
    draw = np.random.default_rng(3)
    codes, zero = draw.integers(0, 256, (OUT, IN), np.uint8), draw.integers(0, 256, (1, IN), np.uint8)
    scale = draw.random((OUT, 1)).astype(np.float16)
    folder = save(tmp_path / "ir", _decoded(ov.Type.u8, codes, scale, zero))
    assert write_weights(folder, tmp_path / "out").compressed == 0
    expected = (codes.astype(np.float32) - zero) * scale.astype(np.float32)
    assert np.allclose(read(tmp_path / "out/model.safetensors")["a.proj.weight"], expected, rtol=1e-3)


def test_other_arithmetic_is_computed(tmp_path: Path) -> None:
    """compressed-tensors does not support a scale for each input."""
    codes = np.random.default_rng(3).integers(0, 256, (OUT, IN), np.uint8)
    scale = np.random.default_rng(4).random((1, IN)).astype(np.float16)
    folder = save(tmp_path / "ir", _decoded(ov.Type.u8, codes, scale, None))
    assert write_weights(folder, tmp_path / "out").compressed == 0
    found = read(tmp_path / "out/model.safetensors")["a.proj.weight"]
    assert np.allclose(found, codes * scale.astype(np.float32), rtol=1e-3)


EXPERTS = 3


class Mixture(Stub):
    """A mixture of experts, as transformers stores it."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        uses = {"gate_proj": (OUT, IN), "up_proj": (OUT, IN), "down_proj": (IN, OUT)}
        self.shapes = {f"mlp.experts.{n}.{use}.weight": of for n in range(EXPERTS) for use, of in uses.items()}

    def experts(self, module: str, use: str) -> list[str]:
        return [f"{module}.{n}.{use}_proj.weight" for n in range(EXPERTS)] if module == "mlp.experts" else []

    def is_linear(self, module: str) -> bool:
        return ".experts." in module

    is_product = is_linear


def save_mixture(folder: Path, constant: Callable[[tuple[int, ...], str], ov.Node], experts: int = EXPERTS) -> Path:
    """Save a mixture of experts in the form of optimum-intel 2."""
    x = ops.parameter([experts, -1, IN], np.float32, name="x")
    before = "__module.mlp.experts/prim::ListUnpack/VariadicSplit"
    gate = ops.matmul(x, constant((experts, OUT, IN), f"{before}.0"), False, True)
    up = ops.matmul(x, constant((experts, OUT, IN), f"{before}.1"), False, True)
    y = ops.matmul(
        ops.multiply(ops.swish(gate), up), constant((experts, IN, OUT), "self.mlp.experts.down_proj"), False, True
    )
    folder.mkdir()
    ov.save_model(ov.Model([y], [x]), folder / "openvino_model.xml", compress_to_fp16=False)
    (folder / "config.json").write_text(json.dumps({"model_type": "stub"}))
    return folder


USES = {"VariadicSplit.0": "gate_proj", "VariadicSplit.1": "up_proj", "down_proj": "down_proj"}


@pytest.mark.parametrize("experts", [EXPERTS, EXPERTS + 1])
def test_experts_in_one_constant(experts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "Architecture", Mixture)
    given: dict[str, np.ndarray] = {}

    def constant(shape: tuple[int, ...], name: str) -> ov.Node:
        use = next(use for end, use in USES.items() if name.endswith(end))
        given[use] = np.random.default_rng(len(given)).standard_normal(shape).astype(np.float32)
        return ops.constant(given[use], name=name)

    folder = save_mixture(tmp_path / "ir", constant, experts)
    if experts != EXPERTS:
        with pytest.raises(ConversionError, match=r"it contains no mlp\.experts\.0\.gate_proj\.weight"):
            write_weights(folder, tmp_path / "out")
        return
    write_weights(folder, tmp_path / "out")
    found = read(tmp_path / "out/model.safetensors")
    for use, values in given.items():
        for number in range(EXPERTS):
            assert np.array_equal(found[f"mlp.experts.{number}.{use}.weight"], values[number])


@pytest.mark.parametrize(("kind", "grouped"), [("u8", False), ("u4", False), ("u4", True)])
def test_codes_of_experts_are_unchanged(kind: str, grouped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "Architecture", Mixture)
    bits, draw = int(kind[1]), np.random.default_rng(3)
    given: dict[str, tuple[np.ndarray, ...]] = {}

    def constant(shape: tuple[int, ...], name: str) -> ov.Node:
        use = next(use for end, use in USES.items() if name.endswith(end))
        split = (*shape[:-1], shape[-1] // 8, 8) if grouped else shape
        codes = draw.integers(0, 2**bits, split, np.uint8)
        zero = draw.integers(0, 2**bits, (*split[:-1], 1), np.uint8)
        scale = draw.random(zero.shape).astype(np.float16)
        given[use] = codes.reshape(shape), zero.reshape(*shape[:-1], -1), scale.reshape(*shape[:-1], -1)
        element = {"u8": ov.Type.u8, "u4": ov.Type.u4}[kind]
        stored = _constant(element, codes)
        stored.set_friendly_name(name)
        value = ops.subtract(ops.convert(stored, np.float16), ops.convert(_constant(element, zero), np.float16))
        value = ops.multiply(value, ops.constant(scale))
        return ops.convert(ops.reshape(value, np.array(shape), False) if grouped else value, np.float32)

    assert write_weights(save_mixture(tmp_path / "ir", constant), tmp_path / "out").compressed == 3 * EXPERTS
    found = read(tmp_path / "out/model.safetensors")
    for use, (codes, zero, scale) in given.items():
        for number in range(EXPERTS):
            module = f"mlp.experts.{number}.{use}"
            assert np.array_equal(unpacked(found[f"{module}.weight_packed"], bits)[:, : codes.shape[-1]], codes[number])
            assert np.array_equal(found[f"{module}.weight_scale"], scale[number])
            points = unpacked(found[f"{module}.weight_zero_point"].T, bits).T[: codes.shape[1]]
            assert np.array_equal(points, zero[number])


@pytest.mark.parametrize("rows", [2, 3])
def test_experts_in_separate_layers(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Granite's experts are one parameter, and a MatMul each in the graph."""

    class Granite(Stub):
        def __init__(self, path: Path, config: dict[str, Any]) -> None:
            self.shapes = {"moe.weight": (2, OUT, IN)}

    monkeypatch.setattr(weights, "Architecture", Granite)
    x = ops.parameter([-1, IN], np.float32, name="x")
    given = [np.random.default_rng(number).standard_normal((OUT, IN)).astype(np.float32) for number in range(rows)]
    results = [
        ops.matmul(x, ops.constant(value), False, True, name="__module.moe/aten::linear/MatMul" + (f"_{n}" if n else ""))
        for n, value in enumerate(given)
    ]
    folder = tmp_path / "ir"
    folder.mkdir()
    ov.save_model(ov.Model(results[::-1], [x]), folder / "openvino_model.xml", compress_to_fp16=False)
    (folder / "config.json").write_text(json.dumps({"model_type": "stub"}))
    if rows != 2:
        with pytest.raises(ConversionError, match=r"it contains no moe\.weight"):
            write_weights(folder, tmp_path / "out")
        return
    write_weights(folder, tmp_path / "out")
    assert np.array_equal(read(tmp_path / "out/model.safetensors")["moe.weight"], np.stack(given))


@pytest.mark.parametrize("scale", [np.float32([[0.3]]), np.linspace(1, 2, OUT, dtype=np.float32)[None]])
def test_a_bias_after_a_scale(scale: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Query(Stub):
        def __init__(self, path: Path, config: dict[str, Any]) -> None:
            self.shapes = {"q.weight": (OUT, IN), "q.bias": (OUT,)}

    monkeypatch.setattr(weights, "Architecture", Query)
    x = ops.parameter([-1, IN], np.float32, name="x")
    weight, bias = _numbers(OUT, IN), _numbers(1, OUT)
    y = ops.matmul(x, ops.constant(weight), False, True, name="__module.q/aten::linear/MatMul")
    y = ops.add(ops.multiply(y, ops.constant(scale)), ops.constant(bias * scale), name="aten::mul/Multiply")
    folder = tmp_path / "ir"
    folder.mkdir()
    ov.save_model(ov.Model([y], [x]), folder / "openvino_model.xml", compress_to_fp16=False)
    (folder / "config.json").write_text(json.dumps({"model_type": "stub"}))
    if scale.size > 1:
        with pytest.raises(ConversionError, match=r"it contains no q\.bias"):
            write_weights(folder, tmp_path / "out")
        return
    write_weights(folder, tmp_path / "out")
    found = read(tmp_path / "out/model.safetensors")
    assert np.array_equal(found["q.weight"], weight)
    np.testing.assert_allclose(found["q.bias"], bias[0], rtol=3e-7)


def test_a_partial_int32_is_padded() -> None:
    codes = np.arange(1, 12, dtype=np.uint8)[None]
    assert pack(codes, 4).shape == (1, 2) and unpacked(pack(codes, 4), 4)[0, :11].tolist() == list(range(1, 12))
    assert pack(codes, 8).shape == (1, 3) and unpacked(pack(codes, 8), 8)[0, 11] == 0


def test_several_files_have_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_SHARD_BYTES", 4000)
    written = write_weights(save(tmp_path / "ir"), tmp_path / "out")
    assert len(written.files) > 1
    index = json.loads((tmp_path / "out/model.safetensors.index.json").read_text())
    for name, file in index["weight_map"].items():
        assert name in read(tmp_path / "out" / file)
    assert len(index["weight_map"]) == 5


@pytest.mark.parametrize("whole_first", [True, False])
def test_other_weights_in_the_output_folder_are_an_error(
    whole_first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers loads model.safetensors although there is an index; vLLM loads the files of the index."""
    folder = save(tmp_path / "ir")
    for number, whole in enumerate((whole_first, not whole_first)):
        monkeypatch.setattr(weights, "_SHARD_BYTES", 10**9 if whole else 4000)
        if number:
            before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
            with pytest.raises(ConversionError, match=r"would stay next to the new weights"):
                write_weights(folder, tmp_path / "out")
            assert before == {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
        else:
            write_weights(folder, tmp_path / "out")
            write_weights(folder, tmp_path / "out")  # the same names


def test_the_folder_itself_is_not_an_output(tmp_path: Path) -> None:
    """Its config.json would get the quantization of the new weights."""
    folder = save(tmp_path / "ir")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(OverInputError):
        write_weights(folder, folder)
    assert before == {path: path.read_bytes() for path in folder.iterdir()}


def test_weights_and_configurations_appear_together(tmp_path: Path) -> None:
    folder = save(tmp_path / "ir")
    (tmp_path / "out/tokenizer.json").mkdir(parents=True)
    with pytest.raises(OSError):
        write_weights(folder, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["tokenizer.json"]


def _another_shape(folder: Path) -> None:
    save(folder, norm=_numbers(IN))
    path = folder / "openvino_model.xml"
    path.write_text(path.read_text().replace("self.head.weight", "self.a.proj.weight").replace("__module.head", "head"))


def test_all_missing_or_mismatched_parameters_are_reported(tmp_path: Path) -> None:
    _another_shape(tmp_path / "ir")
    with pytest.raises(ConversionError) as caught:
        write_weights(tmp_path / "ir", tmp_path / "out")
    assert [problem.message for problem in caught.value.problems] == [
        "it contains no head.weight, which the architecture requires"
    ]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["openvino_model.xml", "config.json"])
def test_a_folder_without_a_required_file(name: str, tmp_path: Path) -> None:
    (save(tmp_path / "ir") / name).unlink()
    with pytest.raises(ConversionError, match=f"it contains no {name}"):
        write_weights(tmp_path / "ir", tmp_path / "out")
    assert not (tmp_path / "out").exists()


needs_transformers = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers")),
    reason="transformers and torch are not installed: pip install '.[weights]'",
)


@pytest.mark.real
@needs_transformers
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "unheard"}, "has no architecture 'unheard'"),
        ({"model_type": "vit"}, "is not a language model"),
        ({"num_hidden_layers": 3}, "it contains no model.layers.2."),
        ({"intermediate_size": 80}, "has the shape"),
    ],
)
def test_a_configuration_of_another_model_is_rejected(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(LLAMA) as file:
        file.extractall(tmp_path / "ir")
    config = json.loads((tmp_path / "ir/config.json").read_text())
    (tmp_path / "ir/config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(ConversionError, match=said):
        write_weights(tmp_path / "ir", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.real
@needs_transformers
def test_the_check_reports_a_difference(tmp_path: Path) -> None:
    """This IR has 16-bit rotary frequencies, which are not weights."""
    with zipfile.ZipFile(LLAMA) as file:
        file.extractall(tmp_path / "ir")
    told = as_json(specops("weights", tmp_path / "ir", "-o", tmp_path / "out", "--hf", "--no-check", "--json"))
    assert told["parameters"] == 21 and "model.norm.weight" in told["supplied"] and "check" not in told
    result = specops("weights", tmp_path / "ir", "-o", tmp_path / "out")
    assert result.exit_code == 1 and "DIFFER" in result.stdout


@pytest.mark.real
@needs_transformers
@pytest.mark.parametrize(("name", "added"), [("linear_attn.norm", 0), ("input_layernorm", 1)])
def test_a_normalization_with_a_gate_is_stored_as_it_is(name: str, added: int) -> None:
    """Qwen3.5's other normalizations add 1 to their weights."""
    import transformers

    if "qwen3_5_text" not in transformers.CONFIG_MAPPING:
        pytest.skip("this release of transformers has no Qwen3.5")
    from converters.folders.architectures import Architecture

    config = {"model_type": "qwen3_5_text", "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1,
              "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 32,
              "linear_num_key_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 16,
              "linear_value_head_dim": 16, "layer_types": ["linear_attention"]}  # fmt: skip
    value = np.array([0.5, 2], np.float32)
    stored = Architecture(Path("config.json"), config).as_stored(f"model.layers.0.{name}.weight", value)
    assert np.array_equal(stored, value - added)


@pytest.mark.real
@needs_transformers
def test_weights_that_transformers_cannot_load_are_one_error(tmp_path: Path) -> None:
    with zipfile.ZipFile(LLAMA) as file:
        file.extractall(tmp_path / "ir")
    write_weights(tmp_path / "ir", tmp_path / "out")
    (tmp_path / "out/model.safetensors").write_bytes(b"damaged")
    with pytest.raises(ConversionError, match=r"cannot load the weights: .*--no-check"):
        weights.check_weights(tmp_path / "ir", tmp_path / "out")


@pytest.mark.real
@needs_transformers
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("model.layers.0.conv", "model.layers.0.conv.conv.weight"),
        ("model.model.layers.0.conv", "model.layers.0.conv.conv.weight"),
        ("model.layers.0.feed_forward", None),  # without a convolution
        ("model", None),  # with two
    ],
)
def test_the_only_convolution_in_a_module(module: str, name: str | None) -> None:
    import transformers

    if "lfm2" not in transformers.CONFIG_MAPPING:
        pytest.skip("this release of transformers has no LFM2")
    from converters.folders.architectures import Architecture

    config = {"model_type": "lfm2", "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
              "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 32,
              "layer_types": ["conv", "conv"]}  # fmt: skip
    assert Architecture(Path("config.json"), config).convolution_in(module) == name


@pytest.mark.real
@needs_transformers
def test_names_of_experts_do_not_depend_on_the_release_of_transformers() -> None:
    from converters.folders.architectures import Architecture

    config = {"model_type": "mixtral", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
              "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 32, "num_local_experts": 2}  # fmt: skip
    mixtral = Architecture(Path("config.json"), config)
    stored = "model.layers.0.block_sparse_moe"
    assert mixtral.known("model.layers.0.mlp.gate.weight") == f"{stored}.gate.weight"  # transformers 5
    assert mixtral.known(f"{stored}.experts.1.w3.weight") == f"{stored}.experts.1.w3.weight"  # transformers 4
    for use, name, shape in (("gate", "w1", (48, 32)), ("up", "w3", (48, 32)), ("down", "w2", (32, 48))):
        names = [f"{stored}.experts.{number}.{name}.weight" for number in range(2)]
        assert mixtral.experts("model.layers.0.mlp.experts", use) == names
        assert [mixtral.shapes[one] for one in names] == [shape] * 2
    assert mixtral.experts("model.layers.1.mlp.experts", "gate") == []
