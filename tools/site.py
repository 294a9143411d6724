"""A hook of mkdocs: links from a page to files that are not pages (schemas, programs, the licence).

In the repository such a link leads to the file; on the site, to a copy of it. What is copied follows from the links,
and a link to what is not there still ends `mkdocs build --strict`.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
COPIES = "repository"


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Lead links out of docs/ to a copy inside the site."""
    here = posixpath.dirname(posixpath.join("docs", page.file.src_uri))

    def led(found: re.Match[str]) -> str:
        start, target, end = found.groups()
        if "://" in target or target.startswith("mailto:"):
            return found.group(0)
        path = posixpath.normpath(posixpath.join(here, target))
        place = ROOT / path
        if place.is_dir() and not path.startswith("docs/"):
            place, path = _listing(place), f"{path}/README.md"
        if path.startswith("docs/") and not (path.endswith(".py") or path.startswith("docs/pictures/pages")):
            return found.group(0)
        name = f"{COPIES}/{path}.txt" if not path.endswith((".svg", ".png")) else f"{COPIES}/{path}"
        if files.get_file_from_path(name) is None:
            content = place if isinstance(place, str) else place.read_bytes() if place.is_file() else None
            if content is None:
                return found.group(0)  # mkdocs names it
            files.append(File.generated(config, name, content=content))
        return f"{start}{posixpath.relpath(name, posixpath.dirname(page.file.src_uri) or '.')}{end}"

    return LINK.sub(led, markdown)


def _listing(folder: Path) -> str:
    return "\n".join(sorted(path.name for path in folder.iterdir() if not path.name.startswith((".", "__")))) + "\n"
