"""Contradictions between a language model's configuration and its graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import NoneType

import onnx

from converters.errors import ConversionError, Fault, Problem
from converters.folders.genai_types import other_structure
from converters.folders.language_model import LanguageModel
from converters.folders.layouts import CONFIG, read_object
from converters.folders.modules import modules_of_another_type
from converters.folders.stated import is_integer, shown
from converters.formats import format_of
from converters.passes.attention import Decoder

GENERATION = "generation_config.json"

_REMEDY = "use the {} of the model"


@dataclass(frozen=True)
class Keys:
    """The keys of a configuration for sizes of the decoder.

    Attributes:
        layers, heads, width: the numbers of layers and query heads, and the size of a token's hidden state.
    """

    layers: Sequence[str] = ("num_hidden_layers", "n_layer", "num_layers")
    heads: Sequence[str] = ("num_attention_heads", "n_head", "num_heads")
    width: Sequence[str] = ("hidden_size", "n_embd", "d_model")


DECODERS = Keys()
ENCODER_DECODERS = Keys(("decoder_layers",), ("decoder_attention_heads",), ("d_model",))

_OTHER_LAYERS = ("num_kv_shared_layers", "block_configs")
"""Keys of models in which not every layer has a cache."""

_OTHER_WIDTHS = ("word_embed_proj_dim", "embedding_size")
"""Keys of models in which logits are not computed from the hidden state directly."""


def check_configuration(
    source: LanguageModel, decoder: Decoder, model: onnx.ModelProto, keys: Keys = DECODERS, *, alone: bool = False
) -> int:
    """Return the number of tokens of a decoder's vocabulary.

    Args:
        source: the model's folder.
        decoder: the form of its attention.
        model: the converted decoder.
        keys: the keys of the sizes in config.json.
        alone: whether the decoder is the complete model.

    Raises:
        ConversionError: config.json or generation_config.json contradict the graph. All contradictions are listed.
    """
    dims = model.graph.output[0].type.tensor_type.shape.dim
    vocabulary = dims[-1].dim_value if dims else 0
    structure = list(_other_structure(source, decoder)) if alone else []
    names = (name for node in model.graph.node for name in node.output)
    problems = [
        *_different_sizes(source, decoder, vocabulary, keys),
        *_ends_outside(source, vocabulary),
        *(structure or _other_type(source, names)),
    ]
    if problems:
        raise ConversionError.of(problems)
    stated = source.config.get("vocab_size")
    return vocabulary or (stated if isinstance(stated, int) else 0)


def check_type(source: LanguageModel) -> None:
    """Raise `ConversionError` if the layers of a decoder, which need not be convertible, are those of another type."""
    with format_of(source.decoder).open(source.decoder, without_weights=True) as graph:
        problems = list(_other_type(source, (layer.name for layer in graph.layers)))
    if problems:
        raise ConversionError.of(problems)


def _different_sizes(source: LanguageModel, decoder: Decoder, vocabulary: int, keys: Keys) -> Iterator[Problem]:
    config = source.config
    # attention in standard ONNX does not show the number of query heads; in encoder-decoders, each has its own keys
    heads = decoder.heads if decoder.grouped == decoder.layers or keys is ENCODER_DECODERS else 0
    layers = decoder.layers + sum(len(shape) == 2 for shape in decoder.states)  # those with attention and with convolutions
    checks = [
        (("vocab_size",), 0 if "padded_vocab_size" in config else vocabulary, "logits of {} tokens"),
        (keys.layers, 0 if any(config.get(key) for key in _OTHER_LAYERS) else layers, "{} layers with a cache"),
        (keys.heads, heads, "{} query heads"),
        (keys.width, 0 if any(config.get(key) for key in _OTHER_WIDTHS) else decoder.width or 0, "hidden states of size {}"),
    ]
    for names, size, text in checks:
        stated = {name: config[name] for name in names if not isinstance(config.get(name), (list, NoneType))}
        if size and stated and size not in stated.values():
            name, number = next(iter(stated.items()))
            message = f"its {_place(source, name)} is {shown(number)}, but the model has {text.format(size)}"
            yield _problem(source, CONFIG, message)


def _ends_outside(source: LanguageModel, vocabulary: int) -> Iterator[Problem]:
    """Yield a problem for each file with an end token that the model cannot return."""
    name = "eos_token_id"
    if not vocabulary:
        return
    for file, stated in ((CONFIG, source.config.get(name)), (GENERATION, source.generation.get(name))):
        tokens = stated if isinstance(stated, list) else [] if stated is None else [stated]
        if outside := [token for token in tokens if not is_integer(token) or not 0 <= token < vocabulary]:
            place = _place(source, name) if file == CONFIG else name
            message = f"its {place} is {shown(outside[0])}, but the model has tokens from 0 to {vocabulary - 1}"
            yield _problem(source, file, message)


def _other_type(source: LanguageModel, names: Iterable[str]) -> Iterator[Problem]:
    """Yield a problem if the layers with these names have modules of another type."""
    stated = source.config.get("model_type")
    if modules := modules_of_another_type(stated, names):
        message = f"its {_place(source, 'model_type')} is {stated!r}, but the model's layers have {modules}"
        yield _problem(source, CONFIG, message)


def _other_structure(source: LanguageModel, decoder: Decoder) -> Iterator[Problem]:
    """Yield a problem if the configuration describes a model with other parts or states than a decoder of text."""
    name, structure = other_structure(source.config, decoder)
    if name:
        graph = "a decoder of text" if decoder.states else "a decoder of text whose only states are key-value caches"
        message = f"its {_place(source, name)} is {shown(source.config[name])}, {structure}, but the graph is {graph}"
        yield _problem(source, CONFIG, message)


def _place(source: LanguageModel, name: str) -> str:
    """Return the key of config.json for a setting of the text part."""
    text = read_object(source.folder / CONFIG).get("text_config")
    return f"text_config.{name}" if isinstance(text, dict) and name in text else name


def _problem(source: LanguageModel, file: str, message: str) -> Problem:
    return Problem(message, str(source.folder / file), remedy=_REMEDY.format(file), fault=Fault.UNSUPPORTED)
