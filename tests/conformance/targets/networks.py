"""The networks of the matrix: IR with static shapes, inputs, OpenVINO's outputs and the direct export."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.models import kept
from tests.conformance.models.from_torch import Imported, quiet
from tests.conformance.models.network import Network
from tests.conformance.models.table import NETWORKS

QUANTIZED = Path(__file__).parents[1] / "quantized" / "files"
COMPRESSED = Path(__file__).parents[1] / "compressed" / "files.zip"

KEPT = [network.name for network in NETWORKS if network.kept]
"""Networks in the repository as IR."""

EXPORTED = [
    "resnet18",
    "mobilenetv3_small_050",
    "efficientnet_b0",
    "convnext_atto",
    "vit_tiny_patch16_224",
    "torchvision deeplabv3_mobilenet_v3_large",
    "BertModel",
    "DetrForObjectDetection",
    "AutoencoderKL",
    "GRU, num_layers",
    "SpeechCTC",
    "DeepFM",
    "Seq2SeqAttention",
    "TemporalConvolutions",
    "Gemma2ForCausalLM",
    "volo_d1_224",
    "Points",
    "SuperResolution",
    "VQModel",
    "davit_tiny",
    "gcvit_xxtiny",
    "maxvit_pico_rw_256",
    "HieraModel",
    "ModernBertModel",
    "GPT2LMHeadModel",
    "SiglipModel",
    "RobertaModel",
    "OPTForCausalLM",
]
"""Networks that are built by their libraries, with their direct export."""

FILES = ["quantized/mobile", "quantized/residual", "quantized/encoder", "compressed/int8_asym", "compressed/int4_sym"]
"""Networks that NNCF quantized or compressed."""

HELD_OUT = [
    "torchvision shufflenet_v2_x0_5",
    "densenet121",
    "regnety_002",
    "Swinv2Model",
    "DeiTModel",
    "DistilBertModel",
    "YolosForObjectDetection",
    "UperNetForSemanticSegmentation",
    "WhisperModel",
    "UNet2DConditionModel",
    "hrnet_w18_small",
    "ghostnet_050",
    "quantized/segmentation",
    "GPTNeoXForCausalLM",
    "Qwen2ForCausalLM",
    "AlbertModel",
    "MPNetModel",
    "BartModel",
    "MarianModel",
    "Dinov2Model",
    "RTDetrForObjectDetection",
    "DepthAnythingForDepthEstimation",
    "HubertModel",
    "ASTModel",
    "OwlViTForObjectDetection",
    "PvtV2Model",
    "xcit_nano_12_p16_224",
    "levit_128s",
    "efficientvit_b0",
    "fastvit_t8",
    "coat_lite_tiny",
    "repvit_m0_9",
    "inception_next_atto",
    "mobilevit_xxs",
    "edgenext_xx_small",
    "mixer_s32_224",
    "botnet26t_256",
    "torchvision squeezenet1_1",
    "torchvision r3d_18",
    "torchvision lraspp_mobilenet_v3_large",
    "torchvision raft_small",
    "GraphAttention",
    "SpatialTransformer",
    "UNet",
    "Detector",
    "InterestNetwork",
    "DiTTransformer2DModel",
    "BloomForCausalLM",
    "PhiForCausalLM",
    "RwkvForCausalLM",
    "EncodecModel",
    "TimesformerModel",
    "JinaEmbeddingsV3Model",
    "Repeats, scripted",
    "LSTMCell loop",
    "SpeechT5ForSpeechToText",
    "SpeechT5HifiGan",
    "VitDetModel",
    "ControlNetModel",
    "ViTModel",
    "semnasnet_075",
    "seresnext26t_32x4d",
    "BioGptForCausalLM",
    "gernet_s",
    "efficientformerv2_s0",
    "SwitchTransformersForConditionalGeneration",
    "ConvNextV2Model",
    "BigBirdPegasusModel",
    "MobileBertModel",
    "RoCBertModel",
    "vgg11_bn",
    "Phi3ForCausalLM",
    "tf_mixnet_s",
    "Lfm2ForCausalLM",
    "PhimoeForCausalLM",
    "PackedLSTM",
    "Qwen2MoeForCausalLM",
    "regnetx_002",
    "tresnet_m",
    "XLMRobertaModel",
    "cait_xxs24_224",
    "eva02_tiny_patch14_224",
    "ghostnetv2_100",
    "AutoencoderTiny",
    "FunnelModel",
    "BridgeTowerModel",
    "Qwen3MoeForCausalLM",
]
"""Networks that no pass was written for; they measure the claims of the first lists."""

DEPARTING = {
    "mobilevit_xxs": "with static shapes, the CPU plugin confuses the tokens and heads of attention with as many of both"
}
"""Networks where OpenVINO's CPU plugin departs from its specification -> the reason; dynamic shapes give the other."""


def find(name: str) -> Network | None:
    """Return the network of the table with a given name."""
    return next((network for network in NETWORKS if network.name == name), None)


def folder_of(name: str, root: Path) -> Path:
    """Return the folder to which `make` writes a network."""
    return root / name.replace(", ", "_").replace(" ", "_").replace("/", "_")


def make(name: str, root: Path) -> Path:
    """Write model.xml, inputs.npz, expected.npz and, for PyTorch modules, direct.onnx; return their folder."""
    folder = folder_of(name, root)
    if (folder / "expected.npz").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.xml"
    import openvino as ov

    core = ov.Core()
    network = find(name)
    if network is None:
        arrays = _from_file(name, folder, path, core)
    else:
        arrays = network.runs()[-1]
        shapes: Any = {index: list(array.shape) for index, array in enumerate(arrays.values())}
        if network.kept:
            with tempfile.TemporaryDirectory() as temporary:
                model = core.read_model(kept.unpack(network, Path(temporary)))
                model.reshape(shapes)
                ov.save_model(model, path, compress_to_fp16=False)
        else:
            model = network.build(arrays)
            model.reshape(shapes)
            ov.save_model(model, path, compress_to_fp16=False)
            _export(network, arrays, folder / "direct.onnx")
    np.savez(folder / "inputs.npz", **arrays)
    settings = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    compiled = core.compile_model(core.read_model(path), "CPU", settings)
    outputs = list(compiled(list(arrays.values())).values())
    if name in DEPARTING:
        model = core.read_model(path)
        model.reshape({index: [-1, *array.shape[1:]] for index, array in enumerate(arrays.values())})
        results = core.compile_model(model, "CPU", settings)(list(arrays.values())).values()
        np.savez(folder / "specified.npz", **{str(index): array for index, array in enumerate(results)})
    np.savez(folder / "expected.npz", **{str(index): array for index, array in enumerate(outputs)})
    return folder


def _from_file(name: str, folder: Path, path: Path, core: Any) -> dict[str, np.ndarray]:
    """Prepare a quantized or compressed network with static shapes."""
    import openvino as ov

    kind, _, stem = name.partition("/")
    with tempfile.TemporaryDirectory() as temporary:
        archive = COMPRESSED if kind == "compressed" else QUANTIZED / f"{stem}.zip"
        with zipfile.ZipFile(archive) as file:
            file.extractall(temporary)
        xml = Path(temporary) / (f"{stem}.xml" if kind == "compressed" else "model.xml")
        model = core.read_model(xml)
        generator, arrays = np.random.default_rng(0), {}
        for index, port in enumerate(model.inputs):
            shape = [d.get_length() if d.is_static else 8 if index else 2 for d in port.partial_shape]
            arrays[port.any_name] = generator.standard_normal(shape).astype(port.element_type.to_dtype())
        model.reshape({index: list(array.shape) for index, array in enumerate(arrays.values())})
        ov.save_model(model, path, compress_to_fp16=False)
    return arrays


def _export(network: Network, arrays: dict[str, np.ndarray], path: Path) -> None:
    """Write PyTorch's own export at opset 17, or the reason for its failure."""
    import torch

    if not isinstance(network.build, Imported):
        return
    try:
        module, tensors = network.build.prepared(arrays)
        with torch.no_grad(), quiet():
            names = [f"input_{index}" for index in range(len(tensors))]
            torch.onnx.export(module, tensors, str(path), input_names=names, opset_version=17, dynamo=False)
    except Exception as error:  # any exception of the exporter is the result
        path.with_suffix(".txt").write_text(f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
