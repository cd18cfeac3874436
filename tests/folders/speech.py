"""A tiny Whisper model with random weights as optimum-intel exports it, with its tokens in OpenVINO and
onnxruntime-genai.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

SIZE, PROMPT, TOKENS, BEAMS = 320, [3, 20, 21], 24, 3
WIDTH = 16
CPU = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}


def byte_tokenizer(size: int, special: list[str]) -> Any:
    """Return a byte-level tokenizer of the repository's LICENSE, with ``special`` as its first tokens."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator([(Path(__file__).parents[2] / "LICENSE").read_text()], trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token=special[0])


def make_whisper(folder: Path, *, eight_bits: bool = False, texts: Any = None, **settings: Any) -> None:
    """Create the folder of a Whisper model with three layers, with weights as they are or in 8 bits.

    Args:
        folder: the target.
        eight_bits: whether weights have 8 bits.
        texts: the tokenizer; a byte tokenizer by default.
        settings: of the model's configuration, other than those of the default tokenizer.
    """
    import torch
    import transformers
    from optimum.intel import OVModelForSpeechSeq2Seq

    if texts is None:
        texts = byte_tokenizer(SIZE, ["<pad>", "<s>", "<|endoftext|>", "<|startoftranscript|>"])
        texts.eos_token = "<|endoftext|>"
    default: dict[str, Any] = {
        "vocab_size": SIZE, "d_model": WIDTH, "encoder_layers": 1, "decoder_layers": 3, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_source_positions": 1500,
        "max_target_positions": 64, "num_mel_bins": 80, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "decoder_start_token_id": 3, "begin_suppress_tokens": None, "suppress_tokens": None,
    }  # fmt: skip
    config = transformers.WhisperConfig(**{**default, **settings})
    torch.manual_seed(3)
    model = transformers.WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            draw = torch.randn_like(parameter)
            scale = 1.0 if "encoder_attn" in key or "embed" in key else 0.5
            parameter.copy_(scale * draw if parameter.ndim > 1 else (1 if "norm.weight" in key else 0) + 0.2 * draw)
    with tempfile.TemporaryDirectory() as place:
        model.save_pretrained(place)
        exporter = OVModelForSpeechSeq2Seq.from_pretrained(place, export=True, compile=False, load_in_8bit=eight_bits)
        exporter.save_pretrained(folder)
    texts.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=80).save_pretrained(folder)


def features(row: int) -> np.ndarray:
    """Return random features, [1, mels, frames]."""
    return np.random.default_rng(row).standard_normal((1, 80, 3000)).astype(np.float32)


def in_openvino(folder: Path, rows: int = 2) -> dict[str, list[list[int]]]:
    """Return the tokens that transformers generates with OpenVINO for each of the features, greedily and with beams."""
    import torch
    from optimum.intel import OVModelForSpeechSeq2Seq

    model = OVModelForSpeechSeq2Seq.from_pretrained(folder, device="CPU", ov_config=CPU)
    found: dict[str, list[list[int]]] = {}
    for name, beams in (("greedy", 1), ("beams", BEAMS)):
        found[name] = []
        for row in range(rows):
            tokens = model.generate(
                input_features=torch.from_numpy(features(row)), decoder_input_ids=torch.tensor([PROMPT]), do_sample=False,
                num_beams=beams, max_new_tokens=TOKENS, early_stopping=True,
            )  # fmt: skip
            found[name].append(tokens[0].tolist()[-TOKENS:])
    return found


def in_genai(folder: Path, rows: int = 2) -> dict[str, list[list[int]]]:
    """Return the tokens of onnxruntime-genai, for all features at once."""
    import onnxruntime_genai as genai

    model = genai.Model(str(folder))
    found = {}
    for name, beams in (("greedy", 1), ("beams", BEAMS)):
        parameters = genai.GeneratorParams(model)
        parameters.set_search_options(
            do_sample=False, num_beams=beams, max_length=len(PROMPT) + TOKENS, batch_size=rows, early_stopping=True
        )
        generator = genai.Generator(model, parameters)
        given: Any = genai.NamedTensors()
        given["audio_features"] = np.concatenate([features(row) for row in range(rows)])
        given["input_ids"] = np.array([PROMPT] * rows, np.int32)
        generator.set_inputs(given)
        while not generator.is_done():
            generator.generate_next_token()
        found[name] = [generator.get_sequence(row).tolist()[len(PROMPT) :] for row in range(rows)]
    return found
