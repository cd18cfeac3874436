"""Recordings as inputs of a model: WAV files, and the log-mel spectrogram of Whisper."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from onnx_specops.generation.errors import GenerationError

AudioLike = str | os.PathLike[str] | np.ndarray
"""The path of a WAV file, or samples ``[samples]`` from -1 to 1 at the sampling rate of the model."""

_INTEGERS, _FLOATS, _EXTENSIBLE = 1, 3, 0xFFFE
_UNKNOWN = 0x7FFF0000
"""Programs that write to a pipe state at least this size, because they do not know it."""
_TYPES = {(_INTEGERS, 8): "u1", (_INTEGERS, 16): "<i2", (_INTEGERS, 32): "<i4", (_FLOATS, 32): "<f4", (_FLOATS, 64): "<f8"}


def read_audio(audio: AudioLike, rate: int) -> np.ndarray:
    """Return the samples of a recording, in float32. Several channels are averaged.

    Args:
        audio: the recording.
        rate: the sampling rate that the model requires.

    Raises:
        GenerationError: the file cannot be read, or has another sampling rate.
    """
    if isinstance(audio, np.ndarray):
        if audio.ndim != 1 or audio.dtype.kind != "f":
            raise GenerationError(f"the audio is {audio.dtype} {list(audio.shape)}; expected floats [samples]")
        return audio.astype(np.float32)
    path = Path(audio)
    try:
        stated, samples = _read_wav(path.read_bytes())
    except OSError as error:
        raise GenerationError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, struct.error) as error:
        raise GenerationError(f"{path} cannot be read as a WAV file: {error}") from error
    if stated != rate:
        remedy = f"ffmpeg -i {path.name} -ar {rate} OUT.wav converts it"
        raise GenerationError(f"{path} has a sampling rate of {stated} Hz; expected {rate} Hz: {remedy}")
    return samples


def _read_wav(content: bytes) -> tuple[int, np.ndarray]:
    """Return the sampling rate and the averaged channels of a WAV file: integers of 8 to 32 bits, or floats.

    Python's module ``wave`` does not read floats.
    """
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise ValueError("it does not start with RIFF and WAVE")
    place, form = 12, None
    while place + 8 <= len(content):
        name, size = content[place : place + 4], struct.unpack_from("<I", content, place + 4)[0]
        chunk = content[place + 8 : place + 8 + size]
        if name == b"fmt ":
            if len(chunk) < (26 if chunk[:2] == _EXTENSIBLE.to_bytes(2, "little") else 16):
                raise ValueError(f"its format is cut after {len(chunk)} bytes")
            kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", chunk)
            form = (struct.unpack_from("<H", chunk, 24)[0] if kind == _EXTENSIBLE else kind), bits
        elif name == b"data":
            if form is None:
                raise ValueError("its format is missing")
            if channels == 0:
                raise ValueError("it has no channels")
            if len(chunk) < size < _UNKNOWN:
                raise ValueError(f"it is cut: it has {len(chunk)} of {size} bytes of samples")
            frame = channels * bits // 8
            if frame == 0 or (form not in _TYPES and form != (_INTEGERS, 24)):
                raise ValueError(f"its format is {form[0]} with {bits} bits; expected 1 (integers) or 3 (floats)")
            return rate, _samples(chunk[: len(chunk) // frame * frame], form).reshape(-1, channels).mean(1, dtype=np.float32)
        place += 8 + size + size % 2
    raise ValueError("it has no samples")


def _samples(data: bytes, form: tuple[int, int]) -> np.ndarray:
    """Return samples as floats from -1 to 1."""
    kind, bits = form
    if bits == 24:
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return wide.view("<i4")[:, 0] / np.float32(2**31)
    found = np.frombuffer(data, _TYPES[form])
    if kind == _FLOATS:
        return found.astype(np.float32)
    return (found.astype(np.float32) - (128 if bits == 8 else 0)) / np.float32(2 ** (bits - 1))


@dataclass(frozen=True)
class LogMel:
    """The feature extraction of Whisper, with the names of preprocessor_config.json.

    Attributes:
        feature_size: the number of mel bands.
        sampling_rate: samples per second.
        hop_length: samples per frame.
        n_fft: samples of a Fourier transform.
        chunk_length: seconds of a window.
        n_samples: samples of a window; shorter recordings are padded with zeros.
        nb_max_frames: frames of a window.
    """

    feature_size: int = 80
    sampling_rate: int = 16000
    hop_length: int = 160
    n_fft: int = 400
    chunk_length: int = 30
    n_samples: int = 480000
    nb_max_frames: int = 3000

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> LogMel:
        """Return the feature extraction of a configuration. The sizes of a window follow from its seconds.

        Raises:
            OverflowError, TypeError, ValueError: a setting is not a positive integer, or contradicts the others, or windows
                are too large.
        """
        found = {name: int(settings[name]) for name in cls.__dataclass_fields__ if settings.get(name) is not None}
        if wrong := [name for name, value in found.items() if value <= 0]:
            raise ValueError(f"{wrong[0]} is {found[wrong[0]]}")
        stated = cls(**found)
        samples = stated.chunk_length * stated.sampling_rate
        made = replace(stated, n_samples=samples, nb_max_frames=samples // stated.hop_length)
        for name in ("n_samples", "nb_max_frames"):
            if found.get(name, getattr(made, name)) != getattr(made, name):
                raise ValueError(f"{name} is {found[name]}, but the other settings require {getattr(made, name)}")
        if not made.nb_max_frames:
            raise ValueError(f"hop_length is {made.hop_length}, but a window has {samples} samples")
        if made.n_fft < made.hop_length:
            raise ValueError(f"n_fft is {made.n_fft}, so frames of {made.hop_length} samples are read in part")
        if max(samples, (made.nb_max_frames + made.feature_size) * made.n_fft) > _LARGEST:
            raise ValueError(f"a window of {samples} samples and {made.nb_max_frames} frames of {made.n_fft} is too large")
        return made

    def __call__(self, samples: np.ndarray) -> np.ndarray:
        """Return the features of a recording, ``[bands, frames]``.

        Raises:
            GenerationError: the recording is too short, or contains NaN or infinity.
        """
        half = self.n_fft // 2
        if not np.isfinite(samples).all():
            raise GenerationError("the audio has samples that are not finite numbers")
        if len(samples) <= half:
            raise GenerationError(f"the audio has {len(samples)} samples; expected more than {half}")
        # OpenVINO GenAI reflects the beginning, and pads the end with zeros.
        padded = np.zeros(max(len(samples), self.n_samples) + 2 * half)
        padded[half : half + len(samples)] = samples
        padded[:half] = padded[2 * half : half : -1]
        frames = np.lib.stride_tricks.sliding_window_view(padded, self.n_fft)[:: self.hop_length]
        frames = frames[: (len(padded) - self.n_fft) // self.hop_length]
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(self.n_fft) / self.n_fft)
        power = np.abs(np.fft.rfft(frames * window)) ** 2
        logs = np.log10(np.maximum(power @ self._bands, 1e-10))
        return ((np.maximum(logs, logs.max() - 8) + 4) / 4).T.astype(np.float32)

    @cached_property
    def _bands(self) -> np.ndarray:
        """The weight of each frequency in each band, with Slaney's mel scale, ``[frequencies, bands]``."""
        edges = _hertz(np.linspace(0, _mel(_HIGHEST), self.feature_size + 2))
        frequencies = np.linspace(0, self.sampling_rate / 2, 1 + self.n_fft // 2)[:, None]
        rising = (frequencies - edges[:-2]) / (edges[1:-1] - edges[:-2])
        falling = (edges[2:] - frequencies) / (edges[2:] - edges[1:-1])
        return np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))


_LARGEST = 1 << 26
"""The largest number of elements of an array for a window."""

_HIGHEST = 8000
"""The highest frequency of the bands."""

_STEP = np.log(6.4) / 27
"""The logarithm of the ratio of frequencies one mel apart, above 1,000 Hz (15 mels)."""


def _mel(hertz: float) -> float:
    return 3 * hertz / 200 if hertz < 1000 else 15 + float(np.log(hertz / 1000)) / _STEP


def _hertz(mels: np.ndarray) -> np.ndarray:
    return np.where(mels < 15, 200 * mels / 3, 1000 * np.exp(_STEP * (mels - 15)))
