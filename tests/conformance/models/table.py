"""The table of networks: `NETWORKS`."""

from __future__ import annotations

from dataclasses import replace

from tests.conformance.models.rows import (
    diffusers,
    keras,
    plain_torch,
    timm,
    torchvision,
    transformers_audio,
    transformers_text,
    transformers_vision,
)

# Their IR is in files/: small ones of every kind, which every test run converts.
_KEPT = (
    "DebertaV2Model",
    "FNetModel",
    "TapasModel",
    "LlamaForCausalLM",
    "MixtralForCausalLM",
    "MambaForCausalLM",
    "T5ForConditionalGeneration",
    "SwinModel",
    "Dinov2WithRegistersModel",
    "SegformerForSemanticSegmentation",
    "BitModel",
    "Wav2Vec2Model",
    "CLIPModel",
    "UNet2DModel",
    "LSTM, num_layers, bidirectional",
    "ConvLSTM",
    "DLRM",
    "Greedy, scripted",
    "TwoStages",
)

# Deep networks whose random weights amplify the last digit of an input beyond the tolerance of the output.
_AMPLIFYING = (
    "CLIPSegForImageSegmentation",
    "mobilenetv4_conv_small_035",
    "tf_efficientnetv2_b0",
    "tf_mixnet_s",
    "mnasnet_small",
    "regnetz_005",
    "rexnet_100",
    "repvit_m0_9",
    "maxvit_pico_rw_256",
    "visformer_tiny",
    "torchvision fcn_resnet50",
    "torchvision raft_small",
)

_ROWS = (transformers_text, transformers_vision, transformers_audio, timm, torchvision, keras, diffusers, plain_torch)

NETWORKS = [
    replace(network, kept=network.name in _KEPT, amplifies=network.amplifies or network.name in _AMPLIFYING)
    for rows in _ROWS
    for network in rows.NETWORKS
]
