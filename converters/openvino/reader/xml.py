"""Parsing of untrusted XML: no document types, no custom entities, no network, limited depth."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from converters.errors import MalformedError, Problem, short
from converters.suggestions import similar_file

_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_ENCODINGS = dict.fromkeys(("utf-8", "utf8", "us-ascii", "ascii"), "utf-8")
_ENCODINGS |= dict.fromkeys(("iso-8859-1", "latin1"), "iso-8859-1")
"""The encodings that OpenVINO's XML parser accepts, by lxml's names."""
_MAX_SEARCHED = 128  # attributes
_LAST_LINE = 65535
"""The last line that an element of libxml2 stores."""
_START_TAG = re.compile(rb"<(?:!--.*?-->|!\[CDATA\[.*?\]\]>|\?.*?\?>|([^!?/]))", re.DOTALL)
"""A start tag (group 1), or markup that may contain the text of a start tag."""
_KINDS = {
    (4, b"TFL3"): ("a TensorFlow Lite model", "rename it: its name must end in .tflite"),
    (0, b"GGUF"): ("a GGUF model", "export the original model with optimum-intel"),
    (0, b"PK\x03\x04"): ("a ZIP archive", "a PyTorch program must end in .pt2; extract other archives first"),
    (0, b"\x89HDF"): ("an HDF5 file, such as a Keras model", "save it as a SavedModel: model.export(FOLDER)"),
    (0, b"\x1f\x8b"): ("a gzip archive", "decompress it first"),
    (0, b"\x80\x02"): ("a Python pickle file", "export a PyTorch model with torch.export.save, as a .pt2"),
    (0, b"version https://git-lfs"): ("a Git LFS pointer", "fetch the file itself: git lfs pull"),
    (0, b"<!DOCTYPE html"): ("a web page", "download the file itself"),
}
"""The first bytes of other files, by position: the kind of file, and the remedy."""
_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)


def regular_file_size(path: Path, remedy: str = "specify the .xml file of the IR") -> int:
    """Return the size of the file at `path` in bytes. ``remedy`` is the remedy if it is not a file.

    Raises:
        MalformedError: the file does not exist, cannot be accessed, or is not a regular file.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        meant = similar_file(path) if isinstance(error, FileNotFoundError) else ""
        raise MalformedError(Problem(f"the file cannot be read: {reason}", file=str(path), remedy=meant)) from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise MalformedError(Problem(f"the path is {kind}", file=str(path), remedy=_saved_model_in(path) or remedy))
    return status.st_size


def _saved_model_in(path: Path) -> str:
    """Return a remedy that names a SavedModel's folder in the folder at ``path``, and an empty text if there is none."""
    try:
        found = next(path.glob("*/saved_model.pb"), None)
    except OSError:
        return ""
    return f"specify the folder of the SavedModel: {found.parent}" if found else ""


class _LongElement(etree.ElementBase):
    """An element of a file with more than 65,535 lines. lxml creates the object again if no reference to it is left."""

    line: int | None = None
    kept: tuple[etree._Element, ...] = ()
    """All elements, for the root, so that their objects keep their lines."""

    @property
    def sourceline(self) -> int | None:
        return self.line if self.line is not None else super().sourceline


def state_line(element: Any, line: int | None) -> None:
    """State the line of an element that is added to a file's elements."""
    if isinstance(element, _LongElement):
        element.line = line
    else:
        element.sourceline = min(line or 0, _LAST_LINE)


def parse(path: Path) -> etree._Element:
    """Return the root element of the XML file at `path`, without comments and processing instructions.

    Raises:
        MalformedError: the file cannot be read, is not well-formed UTF-8 XML, or declares a document type.
    """
    regular_file_size(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MalformedError(Problem(f"the file cannot be read: {error.strerror}", file=str(path))) from None

    def malformed(message: str, line: int | None = None, remedy: str = "") -> MalformedError:
        return MalformedError(Problem(message, file=str(path), line=line, remedy=remedy))

    if not data.strip():
        raise malformed("the file is empty", remedy="specify the .xml file of the IR")
    for (begin, mark), (kind, remedy) in _KINDS.items():
        if data.startswith(mark, begin) and path.suffix.lower() != ".bin":
            raise malformed(f"the file is {kind}", remedy=remedy)
    encoding = _ENCODING.match(data.removeprefix(b"\xef\xbb\xbf"))
    stated = encoding[1].decode("ascii").lower() if encoding else "utf-8"
    if encoding and stated not in _ENCODINGS:
        raise malformed(f"the encoding {encoding[1].decode('ascii')} is not UTF-8", 1, "save the file as UTF-8")
    # A document type can define entities that expand without limit. An IR has none. All accepted encodings extend ASCII, so
    # the declaration always has these bytes.
    position = data.find(b"<!DOCTYPE")
    if position >= 0:
        raise malformed("it declares a document type, which is not allowed in an IR", data.count(b"\n", 0, position) + 1)
    parser = etree.XMLParser(
        encoding=_ENCODINGS[stated],
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        load_dtd=False,
        dtd_validation=False,
        remove_comments=True,
        remove_pis=True,
        remove_blank_text=True,
        collect_ids=False,
    )
    long = data.count(b"\n") >= _LAST_LINE
    if long:
        parser.set_element_class_lookup(etree.ElementDefaultClassLookup(element=_LongElement))
    try:
        root = etree.fromstring(data, parser)
        if long:
            _state_lines(root, data)
        return root
    except etree.XMLSyntaxError as error:
        beside = path.with_suffix(".xml")
        if path.suffix.lower() == ".onnx":
            raise malformed("the file is an ONNX model", remedy="specify the .xml file of an OpenVINO IR") from None
        if path.suffix.lower() == ".bin" and beside.is_file():
            raise malformed("the file contains weights", remedy=f"specify the .xml file of the IR: {beside.name}") from None
        if path.suffix.lower() == ".bin":
            raise malformed(
                "the file contains weights", remedy="specify the .xml file of the IR, and its .bin with --bin"
            ) from None
        reason = short((error.msg or "unreadable").splitlines()[0])
        remedy = "specify the .xml file of an IR"
        if data.lstrip().startswith((b"<?xml", b"<net")):
            remedy = "the file is damaged or incomplete; get a new copy"
        raise malformed(f"not well-formed XML: {reason}", error.lineno, remedy) from None


def _state_lines(root: etree._Element, data: bytes) -> None:
    """Store the lines of the elements beyond the last line that libxml2 stores."""
    elements: list[Any] = list(root.iter("*"))
    tags = np.fromiter((tag.start() for tag in _START_TAG.finditer(data) if tag[1]), np.int64)
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    for element, line in zip(elements, (1 + np.searchsorted(ends, tags)).tolist(), strict=True):
        if line >= _LAST_LINE:
            element.line = line
    elements[0].kept = tuple(elements)


def forget_lines(root: Any) -> None:
    """Forget the lines that libxml2 does not store. Until then, the objects of all elements stay in memory."""
    if isinstance(root, _LongElement):
        root.kept = ()


def attributes(element: etree._Element) -> dict[str, str]:
    """Return the attributes of an element, in linear time."""
    if len(element.attrib) <= _MAX_SEARCHED:
        return dict(element.items())
    # lxml searches from the first attribute for each value.
    values: Any = element.xpath("@*")
    return {value.attrname: str(value) for value in values}


def integer(text: str | None) -> int | None:
    """Parse a decimal 64-bit integer; ``None`` for any other text."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -(1 << 63) <= value < (1 << 63) else None
