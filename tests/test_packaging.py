"""What the tree holds is what an installation holds: every package and every file beside the code is listed."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parent.parent
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def folder(package: str) -> Path:
    return ROOT / SETUPTOOLS["package-dir"].get(package, package.replace(".", "/"))


def test_every_package_is_listed() -> None:
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "isuit").rglob("__init__.py")}
    assert found | {"isuit.cli", "isuit.schemas"} == set(SETUPTOOLS["packages"])


def test_every_file_beside_the_code_is_listed() -> None:
    for package in SETUPTOOLS["packages"]:
        patterns = SETUPTOOLS["package-data"].get(package, [])
        for path in folder(package).iterdir():
            if path.is_file() and path.suffix not in (".py", ".pyc"):
                assert any(fnmatch(path.name, pattern) for pattern in patterns), f"{path.name} would not be installed"
