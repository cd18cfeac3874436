"""Add the files of the repository to which the pages link as separate pages of the site."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from posixpath import relpath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\]\((?P<path>(?:\.\./)+[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_LANGUAGES = {".py": "python", ".md": "markdown", ".cc": "cpp", ".h": "cpp", ".xml": "xml", ".toml": "toml"}
# Pages that may be missing.
_OPTIONAL = ("hosts.md", "language-models.md", "pipelines.md")
_log = logging.getLogger("mkdocs.hooks.source")


def on_config(config: Any) -> Any:
    """Remove pages that do not exist from the navigation."""
    config.nav = [_present(entry, Path(config.docs_dir)) for entry in config.nav]
    return config


def _present(entry: Any, docs: Path) -> Any:
    if isinstance(entry, dict):
        return {
            title: [_present(part, docs) for part in inner if not _absent(part, docs)] if isinstance(inner, list) else inner
            for title, inner in entry.items()
        }
    return entry


def _absent(entry: Any, docs: Path) -> bool:
    (page,) = entry.values() if isinstance(entry, dict) else (entry,)
    absent = page in _OPTIONAL and not (docs / page).is_file()
    if absent:
        _log.info("docs/%s does not exist, so the navigation omits it", page)
    return absent


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each file and folder of the repository to which a page in docs/ links."""
    wanted: set[Path] = set()
    for file in list(files.documentation_pages()):
        wanted |= {_target(file.src_uri, found["path"]) for found in _LINK.finditer(file.content_string)}
    for path in sorted(wanted):
        if not path.exists():
            _log.warning("a page in docs/ links to %s, which does not exist", path.relative_to(ROOT))
        elif not path.is_relative_to(ROOT / "docs"):
            files.append(File.generated(config, _page(path), content=_shown(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace links to files of the repository by links to their pages."""

    def link(found: re.Match[str]) -> str:
        path = _target(page.file.src_uri, found["path"])
        if path.is_relative_to(ROOT / "docs"):
            return found[0]
        return f"]({relpath(_page(path), Path(page.file.src_uri).parent.as_posix())})"

    return _LINK.sub(link, markdown)


def _target(page: str, link: str) -> Path:
    return (ROOT / "docs" / page).parent.joinpath(link).resolve()


def _page(path: Path) -> str:
    place = f"source/{path.relative_to(ROOT).as_posix()}"
    return f"{place}/index.md" if path.is_dir() else f"{place}.md"


def _shown(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    head = f"---\nsearch:\n  exclude: true\ntitle: {name}\n---\n\n# {name}\n\n"
    if path.is_dir():
        return head + "".join(f"- `{entry.name}`\n" for entry in sorted(path.iterdir()) if entry.name[0] not in "._")
    text = path.read_text(encoding="utf-8", errors="replace")
    return f"{head}~~~~~~ {_LANGUAGES.get(path.suffix, 'text')}\n{text}\n~~~~~~\n"
