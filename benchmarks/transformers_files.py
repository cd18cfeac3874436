"""Quantized IR files of networks of the library transformers, with random weights.

    python -m benchmarks.transformers_files FOLDER              # a folder of .xml and .bin for each network
    python -m benchmarks.transformers_files FOLDER --only bert  # networks whose names contain one of these

NNCF quantizes half of the networks with limits around zero and the others with any limits. Needs torch, transformers, timm,
nncf and openvino. Nothing is downloaded. Existing files are kept.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn

from benchmarks.nncf_files import quantize
from benchmarks.torch_networks.making import make_files

SAMPLES = 3
_VOCABULARY = 1000
_TEXT = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "vocab_size": _VOCABULARY,
}
_IMAGE = {name: number for name, number in _TEXT.items() if name != "vocab_size"}
_SOUND = {**_IMAGE, "num_hidden_layers": 3, "intermediate_size": 512}
_DETR = {
    "use_pretrained_backbone": False,
    "use_timm_backbone": True,
    "backbone": "resnet18",
    "encoder_layers": 2,
    "decoder_layers": 2,
    "d_model": 128,
    "encoder_ffn_dim": 256,
    "decoder_ffn_dim": 256,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
}


@dataclass(frozen=True)
class Network:
    """A network.

    Attributes:
        model: its class, optionally with the attribute of the part that is used: ``"WhisperModel.encoder"``.
        config: its configuration's class.
        options: the configuration.
        inputs: the name and shape of each input: ``input_ids`` are numbers of tokens, ``attention_mask`` is all ones, and
            others are normal numbers.
    """

    model: str
    config: str
    options: dict[str, Any]
    inputs: dict[str, tuple[int, ...]]

    def make(self) -> nn.Module:
        model, *parts = self.model.split(".")
        module: Any = getattr(transformers, model)(getattr(transformers, self.config)(**self.options)).eval()
        for part in parts:
            module = getattr(module, part)
        return _FirstOutput(module, list(self.inputs))

    def sample(self, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return tuple(
            rng.integers(5, _VOCABULARY, shape)
            if name == "input_ids"
            else np.ones(shape, np.int64)
            if name == "attention_mask"
            else rng.standard_normal(shape).astype(np.float32)
            for name, shape in self.inputs.items()
        )


class _FirstOutput(nn.Module):
    """A network with positional inputs that returns its first tensor."""

    def __init__(self, module: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        result = self.module(**dict(zip(self.names, inputs, strict=True)))
        if isinstance(result, torch.Tensor):
            return result
        values = result.values() if hasattr(result, "values") else result
        return next(value for value in values if isinstance(value, torch.Tensor))


def _images(model: str, config: str, size: int = 224, **options: Any) -> Network:
    return Network(model, config, options, {"pixel_values": (1, 3, size, size)})


def _texts(model: str, config: str, **options: Any) -> Network:
    return Network(model, config, options, {"input_ids": (1, 64), "attention_mask": (1, 64)})


def _videos(model: str, config: str, **options: Any) -> Network:
    return Network(model, config, options, {"pixel_values": (1, 8, 3, 112, 112)})


def _others(model: str, config: str, name: str, shape: tuple[int, ...], **options: Any) -> Network:
    return Network(model, config, options, {name: shape})


NETWORKS = {
    "albert": _texts("AlbertModel", "AlbertConfig", **_TEXT, embedding_size=128),
    "ast": _others("ASTModel", "ASTConfig", "input_values", (1, 256, 128), **_IMAGE, max_length=256),
    "bart": _texts(
        "BartModel.encoder", "BartConfig", d_model=256, encoder_layers=3, encoder_ffn_dim=1024, encoder_attention_heads=4,
        vocab_size=_VOCABULARY,
    ),
    "beit": _images("BeitModel", "BeitConfig", **_IMAGE, use_relative_position_bias=True),
    "bert": _texts("BertModel", "BertConfig", **_TEXT),
    "blip": _images("BlipVisionModel", "BlipVisionConfig", **_IMAGE, image_size=224),
    "bloom": _texts(
        "BloomModel", "BloomConfig", hidden_size=256, n_layer=4, n_head=4, vocab_size=_VOCABULARY, use_cache=False
    ),
    "canine": _texts("CanineModel", "CanineConfig", **_IMAGE, local_transformer_stride=16),
    "clap": _others(
        "ClapAudioModel", "ClapAudioConfig", "input_features", (1, 1, 256, 64), depths=[1, 1, 2, 1],
        patch_embeds_hidden_size=48, hidden_size=384, spec_size=256, num_mel_bins=64,
    ),
    "clip": _images("CLIPVisionModel", "CLIPVisionConfig", **_IMAGE),
    "conditional_detr": _images("ConditionalDetrForObjectDetection", "ConditionalDetrConfig", **_DETR),
    "convbert": _texts("ConvBertModel", "ConvBertConfig", **_TEXT, embedding_size=128),
    "convnextv2": _images("ConvNextV2Model", "ConvNextV2Config", hidden_sizes=[40, 80, 160, 320], depths=[2, 2, 6, 2]),
    "cvt": _images("CvtModel", "CvtConfig"),
    "dac": _others("DacModel.encoder", "DacConfig", "hidden_state", (1, 1, 8000), encoder_hidden_size=32),
    "data2vec_audio": _others("Data2VecAudioModel", "Data2VecAudioConfig", "input_values", (1, 16000), **_SOUND),
    "data2vec_vision": _images(
        "Data2VecVisionModel", "Data2VecVisionConfig", **_IMAGE, use_relative_position_bias=True
    ),
    "deberta2": _texts(
        "DebertaV2Model", "DebertaV2Config", **_TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"],
        position_buckets=32,
    ),
    "deformable_detr": _images("DeformableDetrForObjectDetection", "DeformableDetrConfig", **_DETR, num_queries=60),
    "deit": _images("DeiTModel", "DeiTConfig", **_IMAGE),
    "depth_anything": _images(
        "DepthAnythingForDepthEstimation", "DepthAnythingConfig", 196, reassemble_hidden_size=384,
        neck_hidden_sizes=[48, 96, 192, 384], fusion_hidden_size=64,
    ),
    "detr": _images("DetrForObjectDetection", "DetrConfig", **_DETR),
    "dinov2": _images("Dinov2Model", "Dinov2Config", hidden_size=256, num_hidden_layers=4, num_attention_heads=4),
    "distilbert": _texts(
        "DistilBertModel", "DistilBertConfig", dim=256, n_layers=4, n_heads=4, hidden_dim=1024, vocab_size=_VOCABULARY
    ),
    "dpt": _images(
        "DPTForDepthEstimation", "DPTConfig", hidden_size=192, num_hidden_layers=12, num_attention_heads=3,
        intermediate_size=384, image_size=224, neck_hidden_sizes=[48, 96, 192, 192], fusion_hidden_size=64,
    ),
    "efficientnet": _images(
        "EfficientNetModel", "EfficientNetConfig", width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280
    ),
    "electra": _texts("ElectraModel", "ElectraConfig", **_TEXT),
    "encodec": _others("EncodecModel.encoder", "EncodecConfig", "hidden_states", (1, 1, 8000), num_filters=16),
    "ernie": _texts("ErnieModel", "ErnieConfig", **_TEXT),
    "focalnet": _images("FocalNetModel", "FocalNetConfig", embed_dim=48, depths=[2, 2, 2, 2]),
    "funnel": _texts(
        "FunnelModel", "FunnelConfig", vocab_size=_VOCABULARY, d_model=256, n_head=4, d_head=64, d_inner=512,
        block_sizes=[2, 2, 2],
    ),
    "gemma2": _texts(
        "Gemma2Model", "Gemma2Config", **_TEXT, num_key_value_heads=2, head_dim=64, use_cache=False
    ),
    "glpn": _images("GLPNForDepthEstimation", "GLPNConfig"),
    "gpt_neox": _texts("GPTNeoXModel", "GPTNeoXConfig", **_TEXT, use_cache=False),
    "hifigan": _others("SpeechT5HifiGan", "SpeechT5HifiGanConfig", "spectrogram", (60, 80)),
    "hubert": _others("HubertModel", "HubertConfig", "input_values", (1, 16000), **_SOUND),
    "ibert": _texts("IBertModel", "IBertConfig", **_TEXT),
    "layoutlm": _texts("LayoutLMModel", "LayoutLMConfig", **_TEXT),
    "llama": _texts("LlamaModel", "LlamaConfig", **_TEXT, num_key_value_heads=2, use_cache=False),
    "longformer": _texts("LongformerModel", "LongformerConfig", **_TEXT, attention_window=16),
    "marian": _texts(
        "MarianModel.encoder", "MarianConfig", d_model=256, encoder_layers=3, encoder_ffn_dim=1024,
        encoder_attention_heads=4, vocab_size=_VOCABULARY, pad_token_id=0, decoder_start_token_id=0,
    ),
    "maskformer": _images("MaskFormerForInstanceSegmentation", "MaskFormerConfig"),
    "megatron": _texts("MegatronBertModel", "MegatronBertConfig", **_TEXT),
    "mobilebert": _texts("MobileBertModel", "MobileBertConfig", num_hidden_layers=6, vocab_size=_VOCABULARY),
    "mobilenet_v1": _images("MobileNetV1Model", "MobileNetV1Config"),
    "mobilenet_v2": _images("MobileNetV2ForSemanticSegmentation", "MobileNetV2Config"),
    "mobilevit": _images("MobileViTModel", "MobileViTConfig", 256),
    "modernbert": _texts(
        "ModernBertModel", "ModernBertConfig", **_TEXT, global_attn_every_n_layers=2, local_attention=16, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
    ),
    "mpnet": _texts("MPNetModel", "MPNetConfig", **_TEXT),
    "nystromformer": _texts("NystromformerModel", "NystromformerConfig", **_TEXT, segment_means_seq_len=64),
    "opt": _texts(
        "OPTModel", "OPTConfig", hidden_size=256, num_hidden_layers=4, num_attention_heads=4, ffn_dim=1024,
        vocab_size=_VOCABULARY, word_embed_proj_dim=256, use_cache=False,
    ),
    "owlvit": _images("OwlViTVisionModel", "OwlViTVisionConfig", **_IMAGE, image_size=224, patch_size=32),
    "phi": _texts("PhiModel", "PhiConfig", **_TEXT, use_cache=False),
    "poolformer": _images("PoolFormerModel", "PoolFormerConfig"),
    "pvt": _images("PvtModel", "PvtConfig", image_size=224),
    "pvt_v2": _images("PvtV2Model", "PvtV2Config"),
    "regnet": _images(
        "RegNetModel", "RegNetConfig", embedding_size=32, hidden_sizes=[32, 64, 128, 256], depths=[1, 2, 4, 2],
        groups_width=16,
    ),
    "resnet": _images(
        "ResNetModel", "ResNetConfig", layer_type="basic", depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512]
    ),
    "roberta": _texts("RobertaModel", "RobertaConfig", **_TEXT),
    "roformer": _texts("RoFormerModel", "RoFormerConfig", **_TEXT),
    "rt_detr": _images(
        "RTDetrForObjectDetection", "RTDetrConfig", 320, backbone_config=None, num_queries=60, encoder_hidden_dim=128,
        d_model=128, encoder_ffn_dim=256, decoder_ffn_dim=256, encoder_in_channels=[512, 1024, 2048],
        decoder_in_channels=[128, 128, 128], decoder_layers=2, anchor_image_size=[320, 320],
    ),
    "sam": _images(
        "SamVisionModel", "SamVisionConfig", 256, hidden_size=192, num_hidden_layers=4, num_attention_heads=3,
        image_size=256, global_attn_indexes=[1, 3], output_channels=64,
    ),
    "segformer": _images("SegformerForSemanticSegmentation", "SegformerConfig"),
    "sew": _others("SEWModel", "SEWConfig", "input_values", (1, 16000), **_SOUND),
    "siglip": _images("SiglipVisionModel", "SiglipVisionConfig", **_IMAGE),
    "speech2text": _others(
        "Speech2TextModel.encoder", "Speech2TextConfig", "input_features", (1, 200, 80), encoder_layers=3, d_model=256,
        encoder_ffn_dim=1024,
    ),
    "splinter": _texts("SplinterModel", "SplinterConfig", **_TEXT),
    "squeezebert": _texts("SqueezeBertModel", "SqueezeBertConfig", **_TEXT, embedding_size=256),
    "superpoint": _others("SuperPointForKeypointDetection.encoder", "SuperPointConfig", "input", (1, 1, 240, 320)),
    "swiftformer": _images("SwiftFormerModel", "SwiftFormerConfig"),
    "swin2sr": _images(
        "Swin2SRForImageSuperResolution", "Swin2SRConfig", 64, image_size=64, embed_dim=60, depths=[2, 2], num_heads=[6, 6],
        window_size=8,
    ),
    "swinv2": _images(
        "Swinv2Model", "Swinv2Config", embed_dim=48, depths=[2, 2, 2, 2], num_heads=[3, 6, 12, 24], image_size=224
    ),
    "t5": _texts(
        "T5EncoderModel", "T5Config", vocab_size=_VOCABULARY, d_model=256, d_kv=64, d_ff=512, num_layers=4, num_heads=4
    ),
    "unispeech": _others("UniSpeechModel", "UniSpeechConfig", "input_values", (1, 16000), **_SOUND),
    "videomae": _videos("VideoMAEModel", "VideoMAEConfig", **_IMAGE, image_size=112, num_frames=8),
    "vits": _others("VitsModel.decoder", "VitsConfig", "spectrogram", (1, 192, 40), hidden_size=96, num_hidden_layers=2),
    "vivit": _videos(
        "VivitModel", "VivitConfig", **_IMAGE, num_frames=8, image_size=112, tubelet_size=[2, 16, 16]
    ),
    "wav2vec2": _others("Wav2Vec2ForCTC", "Wav2Vec2Config", "input_values", (1, 16000), **_SOUND, vocab_size=32),
    "wav2vec2_conformer": _others("Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", "input_values", (1, 16000), **_SOUND),
    "wavlm": _others("WavLMModel", "WavLMConfig", "input_values", (1, 16000), **_SOUND),
    "whisper": _others(
        "WhisperModel.encoder", "WhisperConfig", "input_features", (1, 80, 800), d_model=192, encoder_layers=3,
        decoder_layers=1, encoder_attention_heads=3, decoder_attention_heads=3, encoder_ffn_dim=768, decoder_ffn_dim=768,
        max_source_positions=400,
    ),
    "xlnet": _texts("XLNetModel", "XLNetConfig", vocab_size=_VOCABULARY, d_model=256, n_layer=4, n_head=4, d_inner=512),
}  # fmt: skip


def save(name: str, folder: Path) -> None:
    """Quantize a network and write ``model.xml`` into the folder. The options of NNCF depend on the name only."""
    import nncf

    network, rng, chosen = NETWORKS[name], np.random.default_rng(0), random.Random(name)
    torch.manual_seed(0)
    options: dict[str, Any] = {}
    if chosen.random() < 0.6:
        options["model_type"] = nncf.ModelType.TRANSFORMER
    if chosen.random() < 0.5:
        options["preset"] = nncf.QuantizationPreset.MIXED
    samples = [network.sample(rng) for _ in range(SAMPLES)]
    quantize(network.make(), samples, folder, halves=chosen.random() < 0.3, **options)


if __name__ == "__main__":
    sys.exit(make_files("benchmarks.transformers_files", str(__doc__).partition("\n")[0], tuple(NETWORKS), save))
