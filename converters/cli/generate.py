"""``specops generate``: generate text with a language model."""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from converters.cli.console import err, print_json, progress
from converters.cli.failures import failures
from converters.cli.options import Debug, Json, Kernels

if TYPE_CHECKING:
    from onnx_specops.generation import Sampling, SpeechModel, TextModel

_OPTIONS = ("temperature", "top_k", "top_p", "min_p", "num_beams")
_OF_BEAMS = ("num_beams", "num_beam_groups", "diversity_penalty")
"""Settings that apply with ``--beams``."""


def generate(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="An output folder of specops convert, with or without --genai. An OpenVINO folder is converted first.",
        ),
    ],
    prompt: Annotated[
        str | None,
        typer.Argument(
            metavar="TEXT",
            help="The text to continue or to answer. - reads it from standard input. With --chat: a single turn; if it is "
            "omitted, each line of standard input is a turn. With --audio: an optional prompt that precedes the recording.",
            show_default=False,
        ),
    ] = None,
    tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The maximum number of new tokens. The default is 64. With --audio: the maximum per 30 seconds of the "
            "recording; the default is the limit of the model.",
            show_default=False,
        ),
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="Start a conversation, using the chat template in the folder.")
    ] = False,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With --chat: the system message.", show_default=False)
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(min=0, help="The sampling temperature. 0 selects the most likely token.", show_default=False),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(min=0, help="Sample from the k most likely tokens. 0 means all tokens.", show_default=False)
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            help="Sample from the smallest set of most likely tokens whose total probability exceeds this value.",
            show_default=False,
        ),
    ] = None,
    min_p: Annotated[
        float | None,
        typer.Option(
            help="Sample from the tokens whose probability is at least this fraction of the highest one.", show_default=False
        ),
    ] = None,
    repetition_penalty: Annotated[
        float | None,
        typer.Option(
            help="Reduce the logits of tokens in the prompt and the generated text by this factor. The default is that of "
            "generation_config.json.",
            show_default=False,
        ),
    ] = None,
    presence_penalty: Annotated[
        float, typer.Option(help="Reduce the logits of tokens in the generated text by this number.")
    ] = 0.0,
    frequency_penalty: Annotated[
        float, typer.Option(help="Reduce the logits of tokens in the generated text by this number for each occurrence.")
    ] = 0.0,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The seed for sampling. The default is 0.", show_default=False)
    ] = None,
    beams: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The number of beams. The text appears at the end; with --audio, that of each window. By default, the most "
            "likely token is chosen in each step.",
            show_default=False,
        ),
    ] = None,
    beam_groups: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --beams: the number of groups that search for different texts. The default is that of "
            "generation_config.json.",
            show_default=False,
        ),
    ] = None,
    diversity_penalty: Annotated[
        float | None,
        typer.Option(
            help="With --beams: the number that is subtracted from the score of a token that an earlier group has in the "
            "same step. The default is that of generation_config.json.",
            show_default=False,
        ),
    ] = None,
    guidance_scale: Annotated[
        float | None,
        typer.Option(
            help="The scale of classifier-free guidance. Values above 1 strengthen the effect of the prompt. The default is "
            "that of generation_config.json, or 1.",
            show_default=False,
        ),
    ] = None,
    negative_prompt: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="The negative prompt of the guidance. The default is the last token of the prompt.",
            show_default=False,
        ),
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="A text at which the generation stops. Can be given several times.", show_default=False
        ),
    ] = None,
    image: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="An image for a vision-language model. Can be given several times.", show_default=False
        ),
    ] = None,
    audio: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A recording for a Whisper model, as a WAV file.", show_default=False),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            metavar="CODE",
            help="With --audio: the language of the recording, such as en. By default, the model detects it.",
            show_default=False,
        ),
    ] = None,
    translate: Annotated[bool, typer.Option("--translate", help="With --audio: translate into English.")] = False,
    timestamps: Annotated[
        bool, typer.Option("--timestamps", help="With --audio: print the start and end of each segment, in seconds.")
    ] = False,
    kernels: Annotated[Kernels, typer.Option(help="The kernels of the custom operators.")] = Kernels.auto,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Generate text with a language model: continue a text, answer a question, or transcribe a recording."""
    with failures(as_json, debug):
        from onnx_specops.generation.sampling import Sampling

        drawn: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "seed": seed}
        given = {name: value for name, value in drawn.items() if value is not None}
        if temperature == 0:
            given = {}
        try:
            sampling = Sampling(
                do_sample=bool(given),
                repetition_penalty=repetition_penalty,
                presence_penalty=presence_penalty,
                frequency_penalty=frequency_penalty,
                guidance_scale=guidance_scale,
                **given,
            )
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
        if system is not None and not chat:
            raise typer.BadParameter("it requires --chat", param_hint="--system")
        if audio is not None and chat:
            raise typer.BadParameter("a Whisper model does not support it", param_hint="--audio")
        for option, unset in (
            ("--language", language is None),
            ("--translate", not translate),
            ("--timestamps", not timestamps),
        ):
            if audio is None and not unset:
                raise typer.BadParameter("it requires --audio", param_hint=option)
        if prompt is None and not chat and audio is None:
            raise typer.BadParameter("specify a text, - for standard input, --chat, or --audio", param_hint="TEXT")
        if prompt is None and as_json and audio is None:
            raise typer.BadParameter("--json requires the text of the turn", param_hint="TEXT")
        if beams is not None and (sampling.do_sample or presence_penalty or frequency_penalty):
            raise typer.BadParameter(
                "it cannot be combined with sampling, or with penalties other than the repetition penalty",
                param_hint="--beams",
            )
        for option, value in (("--beam-groups", beam_groups), ("--diversity-penalty", diversity_penalty)):
            if value is not None and beams is None:
                raise typer.BadParameter("it requires --beams", param_hint=option)
        if any(not text for text in stop or ()):
            raise typer.BadParameter("it is empty", param_hint="--stop")
        text = sys.stdin.read() if prompt == "-" else prompt
        with _converted(folder, as_json) as ready:
            import onnxruntime

            from onnx_specops.generation import SettingWarning, SpeechModel, VisionLanguageModel, open_model

            # Its warnings would interrupt the text. Errors raise exceptions.
            onnxruntime.set_default_logger_severity(4)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SettingWarning)
                model = open_model(ready, kernels=kernels.value)
            replaced = {
                **dict.fromkeys(_OF_BEAMS, beams is not None),
                **dict.fromkeys(("do_sample", *drawn), sampling.do_sample),
            }
            remarks = _remarks([name for name in model.constraints.not_applied if not replaced.get(name)])
            if not as_json:
                err.print(*remarks, sep="\n", end="\n" if remarks else "", highlight=False, markup=False, soft_wrap=True)
            more: dict[str, Any] = {"images": image} if image else {}
            if beams is not None:
                more["beams"] = model.beams(beams, beam_groups, diversity_penalty)
            if negative_prompt is not None:
                sampling = replace(sampling, negative_prompt=tuple(model.encode(negative_prompt)))
            if image and not isinstance(model, VisionLanguageModel):
                raise typer.BadParameter("the model does not support images", param_hint="--image")
            if audio is not None and not isinstance(model, SpeechModel):
                raise typer.BadParameter("the model does not support recordings", param_hint="--audio")
            if isinstance(model, SpeechModel):
                if audio is None:
                    raise typer.BadParameter("a Whisper model requires --audio", param_hint="FOLDER")
                _transcribe(_Turn(model, (tokens, sampling, tuple(stop or ())), as_json, remarks), model, text or "", {
                    "audio": audio, "language": language, "timestamps": timestamps or None,
                    "task": "translate" if translate else None, **more,
                })  # fmt: skip
                return
            turn = _Turn(model, (tokens or 64, sampling, tuple(stop or ())), as_json, remarks)
            if not chat:
                assert text is not None
                turn.run(text, lambda: model.write(text, *turn.how, **more), shown=text if model.goes_on else "")
                return
            messages = [] if system is None else [{"role": "system", "content": system}]
            for said in _lines() if text is None else [text]:
                messages.append({"role": "user", "content": said})
                answer = turn.run(said, lambda: model.chat(messages, *turn.how, **more))
                messages.append({"role": "assistant", "content": answer})


@dataclass(frozen=True)
class _Turn:
    """Generates one text and shows it token by token, or as JSON at the end."""

    model: TextModel
    how: tuple[Any, Sampling, tuple[str, ...]]
    """The arguments ``tokens``, ``sampling`` and ``stop`` of `TextModel.write` and `chat`."""
    as_json: bool
    remarks: list[str]

    def run(
        self,
        prompt: str,
        begin: Callable[[], Iterable[str]],
        shown: str = "",
        more: Callable[[], dict[str, Any]] = dict,
    ) -> str:
        """Generate and return the text that follows a prompt; show ``shown`` before it.

        JSON also contains the result of ``more``.
        """
        started, first, pieces = time.perf_counter(), 0.0, []
        if shown and not self.as_json:
            typer.echo(shown, nl=False)
        for piece in begin():
            first = first or time.perf_counter() - started
            pieces.append(piece)
            if not self.as_json:
                typer.echo(piece, nl=False)
        seconds, count = time.perf_counter() - started, self.model.generated
        text = "".join(pieces)
        if self.as_json:
            document = {"prompt": prompt, "text": text, "ids": self.model.given, "tokens": count, "seconds": seconds}
            print_json({**document, **self._beams(), **more(), "remarks": self.remarks})
            return text
        typer.echo()
        rate = count / seconds if seconds else 0.0
        err.print(f"{count} tokens, {rate:.1f} tokens/s, first token after {first:.2f} s", highlight=False)
        return text

    def _beams(self) -> dict[str, Any]:
        """Return the complete texts of a beam search, the best one first."""
        found = [
            {"text": self.model.decode(one.tokens), "ids": list(one.tokens), "score": one.score}
            for one in self.model.hypotheses
        ]
        return {"hypotheses": found} if found else {}


def _remarks(names: list[str]) -> list[str]:
    """Return a note about settings of generation_config.json that are not applied, if any."""
    if not names:
        return []
    options = [f"--{name.replace('_', '-').replace('num-', '')}" for name in names if name in _OPTIONS]
    if "do_sample" in names and not options:
        options.append("--temperature 1")
    instead = f"; instead, specify {', '.join(options)}" if options else ""
    return [f"{', '.join(names)} of generation_config.json {'are' if len(names) > 1 else 'is'} not applied{instead}"]


def _transcribe(turn: _Turn, model: SpeechModel, text: str, given: dict[str, Any]) -> None:
    """Show the text of a recording."""

    def begin() -> Iterable[str]:
        found = model.write(text, *turn.how, **given)
        return _timed(model, found) if given["timestamps"] and not turn.as_json else found

    def more() -> dict[str, Any]:
        parts = [{"start": part.start, "end": part.end, "text": part.text} for part in model.segments]
        return {"language": model.language, **({"segments": parts} if given["timestamps"] else {})}

    turn.run(text, begin, more=more)


def _timed(model: SpeechModel, pieces: Iterable[str]) -> Iterator[str]:
    """Yield a line for each segment of a recording."""
    shown = 0
    for _ in chain(pieces, [""]):
        for part in model.segments[shown:]:
            end = "" if part.end is None else f"{part.end:.2f}"
            yield f"{chr(10) if shown else ''}[{part.start:.2f} - {end}] {part.text.strip()}"
            shown += 1


def _lines() -> Iterator[str]:
    """Yield the lines of standard input, without empty lines."""
    person = sys.stdin.isatty()
    while True:
        if person:
            typer.echo("> ", nl=False, err=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.rstrip("\r\n")


@contextmanager
def _converted(folder: Path, as_json: bool) -> Iterator[Path]:
    """Yield the folder, converted to a temporary folder if necessary."""
    from converters.folders import encoder_decoder, language_model
    from converters.folders.stateful import write_language_model
    from onnx_specops.generation import CONFIG, ENCODER, GenerationError

    def has(*names: str) -> bool:
        return any((folder / name).is_file() for name in names)

    # Some parts of a folder are sufficient: the conversion reports those that are missing.
    decoder = has(language_model.DECODER, language_model.LANGUAGE, language_model.TEXT_EMBEDDINGS)
    pair = not decoder and has(encoder_decoder.ENCODER, encoder_decoder.DECODER)
    ready = (folder / CONFIG).is_file() or (pair and (folder / ENCODER).is_file())
    if ready or not (decoder or pair):
        yield folder
        return
    from converters.convert import Conversion, convert_with
    from converters.folders.tokenizers import write_tokenizers
    from converters.options import Options

    def convert(model: Path, target: Path | None, *, adapt: Any = None, **more: Any) -> Conversion:
        return convert_with(model, target, Options(**more), adapt=adapt)

    with tempfile.TemporaryDirectory(prefix="specops-") as place:
        with progress(as_json) as step:
            step("converting")
            (encoder_decoder.write_encoder_decoder if pair else write_language_model)(folder, Path(place), convert)
            step("converting the tokenizer")
            write_tokenizers(folder, Path(place), convert)
        try:
            yield Path(place)
        except GenerationError as error:  # name the files that the user has
            raise GenerationError(str(error).replace(place, str(folder))) from error
