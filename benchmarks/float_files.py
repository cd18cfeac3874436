"""Float IR files for benchmarks: networks with random weights in their real dimensions, as OpenVINO saves them.

    python -m benchmarks.float_files FOLDER              # a folder of .xml and .bin for each network
    python -m benchmarks.float_files FOLDER --only yolo  # networks whose names contain one of these

Every second network has float16 weights, and a name that ends in ``_f16``. Requires torch, timm, torchvision and openvino.
Nothing is downloaded. Existing files are kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from benchmarks.torch_networks.libraries import TIMM, TORCHVISION
from benchmarks.torch_networks.making import BLOCKS, made, make_files, random_input
from benchmarks.torch_networks.parts import Tokens

# Other activations of a network are for quantized files. The rest of timm resembles these, or is large.
_LEFT_OUT = {"yolo_hardswish", "yolo_relu", "ssd_relu", "hand_relu", "resolution_relu", "unet_relu", "volume_silu",
             "signal_relu", "groups_relu", "mc3_18"}  # fmt: skip
_TIMM = """
    mobilenetv2_100 mobilenetv3_large_100 efficientnet_b0 mobileone_s0 ghostnet_100 regnety_002 resnet18 resnet50
    densenet121 repvgg_a0 mobilevit_xxs convnext_atto deit_tiny_patch16_224 swin_tiny_patch4_window7_224 resnext50_32x4d
    resnest14d mixnet_s dla34 cspdarknet53 hgnetv2_b0
    edgenext_xx_small fastvit_t8 efficientformer_l1 efficientvit_b0 levit_128s poolformer_s12 pvt_v2_b0
    mixer_s32_224 coat_lite_tiny xcit_nano_12_p16_224 tiny_vit_5m_224 convnextv2_atto skresnet18 starnet_s1
    repvit_m0_9 inception_next_atto focalnet_tiny_srf
"""
_NETWORKS = [*(name for name in BLOCKS if name not in _LEFT_OUT), *(name for name in TIMM if name in _TIMM.split()),
             *(name for name in TORCHVISION if name not in _LEFT_OUT)]  # fmt: skip
_HALF = "_f16"
NAMES = [f"{name}{_HALF if k % 2 else ''}" for k, name in enumerate(_NETWORKS)]


def save(name: str, folder: Path) -> None:
    """Write ``model.xml`` of a network into the folder."""
    import openvino as ov

    module, kind = made(name.removesuffix(_HALF))
    shape = kind.shape if isinstance(kind, Tokens) else kind
    with torch.no_grad():
        model = ov.convert_model(module, example_input=random_input(kind), input=list(shape))
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(model, folder / "model.xml", compress_to_fp16=name.endswith(_HALF))


if __name__ == "__main__":
    sys.exit(make_files("benchmarks.float_files", str(__doc__).partition("\n")[0], NAMES, save))
