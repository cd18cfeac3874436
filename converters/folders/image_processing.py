"""The image processing of transformers in the form of onnxruntime-genai."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from converters.folders.path_errors import path_error
from converters.folders.processors import FLAT, NESTED, processor, stated_in
from converters.folders.stated import Stated, is_integer, is_number, shown

CONFIG = "image_processor_config.json"
"""The file that genai_config.json names. transformers has its own processor_config.json."""

_LINEAR, _CUBIC = 2, 3
_INTERPOLATIONS = {0: "NEAREST", 1: "LANCZOS", _LINEAR: "LINEAR", _CUBIC: "CUBIC"}
_CROPS = 16  # the maximum for an image; onnxruntime-genai supports no other number
_CROP_TOKENS = 144
_OF_CLIP = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
}
"""The normalization of crops, which encoders of CLIP have and onnxruntime-genai always applies."""

_NOT_APPLIED = ("do_pan_and_scan", "do_center_crop", "do_pad")


class ImageProcessing:
    """The settings of a folder's image processor.

    Args:
        folder: the folder that optimum-intel wrote.

    Raises:
        ConversionError: the folder has no such settings, or they are damaged.
    """

    def __init__(self, folder: Path) -> None:
        for stated in (processor(folder, "image_processor"), stated_in(folder / NESTED)):
            if stated is not None and ("image_mean" in stated.values or "image_processor_type" in stated.values):
                self.path, self.settings, self.stated = stated.path, stated.values, stated
                return
        message = f"it has no settings of an image processor, neither in {NESTED} nor in {FLAT}"
        raise path_error(folder, message, f"add the {FLAT} of the model")

    @property
    def not_applied(self) -> list[str]:
        """The settings that onnxruntime-genai does not support."""
        crops = self.stated.size("num_crops", _CROPS)
        return [name for name in _NOT_APPLIED if self.settings.get(name)] + ["num_crops"] * (crops != _CROPS)

    def fixed_size(self, size: int) -> dict[str, Any]:
        """Return the processing that resizes images to a square.

        Args:
            size: the height and width of the model's images.
        """
        stated = self._size()
        if [stated.get("height"), stated.get("width")] != [size, size]:
            raise self._differs(f"resizes images to {stated}", f"images of {size} x {size}")
        resize = {"height": size, "width": size, "keep_aspect_ratio": 0}
        last = [("to_channel_first", "Permute3D", {"dims": [2, 0, 1]})]
        return self._processor("gemma_3_image_processing", resize, last, resample=_LINEAR)

    def patches(self, vision: Stated, patch: int = 14) -> dict[str, Any]:
        """Return the processing that resizes images to multiples of a patch, and splits them into patches.

        Args:
            vision: the vision encoder's configuration.
            patch: the default size of a patch.
        """
        sizes = {"patch_size": patch, "temporal_patch_size": 2, "merge_size": 2}
        for name in sizes:
            sizes[name] = self.stated.size(name, sizes[name])
            wanted = vision.size("spatial_merge_size" if name == "merge_size" else name, sizes[name])
            if sizes[name] != wanted:
                raise self._differs(f"has the {name} {sizes[name]}", f"{wanted}")
        limits = Stated(self.path, self._size(), f"{self.stated.place}size.")
        least = self.stated.size("min_pixels", limits.size("shortest_edge", 56 * 56))
        most = self.stated.size("max_pixels", limits.size("longest_edge", 28 * 28 * 1280))
        if least > most:
            raise self._differs(f"limits images to at least {least} and at most {most} pixels", "ascending limits")
        spatial = {"patch_size": sizes["patch_size"], "merge_size": sizes["merge_size"]}
        resize = {"height": 0, "width": 0, "smart_resize": 1, "min_pixels": least, "max_pixels": most, **spatial}
        return self._processor("qwen2_5_image_processor", resize, [("patch_image", "PatchImage", sizes)])

    def whole(self, patch: int, merge: int) -> dict[str, Any]:
        """Return the processing that resizes images to multiples of a token, and states their sizes.

        Args:
            patch: the height and width of a patch.
            merge: the number of patches in a row and a column that become one token.
        """
        stated = self.settings.get("patch_size", patch)
        if stated not in (patch, {"height": patch, "width": patch}):
            raise self._differs(f"has the patch_size {stated}", f"{patch}")
        limit = Stated(self.path, self._size(), f"{self.stated.place}size.")
        longest = self.stated.size("longest_edge", limit.size("longest_edge", 1024))
        limits = {"min_pixels": (patch * merge) ** 2, "max_pixels": longest**2}
        resize = {"height": longest, "width": longest, "smart_resize": 1, **limits, "patch_size": patch, "merge_size": merge}
        last = [("to_channel_first", "Permute3D", {"dims": [2, 0, 1]}), ("image_sizes", "PixtralImageSizes", {})]
        return self._processor("pixtral_image_processor", resize, last)

    def crops(self) -> dict[str, Any]:
        """Return the processing that splits images into crops of one size."""
        attributes = {
            name: self.stated.size(name, default) for name, default in (("num_crops", 4), ("num_img_tokens", _CROP_TOKENS))
        }
        if attributes["num_img_tokens"] != _CROP_TOKENS:
            raise self._differs(f"has the num_img_tokens {attributes['num_img_tokens']}", f"{_CROP_TOKENS}")
        for name, expected in _OF_CLIP.items():
            if self.settings.get(name) is not None and self._channels(name) != expected:
                message = f"its {name} is {shown(self.settings[name])}; onnxruntime-genai supports only {shown(expected)}"
                raise path_error(self.path, message, "convert it without --genai")
        color: dict[str, Any] = {"color_space": "RGB"}
        return self._steps(
            "image_processing", [("decode_image", "DecodeImage", color), ("crops", "Phi3ImageTransform", attributes)]
        )

    def _processor(
        self, name: str, resize: dict[str, Any], last: list[tuple[str, str, dict[str, Any]]], resample: int = _CUBIC
    ) -> dict[str, Any]:
        """Return the processing with the default ``resample`` of the model's image processor."""
        rescale = self.stated.number("rescale_factor", 1 / 255) if self._applies("do_rescale") else 1.0
        mean, deviation = ([self._channels(key) for key in ("image_mean", "image_std")]
                           if self._applies("do_normalize") else ([0.0] * 3, [1.0] * 3))  # fmt: skip
        steps: list[tuple[str, str, dict[str, Any]]] = [("decode_image", "DecodeImage", {"color_space": "RGB"})]
        if self._applies("do_resize"):
            steps.append(("resize", "Resize", {"interpolation": self._interpolation(resample), **resize}))
        steps += [
            ("rescale", "Rescale", {"rescale_factor": rescale}),
            ("normalize", "Normalize", {"mean": mean, "std": deviation}),
            *last,
        ]
        return self._steps(name, steps)

    def _steps(self, name: str, steps: list[tuple[str, str, dict[str, Any]]]) -> dict[str, Any]:
        transforms = [{"operation": {"name": step, "type": kind, "attrs": attributes}} for step, kind, attributes in steps]
        return {"processor": {"name": name, "transforms": transforms}}

    def _applies(self, name: str) -> bool:
        return self.settings.get(name, True) is not False

    def _interpolation(self, default: int) -> str:
        stated = self.settings.get("resample", default)
        if not is_integer(stated) or stated not in _INTERPOLATIONS:
            message = f"its resample is {shown(stated)}; onnxruntime-genai supports {', '.join(map(str, _INTERPOLATIONS))}"
            raise path_error(self.path, message, "convert it without --genai")
        return _INTERPOLATIONS[stated]

    def _size(self) -> Mapping[str, Any]:
        """Return the object ``size``; empty if there is none."""
        return self.stated.section("size").values if self.settings.get("size") is not None else {}

    def _channels(self, name: str) -> list[float]:
        stated = self.settings.get(name)
        if not isinstance(stated, list) or len(stated) != 3 or not all(is_number(one) for one in stated):
            raise Stated(self.path, {name: stated}, self.stated.place).invalid(name, "three numbers")
        found = [float(one) for one in stated]
        if name == "image_std" and not all(found):
            raise self.stated.invalid(name, "numbers other than 0")
        return found

    def _differs(self, stated: str, wanted: str) -> Exception:
        return path_error(self.path, f"it {stated}, but the model needs {wanted}", "use the file of the model")
