"""Audio models of transformers."""

from __future__ import annotations

from tests.conformance.models.from_torch import imported, transformer
from tests.conformance.models.network import Network, floats, ids, mask
from tests.conformance.models.rows.transformers_text import SEQ, TEXT


def speech(name, inputs, sizes, part=None, family="speech", **config):
    return Network(name, family, "transformers", imported(transformer(name, config, part), positional=False), inputs, sizes)


AUDIO = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 32,
    "conv_dim": [16, 16, 16],
    "conv_kernel": [10, 3, 3],
    "conv_stride": [5, 2, 2],
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 2,
    "num_feat_extract_layers": 3,
    "conv_bias": True,
}


def audio(name, extra=None, **config):
    return speech(
        name, {"input_values": floats("b", "n")} | (extra or {}), ({"b": 2, "n": 800}, {"b": 1, "n": 1103}), **AUDIO | config
    )


NETWORKS = [
    audio("Wav2Vec2Model"),
    audio("Wav2Vec2ForCTC"),
    audio("HubertModel"),
    audio("WavLMModel", num_buckets=16, max_bucket_distance=32),
    audio("SEWModel", squeeze_factor=2),
    audio(
        "SEWDModel",
        squeeze_factor=2,
        position_buckets=16,
        max_position_embeddings=64,
        pos_att_type=("p2c", "c2p"),
        share_att_key=True,
        relative_attention=True,
        norm_rel_ebd="layer_norm",
    ),
    audio("UniSpeechModel"),
    audio("UniSpeechSatModel"),
    audio("Wav2Vec2ConformerModel", position_embeddings_type="relative"),
    audio("Data2VecAudioModel"),
    audio(
        "SpeechT5ForSpeechToText",
        use_cache=False,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_layers=2,
        decoder_attention_heads=4,
        decoder_ffn_dim=64,
        vocab_size=40,
        extra={"decoder_input_ids": ids(40, "b", 5)},
    ),
    speech(
        "WhisperModel",
        {"input_features": floats("b", 16, 64)},
        ({"b": 2}, {"b": 1}),
        "encoder",
        **SEQ | {"num_mel_bins": 16, "max_source_positions": 32, "max_target_positions": 32},
    ),
    speech(
        "Speech2TextModel",
        {"input_features": floats("b", "s", 16), "decoder_input_ids": ids(99, "b", "t")},
        ({"b": 2, "s": 32, "t": 5}, {"b": 1, "s": 44, "t": 8}),
        **SEQ
        | {
            "input_feat_per_channel": 16,
            "max_source_positions": 64,
            "max_target_positions": 32,
            "conv_channels": 32,
            "num_conv_layers": 2,
        },
    ),
    speech(
        "Wav2Vec2BertModel",
        {"input_features": floats("b", "s", 16)},
        ({"b": 2, "s": 20}, {"b": 1, "s": 31}),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        feature_projection_input_dim=16,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=8,
        right_max_position_embeddings=4,
    ),
    speech(
        "ASTModel",
        {"input_values": floats("b", 64, 16)},
        ({"b": 2}, {"b": 1}),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_length=64,
        num_mel_bins=16,
        patch_size=8,
        frequency_stride=4,
        time_stride=4,
    ),
    speech(
        "SpeechT5HifiGan",
        {"spectrogram": floats("b", "s", 16)},
        ({"b": 2, "s": 12}, {"b": 1, "s": 17}),
        model_in_dim=16,
        upsample_initial_channel=16,
        upsample_rates=[2, 2],
        upsample_kernel_sizes=[4, 4],
        resblock_kernel_sizes=[3],
        resblock_dilation_sizes=[[1, 3]],
    ),
    speech(
        "EncodecModel",
        {"input_values": floats("b", 1, 640)},
        ({"b": 2}, {"b": 1}),
        num_filters=4,
        upsampling_ratios=[4, 2],
        hidden_size=16,
        codebook_size=16,
        codebook_dim=16,
        target_bandwidths=[24.0],
        num_lstm_layers=1,
    ),
    speech(
        "UnivNetModel",
        {"input_features": floats("b", "s", 16), "noise_sequence": floats("b", "s", 8)},
        ({"b": 2, "s": 12}, {"b": 1, "s": 17}),
        model_in_channels=8,
        model_hidden_channels=8,
        num_mel_bins=16,
        resblock_kernel_sizes=[3],
        resblock_stride_sizes=[4],
        resblock_dilation_sizes=[[1, 3]],
        kernel_predictor_hidden_channels=8,
    ),
    speech(
        "MoonshineModel",
        {"input_values": floats("b", "n")},
        ({"b": 2, "n": 2000}, {"b": 1, "n": 2600}),
        "encoder",
        **dict(
            TEXT,
            encoder_num_hidden_layers=2,
            decoder_num_hidden_layers=2,
            encoder_num_attention_heads=4,
            decoder_num_attention_heads=4,
            encoder_num_key_value_heads=4,
            decoder_num_key_value_heads=4,
        ),
    ),
    speech(
        "ParakeetEncoder",
        {"input_features": floats("b", "s", 16), "attention_mask": mask("b", "s")},
        ({"b": 2, "s": 40}, {"b": 1, "s": 56}),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        num_mel_bins=16,
        subsampling_conv_channels=8,
        max_position_embeddings=64,
    ),
]
