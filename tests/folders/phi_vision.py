"""A tiny Phi-3 vision with random weights, whose code is not part of transformers.

To create the recorded folder again, with transformers 4.53, the Python files of microsoft/Phi-3-vision-128k-instruct in the
folder PHI3_VISION, and ``num_hidden_layers`` 3 and ``intermediate_size`` 32 for the vision encoder in them:

    HF_HUB_OFFLINE=1 PHI3_VISION=... python -m tests.language.record_models phi3-v
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np

NAME, CROP, TOKENS_OF_CROP = "phi3-v", 336, 12
"""The name, and the numbers of pixels and tokens in a row and a column of a crop."""

NORMALIZATION = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}

ARCHIVE = Path(__file__).parents[1] / "language" / "vision" / f"{NAME}.zip"
_CLIP = "openai/clip-vit-large-patch14-336"  # optimum-intel reads its configuration


def unpack(folder: Path) -> None:
    """Create the recorded folder. OpenVINO GenAI normalizes images only as the file of the model's repository states."""
    with zipfile.ZipFile(ARCHIVE) as file:
        file.extractall(folder)
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | NORMALIZATION))


def make_phi(folder: Path, text: dict[str, Any], tokenizer: Any) -> None:
    """Create the folder, as optimum-intel exports it.

    Args:
        folder: the target.
        text: the configuration of the decoder.
        tokenizer: the tokenizer.
    """
    import torch
    import transformers
    from optimum.intel import OVModelForVisualCausalLM

    config = {
        **{key: value for key, value in text.items() if key != "head_dim"},
        "architectures": ["Phi3VForCausalLM"], "model_type": "phi3_v", "num_key_value_heads": text["num_attention_heads"],
        "auto_map": {
            "AutoConfig": "configuration_phi3_v.Phi3VConfig", "AutoModelForCausalLM": "modeling_phi3_v.Phi3VForCausalLM",
        },
        "max_position_embeddings": 131072, "original_max_position_embeddings": 4096, "sliding_window": 262144,
        "rope_scaling": {
            "type": "su", "short_factor": [1 + 0.05 * i for i in range(8)], "long_factor": [1 + 0.5 * i for i in range(8)],
        },
        "embd_layer": {
            "embedding_cls": "image", "hd_transform_order": "sub_glb", "projection_cls": "mlp", "use_hd_transform": True,
            "with_learnable_separator": True,
        },
        "img_processor": {"image_dim_out": 1024, "model_name": _CLIP, "name": "clip_vision_model", "num_img_tokens": 144},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as place, chdir(place):
        source = shutil.copytree(os.environ["PHI3_VISION"], Path(place) / "phi3_vision")
        (source / "config.json").write_text(json.dumps(config))
        vision = {
            "hidden_size": 1024, "image_size": CROP, "patch_size": 14, "num_hidden_layers": 3, "intermediate_size": 32,
            "num_attention_heads": 16,
        }  # fmt: skip
        transformers.CLIPConfig(vision_config=vision).save_pretrained(_CLIP)
        made = transformers.AutoConfig.from_pretrained(source, trust_remote_code=True)
        torch.manual_seed(1)
        load = transformers.AutoModelForCausalLM.from_config
        model = load(made, trust_remote_code=True, attn_implementation="eager").eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(_drawn(name, tuple(parameter.shape)))
        model.save_pretrained(source, safe_serialization=False)
        export = OVModelForVisualCausalLM.from_pretrained
        export(source, export=True, compile=False, load_in_8bit=False, trust_remote_code=True).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for path in folder.glob("*.py"):
        path.unlink()
    config = json.loads((folder / "config.json").read_text())
    config.pop("auto_map")
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(
        json.dumps({"image_processor_type": "Phi3VImageProcessor", "num_crops": 16, "num_img_tokens": 144})
    )


def _drawn(name: str, shape: tuple[int, ...]) -> Any:
    """Return random weights. Those of the vision encoder repeat, so that the archive is small."""
    import torch

    count = int(np.prod(shape))
    if "vision_embed" not in name:
        return 0.3 * torch.randn(shape) if len(shape) > 1 else 1 + 0.2 * torch.randn(shape)
    if len(shape) == 1:
        return (1 if name.endswith("weight") else 0) + 0.1 * torch.randn(count % 97 + 1).repeat(count)[:count]
    if count <= 10000:
        return 0.3 * torch.randn(shape)
    repeated = (0.03 * torch.randn(1024)).repeat(-(-count // 1024))[:count].reshape(shape)
    return repeated * torch.sign(torch.randn(shape[0])).reshape(-1, *[1] * (len(shape) - 1))


def register() -> None:
    """Let transformers read the configuration without the model's code."""
    import transformers

    class Configuration(transformers.PretrainedConfig):
        model_type = "phi3_v"

    transformers.AutoConfig.register("phi3_v", Configuration, exist_ok=True)


def crops(images: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    """Return images, whose sides are multiples of a crop, as inputs: the whole image, its crops, and zeros."""
    from PIL import Image

    counts = [(image.shape[0] // CROP, image.shape[1] // CROP) for image in images]
    most = max(rows * columns for rows, columns in counts)
    found = np.zeros((len(images), 1 + most, 3, CROP, CROP), np.float32)
    for place, image, (rows, columns) in zip(found, images, counts, strict=True):
        whole = np.asarray(Image.fromarray(image).resize((CROP, CROP)))
        parts = image.reshape(rows, CROP, columns, CROP, 3).transpose(0, 2, 4, 1, 3).reshape(-1, 3, CROP, CROP)
        place[0], place[1 : 1 + len(parts)] = whole.transpose(2, 0, 1) / 127.5 - 1, parts / 127.5 - 1
    return {"pixel_values": found, "image_sizes": np.array(counts, np.int64) * CROP}


def tokens_of(height: int, width: int) -> int:
    """Return the number of tokens of an image."""
    rows, columns = height // CROP * TOKENS_OF_CROP, width // CROP * TOKENS_OF_CROP
    return rows * (columns + 1) + 1 + TOKENS_OF_CROP * (TOKENS_OF_CROP + 1)
