"""Tiny vision-language models with random weights as optimum-intel exports them, with their tokens in OpenVINO and
onnxruntime-genai.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.folders import phi_vision

SIZE, IMAGE, END, TOKENS = 320, 300, 0, 24
"""The number of tokens, the tokens of an image and of the end, and the number of generated tokens."""

CPU = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
_TEXT: dict[str, Any] = {
    "vocab_size": SIZE, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 1024, "head_dim": 16, "bos_token_id": 0, "eos_token_id": 0,
    "pad_token_id": 1, "tie_word_embeddings": False,
}  # fmt: skip
_TOKENS = {
    "image_token_id": IMAGE,
    "video_token_id": IMAGE + 1,
    "vision_start_token_id": IMAGE + 2,
    "vision_end_token_id": IMAGE + 3,
}
_QWEN: dict[str, Any] = {**_TEXT, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}, **_TOKENS}
_PATCHES = {
    "depth": 2,
    "num_heads": 2,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "in_channels": 3,
}
_SPECIAL = {
    "Gemma3": ["<image_soft_token>", "<start_of_image>", "<end_of_image>"],
    "Qwen2VL": ["<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>"],
}
_SPECIAL["Mistral3"] = ["[IMG]", "[IMG_BREAK]", "[IMG_END]", "[INST]"]
_SPECIAL["Qwen2_5_VL"] = _SPECIAL["Qwen3VL"] = _SPECIAL["Qwen3_5"] = _SPECIAL["Qwen2VL"]
_SPECIAL["Llava"] = ["<image>"]
_ONE_SIZE, _LONGEST, _OF_LLAVA = 64, 280, 28

CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "gemma3": (
        "Gemma3",
        {
            "text_config": {
                **_TEXT, "sliding_window": 300, "query_pre_attn_scalar": 16,
                "layer_types": ["sliding_attention", "full_attention"],
            },
            "vision_config": {
                "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
                "image_size": _ONE_SIZE, "patch_size": 4, "model_type": "siglip_vision_model",
            },
            "mm_tokens_per_image": 256, "image_token_index": IMAGE, "boi_token_index": IMAGE + 1,
            "eoi_token_index": IMAGE + 2, "tie_word_embeddings": False,
        },
    ),
    "llava": (
        "Llava",
        {
            "text_config": {**_TEXT, "model_type": "llama"},
            "vision_config": {
                "model_type": "clip_vision_model", "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
                "num_attention_heads": 2, "image_size": _OF_LLAVA, "patch_size": 14,
            },
            "image_token_index": IMAGE, "image_seq_length": 4, "tie_word_embeddings": False,
        },
    ),
    "mistral3": (
        "Mistral3",
        {
            "text_config": {**_TEXT, "model_type": "mistral", "sliding_window": None},
            "vision_config": {
                "model_type": "pixtral", "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
                "num_attention_heads": 2, "head_dim": 16, "image_size": _LONGEST, "patch_size": 14,
            },
            "image_token_index": IMAGE, "spatial_merge_size": 2, "tie_word_embeddings": False,
        },
    ),
    "qwen2-vl": ("Qwen2VL", {**_QWEN, "vision_config": {**_PATCHES, "embed_dim": 32, "hidden_size": 64}}),
    "qwen2.5-vl": (
        "Qwen2_5_VL",
        {
            **_QWEN,
            "vision_config": {
                **_PATCHES, "hidden_size": 32, "out_hidden_size": 64, "intermediate_size": 32, "window_size": 112,
                "fullatt_block_indexes": [1], "tokens_per_second": 2,
            },
        },
    ),
    "qwen3-vl": (
        "Qwen3VL",
        {
            "text_config": {
                **_TEXT, "num_hidden_layers": 3,
                "rope_parameters": {
                    "rope_type": "default", "rope_theta": 10000.0, "mrope_section": [3, 3, 2], "mrope_interleaved": True,
                },
            },
            "vision_config": {
                **_PATCHES, "depth": 3, "patch_size": 16, "hidden_size": 32, "out_hidden_size": 64, "intermediate_size": 32,
                "num_position_embeddings": 64, "deepstack_visual_indexes": [0, 1],
            },
            "tie_word_embeddings": False, **_TOKENS,
        },
    ),
    "qwen3.5": (
        "Qwen3_5",
        {
            "text_config": {
                **_TEXT, "head_dim": 32, "num_hidden_layers": 3,
                "layer_types": ["linear_attention", "full_attention", "linear_attention"],
                "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
                "linear_value_head_dim": 12, "linear_conv_kernel_dim": 4,
                "rope_parameters": {
                    "rope_type": "default", "rope_theta": 10000.0, "mrope_section": [3, 3, 2], "mrope_interleaved": True,
                    "partial_rotary_factor": 0.5,
                },
            },
            "vision_config": {
                **_PATCHES, "patch_size": 16, "hidden_size": 32, "out_hidden_size": 64, "intermediate_size": 32,
                "num_position_embeddings": 64,
            },
            "tie_word_embeddings": False, **_TOKENS,
        },
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Request:
    """A prompt with images.

    Attributes:
        text: the prompt, as onnxruntime-genai's processor takes it.
        images: the images, ``[height, width, 3]`` in 256 levels.
    """

    text: str
    images: tuple[np.ndarray, ...]


def make_vision(name: str, folder: Path, *, eight_bits: bool = False) -> None:
    """Create the folder of one of `CONFIGURATIONS`, with weights as they are or in 8 bits."""
    import torch
    import transformers
    from optimum.intel import OVModelForVisualCausalLM

    if name == phi_vision.NAME:
        phi_vision.make_phi(folder, _TEXT, _tokenizer(["<|user|>", "<|end|>", "<|assistant|>"]))
        return
    kind, settings = CONFIGURATIONS[name]
    torch.manual_seed(1)
    config = getattr(transformers, f"{kind}Config")(**settings)
    model = getattr(transformers, f"{kind}ForConditionalGeneration")(config).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            draw = torch.randn_like(parameter)
            parameter.copy_(0.3 * draw if parameter.ndim > 1 else (1 if key.endswith("weight") else 0) + 0.2 * draw)
    with tempfile.TemporaryDirectory() as place:
        model.save_pretrained(place)
        exporter = OVModelForVisualCausalLM.from_pretrained(place, export=True, compile=False, load_in_8bit=eight_bits)
        exporter.save_pretrained(folder)
    _tokenizer(_SPECIAL[kind]).save_pretrained(folder)
    if kind == "Gemma3":
        processor = transformers.Gemma3ImageProcessor(size={"height": _ONE_SIZE, "width": _ONE_SIZE})
    elif kind == "Llava":
        processor = transformers.CLIPImageProcessor(
            size={"shortest_edge": _OF_LLAVA}, crop_size={"height": _OF_LLAVA, "width": _OF_LLAVA}
        )
    elif kind == "Mistral3":
        processor = transformers.PixtralImageProcessor(size={"longest_edge": _LONGEST}, patch_size=14)
    else:
        patch = settings["vision_config"]["patch_size"]
        limits = {"min_pixels": (4 * patch) ** 2, "max_pixels": (2 * patch) ** 2 * 30}
        processor = transformers.Qwen2VLImageProcessor(patch_size=patch, **limits)
    processor.save_pretrained(folder)


def _tokenizer(special: Sequence[str]) -> Any:
    """Return a byte tokenizer whose tokens from `IMAGE` on are special."""
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=IMAGE, special_tokens=["<end>", "<pad>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator([(Path(__file__).parents[2] / "LICENSE").read_text()], trainer)
    made.add_special_tokens([AddedToken(text, special=True) for text in special])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<end>", eos_token="<end>", pad_token="<pad>"
    )


def place_of_image(name: str) -> str:
    """Return the text that represents an image in a prompt."""
    places = {"gemma3": "<start_of_image>", "llava": "<image>", "mistral3": "[IMG]", phi_vision.NAME: "<|image_1|>\n"}
    return places.get(name, "<|vision_start|><|vision_end|>")


def requests(name: str, *, smooth: bool = False) -> list[Request]:
    """Return prompts without an image, with one and with two. The images are noise or, if ``smooth``, waves.

    Resizing in two passes clips the contrasts of noise in between, so that it depends on the order of the passes.
    """
    before = place_of_image(name)
    draw = np.random.default_rng(1)
    if name == phi_vision.NAME:
        one, wide = (draw.integers(0, 256, (336, 336 * count, 3), np.uint8) for count in (1, 2))
        return [
            Request("Once upon a time", ()),
            Request("<|image_1|> What is it?", (wide,)),
            Request("<|image_1|> or <|image_2|>, which one?", (one, wide)),
        ]
    # for Mistral 3, transformers rounds sizes up and onnxruntime-genai to the nearest, and one image must be the largest
    sizes = [(80, 110), (190, 110), (112, 80)] if name == "mistral3" else [(90, 120), (200, 75), (112, 112)]
    images = [_waves(*size) if smooth else draw.integers(0, 256, (*size, 3), np.uint8) for size in sizes]
    return [
        Request("Once upon a time", ()),
        Request(f"Look: {before} What is it?", (images[0],)),
        Request(f"{before} or {before}, which one?", (images[1], images[2])),
    ]


def _waves(height: int, width: int) -> np.ndarray:
    y, x, color = np.ogrid[:height, :width, :3]
    return (127.5 + 100 * np.sin(x / 9 + color) * np.cos(y / 7 - color)).astype(np.uint8)


def exact_requests(name: str) -> list[Request]:
    """Return prompts with zero, one and two images that no processor resizes, because OpenVINO GenAI has its own resize."""
    draw, before = np.random.default_rng(5), place_of_image(name)
    plain = [Request("Once upon a time", ())]
    if name == phi_vision.NAME:
        # The whole image is reduced to a quarter too, which is exact for squares of four pixels.
        blocks = draw.integers(0, 256, (phi_vision.CROP, phi_vision.CROP, 3), np.uint8)
        return [*plain, Request(f"{before}What is it?", (blocks.repeat(4, 0).repeat(4, 1),))]
    patch = CONFIGURATIONS[name][1]["vision_config"]["patch_size"]
    one_size = {"gemma3": _ONE_SIZE, "llava": _OF_LLAVA}.get(name)
    sizes = [(one_size, one_size)] * 2 if one_size else [(8 * patch, 10 * patch), (4 * patch, 6 * patch)]
    images = [draw.integers(0, 256, (*size, 3), np.uint8) for size in sizes]
    if name == "qwen3-vl":
        plain = []  # OpenVINO GenAI 2026.4 fails on prompts without an image
    return [*plain, Request(f"{before}What is it?", (images[0],)), Request(f"{before} or {before}?", tuple(images))]


# With its backend "SDPA", OpenVINO GenAI 2026.4 counts the positions of a prompt for Gemma 3 from 1, but those of generated
# tokens from 0: the first generated token has the position of the last token of the prompt.
_BACKENDS = {"gemma3": "PA"}


def texts_in_pipeline(folder: Path, name: str) -> list[str]:
    """Return the texts that OpenVINO GenAI generates greedily for `exact_requests`."""
    import openvino as ov
    import openvino_genai
    import openvino_tokenizers
    import transformers

    texts = transformers.AutoTokenizer.from_pretrained(folder)
    with tempfile.TemporaryDirectory() as place:
        for path in folder.iterdir():
            (Path(place) / path.name).symlink_to(path.resolve())
        made = openvino_tokenizers.convert_tokenizer(texts, with_detokenizer=True)
        for part, model in zip(("tokenizer", "detokenizer"), made, strict=True):
            ov.save_model(model, Path(place) / f"openvino_{part}.xml")
        pipeline = openvino_genai.VLMPipeline(place, "CPU", ATTENTION_BACKEND=_BACKENDS.get(name, "SDPA"), **CPU)
        settings = openvino_genai.GenerationConfig(
            max_new_tokens=TOKENS, do_sample=False, apply_chat_template=False, eos_token_id=END
        )
        found = []
        for request in exact_requests(name):
            prompt = request.text
            for number in range(len(request.images)):
                prompt = prompt.replace(place_of_image(name), f"<ov_genai_image_{number}>", 1)
            images = [ov.Tensor(image) for image in request.images]
            found.append(pipeline.generate(prompt, images=images, generation_config=settings).texts[0])
        return found


def texts_in_genai(folder: Path, name: str) -> list[str]:
    """Return the texts of onnxruntime-genai for `exact_requests`, with its own processor."""
    return _detokenized(folder, in_genai(folder, name, processed=True, given=exact_requests(name)))


def texts_in_model(folder: Path, name: str) -> list[str]:
    """Return the texts of `onnx_specops.generation` for `exact_requests`."""
    from onnx_specops.generation import VisionLanguageModel, open_model

    model = open_model(folder)
    assert isinstance(model, VisionLanguageModel)
    found = []
    for request in exact_requests(name):
        list(model.write(request.text, TOKENS, images=request.images))
        found.append(model.given)
    return _detokenized(folder, found)


def texts_in_parts(folder: Path, name: str) -> list[str]:
    """Return the texts for `exact_requests` of a LLaVA whose three models are sessions, as docs/language-models.md combines
    them. As in OpenVINO GenAI, a line ends after an image.
    """
    import transformers
    from PIL import Image

    from onnx_specops import InferenceSession

    parts = ("vision_embeddings", "text_embeddings", "language")
    see, read, decode = (InferenceSession(folder / f"openvino_{part}_model.onnx") for part in parts)
    texts = transformers.AutoTokenizer.from_pretrained(folder)
    processor = transformers.AutoImageProcessor.from_pretrained(folder, use_fast=False)
    found = []
    for request in exact_requests(name):
        tokens = CONFIGURATIONS[name][1]["image_seq_length"]
        expanded = request.text.replace("<image>", f"{'<image>' * tokens}\n")
        ids = np.array([texts(expanded)["input_ids"]], np.int64)
        embeddings = read.run(None, {"input": ids})[0]
        if request.images:
            pixels = processor([Image.fromarray(image) for image in request.images], return_tensors="np")["pixel_values"]
            embeddings[ids == IMAGE] = see.run(None, {"pixel_values": pixels})[0].reshape(-1, embeddings.shape[-1])
        decode.reset_state()
        answer: list[int] = []
        past = 0
        while len(answer) < TOKENS and END not in answer:
            total = past + embeddings.shape[1]
            feeds = {
                "inputs_embeds": embeddings,
                "attention_mask": np.ones((1, total), np.int64),
                "position_ids": np.arange(past, total)[None],
                "beam_idx": np.zeros(1, np.int32),
            }
            answer.append(int(decode.run(["logits"], feeds)[0][0, -1].argmax()))
            embeddings, past = read.run(None, {"input": np.array([answer[-1:]])})[0], total
        found.append(_without_end(answer))
    return _detokenized(folder, found)


def _detokenized(folder: Path, found: Sequence[Sequence[int]]) -> list[str]:
    """Return texts by OpenVINO's detokenizer: others represent invalid bytes by different numbers of characters."""
    import openvino as ov
    import openvino_tokenizers
    import transformers

    texts = transformers.AutoTokenizer.from_pretrained(folder)
    _, detokenizer = openvino_tokenizers.convert_tokenizer(texts, with_detokenizer=True)
    decode = ov.compile_model(detokenizer, "CPU")
    return [str(decode(np.array([tokens], np.int64))[0][0]) for tokens in found]


def prepared(folder: Path, request: Request) -> dict[str, np.ndarray]:
    """Return the inputs that transformers computes for a request."""
    import transformers
    from PIL import Image

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    text, given = request.text, {}
    if "<|image_1|>" in text:
        return _in_crops(lambda part: tokenizer(part)["input_ids"], request)
    if request.images:
        processor = transformers.AutoImageProcessor.from_pretrained(folder, use_fast=False)
        merged = {"patch_size": 28} if "[IMG]" in text else {}  # as PixtralProcessor passes it
        images = [Image.fromarray(image) for image in request.images]
        given = dict(processor(images=images, return_tensors="np", **merged))
        given.pop("num_crops", None)
    if "<start_of_image>" in text:
        tokens = "<image_soft_token>" * 256
        text = text.replace("<start_of_image>", f"\n\n<start_of_image>{tokens}<end_of_image>\n\n")
    for height, width in given.get("image_sizes", ()):
        row = "[IMG_WIDE]" * (width // 28)
        rows = "[IMG_BREAK]".join([row] * (height // 28))
        text = text.replace("[IMG]", f"{rows}[IMG_END]", 1)
    text = text.replace("[IMG_WIDE]", "[IMG]")
    for grid in given.get("image_grid_thw", ()):
        tokens = "<|image_pad|>" * int(grid.prod() // 4)
        text = text.replace("<|vision_start|><|vision_end|>", f"<|vision_start|>{tokens}<|vision_end|>", 1)
    ids = np.array([tokenizer(text)["input_ids"]], np.int64)
    if "<start_of_image>" in tokenizer.get_vocab():
        given["token_type_ids"] = (ids == IMAGE).astype(np.int64)
    return {"input_ids": ids, **given}


def _in_crops(encode: Callable[[str], Sequence[int]], request: Request) -> dict[str, np.ndarray]:
    """Return the inputs of a Phi-3 vision. Negative numbers represent the tokens of images."""
    given = phi_vision.crops(request.images)
    text, ids = request.text, []
    for number, (height, width) in enumerate(given["image_sizes"], 1):
        before, text = text.split(f"<|image_{number}|>")
        ids += [*encode(before), *[-number] * phi_vision.tokens_of(height, width)]
    return {"input_ids": np.array([[*ids, *encode(text)]], np.int64), **given}


def in_openvino(folder: Path, name: str) -> list[list[int]]:
    """Return the tokens that transformers generates greedily with OpenVINO for each request."""
    import torch
    from optimum.intel import OVModelForVisualCausalLM

    if name == phi_vision.NAME:
        phi_vision.register()
    model = OVModelForVisualCausalLM.from_pretrained(folder, device="CPU", ov_config=CPU)
    if name == "mistral3":
        _encode_each(model)
    found = []
    for request in requests(name):
        given = {key: torch.from_numpy(np.asarray(value)) for key, value in prepared(folder, request).items()}
        mask = torch.ones_like(given["input_ids"])
        tokens = model.generate(**given, attention_mask=mask, do_sample=False, max_new_tokens=TOKENS)
        found.append(_without_end(tokens[0].tolist()[given["input_ids"].shape[1] :]))
    return found


def _encode_each(model: Any) -> None:
    """Let a Mistral 3 encode one image after the other; optimum-intel exports the encoder for one."""
    import torch

    of_one = model.get_vision_embeddings

    def of_all(pixels: Any, input_ids: Any = None, image_sizes: Any = None, **more: Any) -> Any:
        if input_ids is not None and input_ids.shape[1] == 1:
            return None
        sizes = image_sizes.tolist()
        each = [of_one(image[None, :, :h, :w], image_sizes=[(h, w)]) for image, (h, w) in zip(pixels, sizes, strict=True)]
        return torch.cat([torch.as_tensor(features) for features in each])

    model.get_vision_embeddings = of_all


def in_genai(folder: Path, name: str, *, processed: bool = False, given: Sequence[Request] | None = None) -> list[list[int]]:
    """Return the tokens of onnxruntime-genai, for the inputs of transformers or, if ``processed``, of its own processor.

    The requests are `requests` unless they are ``given``.
    """
    import onnxruntime_genai as genai

    model = genai.Model(str(folder))
    found = []
    for request in requests(name) if given is None else given:
        if request.text.startswith("<|image_1|>"):  # onnxruntime-genai resizes images to at least 12 crops
            encode = genai.Tokenizer(model).encode
            inputs = _named(_in_crops(lambda part, encode=encode: encode(part).tolist(), request))
        else:
            inputs = processed_by_genai(model, request) if processed else _named(prepared(folder, request))
        length = inputs["input_ids"].as_numpy().shape[1]
        parameters = genai.GeneratorParams(model)
        parameters.set_search_options(do_sample=False, max_length=length + TOKENS)
        generator = genai.Generator(model, parameters)
        generator.set_inputs(inputs)
        while not generator.is_done():
            generator.generate_next_token()
        found.append(_without_end(generator.get_sequence(0).tolist()[length:]))
    return found


def _without_end(tokens: list[int]) -> list[int]:
    """Remove the end token, which transformers returns and onnxruntime-genai does not."""
    return tokens[:-1] if tokens and tokens[-1] == END else tokens


def processed_by_genai(model: Any, request: Request) -> Any:
    """Return the inputs that onnxruntime-genai's processor computes."""
    import onnxruntime_genai as genai
    from PIL import Image

    processor = model.create_multimodal_processor()
    with tempfile.TemporaryDirectory() as place:
        paths = []
        for number, image in enumerate(request.images):
            paths.append(str(Path(place) / f"{number}.png"))
            Image.fromarray(image).save(paths[-1])
        return processor(request.text, images=genai.Images.open(*paths) if paths else None)


def _named(given: dict[str, np.ndarray]) -> Any:
    """Return inputs in the form that onnxruntime-genai takes."""
    import onnxruntime_genai as genai

    named: Any = genai.NamedTensors()
    for key, value in given.items():
        if key == "token_type_ids":  # the decoder computes it from the tokens
            continue
        named[key] = np.ascontiguousarray(value.astype(np.int32) if key == "input_ids" else value)
    if "pixel_values" in given:
        per_image: Any = [256]
        if "image_grid_thw" in given:
            per_image = given["image_grid_thw"].prod(1) // 4
        elif given["pixel_values"].ndim == 5:
            per_image = [phi_vision.tokens_of(*size) for size in given["image_sizes"]]
        elif "image_sizes" in given:
            per_image = (np.asarray(given["image_sizes"]) // 28).prod(1)
        named["num_image_tokens"] = np.array(per_image, np.int64)
    return named
