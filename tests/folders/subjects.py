"""Tiny models with random weights in folders as optimum-intel writes them, for `python -m tests.folders`.

Needs optimum-intel, transformers, diffusers, torch and openvino. The test suites do not need them: two of the folders are in
`files/`.
"""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.folders import hybrids, phi_vision
from tests.folders.language_models import make_language_model
from tests.folders.speech import make_whisper
from tests.folders.transcripts import make_transcriber
from tests.folders.vision import CONFIGURATIONS, make_vision

SIZE = 320
TEXTS = ["The converter names file, line, layer and remedy.", "Once upon a time"]
_WIDTHS: dict[str, Any] = {
    "vocab_size": SIZE, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 96, "initializer_range": 0.3, "pad_token_id": 0,
}  # fmt: skip
_IMAGE: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32,
    "patch_size": 8, "initializer_range": 0.3,
}  # fmt: skip
_SOUND: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 32,
    "conv_dim": (16, 16), "conv_stride": (5, 4), "conv_kernel": (10, 8), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2, "initializer_range": 0.3, "classifier_proj_size": 16,
    "mask_time_prob": 0.0, "mask_feature_prob": 0.0,
}  # fmt: skip


@dataclass(frozen=True)
class Encoder:
    """A model that runs once per input.

    Attributes:
        task: the suffix of ``OVModelFor...`` and ``ORTModelFor...``.
        architecture: the class name in transformers, without its task.
        settings: of its configuration.
        reads: ``"text"``, ``"image"`` or ``"sound"``.
        head: the name of the task in transformers' class; the task itself by default.
        labels: the number of classes.
    """

    task: str
    architecture: str
    settings: dict[str, Any] = field(default_factory=dict)
    reads: str = "text"
    head: str | None = None
    labels: int = 3


ENCODERS: dict[str, Encoder] = {
    "bert-embedding": Encoder("FeatureExtraction", "Bert", _WIDTHS, head="Model"),
    "modernbert-embedding": Encoder(
        "FeatureExtraction",
        "ModernBert",
        {**_WIDTHS, "local_attention": 8, "global_attn_every_n_layers": 2, "reference_compile": False},
        head="Model",
    ),
    "mpnet-embedding": Encoder("FeatureExtraction", "MPNet", _WIDTHS, head="Model"),
    "xlm-roberta-reranker": Encoder("SequenceClassification", "XLMRoberta", _WIDTHS, labels=1),
    "roberta-classifier": Encoder("SequenceClassification", "Roberta", _WIDTHS),
    "deberta-v2-tokens": Encoder("TokenClassification", "DebertaV2", {**_WIDTHS, "relative_attention": True,
        "position_buckets": 16, "pos_att_type": ["c2p", "p2c"], "type_vocab_size": 0}),
    "electra-tokens": Encoder("TokenClassification", "Electra", {**_WIDTHS, "embedding_size": 16}),
    "distilbert-answers": Encoder(
        "QuestionAnswering",
        "DistilBert",
        {"vocab_size": SIZE, "dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 96,
         "initializer_range": 0.3},
        labels=2,
    ),
    "bert-masked": Encoder("MaskedLM", "Bert", _WIDTHS),
    "vit-classifier": Encoder("ImageClassification", "ViT", _IMAGE, "image"),
    "convnext-classifier": Encoder(
        "ImageClassification",
        "ConvNext",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "image_size": 32, "initializer_range": 0.3},
        "image",
    ),
    "clip-zero-shot": Encoder("ZeroShotImageClassification", "CLIP", {}, "both", head="Model"),
    "siglip-zero-shot": Encoder("ZeroShotImageClassification", "Siglip", {}, "both", head="Model"),
    "wav2vec2-classifier": Encoder("AudioClassification", "Wav2Vec2", _SOUND, "sound", head="SequenceClassification"),
    "wav2vec2-speech": Encoder("CTC", "Wav2Vec2", _SOUND, "sound"),
    "wavlm-speaker": Encoder(
        "AudioXVector",
        "WavLM",
        {**_SOUND, "tdnn_dim": (16, 16, 32), "tdnn_kernel": (3, 3, 1), "tdnn_dilation": (1, 2, 1), "xvector_output_dim": 8},
        "sound",
        head="XVector",
    ),
    "wav2vec2-frames": Encoder("AudioFrameClassification", "Wav2Vec2", _SOUND, "sound"),
}  # fmt: skip


def _tokenizer(folder: Path, pairs: bool = True) -> None:
    """Create a WordPiece tokenizer like BERT's, with a few words and all letters."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=SIZE - 10, special_tokens=special)
    made.train_from_iterator([*TEXTS, (Path(__file__).parents[2] / "LICENSE").read_text()], trainer)
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    inputs = ["input_ids", "token_type_ids", "attention_mask"] if pairs else ["input_ids", "attention_mask"]
    texts = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, model_input_names=inputs, **names, model_max_length=64
    )
    texts.save_pretrained(folder)


def make_encoder(name: str, folder: Path) -> None:
    """Create the folder of one of `ENCODERS`."""
    import torch
    import transformers
    from optimum import intel

    told = ENCODERS[name]
    torch.manual_seed(1)
    config_class = getattr(transformers, f"{told.architecture}Config")
    if told.reads == "both":
        text = {**_WIDTHS, "bos_token_id": 2, "eos_token_id": 3, "max_position_embeddings": 32}
        more = {"projection_dim": 16} if told.architecture == "CLIP" else {}
        config = config_class(text_config=text, vision_config=_IMAGE, **more)
    else:
        config = config_class(**told.settings)
        config.num_labels = told.labels
    head = told.head or told.task
    torch_model = getattr(transformers, f"{told.architecture}{head if head == 'Model' else f'For{head}'}")(config).eval()
    with tempfile.TemporaryDirectory() as place:
        torch_model.save_pretrained(place)
        if told.reads in ("text", "both"):
            _tokenizer(Path(place), pairs=told.architecture in ("Bert", "Electra"))
        if told.reads in ("image", "both"):
            kind = transformers.CLIPImageProcessor if told.reads == "both" else transformers.ViTImageProcessor
            size = {"size": {"height": 32, "width": 32}}
            size |= {"crop_size": {"height": 32, "width": 32}} if told.reads == "both" else {}
            kind(**size).save_pretrained(place)
        if told.reads == "sound":
            transformers.Wav2Vec2FeatureExtractor(feature_size=1, sampling_rate=16000).save_pretrained(place)
        exporter = getattr(intel, f"OVModelFor{told.task}")
        exporter.from_pretrained(place, export=True, compile=False, load_in_8bit=False).save_pretrained(folder)
        for path in Path(place).iterdir():  # the tokenizer and the processor
            if path.suffix == ".json" and not (folder / path.name).exists():
                (folder / path.name).write_bytes(path.read_bytes())


def make_sentence_transformer(folder: Path, dense: bool = False) -> None:
    """Create `bert-embedding` as a repository of sentence-transformers: modules, and the IR in ``openvino/``. ``dense`` adds
    a layer after the pooling, whose weights are in another file.
    """
    import sentence_transformers
    import torch

    with tempfile.TemporaryDirectory() as place:
        make_encoder("bert-embedding", Path(place) / "ir")
        modules = importlib.import_module("sentence_transformers.models")
        with tempfile.TemporaryDirectory() as torch_place:
            _torch_encoder(Path(torch_place))
            transformer = modules.Transformer(torch_place, max_seq_length=48)
            pooling = modules.Pooling(transformer.get_word_embedding_dimension(), pooling_mode="mean")
            torch.manual_seed(3)
            added = [modules.Dense(transformer.get_word_embedding_dimension(), 16)] if dense else []
            parts = [transformer, pooling, *added, modules.Normalize()]
            sentence_transformers.SentenceTransformer(modules=parts).save(str(folder))
        (folder / "model.safetensors").unlink()
        (folder / "openvino").mkdir()
        for suffix in (".xml", ".bin"):
            (folder / f"openvino/openvino_model{suffix}").write_bytes(
                (Path(place) / f"ir/openvino_model{suffix}").read_bytes()
            )


def make_router(folder: Path) -> None:
    """Create a repository of sentence-transformers with one model for queries and another for documents, whose IRs are in
    ``query_0_Transformer/openvino/`` and ``document_0_Transformer/openvino/``.
    """
    import sentence_transformers

    modules = importlib.import_module("sentence_transformers.models")
    with tempfile.TemporaryDirectory() as place:
        routes = []
        for number, kind in enumerate(("query", "document")):
            _torch_encoder(Path(place) / kind, seed=number)
            transformer = modules.Transformer(f"{place}/{kind}", max_seq_length=48)
            routes.append([transformer, modules.Pooling(_WIDTHS["hidden_size"], pooling_mode="mean")])
        router = modules.Router.for_query_document(query_modules=routes[0], document_modules=routes[1])
        torch_folder = f"{place}/torch"
        sentence_transformers.SentenceTransformer(modules=[router]).save(torch_folder)
        exported = sentence_transformers.SentenceTransformer(
            torch_folder, backend="openvino", device="cpu", local_files_only=True
        )
        exported.save(str(folder))


def make_sam(folder: Path) -> None:
    """Create a model of Segment Anything, whose parts are an encoder of images and a decoder of prompts and masks."""
    import torch
    import transformers
    from optimum.intel import OVSamModel

    torch.manual_seed(1)
    size = {"image_size": 64, "patch_size": 8}
    config = transformers.SamConfig(
        vision_config={
            "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_dim": 32, "output_channels": 16,
            "global_attn_indexes": [1], "window_size": 4, "num_pos_feats": 8, **size,
        },
        prompt_encoder_config={"hidden_size": 16, "mask_input_channels": 4, **size},
        mask_decoder_config={"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "mlp_dim": 16,
                             "iou_head_hidden_dim": 16},
    )  # fmt: skip
    model = transformers.SamModel(config).eval()
    with torch.no_grad():  # initially, the masks are nearly zero
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.copy_(0.2 * torch.randn_like(parameter))
    with tempfile.TemporaryDirectory() as place:
        model.save_pretrained(place)
        transformers.SamImageProcessor(size={"longest_edge": 64}, pad_size={"height": 64, "width": 64}).save_pretrained(
            place
        )
        OVSamModel.from_pretrained(place, export=True, compile=False, load_in_8bit=False).save_pretrained(folder)


def _torch_encoder(folder: Path, seed: int = 1) -> None:
    import torch
    import transformers

    torch.manual_seed(seed)
    transformers.BertModel(transformers.BertConfig(**_WIDTHS)).save_pretrained(folder)
    _tokenizer(folder)


def _clip_tokenizer() -> Any:
    """Return CLIP's byte-pair tokenizer without merges: one token per letter."""
    import transformers

    letters = [chr(number) for number in range(33, 127)]
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
        (Path(place) / "merges.txt").write_text("#version: 0.2\n")
        return transformers.CLIPTokenizer(f"{place}/vocab.json", f"{place}/merges.txt", model_max_length=16)


def _t5_tokenizer() -> Any:
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    made.train_from_iterator(TEXTS, trainers.UnigramTrainer(vocab_size=100, special_tokens=special, unk_token="<unk>"))
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return transformers.T5TokenizerFast(tokenizer_object=made, extra_ids=0, model_max_length=16)


def _clip(projected: bool, width: int = 32) -> Any:
    import transformers

    config = transformers.CLIPTextConfig(
        vocab_size=190, hidden_size=width, intermediate_size=37, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=16, projection_dim=width, bos_token_id=188, eos_token_id=189, pad_token_id=189,
        hidden_act="gelu",
    )  # fmt: skip
    kind = transformers.CLIPTextModelWithProjection if projected else transformers.CLIPTextModel
    return kind(config).eval()


def _t5() -> Any:
    import transformers

    config = transformers.T5Config(vocab_size=SIZE, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4)
    return transformers.T5EncoderModel(config).eval()


def _unet(**more: Any) -> Any:
    import diffusers

    told: dict[str, Any] = {
        "block_out_channels": (32, 64), "layers_per_block": 1, "sample_size": 16, "in_channels": 4, "out_channels": 4,
        "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"), "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
        "cross_attention_dim": 32, "norm_num_groups": 8,
    }  # fmt: skip
    return diffusers.UNet2DConditionModel(**{**told, **more}).eval()


def _vae(channels: int = 4, **more: Any) -> Any:
    import diffusers

    return diffusers.AutoencoderKL(
        block_out_channels=[32, 64], in_channels=3, out_channels=3, latent_channels=channels, norm_num_groups=8,
        down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2, sample_size=32, **more,
    ).eval()  # fmt: skip


def _stable_diffusion() -> Any:
    import diffusers

    scheduler = diffusers.DDIMScheduler(
        beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", clip_sample=False, set_alpha_to_one=False
    )
    return diffusers.StableDiffusionPipeline(
        vae=_vae(), text_encoder=_clip(False), tokenizer=_clip_tokenizer(), unet=_unet(), scheduler=scheduler,
        safety_checker=None, feature_extractor=None, image_encoder=None, requires_safety_checker=False,
    )  # fmt: skip


def _stable_diffusion_xl() -> Any:
    import diffusers

    unet = _unet(
        attention_head_dim=(2, 4), use_linear_projection=True, addition_embed_type="text_time", addition_time_embed_dim=8,
        transformer_layers_per_block=(1, 2), projection_class_embeddings_input_dim=80, cross_attention_dim=64,
    )  # fmt: skip
    return diffusers.StableDiffusionXLPipeline(
        vae=_vae(), text_encoder=_clip(False), text_encoder_2=_clip(True), tokenizer=_clip_tokenizer(),
        tokenizer_2=_clip_tokenizer(), unet=unet, scheduler=diffusers.EulerDiscreteScheduler(),
    )  # fmt: skip


def _latent_consistency() -> Any:
    import diffusers

    return diffusers.LatentConsistencyModelPipeline(
        vae=_vae(), text_encoder=_clip(False), tokenizer=_clip_tokenizer(), unet=_unet(time_cond_proj_dim=32),
        scheduler=diffusers.LCMScheduler(), safety_checker=None, feature_extractor=None, requires_safety_checker=False,
    )  # fmt: skip


def _stable_diffusion_3() -> Any:
    import diffusers

    transformer = diffusers.SD3Transformer2DModel(
        sample_size=16, patch_size=1, in_channels=8, num_layers=2, attention_head_dim=8, num_attention_heads=4,
        joint_attention_dim=32, caption_projection_dim=32, pooled_projection_dim=64, out_channels=8,
    ).eval()  # fmt: skip
    return diffusers.StableDiffusion3Pipeline(
        vae=_vae(8, use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5),
        text_encoder=_clip(True), tokenizer=_clip_tokenizer(), text_encoder_2=_clip(True), tokenizer_2=_clip_tokenizer(),
        text_encoder_3=_t5(), tokenizer_3=_t5_tokenizer(), transformer=transformer,
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
    )  # fmt: skip


def _flux() -> Any:
    import diffusers

    transformer = diffusers.FluxTransformer2DModel(
        patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8),
    ).eval()  # fmt: skip
    return diffusers.FluxPipeline(
        vae=_vae(4, use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5),
        text_encoder=_clip(False), tokenizer=_clip_tokenizer(), text_encoder_2=_t5(), tokenizer_2=_t5_tokenizer(),
        transformer=transformer, scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
    )  # fmt: skip


def _sana() -> Any:
    import diffusers
    import transformers

    transformer = diffusers.SanaTransformer2DModel(
        patch_size=1, in_channels=4, out_channels=4, num_layers=1, num_attention_heads=2, attention_head_dim=4,
        num_cross_attention_heads=2, cross_attention_head_dim=4, cross_attention_dim=8, caption_channels=8, sample_size=32,
    ).eval()  # fmt: skip
    blocks = ("ResBlock", "EfficientViTBlock")
    vae = diffusers.AutoencoderDC(
        in_channels=3, latent_channels=4, attention_head_dim=2, encoder_block_types=blocks, decoder_block_types=blocks,
        encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8), encoder_qkv_multiscales=((), (5,)),
        decoder_qkv_multiscales=((), (5,)), encoder_layers_per_block=(1, 1), decoder_layers_per_block=(1, 1),
        downsample_block_type="conv", upsample_block_type="interpolate", decoder_norm_types="rms_norm",
        decoder_act_fns="silu", scaling_factor=0.41407,
    ).eval()  # fmt: skip
    text = transformers.Gemma2Config(
        head_dim=16, hidden_size=8, intermediate_size=64, num_attention_heads=2, num_hidden_layers=1,
        num_key_value_heads=2, vocab_size=SIZE, attn_implementation="eager",
    )  # fmt: skip
    return diffusers.SanaPipeline(
        tokenizer=_t5_tokenizer(), text_encoder=transformers.Gemma2Model(text).eval(), vae=vae, transformer=transformer,
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(),
    )  # fmt: skip


PIPELINES: dict[str, Callable[[], Any]] = {
    "stable-diffusion": _stable_diffusion,
    "stable-diffusion-xl": _stable_diffusion_xl,
    "latent-consistency": _latent_consistency,
    "stable-diffusion-3": _stable_diffusion_3,
    "flux": _flux,
    "sana": _sana,
}


def make_pipeline(name: str, folder: Path) -> None:
    """Create the folder of one of `PIPELINES`."""
    import torch
    from optimum.intel import OVDiffusionPipeline

    torch.manual_seed(1)
    pipeline = PIPELINES[name]()
    with tempfile.TemporaryDirectory() as place:
        pipeline.save_pretrained(place)
        OVDiffusionPipeline.from_pretrained(place, export=True, compile=False, load_in_8bit=False).save_pretrained(folder)


def make_stateless(name: str, folder: Path) -> None:
    """Create the folder of one of `STATELESS`: caches are inputs and outputs."""
    import torch
    import transformers
    from optimum import intel

    torch.manual_seed(1)
    kind, task = STATELESS[name], "Seq2SeqLM" if name.startswith("t5") else "CausalLM"
    model = getattr(transformers, f"AutoModelFor{task}").from_config(kind()).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.copy_(0.3 * torch.randn_like(parameter))
    with tempfile.TemporaryDirectory() as place:
        model.save_pretrained(place)
        how = {"export": True, "compile": False, "load_in_8bit": False, "stateful": False}
        getattr(intel, f"OVModelFor{task}").from_pretrained(place, **how).save_pretrained(folder)


def _llama_configuration() -> Any:
    import transformers

    more = {"num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2}
    return transformers.LlamaConfig(**{key: value for key, value in _WIDTHS.items() if key != "initializer_range"}, **more)


def _t5_configuration() -> Any:
    import transformers

    return transformers.T5Config(
        vocab_size=SIZE, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0, pad_token_id=0,
        eos_token_id=1,
    )  # fmt: skip


STATELESS: dict[str, Callable[[], Any]] = {"llama-stateless": _llama_configuration, "t5-stateless": _t5_configuration}
"""Language models that were exported with ``stateful=False``, and their configurations."""

PATCHES, _PATCH = 64, 16
"""The number of patches of an image in Pix2Struct, and their height and width."""


def make_pix2struct(folder: Path) -> None:
    """Create the folder of a Pix2Struct model, which reads an image as patches and writes a text. Its caches are inputs."""
    import torch
    import transformers
    from optimum.exporters.openvino import main_export

    torch.manual_seed(1)
    widths = {"hidden_size": 32, "d_kv": 8, "d_ff": 64}
    config = transformers.Pix2StructConfig(
        text_config={**widths, "vocab_size": SIZE, "num_layers": 2, "num_heads": 4},
        vision_config={**widths, "patch_embed_hidden_size": 3 * _PATCH**2, "num_hidden_layers": 2, "num_attention_heads": 4,
                       "seq_len": PATCHES},
    )  # fmt: skip
    model = transformers.Pix2StructForConditionalGeneration(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.copy_(0.3 * torch.randn_like(parameter))
    for name, token in (("decoder_start_token_id", 0), ("pad_token_id", 0), ("eos_token_id", 1)):
        setattr(model.generation_config, name, token)
    images = transformers.Pix2StructImageProcessor(max_patches=PATCHES)
    with tempfile.TemporaryDirectory() as place:
        model.save_pretrained(place)
        transformers.Pix2StructProcessor(images, _t5_tokenizer()).save_pretrained(place)
        how = {"task": "image-to-text-with-past", "library_name": "transformers", "convert_tokenizer": False}
        main_export(place, str(folder), **how)


MAKERS: dict[str, Callable[[Path], None]] = {
    "sentence-transformer": make_sentence_transformer,
    "sentence-transformer-dense": partial(make_sentence_transformer, dense=True),
    "sentence-transformer-router": make_router,
    "sam": make_sam,
    "pix2struct": make_pix2struct,
    **{name: partial(make_stateless, name) for name in STATELESS},
}
SPEECH: dict[str, Callable[[Path], None]] = {
    "whisper": make_whisper,
    "whisper-int8": partial(make_whisper, eight_bits=True),
    "whisper-transcripts": make_transcriber,
}
VISION: dict[str, Callable[[Path], None]] = {
    **{name: partial(make_vision, name) for name in CONFIGURATIONS},
    phi_vision.NAME: phi_vision.unpack,
    "qwen2.5-vl-int8": partial(make_vision, "qwen2.5-vl", eight_bits=True),
    "qwen3-vl-int8": partial(make_vision, "qwen3-vl", eight_bits=True),
    "qwen3.5-int8": partial(make_vision, "qwen3.5", eight_bits=True),
}


HYBRIDS: dict[str, Callable[[Path], None]] = {name: partial(hybrids.unpack, name) for name in hybrids.NAMES}


def make(name: str, folder: Path) -> Path:
    """Return the folder of a model, which is created if it does not exist."""
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            made = Path(place) / "made"
            made.mkdir()
            if maker_of_one := {**MAKERS, **SPEECH, **VISION, **HYBRIDS}.get(name):
                maker_of_one(made)
            else:
                maker = make_pipeline if name in PIPELINES else make_encoder if name in ENCODERS else make_language_model
                maker(name, made)
            made.rename(folder)
    return folder
