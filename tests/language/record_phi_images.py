"""Record tests/language/vision/phi3-v.json: images and answers of the tiny Phi-3 vision with the processor of the model.

Run with transformers 4.53, optimum-intel, openvino and torchvision installed, and the Python files of
microsoft/Phi-3-vision-128k-instruct in the folder PHI3_VISION:

    PHI3_VISION=... python -m tests.language.record_phi_images
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from PIL import Image

from tests.folders import phi_vision, vision

RECORD = phi_vision.ARCHIVE.with_suffix(".json")
SIZES = [(90, 120), (200, 75), (336, 336), (672, 336), (13, 40), (500, 1300)]


def noise(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(2).integers(0, 256, (height, width, 3), np.uint8)


def places(count: int) -> np.ndarray:
    """Return the places of the recorded values of an array."""
    return np.random.default_rng(3).integers(0, count, 48)


def asked() -> list[tuple[str, tuple[np.ndarray, ...]]]:
    """Return prompts with images, as the processor of the model takes them."""
    return [
        ("Once upon a time", ()),
        ("<|image_1|>\nWhat is it?", (noise(90, 120),)),
        ("<|image_1|> or <|image_2|>, which one?", (noise(200, 75), noise(672, 336))),
    ]


def _processor(crops: int) -> Any:
    path = Path(os.environ["PHI3_VISION"]) / "image_processing_phi3_v.py"
    module = ModuleType("processing")
    text = path.read_text(encoding="utf-8").replace("AutoImageProcessor.register(", "(lambda *given: None)(")
    exec(compile(text, path, "exec"), module.__dict__)
    return module.__dict__["Phi3VImageProcessor"](num_crops=crops)


def _prepared(crops: int, images: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    found = _processor(crops).preprocess([Image.fromarray(image) for image in images], return_tensors="np")
    return {"pixel_values": found["pixel_values"], "image_sizes": np.asarray(found["image_sizes"])}


def main() -> None:
    from tests.language import record_models

    torch, transformers = record_models.torch, record_models.transformers
    rows = []
    for crops in (16, 4):
        for size in SIZES:
            found = _prepared(crops, (noise(*size),))
            count = 1 + int(np.prod(found["image_sizes"][0] // phi_vision.CROP))
            values = found["pixel_values"][0, :count].ravel()
            rows.append({
                "crops": crops, "size": size, "sizes": found["image_sizes"][0].tolist(),
                "values": values[places(values.size)].astype(float).round(6).tolist(),
            })  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        phi_vision.unpack(folder)
        phi_vision.register()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        model = record_models.OVModelForVisualCausalLM.from_pretrained(folder, device="CPU", ov_config=vision.CPU)
        answers = []
        for text, images in asked():
            given = _prepared(16, images) if images else {}
            ids: list[int] = []
            for number, (height, width) in enumerate(given.get("image_sizes", ()), 1):
                before, text = text.split(f"<|image_{number}|>")
                ids += [*tokenizer(before)["input_ids"], *[-number] * phi_vision.tokens_of(height, width)]
            tokens = torch.tensor([[*ids, *tokenizer(text)["input_ids"]]])
            more = {name: torch.from_numpy(value) for name, value in given.items()}
            mask = torch.ones_like(tokens)
            whole = model.generate(
                input_ids=tokens, attention_mask=mask, do_sample=False, max_new_tokens=vision.TOKENS, **more
            )
            answer = whole[0].tolist()[tokens.shape[1] :]
            answers.append(answer[:-1] if answer[-1] == vision.END else answer)
    RECORD.write_text(json.dumps({"images": rows, "answers": answers}) + "\n")


if __name__ == "__main__":
    main()
