"""Vision models, and models of images and text, of transformers."""

from __future__ import annotations

from tests.conformance.models.from_torch import imported, transformer
from tests.conformance.models.network import Network, floats, ids, mask, squares
from tests.conformance.models.rows.transformers_text import TEXT, TEXT_SIZES

VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 64,
    "patch_size": 16,
    "num_channels": 3,
    "num_labels": 5,
}


SQUARES_64 = squares(64)


def vision(name, sizes=SQUARES_64, family="vision", part=None, extra=None, **config):
    inputs = {"pixel_values": floats("b", 3, "h", "w")} | (extra or {})
    return Network(
        name, family, "transformers", imported(transformer(name, VISION | config, part), positional=False), inputs, sizes
    )


PYRAMID = {"image_size": 64, "num_channels": 3, "num_labels": 5}


def pyramid(name, sizes=SQUARES_64, **config):
    return Network(
        name,
        "vision",
        "transformers",
        imported(transformer(name, PYRAMID | config, config.pop("part", None)), positional=False),
        {"pixel_values": floats("b", 3, "h", "w")},
        sizes,
    )


RESNET = {
    "model_type": "resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 24, 32],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
    "out_features": ["stage2", "stage3", "stage4"],
}

DETR = {
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "backbone": None,
    "backbone_config": dict(RESNET),
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "num_queries": 10,
    "sizes": squares(64, 96),
}

RT_DETR = {
    "initializer_range": 0.3,  # with 0.01, scores differ by less than rounding, and they determine the selected queries
    "backbone_config": {
        "model_type": "rt_detr_resnet",
        "embedding_size": 8,
        "hidden_sizes": [8, 16, 24, 32],
        "depths": [1, 1, 1, 1],
        "layer_type": "basic",
        "out_features": ["stage2", "stage3", "stage4"],
    },
    "encoder_in_channels": [16, 24, 32],
    "encoder_hidden_dim": 32,
    "hidden_dim": 32,
    "encoder_ffn_dim": 64,
    "d_model": 32,
    "decoder_in_channels": [32, 32, 32],
    "decoder_ffn_dim": 64,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "encoder_attention_heads": 4,
    "num_queries": 10,
    "num_denoising": 0,
    "anchor_image_size": [64, 64],
    "decoder_offset_scale": 0.5,
    "layer_scale": 1.0,
    "eval_idx": -1,
}

CLIP = {
    "text_config": dict(TEXT, projection_size=32, eos_token_id=98, bos_token_id=1, pad_token_id=0),
    "vision_config": dict(VISION),
    "projection_dim": 16,
}


def multi(name, ids_first=False, **config):
    inputs = {"input_ids": ids(98, "b", "s"), "pixel_values": floats("b", 3, 64, 64), "attention_mask": mask("b", "s")}
    return Network(
        name, "images and text", "transformers", imported(transformer(name, config), positional=False), inputs, TEXT_SIZES
    )


NETWORKS = [
    vision("ViTModel"),
    vision("DeiTModel"),
    vision("BeitModel", use_relative_position_bias=True, layer_scale_init_value=0.1),
    pyramid(
        "SwinModel",
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
        patch_size=4,
        sizes=({"b": 2, "h": 64, "w": 64}, {"b": 1, "h": 64, "w": 64}),
    ),
    pyramid("Swinv2Model", embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4, patch_size=4),
    pyramid("ConvNextModel", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1], patch_size=4, sizes=squares(64, 96)),
    pyramid("ConvNextV2Model", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1], patch_size=4, sizes=squares(64, 96)),
    pyramid(
        "SegformerForSemanticSegmentation",
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 3, 4],
        decoder_hidden_size=32,
        patch_sizes=[7, 3, 3, 3],
        sizes=squares(64, 96),
    ),
    vision(
        "YolosForObjectDetection",
        image_size=[64, 96],
        num_detection_tokens=10,
        sizes=({"b": 2, "h": 64, "w": 96}, {"b": 1, "h": 80, "w": 64}),
    ),
    pyramid(
        "MobileViTModel",
        hidden_sizes=[32, 48, 64],
        neck_hidden_sizes=[8, 16, 24, 32, 48, 64, 80],
        sizes=SQUARES_64,
        patch_size=2,
    ),
    pyramid("MobileViTV2Model", image_size=64, width_multiplier=0.5, patch_size=2, sizes=SQUARES_64),
    vision(
        "DPTForDepthEstimation",
        backbone_out_indices=[0, 1, 2, 3],
        num_hidden_layers=4,
        neck_hidden_sizes=[8, 16, 24, 32],
        fusion_hidden_size=16,
        is_hybrid=False,
    ),
    pyramid(
        "GLPNForDepthEstimation",
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 3, 4],
        decoder_hidden_size=16,
        patch_sizes=[7, 3, 3, 3],
        sizes=squares(64, 96),
    ),
    pyramid(
        "PvtModel",
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 3, 4],
        patch_sizes=[4, 2, 2, 2],
    ),
    pyramid(
        "PvtV2Model",
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 3, 4],
        patch_sizes=[7, 3, 3, 3],
        sizes=squares(64, 96),
    ),
    pyramid(
        "RegNetModel",
        embedding_size=8,
        hidden_sizes=[8, 16, 24, 32],
        depths=[1, 1, 2, 1],
        groups_width=8,
        sizes=squares(64, 80),
    ),
    pyramid("ResNetModel", embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1], sizes=squares(64, 80)),
    pyramid("MobileNetV1Model", depth_multiplier=0.25, sizes=SQUARES_64),
    pyramid("MobileNetV2Model", depth_multiplier=0.35, sizes=SQUARES_64),
    vision("Dinov2Model", patch_size=14, image_size=70, sizes=squares(70)),
    vision("Dinov2WithRegistersModel", patch_size=14, image_size=70, sizes=squares(70)),
    vision("DINOv3ViTModel", sizes=squares(64, 96)),
    pyramid("DINOv3ConvNextModel", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], sizes=SQUARES_64),
    vision("IJepaModel"),
    vision("ViTMSNModel"),
    vision("VitDetModel", window_block_indices=[0], window_size=2, image_size=64, sizes=SQUARES_64),
    pyramid(
        "HieraModel",
        embed_dim=16,
        image_size=[64, 64],
        patch_stride=[4, 4],
        depths=[1, 1, 2],
        num_heads=[1, 2, 4],
        num_query_pool=2,
        masked_unit_size=[4, 4],
    ),
    pyramid(
        "FocalNetModel",
        embed_dim=16,
        depths=[1, 1],
        focal_levels=[2, 2],
        focal_windows=[3, 3],
        hidden_sizes=[16, 32],
        patch_size=4,
        sizes=SQUARES_64,
    ),
    pyramid("BitModel", embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_groups=4, sizes=SQUARES_64),
    pyramid(
        "PoolFormerModel", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 2, 1], patch_sizes=[7, 3, 3, 3], sizes=squares(64, 96)
    ),
    pyramid("SwiftFormerModel", embed_dims=[16, 24, 32, 48], depths=[1, 1, 1, 1], sizes=SQUARES_64),
    pyramid(
        "Swin2SRForImageSuperResolution",
        embed_dim=16,
        depths=[2],
        num_heads=[2],
        window_size=4,
        patch_size=1,
        image_size=32,
        num_channels_out=3,
        upscale=2,
        sizes=squares(32),
    ),
    vision("Data2VecVisionModel", use_relative_position_bias=True, layer_scale_init_value=0.1),
    pyramid(
        "UperNetForSemanticSegmentation",
        backbone_config={
            "model_type": "convnext",
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "out_features": ["stage1", "stage2", "stage3", "stage4"],
        },
        hidden_size=16,
        pool_scales=[1, 2, 3, 6],
        auxiliary_channels=8,
        auxiliary_in_channels=24,
        sizes=SQUARES_64,
    ),
    pyramid("TextNetModel", sizes=SQUARES_64, stem_out_channels=8, hidden_sizes=[8, 8, 16, 24, 32]),
    pyramid(
        "SuperPointForKeypointDetection",
        encoder_hidden_sizes=[8, 8, 16, 16],
        decoder_hidden_size=16,
        keypoint_decoder_dim=65,
        descriptor_decoder_dim=16,
        sizes=({"b": 1, "h": 64, "w": 64}, {"b": 1, "h": 64, "w": 64}),
    ),
    pyramid("DetrForObjectDetection", **DETR),
    pyramid("ConditionalDetrForObjectDetection", **DETR),
    pyramid("DeformableDetrForObjectDetection", **DETR),
    pyramid("TableTransformerForObjectDetection", **DETR),
    pyramid("DabDetrForObjectDetection", **DETR, hidden_size=32),
    pyramid("RTDetrForObjectDetection", **RT_DETR, sizes=SQUARES_64),
    pyramid("RTDetrV2ForObjectDetection", **RT_DETR, sizes=SQUARES_64),
    pyramid("DFineForObjectDetection", **RT_DETR | {"initializer_range": 0.05}, sizes=SQUARES_64),
    pyramid(
        "Mask2FormerForUniversalSegmentation",
        backbone_config={
            "model_type": "swin",
            "embed_dim": 16,
            "depths": [1, 1, 1, 1],
            "num_heads": [2, 2, 2, 2],
            "window_size": 4,
            "image_size": 64,
            "out_features": ["stage1", "stage2", "stage3", "stage4"],
        },
        hidden_dim=32,
        feature_size=32,
        mask_feature_size=32,
        num_attention_heads=4,
        encoder_layers=1,
        decoder_layers=2,
        dim_feedforward=64,
        encoder_feedforward_dim=64,
        num_queries=8,
        sizes=SQUARES_64,
    ),
    pyramid(
        "MaskFormerForInstanceSegmentation",
        backbone_config={
            "model_type": "swin",
            "embed_dim": 16,
            "depths": [1, 1, 1, 1],
            "num_heads": [2, 2, 2, 2],
            "window_size": 4,
            "image_size": 64,
            "out_features": ["stage1", "stage2", "stage3", "stage4"],
        },
        decoder_config={
            "model_type": "detr",
            "d_model": 32,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "num_queries": 8,
            "backbone_config": dict(RESNET),
        },
        fpn_feature_size=32,
        mask_feature_size=32,
        sizes=SQUARES_64,
    ),
    pyramid(
        "DepthAnythingForDepthEstimation",
        backbone_config={
            "model_type": "dinov2",
            "hidden_size": 32,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "image_size": 70,
            "patch_size": 14,
            "out_features": ["stage1", "stage2", "stage3", "stage4"],
            "reshape_hidden_states": False,
            "apply_layernorm": True,
        },
        reassemble_hidden_size=32,
        neck_hidden_sizes=[8, 16, 24, 32],
        fusion_hidden_size=16,
        head_hidden_size=8,
        patch_size=14,
        sizes=squares(70),
    ),
    pyramid(
        "SamModel",
        part="vision_encoder",
        vision_config=dict(VISION, output_channels=16, window_size=2, global_attn_indexes=[1], mlp_dim=64),
        sizes=SQUARES_64,
    ),
    Network(
        "VitMatteForImageMatting",
        "vision",
        "transformers",
        imported(
            transformer(
                "VitMatteForImageMatting",
                {
                    "backbone_config": dict(VISION, model_type="vitdet", num_channels=4, out_features=["stage2"]),
                    "hidden_size": 32,
                    "fusion_hidden_sizes": [32, 16, 8, 8],
                    "convstream_hidden_sizes": [8, 16, 24],
                    "batch_norm_eps": 1e-5,
                },
            ),
            positional=False,
        ),
        {"pixel_values": floats("b", 4, 64, 64)},
        ({"b": 2}, {"b": 1}),
    ),
    Network(
        "TimesformerModel",
        "video",
        "transformers",
        imported(transformer("TimesformerModel", VISION | {"num_frames": 2}), positional=False),
        {"pixel_values": floats("b", 2, 3, 64, 64)},
        ({"b": 2}, {"b": 1}),
    ),
    Network(
        "VideoMAEModel",
        "video",
        "transformers",
        imported(transformer("VideoMAEModel", VISION | {"num_frames": 4}), positional=False),
        {"pixel_values": floats("b", 4, 3, 64, 64)},
        ({"b": 2}, {"b": 1}),
    ),
    Network(
        "VivitModel",
        "video",
        "transformers",
        imported(transformer("VivitModel", VISION | {"num_frames": 4, "tubelet_size": [2, 16, 16]}), positional=False),
        {"pixel_values": floats("b", 4, 3, 64, 64)},
        ({"b": 2}, {"b": 1}),
    ),
    vision(
        "VisionEncoderDecoderModel",
        encoder=dict(VISION, model_type="vit"),
        decoder=dict(
            TEXT,
            model_type="trocr",
            d_model=32,
            decoder_layers=2,
            decoder_attention_heads=4,
            decoder_ffn_dim=64,
            cross_attention_hidden_size=32,
        ),
        extra={"decoder_input_ids": ids(99, "b", 5)},
        family="images and text",
    ),
    multi("CLIPModel", **CLIP),
    multi("SiglipModel", **CLIP),
    multi("AltCLIPModel", **dict(CLIP, text_config=dict(TEXT, project_dim=16, pad_token_id=1))),
    multi("ChineseCLIPModel", **CLIP),
    multi(
        "CLIPSegForImageSegmentation",
        **CLIP,
        extract_layers=[0, 1],
        reduce_dim=16,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=32,
    ),
    multi(
        "BlipModel",
        **dict(
            CLIP,
            text_config=dict(TEXT, encoder_hidden_size=32, bos_token_id=1, sep_token_id=1, pad_token_id=0, eos_token_id=1),
        ),
    ),
    multi(
        "GroupViTModel",
        text_config=dict(TEXT, eos_token_id=98),
        vision_config=dict(
            VISION, depths=[1, 1, 1], num_group_tokens=[8, 4, 0], num_output_groups=[8, 4, 2], num_hidden_layers=3
        ),
        projection_dim=16,
        projection_intermediate_dim=32,
    ),
    multi("OwlViTForObjectDetection", **CLIP | {"projection_dim": 32}, ids_first=True),
    multi("Owlv2ForObjectDetection", **CLIP | {"projection_dim": 32}, ids_first=True),
    multi(
        "FlavaModel",
        image_config=dict(VISION),
        text_config=dict(TEXT),
        multimodal_config={name: VISION[name] for name in ("hidden_size", "num_hidden_layers", "num_attention_heads")},
        hidden_size=32,
        projection_dim=16,
    ),
    multi(
        "BridgeTowerModel",
        text_config=TEXT | {"hidden_size": 64},
        vision_config=VISION | {"hidden_size": 64},
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
    ),
    multi("LayoutLMv3Model", **TEXT | dict(VISION, input_size=64, coordinate_size=6, shape_size=4)),
]
