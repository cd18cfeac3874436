"""The lines of elements, also beyond the last one that libxml2 stores."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from converters.errors import ConversionError
from converters.openvino import convert
from converters.openvino.reader.xml import parse
from tests.converters.openvino.reader import ir_text
from tests.converters.openvino.reader.ir_text import edge, layer, net, parameter, result

OTHER = "<!-- <layer>\n<layer> -->\n<?other <layer>\n?>\n<note><![CDATA[<layer>\n<layer>]]></note>\n"


@pytest.mark.parametrize("blank", [0, 65000, 65526, 65527, 65528, 65529, 65530, 65531, 70000])
def test_lines(blank: int, tmp_path: Path) -> None:
    text = "<net>\n" + OTHER + "\n" * blank + '<a>\n<b>1</b><c/>\n<d x="\n\n"/>\n</a>\n<e/></net>\n'
    path = tmp_path / "model.xml"
    path.write_text(text)
    root = parse(path)
    gc.collect()
    lines = {element.tag: element.sourceline for element in root.iter()}
    first = 1 + text[: text.index("<a>")].count("\n")
    expected = {"net": 1, "note": 6, "a": first, "b": first + 1, "c": first + 1, "e": first + 6}
    assert lines.pop("d") in (first + 2, first + 4)  # libxml2 states the end of a tag
    assert lines == expected


def test_an_error_beyond_65535_lines_names_its_line(tmp_path: Path) -> None:
    wrong = layer(1, "Convert", inputs=[(2,)], outputs=[(2,)], data='destination_type="f33"')
    text = net([parameter(), "\n" * 66000, wrong, result(2)], [edge(0, 0, 1, 0), edge(1, 1, 2, 0)])
    with pytest.raises(ConversionError, match="f33") as error:
        convert(ir_text.write(tmp_path, text, b""), tmp_path / "model.onnx")
    line = 1 + text[: text.index('<layer id="1"')].count("\n")
    assert [problem.line for problem in error.value.problems] == [line]
