"""Create tests/language/models: small language models as optimum-intel exports them, with OpenVINO's results.

Each NAME.zip is a folder with the decoder, its tokenizer and expected.json. Those in tests/language/hybrids have recurrences
or convolutions, most of them besides attention. Those in tests/language/text2text are encoder-decoders, in
tests/language/seq2seq only the decoder of one, in tests/language/vision vision-language models, and in
tests/language/speech models of audio. Some require certain versions of transformers: granite_hybrid 5.5 or newer, lfm2 and
lfm2_moe up to 5.4, mamba and falcon_mamba 5.3, qwen3_5, qwen3_5_moe and qwen3.5 5.2, qwen2.5-vl and qwen3-vl 5.0, qwen3_next
and zamba2 4.57, phi3-v 4.53 (see tests/folders/phi_vision.py). Run with transformers, optimum-intel, openvino_tokenizers and
openvino installed:

    python -m tests.language.record_models [NAME ...]
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

_find = importlib.util.find_spec
# Optional imports of optimum-intel that are not needed.
importlib.util.find_spec = lambda name, *rest: (  # type: ignore[assignment]
    None if name.split(".")[0] in ("torchvision", "timm", "diffusers") else _find(name, *rest)
)

import openvino as ov  # noqa: E402
import openvino_telemetry  # noqa: E402
import openvino_tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from optimum.intel import (  # noqa: E402
    OVModelForCausalLM,
    OVModelForSeq2SeqLM,
    OVModelForSpeechSeq2Seq,
    OVModelForVisualCausalLM,
)
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402

from tests.folders import speech, transcripts, vision  # noqa: E402

for _name in ("send_event", "start_session", "end_session", "force_shutdown", "send_error", "send_stack_trace"):
    setattr(openvino_telemetry.Telemetry, _name, lambda self, *args, **more: None)  # without waiting for the network

MODELS, HYBRIDS, SEQ2SEQ, TEXT2TEXT, VISION, SPEECH = (
    Path(__file__).parent / name for name in ("models", "hybrids", "seq2seq", "text2text", "vision", "speech")
)
ROOT = Path(__file__).parents[2]
CONFIGURATION_FILES = ("config.json", "generation_config.json")
SIZE, END, TEXT = 320, 0, "Once upon a time"
DEVICE = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
COMMON: dict[str, Any] = {
    "vocab_size": SIZE, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "bos_token_id": END, "eos_token_id": END, "pad_token_id": END,
    "head_dim": 16,
}  # fmt: skip
GPT = {
    "vocab_size": SIZE, "n_positions": 128, "n_embd": 32, "n_layer": 2, "n_head": 2, "bos_token_id": END,
    "eos_token_id": END, "pad_token_id": END,
}  # fmt: skip
LLAMA_3 = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", COMMON),
    "llama3": ("LlamaConfig", {**COMMON, "rope_parameters": LLAMA_3}),
    "qwen2": ("Qwen2Config", {**COMMON, "hidden_size": 64}),
    "qwen3": ("Qwen3Config", COMMON),
    "mistral": ("MistralConfig", {**COMMON, "sliding_window": 8}),
    "phi3": ("Phi3Config", {**COMMON, "hidden_size": 64, "original_max_position_embeddings": 128}),
    "cohere": ("CohereConfig", {**COMMON, "hidden_size": 64, "logit_scale": 1.0}),
    "gpt2": ("GPT2Config", GPT),
    "gptneox": ("GPTNeoXConfig", {**COMMON, "num_attention_heads": 2, "rotary_pct": 0.5}),
    "bloom": ("BloomConfig", {k: v for k, v in {**GPT, "hidden_size": 32}.items() if k != "n_embd"}),
    "gptoss": (
        "GptOssConfig",
        {
            **COMMON,
            "num_local_experts": 2,
            "num_experts_per_tok": 1,
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "mixtral": ("MixtralConfig", {**COMMON, "num_local_experts": 2}),
}
DELTA_RULE = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 12,
    "linear_conv_kernel_dim": 4,
}  # fmt: skip
STATE_SPACE = {
    "vocab_size": SIZE, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8, "expand": 2, "time_step_rank": 4,
    "conv_kernel": 4, "use_mambapy": False, "bos_token_id": END, "eos_token_id": END, "pad_token_id": END,
    "tie_word_embeddings": False,
}  # fmt: skip
_AROUND_ATTENTION = ["linear_attention", "full_attention", "linear_attention"]
HYBRID: dict[str, tuple[str, dict[str, Any]]] = {
    "granite_hybrid": (
        "GraniteMoeHybridConfig",
        {
            **{name: value for name, value in COMMON.items() if name != "head_dim"},
            "num_hidden_layers": 3, "layer_types": ["mamba", "attention", "mamba"], "num_local_experts": 0,
            "shared_intermediate_size": 64, "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 16, "mamba_n_groups": 2,
            "mamba_expand": 2, "mamba_chunk_size": 16, "position_embedding_type": "rope", "tie_word_embeddings": False,
        },
    ),
    "mamba": ("MambaConfig", STATE_SPACE),
    "falcon_mamba": ("FalconMambaConfig", STATE_SPACE),
    "zamba2": (
        "Zamba2Config",
        {
            **{name: value for name, value in COMMON.items() if name != "head_dim"},
            "num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"], "num_key_value_heads": 4,
            "num_mem_blocks": 1, "adapter_rank": 8, "n_mamba_heads": 4, "mamba_d_state": 8, "mamba_d_conv": 4,
            "mamba_expand": 2, "mamba_ngroups": 1, "chunk_size": 16, "use_mem_rope": True,
        },
    ),
    "qwen3_5": (
        "Qwen3_5TextConfig",
        {**COMMON, **DELTA_RULE, "num_hidden_layers": 3, "layer_types": _AROUND_ATTENTION, "tie_word_embeddings": False},
    ),
    "qwen3_next": (
        "Qwen3NextConfig",
        {
            **COMMON, **DELTA_RULE, "num_hidden_layers": 3, "layer_types": _AROUND_ATTENTION, "num_experts": 4,
            "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
            "decoder_sparse_step": 1,
        },
    ),
    "qwen3_5_moe": (
        "Qwen3_5MoeTextConfig",
        {
            **COMMON, **DELTA_RULE, "num_hidden_layers": 3, "layer_types": _AROUND_ATTENTION, "num_experts": 4,
            "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
            "tie_word_embeddings": False,
        },
    ),
    "lfm2_moe": (
        "Lfm2MoeConfig",
        {
            **{name: value for name, value in COMMON.items() if name != "head_dim"}, "num_hidden_layers": 3,
            "layer_types": ["conv", "full_attention", "conv"], "num_experts": 4, "num_experts_per_tok": 2,
            "moe_intermediate_size": 16, "num_dense_layers": 1,
        },
    ),
    "lfm2": (
        "Lfm2Config",
        {
            **{name: value for name, value in COMMON.items() if name != "head_dim"}, "num_hidden_layers": 3,
            "layer_types": ["conv", "full_attention", "conv"], "block_auto_adjust_ff_dim": False,
        },
    ),
}  # fmt: skip
COMPRESSED = {"granite_hybrid_int4": ("granite_hybrid", 4), "qwen3_5_int8": ("qwen3_5", 8)}
"""Models with compressed weights: the model, and the number of bits."""

ENCODER_DECODERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "t5": (
        "T5Config",
        "T5ForConditionalGeneration",
        {
            "vocab_size": 64, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_decoder_layers": 2, "num_heads": 2,
            "decoder_start_token_id": 0, "initializer_factor": 1.5,
        },
    ),
    "whisper": (
        "WhisperConfig",
        "WhisperForConditionalGeneration",
        {
            "vocab_size": 64, "d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 2,
            "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_source_positions": 1500,
            "max_target_positions": 128, "num_mel_bins": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
            "decoder_start_token_id": 3, "begin_suppress_tokens": None, "suppress_tokens": None, "init_std": 0.5,
        },
    ),
}  # fmt: skip
TEXT_TO_TEXT: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "t5_text": (
        "T5Config",
        "T5ForConditionalGeneration",
        {
            "vocab_size": SIZE, "d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_decoder_layers": 2,
            "num_heads": 4, "decoder_start_token_id": END, "pad_token_id": END, "eos_token_id": 1, "initializer_factor": 3.0,
        },
        {"repetition_penalty": 1.3, "bad_words_ids": [[7], [8, 9]], "suppress_tokens": [11], "begin_suppress_tokens": [12]},
    ),
    "bart_text": (
        "BartConfig",
        "BartForConditionalGeneration",
        {
            "vocab_size": SIZE, "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4,
            "decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 64,
            "pad_token_id": END, "bos_token_id": END, "eos_token_id": END, "decoder_start_token_id": END, "init_std": 0.5,
            "forced_bos_token_id": None, "forced_eos_token_id": None,
        },
        {"forced_bos_token_id": 5, "no_repeat_ngram_size": 3, "min_length": 20},
    ),
}  # fmt: skip
IMAGES_OF = ("gemma3", "mistral3", "phi3-v", "qwen2.5-vl", "qwen3-vl", "qwen3.5")
VISION_LANGUAGE = {"llava": "LlavaForConditionalGeneration"}
IMAGE, PIXELS, PATCH = SIZE - 1, 28, 14
"""The token that represents a patch of an image, and the sizes of the image and the patch."""
ANSWERED = ["Once upon a time", "The converter names file, line, layer and remedy.", "a"]


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """Return a byte-level BPE tokenizer of the repository's own text."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    corpus = [(ROOT / "README.md").read_text()]
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator(corpus, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|endoftext|>", bos_token="<|endoftext|>", pad_token="<|endoftext|>"
    )


def save_tokenizer(texts: transformers.PreTrainedTokenizerFast, folder: Path) -> None:
    """Save the tokenizer in the formats of transformers and OpenVINO."""
    texts.save_pretrained(folder)
    converted = openvino_tokenizers.convert_tokenizer(texts, with_detokenizer=True)
    for part, model in zip(("tokenizer", "detokenizer"), converted, strict=True):
        ov.save_model(model, folder / f"openvino_{part}.xml")


def export(torch_model: Any, exporter: Any, folder: Path, parts: Sequence[str], configurations: Sequence[str] = ()) -> None:
    """Write IRs with 16-bit weights, and configurations, as optimum-intel does.

    Args:
        torch_model: a model of transformers.
        exporter: optimum-intel's class for it.
        folder: the target.
        parts: the names of the IRs.
        configurations: the names of other files.
    """
    with tempfile.TemporaryDirectory() as place:
        shared = {"safe_serialization": False} if torch_model.config.model_type == "zamba2" else {}
        torch_model.save_pretrained(place, **shared)
        exported = Path(place) / "openvino"
        exporter.from_pretrained(place, export=True, compile=False, load_in_8bit=False).save_pretrained(exported)
        for name in configurations:
            (folder / name).write_bytes((exported / name).read_bytes())
        for name in parts:
            ov.save_model(ov.Core().read_model(exported / name), folder / name, compress_to_fp16=True)


class Oracle:
    """The model in OpenVINO."""

    def __init__(self, path: Path) -> None:
        compiled = ov.Core().compile_model(path, "CPU", DEVICE)
        self._names = {name for value in compiled.inputs for name in value.names}
        self._request = compiled.create_infer_request()
        config = json.loads(path.with_name("config.json").read_text()) if path.with_name("config.json").is_file() else {}
        self._runs = config.get("model_type") in ("mamba", "falcon_mamba", "zamba2")
        self._kernel = config.get("conv_kernel") or 0

    def reset(self) -> None:
        self._request.reset_state()

    def logits(self, ids: Any, past: int, rows: Any) -> np.ndarray:
        """Return [rows, vocabulary], the logits after the last token."""
        ids = np.asarray(ids, np.int64)
        count, length = ids.shape
        feeds = {
            "input_ids": ids,
            "attention_mask": np.ones((count, length if self._runs else past + length), np.int64),
            "position_ids": np.tile(np.arange(past, past + length), (count, 1)),
            "beam_idx": np.asarray(rows, np.int32),
            "cache_position": np.array([past]) if past else np.arange(self._kernel),
        }
        return self._request.infer({k: v for k, v in feeds.items() if k in self._names})[0][:, -1].astype(np.float64)

    def greedy(self, prompt: list[int], count: int) -> list[int]:
        self.reset()
        ids, past, found = [prompt], 0, []
        for _ in range(count):
            logits = self.logits(ids, past, [0])
            past += len(ids[0])
            found.append(int(logits[0].argmax()))
            ids = [[found[-1]]]
        return found

    def beams(self, prompt: list[int], count: int, width: int) -> list[int]:
        """Return the most likely text of a beam search that finds texts of the given length without end tokens."""
        self.reset()
        logits = self.logits([prompt] * width, 0, range(width))
        scores, found = np.array([0.0] + [-1e9] * (width - 1)), [[] for _ in range(width)]
        for step in range(count):
            largest = logits.max(-1, keepdims=True)
            whole = scores[:, None] + logits - largest - np.log(np.exp(logits - largest).sum(-1, keepdims=True))
            whole[:, END] = -1e18
            best = np.argsort(-whole.reshape(-1), kind="stable")[:width]
            rows, tokens = best // SIZE, best % SIZE
            found = [[*found[row], int(token)] for row, token in zip(rows, tokens, strict=True)]
            scores = whole.reshape(-1)[best]
            if step < count - 1:
                logits = self.logits(tokens[:, None], len(prompt) + step, rows)
        return found[0]


def make(name: str, folder: Path) -> None:
    """Create the folder of a model, and record OpenVINO's results."""
    base, bits = COMPRESSED.get(name, (name, None))
    class_name, settings = {**CONFIGURATIONS, **HYBRID}[base]
    torch.manual_seed(1)
    # with larger weights, optimum-intel's sums over all tokens, which compute Mamba's recurrence, are inaccurate
    spread = {"mamba": 0.2, "zamba2": 0.25}.get(base, 0.5)
    configuration = getattr(transformers, class_name)(**settings, initializer_range=spread)
    torch_model = transformers.AutoModelForCausalLM.from_config(configuration).eval()
    export(torch_model, OVModelForCausalLM, folder, ["openvino_model.xml"], CONFIGURATION_FILES)
    if bits is not None:
        compress_weights(folder / "openvino_model.xml", bits)
    save_tokenizer(tokenizer(), folder)
    encode, decode = (ov.compile_model(folder / f"openvino_{part}.xml") for part in ("tokenizer", "detokenizer"))
    oracle = Oracle(folder / "openvino_model.xml")
    draw = np.random.default_rng(1)
    prompts = [draw.integers(1, SIZE, count).tolist() for count in (11, 7, 4)]
    ids = [int(token) for token in encode([TEXT])["input_ids"][0]]
    answer = oracle.greedy(ids, 24)
    said = answer[: answer.index(END)] if END in answer else answer
    expected = {
        "prompts": prompts,
        "greedy": [oracle.greedy(prompt, 24) for prompt in prompts],
        "beams": oracle.beams(prompts[0], 12, 3),
        "text": TEXT,
        "ids": ids,
        "answer": said,
        "answer_text": str(decode([said])[0][0]) if said else "",
    }
    (folder / "expected.json").write_text(json.dumps(expected))


def compress_weights(path: Path, bits: int) -> None:
    """Compress the weights of an IR with NNCF, symmetrically, to 4 bits in groups of 8 if possible, otherwise to 8 bits."""
    import nncf

    model = ov.Core().read_model(path)
    if bits == 4:
        nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT4_SYM, group_size=8, all_layers=True)
    else:
        nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_ASYM)
    with tempfile.TemporaryDirectory() as place:
        ov.save_model(model, Path(place) / path.name)
        del model  # it maps the file
        for made in Path(place).iterdir():
            path.with_name(made.name).write_bytes(made.read_bytes())


def make_decoder(name: str, folder: Path) -> None:
    """Create the folder of the decoder of an encoder-decoder."""
    configuration, class_name, settings = ENCODER_DECODERS[name]
    torch.manual_seed(1)
    torch_model = getattr(transformers, class_name)(getattr(transformers, configuration)(**settings)).eval()
    exporter = OVModelForSpeechSeq2Seq if name == "whisper" else OVModelForSeq2SeqLM
    export(torch_model, exporter, folder, ["openvino_decoder_model.xml"])


def make_text_to_text(name: str, folder: Path) -> None:
    """Create the folder of an encoder-decoder of texts, and record the tokens that transformers generates with OpenVINO."""
    configuration, class_name, settings, rules = TEXT_TO_TEXT[name]
    torch.manual_seed(1)
    torch_model = getattr(transformers, class_name)(getattr(transformers, configuration)(**settings)).eval()
    for rule, value in rules.items():
        setattr(torch_model.generation_config, rule, value)
    texts = tokenizer()
    parts = [f"openvino_{part}_model.xml" for part in ("encoder", "decoder")]
    export(torch_model, OVModelForSeq2SeqLM, folder, parts, CONFIGURATION_FILES)
    save_tokenizer(texts, folder)
    model = OVModelForSeq2SeqLM.from_pretrained(folder, device="CPU", ov_config=DEVICE)
    decode = ov.compile_model(folder / "openvino_detokenizer.xml")
    expected, ends = [], [torch_model.generation_config.eos_token_id]
    for text in ANSWERED:
        given = texts([text], return_tensors="pt")
        found = model.generate(**given, max_new_tokens=40, num_beams=1, do_sample=False)[0][1:].tolist()
        ids = found[:-1] if found[-1] in ends else found
        expected.append({"text": text, "ids": ids, "answer": str(decode([ids])[0][0])})
    (folder / "expected.json").write_text(json.dumps(expected))


def make_vision(name: str, folder: Path) -> None:
    """Create the folder of a LLaVA model, an image, prompts with and without it, and the tokens generated with OpenVINO."""
    torch.manual_seed(1)
    vision = transformers.CLIPVisionConfig(
        hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=PIXELS, patch_size=PATCH
    )
    text = transformers.LlamaConfig(**COMMON, initializer_range=0.5)
    patches = (PIXELS // PATCH) ** 2
    configuration = transformers.LlavaConfig(
        vision_config=vision, text_config=text, image_token_index=IMAGE, image_seq_length=patches
    )
    torch_model = getattr(transformers, VISION_LANGUAGE[name])(configuration).eval()
    parts = [f"openvino_{part}model.xml" for part in ("language_", "text_embeddings_", "vision_embeddings_")]
    export(torch_model, OVModelForVisualCausalLM, folder, parts, CONFIGURATION_FILES)
    model = OVModelForVisualCausalLM.from_pretrained(folder, device="CPU", ov_config=DEVICE)
    draw = np.random.default_rng(1)
    image = draw.standard_normal((1, 3, PIXELS, PIXELS)).astype(np.float32)
    np.save(folder / "image.npy", image)
    before, after = (draw.integers(1, IMAGE, count).tolist() for count in (5, 7))
    expected = []
    for ids, given in (([*before, *[IMAGE] * patches, *after], {"pixel_values": torch.from_numpy(image)}), (before, {})):
        tensor = torch.tensor([ids])
        found = model.generate(
            input_ids=tensor, attention_mask=torch.ones_like(tensor), max_new_tokens=24, do_sample=False, **given
        )
        expected.append({"ids": ids, "image": bool(given), "answer": found[0].tolist()[-24:]})
    (folder / "expected.json").write_text(json.dumps(expected))


def make_images(name: str, folder: Path) -> None:
    """Create the folder of one of `vision.CONFIGURATIONS`, and record its tokens in OpenVINO."""
    vision.make_vision(name, folder)
    compress(folder)
    (folder / "expected.json").write_text(json.dumps(vision.in_openvino(folder, name)))


def compress(folder: Path) -> None:
    """Store the weights of a folder's IRs in 16 bits."""
    for path in sorted(folder.glob("*model.xml")):
        model = ov.Core().read_model(path)
        with tempfile.TemporaryDirectory() as place:
            ov.save_model(model, Path(place) / path.name, compress_to_fp16=True)
            del model  # it maps the file
            for made in Path(place).iterdir():
                (folder / made.name).write_bytes(made.read_bytes())


def make_speech(name: str, folder: Path) -> None:
    """Create the folder of a Whisper model, and record the tokens that transformers generates with OpenVINO."""
    speech.make_whisper(folder)
    (folder / "expected.json").write_text(json.dumps(speech.in_openvino(folder)))


def make_transcripts(name: str, folder: Path) -> None:
    """Create the folder of a Whisper model, and record the texts of recordings in OpenVINO GenAI."""
    transcripts.make_transcriber(folder)
    compress(folder)
    expected = transcripts.in_openvino(folder)
    settings = (folder / "generation_config.json").read_bytes()
    transcripts.as_english(folder)
    expected |= transcripts.in_openvino(folder, transcripts.ENGLISH)
    (folder / "generation_config.json").write_bytes(settings)
    (folder / "expected.json").write_text(json.dumps(expected))


def main(names: list[str]) -> None:
    makers = {
        **dict.fromkeys(CONFIGURATIONS, (make, MODELS)),
        **dict.fromkeys((*HYBRID, *COMPRESSED), (make, HYBRIDS)),
        **dict.fromkeys(ENCODER_DECODERS, (make_decoder, SEQ2SEQ)),
        **dict.fromkeys(TEXT_TO_TEXT, (make_text_to_text, TEXT2TEXT)),
        **dict.fromkeys(VISION_LANGUAGE, (make_vision, VISION)),
        **dict.fromkeys(IMAGES_OF, (make_images, VISION)),
        "whisper_speech": (make_speech, SPEECH),
        "whisper_transcripts": (make_transcripts, SPEECH),
    }
    for name in names or makers:
        maker, place_of_all = makers[name]
        archive = place_of_all / f"{name}.zip"
        archive.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory() as place:
            maker(name, Path(place))
            with zipfile.ZipFile(archive, "w") as file:
                for part in sorted(Path(place).iterdir()):
                    file.writestr(zipfile.ZipInfo(part.name, (1980, 1, 1, 0, 0, 0)), part.read_bytes(), zipfile.ZIP_LZMA)
        print(name, archive.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
