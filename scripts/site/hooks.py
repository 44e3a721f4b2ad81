"""What mkdocs calls while it builds the site: pages of the repository's own texts, generated sections, formulas, source pages."""

from __future__ import annotations

import os
import posixpath
import re
from typing import Any

import sections
from formulas import Formulas
from mkdocs.structure.files import File, Files
from sources import ROOT, module

TEXTS = {"architecture.md": "ARCHITECTURE.md", "contributing.md": "CONTRIBUTING.md", "changes.md": "CHANGELOG.md"}
OUTSIDE = re.compile(r"\]\(((?:\.\./)*)((?:src|examples|tests|docs|verdicts)/[^)#\s]+|[A-Z]+\.md)\)")
PAGE_OF = {text: page for page, text in TEXTS.items()}
SPOKEN_OF = re.compile(r"<!-- upheld: equations (.*?) -->")
_formulas: dict[str, Formulas] = {}


def on_files(files: Files, config: Any) -> Files:
    """Adds the repository's own texts, and the sources that pages speak of."""
    texts = {name: (ROOT / text).read_text(encoding="utf-8") for name, text in TEXTS.items()}
    pages = [*texts.values(), *(file.content_string for file in files.documentation_pages())]
    names = {name for page in pages for found in SPOKEN_OF.findall(page) for name in found.split()}
    names |= {path for page in pages for _, path in OUTSIDE.findall(page) if path.startswith(("src/", "examples/"))}
    sources = {module(name).page: module(name).source_page() for name in sorted(names)}
    for place, content in (texts | sources).items():
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links into the repository lead to its pages here; sections are made; formulas wait until Markdown is done."""
    place = page.file.src_uri
    if place.startswith("source/"):
        return markdown
    up = "../" * place.count("/")
    here = posixpath.dirname(TEXTS[place]) if place in TEXTS else posixpath.join("docs", posixpath.dirname(place))
    markdown = OUTSIDE.sub(lambda match: _inside(match, here, up), markdown)
    markdown = sections.filled(markdown, up)
    _formulas[place] = Formulas()
    return _formulas[place].taken_out(markdown)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    place = page.file.src_uri
    return _formulas.pop(place).put_back(html) if place in _formulas else html


def _inside(match: re.Match[str], here: str, up: str) -> str:
    """Where a link of the repository leads on the site."""
    path = posixpath.normpath(posixpath.join(here, match[1] + match[2]))
    if path.startswith("docs/"):
        return f"]({up}{path.removeprefix('docs/')})"
    if path in PAGE_OF:
        return f"]({up}{PAGE_OF[path]})"
    if path == "verdicts/quick.md":
        return f"]({up}verdicts.md)"
    if not os.path.exists(ROOT / path):
        raise ValueError(f"{match[0]} leads to {path}, which is not in the repository; mend the link")
    return f"]({up}{module(path).page})"
