"""Quantized IR files for benchmarks: networks with random weights in their real dimensions, quantized by NNCF.

    python -m benchmarks.nncf_files FOLDER              # a folder of .xml and .bin for each network
    python -m benchmarks.nncf_files FOLDER --only yolo  # networks whose names contain one of these

Needs torch, timm, torchvision, nncf and openvino. Nothing is downloaded. Existing files are kept.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

SAMPLES = 4

TIMM = {
    "mobilenetv2_100": 224,
    "mobilenetv3_small_100": 224,
    "mobilenetv3_large_100": 224,
    "efficientnet_b0": 224,
    "efficientnet_lite0": 224,
    "mobileone_s0": 224,
    "ghostnet_100": 224,
    "mnasnet_100": 224,
    "regnety_002": 224,
    "resnet18": 224,
    "resnet50": 224,
    "densenet121": 224,
    "repvgg_a0": 224,
    "mobilevit_xxs": 256,
    "convnext_atto": 224,
    "deit_tiny_patch16_224": 224,
    "vit_small_patch32_224": 224,
    "swin_tiny_patch4_window7_224": 224,
    "hardcorenas_a": 224,
    "tinynet_c": 184,
    "resnext50_32x4d": 224,
    "seresnet50": 224,
    "resnest14d": 224,
    "res2net50_26w_4s": 224,
    "regnetx_002": 224,
    "regnety_008": 224,
    "efficientnetv2_rw_t": 224,
    "tf_efficientnetv2_b0": 224,
    "tf_efficientnet_lite1": 224,
    "mobilenetv4_conv_small": 224,
    "mobilenetv4_hybrid_medium": 224,
    "fbnetc_100": 224,
    "spnasnet_100": 224,
    "semnasnet_100": 224,
    "mixnet_s": 224,
    "rexnet_100": 224,
    "lcnet_100": 224,
    "hrnet_w18_small": 224,
    "dla34": 224,
    "darknet53": 224,
    "cspdarknet53": 224,
    "cspresnet50": 224,
    "ese_vovnet19b_dw": 224,
    "hgnet_tiny": 224,
    "hgnetv2_b0": 224,
    "xception41": 299,
    "inception_v3": 299,
    "vgg11_bn": 224,
    "repghostnet_100": 224,
    "edgenext_xx_small": 256,
    "fastvit_t8": 256,
    "efficientformer_l1": 224,
    "efficientvit_b0": 224,
    "efficientvit_m0": 224,
    "levit_128s": 224,
    "poolformer_s12": 224,
    "pvt_v2_b0": 224,
    "mixer_s32_224": 224,
    "resmlp_12_224": 224,
    "coat_lite_tiny": 224,
    "xcit_nano_12_p16_224": 224,
    "tiny_vit_5m_224": 224,
    "visformer_tiny": 224,
    "convnextv2_atto": 224,
    "selecsls42b": 224,
    "skresnet18": 224,
    "gernet_s": 224,
    "dpn48b": 224,
    "resnet26d": 224,
    "resnetv2_50": 224,
    "starnet_s1": 224,
    "repvit_m0_9": 224,
    "mobilevitv2_050": 256,
    "inception_next_atto": 224,
    "focalnet_tiny_srf": 224,
    "mobilenetv1_100": 224,
    "cs3darknet_m": 224,
    "deit_small_patch16_224": 224,
    "shvit_s1": 224,
}
TORCHVISION = {"shufflenet_v2_x1_0": 224, "squeezenet1_1": 224, "googlenet": 224}


def _blocks() -> dict[str, Callable[[], tuple[Any, tuple[int, ...]]]]:
    """Networks of families that the libraries lack: each returns a module and the shape of its input."""
    import torch
    from torch import nn

    def conv(i: int, o: int, k: int = 3, s: int = 1, g: int = 1, act: Any = None, d: int = 1) -> nn.Sequential:
        layers = [nn.Conv2d(i, o, k, s, d * (k // 2), dilation=d, groups=g, bias=False), nn.BatchNorm2d(o)]
        return nn.Sequential(*layers, *([act(o)] if act else []))

    def separable(i: int, o: int, k: int, s: int, act: Any) -> nn.Sequential:
        return nn.Sequential(conv(i, i, k, s, i, act), conv(i, o, 1, act=act))

    class Residual(nn.Module):
        def __init__(self, inner: nn.Module, after: nn.Module | None = None) -> None:
            super().__init__()
            self.inner, self.after = inner, after or nn.Identity()

        def forward(self, x):
            return self.after(x + self.inner(x))

    class Split(nn.Module):
        """YOLOv8's block: half of the channels pass through bottlenecks, and all results are concatenated."""

        def __init__(self, i: int, o: int, n: int, act: Any, shortcut: bool = True) -> None:
            super().__init__()
            self.half = o // 2
            self.first, self.last = conv(i, o, 1, act=act), conv((2 + n) * self.half, o, 1, act=act)
            inner = [
                nn.Sequential(conv(self.half, self.half, act=act), conv(self.half, self.half, act=act)) for _ in range(n)
            ]
            self.inner = nn.ModuleList(Residual(block) if shortcut else block for block in inner)

        def forward(self, x):
            parts = list(self.first(x).split(self.half, 1))
            for block in self.inner:
                parts.append(block(parts[-1]))
            return self.last(torch.cat(parts, 1))

    class Yolo(nn.Module):
        """YOLOv8n's backbone, neck and heads."""

        def __init__(self, act: Any) -> None:
            super().__init__()
            self.low = nn.Sequential(conv(3, 16, 3, 2, act=act), conv(16, 32, 3, 2, act=act), Split(32, 32, 1, act),
                                     conv(32, 64, 3, 2, act=act), Split(64, 64, 2, act))  # fmt: skip
            self.middle = nn.Sequential(conv(64, 128, 3, 2, act=act), Split(128, 128, 2, act))
            self.high = nn.Sequential(conv(128, 256, 3, 2, act=act), Split(256, 256, 1, act), conv(256, 128, 1, act=act))
            self.pool, self.join = nn.MaxPool2d(5, 1, 2), conv(512, 256, 1, act=act)
            self.up = nn.Upsample(scale_factor=2.0)
            self.neck = nn.ModuleList([Split(384, 128, 1, act, False), Split(192, 64, 1, act, False)])
            self.down = nn.ModuleList([conv(64, 64, 3, 2, act=act), conv(128, 128, 3, 2, act=act)])
            self.back = nn.ModuleList([Split(192, 128, 1, act, False), Split(384, 256, 1, act, False)])
            self.heads = nn.ModuleList(
                nn.Sequential(conv(c, 64, act=act), conv(64, 64, act=act), nn.Conv2d(64, 144, 1)) for c in (64, 128, 256)
            )

        def forward(self, x):
            low = self.low(x)
            middle = self.middle(low)
            parts = [self.high(middle)]
            for _ in range(3):
                parts.append(self.pool(parts[-1]))
            high = self.join(torch.cat(parts, 1))
            m = self.neck[0](torch.cat([self.up(high), middle], 1))
            s = self.neck[1](torch.cat([self.up(m), low], 1))
            m = self.back[0](torch.cat([self.down[0](s), m], 1))
            h = self.back[1](torch.cat([self.down[1](m), high], 1))
            return torch.cat([head(f).flatten(2) for head, f in zip(self.heads, (s, m, h), strict=True)], 2)

    class Several(nn.Module):
        """A backbone in stages, with a head on each of the last stages."""

        def __init__(self, stages: Sequence[nn.Module], heads: Sequence[nn.Module]) -> None:
            super().__init__()
            self.stages, self.heads = nn.ModuleList(stages), nn.ModuleList(heads)

        def forward(self, x):
            found = []
            for stage in self.stages:
                x = stage(x)
                found.append(x)
            tail = found[len(found) - len(self.heads) :]
            return torch.cat([head(f).flatten(1) for head, f in zip(self.heads, tail, strict=True)], 1)

    def relu(_: int) -> nn.Module:
        return nn.ReLU()

    def relu6(_: int) -> nn.Module:
        return nn.ReLU6()

    def silu(_: int) -> nn.Module:
        return nn.SiLU()

    def hard_swish(_: int) -> nn.Module:
        return nn.Hardswish()

    def leaky(_: int) -> nn.Module:
        return nn.LeakyReLU(0.1)

    def elu(_: int) -> nn.Module:
        return nn.ELU()

    def gelu(_: int) -> nn.Module:
        return nn.GELU()

    def mish(_: int) -> nn.Module:
        return nn.Mish()

    def ssd(act: Any, size: int) -> tuple[Any, tuple[int, ...]]:
        widths = [(32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2)]
        body = nn.Sequential(conv(3, 32, 3, 2, act=act), *(separable(i, o, 3, s, act) for i, o, s in widths),
                             *(separable(512, 512, 3, 1, act) for _ in range(5)))  # fmt: skip
        more = nn.Sequential(separable(512, 1024, 3, 2, act), separable(1024, 1024, 3, 1, act))
        return Several([body, more], [nn.Conv2d(512, 24, 3, padding=1), nn.Conv2d(1024, 36, 3, padding=1)]), (
            1,
            3,
            size,
            size,
        )

    def hand(act: Any, size: int) -> tuple[Any, tuple[int, ...]]:
        def block(c: int) -> nn.Module:
            return Residual(nn.Sequential(conv(c, c, 5, g=c), conv(c, c, 1)), act(c))

        stages = [nn.Sequential(conv(3, 24, 3, 2, act=act), block(24), block(24))]
        for i, o in ((24, 48), (48, 96), (96, 160), (160, 160)):
            stages.append(nn.Sequential(separable(i, o, 5, 2, act), *(block(o) for _ in range(3))))
        return Several(stages, [nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(160, 63, 1))]), (1, 3, size, size)

    def resolution(act: Any) -> tuple[Any, tuple[int, ...]]:
        class Resolution(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = nn.Conv2d(3, 32, 3, padding=1)
                self.body = nn.Sequential(*(Residual(nn.Sequential(conv(32, 32, act=act), conv(32, 32))) for _ in range(4)))
                self.last = nn.Sequential(nn.Conv2d(32, 48, 3, padding=1), nn.PixelShuffle(4))

            def forward(self, x):
                return self.last(self.body(self.first(x))) + nn.functional.interpolate(x, scale_factor=4.0, mode="bicubic")

        return Resolution(), (1, 3, 270, 480)

    def unet(act: Any) -> tuple[Any, tuple[int, ...]]:
        class Unet(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                widths = [3, 16, 32, 64, 128]
                self.down = nn.ModuleList(
                    nn.Sequential(conv(i, o, act=act), conv(o, o, act=act)) for i, o in itertools.pairwise(widths)
                )
                self.up = nn.ModuleList(nn.ConvTranspose2d(o, o // 2, 2, 2) for o in (128, 64, 32))
                self.back = nn.ModuleList(conv(o, o // 2, act=act) for o in (128, 64, 32))
                self.last = nn.Conv2d(16, 2, 1)

            def forward(self, x):
                kept = []
                for block in self.down[:-1]:
                    kept.append(block(x))
                    x = nn.functional.max_pool2d(kept[-1], 2)
                x = self.down[-1](x)
                for up, block in zip(self.up, self.back, strict=True):
                    x = block(torch.cat([up(x), kept.pop()], 1))
                return self.last(x)

        return Unet(), (1, 3, 256, 256)

    def volume(act: Any) -> tuple[Any, tuple[int, ...]]:
        def conv3(i: int, o: int, s: int = 1) -> nn.Module:
            return nn.Sequential(nn.Conv3d(i, o, 3, s, 1, bias=False), nn.BatchNorm3d(o), act(o))

        body = nn.Sequential(conv3(3, 16, 2), conv3(16, 32, 2), conv3(32, 32), conv3(32, 64, 2), conv3(64, 64))
        return nn.Sequential(body, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(64, 100)), (1, 3, 16, 112, 112)

    def signal(act: Any) -> tuple[Any, tuple[int, ...]]:
        def conv1(i: int, o: int, k: int, s: int = 1, g: int = 1) -> nn.Module:
            return nn.Sequential(nn.Conv1d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm1d(o), act(o))

        layers = [conv1(64, 256, 11, 2)]
        for _ in range(6):
            layers += [conv1(256, 256, 33, g=256), conv1(256, 256, 1)]
        return nn.Sequential(*layers, nn.Conv1d(256, 29, 1)), (1, 64, 800)

    def groups(act: Any) -> tuple[Any, tuple[int, ...]]:
        class Shuffled(nn.Module):
            def __init__(self, c: int) -> None:
                super().__init__()
                self.inner = nn.Sequential(
                    conv(c, c, 1, g=4, act=act), nn.ChannelShuffle(4), conv(c, c, 3, g=c), conv(c, c, 1, g=4)
                )

            def forward(self, x):
                return nn.functional.relu(x + self.inner(x))

        return nn.Sequential(conv(3, 64, 3, 2, act=act), nn.MaxPool2d(3, 2, 1), *(Shuffled(64) for _ in range(3)),
                             conv(64, 128, 3, 2, g=8, act=act), *(Shuffled(128) for _ in range(4)),
                             nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100)), (1, 3, 224, 224)  # fmt: skip

    return {
        "yolo_silu": lambda: (Yolo(silu), (1, 3, 320, 320)),
        "yolo_hardswish": lambda: (Yolo(hard_swish), (1, 3, 320, 320)),
        "yolo_relu": lambda: (Yolo(relu), (1, 3, 320, 320)),
        "yolo_leaky": lambda: (Yolo(leaky), (1, 3, 320, 320)),
        "yolo_mish": lambda: (Yolo(mish), (1, 3, 320, 320)),
        "ssd_relu": lambda: ssd(relu, 300),
        "ssd_relu6": lambda: ssd(relu6, 300),
        "ssd_elu": lambda: ssd(elu, 300),
        "hand_prelu": lambda: hand(nn.PReLU, 224),
        "hand_relu": lambda: hand(relu, 224),
        "resolution_prelu": lambda: resolution(nn.PReLU),
        "resolution_relu": lambda: resolution(relu),
        "unet_relu": lambda: unet(relu),
        "unet_leaky": lambda: unet(leaky),
        "volume_relu": lambda: volume(relu),
        "volume_silu": lambda: volume(silu),
        "signal_relu": lambda: signal(relu),
        "signal_gelu": lambda: signal(gelu),
        "groups_relu": lambda: groups(relu),
        "groups_hardswish": lambda: groups(hard_swish),
    }


def made(name: str) -> tuple[Any, tuple[int, ...]]:
    """Return the network with a given name, with statistics of random data, and the shape of its input."""
    import torch

    torch.manual_seed(0)
    if name in TIMM:
        import timm

        module, shape = timm.create_model(name), (1, 3, TIMM[name], TIMM[name])
    elif name in TORCHVISION:
        import torchvision

        module, shape = torchvision.models.get_model(name, weights=None), (1, 3, TORCHVISION[name], TORCHVISION[name])
        if hasattr(module, "aux_logits"):
            module.aux_logits = False
            module.aux1 = module.aux2 = None
    else:
        module, shape = _blocks()[name]()
    norms = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.LayerNorm)
    for part in module.modules():
        if isinstance(part, norms) and part.weight is not None:
            torch.nn.init.uniform_(part.weight, 0.8, 1.2)
            torch.nn.init.normal_(part.bias, 0, 0.1)
    module.train()
    with torch.no_grad():  # statistics of the data, like those of a trained network
        for _ in range(3):
            module(torch.randn(2, *shape[1:]))
    return module.eval(), shape


def save(name: str, folder: Path) -> None:
    """Quantize a network and write ``model.xml`` into the folder."""
    import nncf
    import openvino as ov
    import torch

    module, shape = made(name)
    rng = np.random.default_rng(0)
    samples = [rng.standard_normal(shape).astype(np.float32) for _ in range(SAMPLES)]
    with torch.no_grad():
        model = ov.convert_model(module, example_input=torch.randn(shape), input=list(shape))
    is_transformer = any(isinstance(part, torch.nn.LayerNorm) for part in module.modules())
    options: dict[str, Any] = {"model_type": nncf.ModelType.TRANSFORMER} if is_transformer else {}
    # Asymmetric activations get asymmetric limits, as NNCF recommends.
    if "relu" not in name:
        options["preset"] = nncf.QuantizationPreset.MIXED
    quantized = nncf.quantize(model, nncf.Dataset(samples), subset_size=SAMPLES, **options)
    folder.mkdir(parents=True, exist_ok=True)
    ov.save_model(quantized, folder / "model.xml")


def main() -> int:
    """Create the files that the command line selects."""
    parser = argparse.ArgumentParser("benchmarks.nncf_files", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[""], metavar="PART", help="networks whose names contain one of these")
    options = parser.parse_args()
    for name in (*_blocks(), *TIMM, *TORCHVISION):
        folder = options.folder / name
        if (folder / "model.xml").exists() or not any(part in name for part in options.only):
            continue
        try:
            save(name, folder)
            print(name, flush=True)
        except Exception as error:  # any exception of a library; the other files are still created
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
