"""Parts of diffusers' pipelines."""

from __future__ import annotations

from tests.conformance.models.from_torch import diffuser, imported
from tests.conformance.models.network import Network, floats, ids, squares, uniform


def diffusion(name, inputs, sizes, positional=False, **options):
    return Network(name, "diffusion", "diffusers", imported(diffuser(name, options), positional=positional), inputs, sizes)


UB = {"norm_num_groups": 4, "layers_per_block": 1}


NETWORKS = [
    diffusion(
        "UNet2DModel",
        {"sample": floats("b", 3, "h", "w"), "timestep": ids(1000)},
        squares(32, 48),
        sample_size=32,
        block_out_channels=(8, 16),
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=8,
        **UB,
    ),
    diffusion(
        "UNet2DConditionModel",
        {"sample": floats("b", 4, "h", "w"), "timestep": ids(1000), "encoder_hidden_states": floats("b", 7, 32)},
        squares(16, 32),
        sample_size=16,
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=32,
        attention_head_dim=8,
        **UB,
    ),
    diffusion(
        "AutoencoderKL",
        {"sample": floats("b", 3, "h", "w")},
        squares(32, 48),
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        **UB,
    ),
    diffusion(
        "VQModel",
        {"sample": floats("b", 3, "h", "w")},
        squares(32, 48),
        block_out_channels=(8, 16),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        num_vq_embeddings=16,
        **UB,
    ),
    diffusion(
        "AutoencoderTiny",
        {"sample": floats("b", 3, "h", "w")},
        squares(32, 48),
        encoder_block_out_channels=(8, 8),
        decoder_block_out_channels=(8, 8),
        num_encoder_blocks=(1, 1),
        num_decoder_blocks=(1, 1),
    ),
    diffusion(
        "DiTTransformer2DModel",
        {"hidden_states": floats("b", 4, 16, 16), "timestep": ids(1000, "b"), "class_labels": ids(10, "b")},
        ({"b": 2}, {"b": 1}),
        num_attention_heads=2,
        attention_head_dim=16,
        in_channels=4,
        out_channels=4,
        num_layers=2,
        sample_size=16,
        num_embeds_ada_norm=10,
        norm_num_groups=4,
    ),
    diffusion(
        "SD3Transformer2DModel",
        {
            "hidden_states": floats("b", 4, 16, 16),
            "encoder_hidden_states": floats("b", 7, 32),
            "pooled_projections": floats("b", 24),
            "timestep": ids(1000, "b"),
        },
        ({"b": 2}, {"b": 1}),
        sample_size=16,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        caption_projection_dim=32,
        pooled_projection_dim=24,
        out_channels=4,
    ),
    diffusion(
        "FluxTransformer2DModel",
        {
            "hidden_states": floats("b", 16, 4),
            "encoder_hidden_states": floats("b", 7, 32),
            "pooled_projections": floats("b", 24),
            "timestep": uniform("b"),
            "img_ids": uniform(16, 3),
            "txt_ids": uniform(7, 3),
        },
        ({"b": 2}, {"b": 1}),
        patch_size=1,
        in_channels=4,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=24,
        axes_dims_rope=[4, 4, 8],
    ),
    diffusion(
        "ControlNetModel",
        {
            "sample": floats("b", 4, "h", "w"),
            "timestep": ids(1000),
            "encoder_hidden_states": floats("b", 7, 32),
            "controlnet_cond": floats("b", 3, "h2", "w2"),
        },
        ({"b": 2, "h": 16, "w": 16, "h2": 32, "w2": 32}, {"b": 1, "h": 16, "w": 16, "h2": 32, "w2": 32}),
        block_out_channels=(16, 32),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        cross_attention_dim=32,
        attention_head_dim=8,
        conditioning_embedding_out_channels=(8, 16),
        **UB,
    ),
    diffusion(
        "PixArtTransformer2DModel",
        {"hidden_states": floats("b", 4, 16, 16), "encoder_hidden_states": floats("b", 7, 32), "timestep": ids(1000, "b")},
        ({"b": 2}, {"b": 1}),
        num_attention_heads=2,
        attention_head_dim=16,
        in_channels=4,
        out_channels=8,
        num_layers=2,
        sample_size=16,
        cross_attention_dim=32,
        caption_channels=32,
        norm_num_groups=4,
        use_additional_conditions=False,
    ),
]
