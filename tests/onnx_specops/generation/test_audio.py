"""WAV files of all forms."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from onnx_specops.generation import GenerationError
from onnx_specops.generation.audio import LogMel, read_audio

SAMPLES = np.array([0, 0.5, -0.5, 0.25, -1, 0.125], np.float32)
RATE = 16000


def wav(
    data: bytes, kind: int = 1, bits: int = 16, channels: int = 1, before: bytes = b"", rate: int = RATE, more: bytes = b""
) -> bytes:
    block = channels * bits // 8
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * block, block, bits) + more
    chunks = b"fmt " + struct.pack("<I", len(form)) + form + before + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def integers(bits: int) -> np.ndarray:
    return (SAMPLES * 2 ** (bits - 1)).astype(np.int64)


CASES = {
    "8 bits": wav((integers(8) + 128).astype("u1").tobytes(), bits=8),
    "16 bits": wav(integers(16).astype("<i2").tobytes()),
    "24 bits": wav(b"".join(int(value).to_bytes(3, "little", signed=True) for value in integers(24)), bits=24),
    "32 bits": wav(integers(32).astype("<i4").tobytes(), bits=32),
    "float32": wav(SAMPLES.astype("<f4").tobytes(), kind=3, bits=32),
    "float64": wav(SAMPLES.astype("<f8").tobytes(), kind=3, bits=64),
    "extensible": wav(
        SAMPLES.astype("<f4").tobytes(), kind=0xFFFE, bits=32, more=struct.pack("<HHIH", 22, 32, 0, 3) + bytes(14)
    ),
    "two channels": wav(np.stack([SAMPLES * 1.5, SAMPLES / 2], 1).astype("<f4").tobytes(), kind=3, bits=32, channels=2),
    "other chunks": wav(
        integers(16).astype("<i2").tobytes(),
        before=b"LIST" + struct.pack("<I", 3) + b"abc\0" + b"fact" + struct.pack("<I", 0),
    ),
    "streamed": wav(integers(16).astype("<i2").tobytes()).replace(
        b"data" + struct.pack("<I", 12), b"data" + struct.pack("<I", 0xFFFFFFFF)
    ),
    "streamed, signed": wav(integers(16).astype("<i2").tobytes()).replace(
        b"data" + struct.pack("<I", 12), b"data" + struct.pack("<I", 0x7FFFFFFF - 36)
    ),
    "half a frame": wav(integers(16).astype("<i2").tobytes() + b"\1"),
}


@pytest.mark.parametrize("name", CASES)
def test_forms(name: str, tmp_path: Path) -> None:
    (tmp_path / "sound.wav").write_bytes(CASES[name])
    found = read_audio(tmp_path / "sound.wav", RATE)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, SAMPLES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not start with RIFF"),
        (b"ID3" + bytes(60), "does not start with RIFF"),
        (b"RIFF\0\0\0\0WAVE", "it has no samples"),
        (b"RIFF\0\0\0\0WAVEdata\4\0\0\0abcd", "its format is missing"),
        (b"RIFF\0\0\0\0WAVEfmt \4\0\0\0abcd", "its format is cut after 4 bytes"),
        (wav(b"abcd", kind=2, bits=4), "its format is 2 with 4 bits"),
        (wav(b"abcd", kind=1, bits=12), "its format is 1 with 12 bits"),
        (wav(b"abcd", kind=0xFFFE), "its format is cut after 16 bytes"),
        (wav(b"abcd", channels=0), "it has no channels"),
        (wav(bytes(8))[:-1], "it is cut: it has 7 of 8 bytes of samples"),
        (wav(bytes(8))[:-8], "it is cut: it has 0 of 8 bytes of samples"),
        (wav(b"abcd", rate=44100), "has a sampling rate of 44100 Hz; expected 16000 Hz: ffmpeg"),
    ],
)
def test_invalid_files(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "sound.wav").write_bytes(content)
    with pytest.raises(GenerationError, match=message):
        read_audio(tmp_path / "sound.wav", RATE)


def test_a_folder_is_not_a_recording(tmp_path: Path) -> None:
    with pytest.raises(GenerationError, match="cannot be read: Is a directory"):
        read_audio(tmp_path, RATE)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_samples_are_finite(value: float) -> None:
    samples = np.zeros(16000, np.float32)
    samples[9] = value
    with pytest.raises(GenerationError, match="not finite"):
        LogMel()(samples)


def test_the_sizes_of_a_window_follow_from_its_seconds() -> None:
    """As in transformers, which computes them again."""
    assert LogMel.of({}) == LogMel() == LogMel.of({"n_samples": 480000, "nb_max_frames": 3000})
    short = LogMel.of({"chunk_length": 10, "hop_length": 80})
    assert (short.n_samples, short.nb_max_frames) == (160000, 2000)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_fft": 0}, "n_fft is 0"),
        ({"chunk_length": 10, "n_samples": 480000}, "n_samples is 480000, but the other settings require 160000"),
        ({"hop_length": 80, "nb_max_frames": 3000}, "nb_max_frames is 3000, but the other settings require 6000"),
        ({"hop_length": 480001}, "hop_length is 480001, but a window has 480000 samples"),
        ({"chunk_length": 10**9}, "is too large"),
        ({"hop_length": 1, "n_fft": 4000}, "is too large"),
        ({"feature_size": 10**7}, "is too large"),
        ({"sampling_rate": 2**70}, "is too large"),
    ],
)
def test_contradictory_windows(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LogMel.of(settings)
