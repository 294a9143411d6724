"""Tests stand where CONTRIBUTING.md says: in the folder of the package that they test."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
# Folders of tests that are about no package of their own.
OTHERS = {"browser", "docs", "fuzz", "golden", "independent", "tools"}
# Packages whose tests stand elsewhere, and where.
ELSEWHERE = {
    "pages": "browser",
    "experiment": "cli/test_demo.py",
    "schemas": "published/test_schemas.py",
    "record": "estimator/diagnostics/test_record.py",
}


def packages() -> dict[str, Path]:
    """Every package by its name inside of isuit; `cli` and `schemas` install there too."""
    inner = {
        path.parent.relative_to(ROOT / "isuit").as_posix(): path.parent for path in ROOT.glob("isuit/**/__init__.py")
    }
    return inner | {"cli": ROOT / "cli", "schemas": ROOT / "schemas"}


def modules(package: Path) -> set[str]:
    return {path.stem for path in package.glob("*.py")}


def folders() -> list[str]:
    found = sorted({path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")})
    return [folder for folder in found if folder.split("/")[0] not in OTHERS]


@pytest.mark.parametrize("folder", folders())
def test_a_folder_of_tests_is_that_of_a_package(folder: str) -> None:
    assert folder in packages()


@pytest.mark.parametrize("package", sorted(packages()))
def test_every_package_has_tests(package: str) -> None:
    place = TESTS / ELSEWHERE.get(package, package)
    assert place.exists(), f"the tests of {package} are missing, or this page does not say where they are"
    assert place.is_file() or any(place.glob("test_*.py"))


@pytest.mark.parametrize("folder", folders())
def test_a_file_with_the_name_of_a_module_stands_beside_that_modules_own(folder: str) -> None:
    """`test_gate.py` is about the module `gate`: it must be looked for where `gate` is."""
    everywhere = packages()
    for path in (TESTS / folder).glob("test_*.py"):
        name = path.stem.removeprefix("test_")
        homes = [package for package, place in everywhere.items() if name in modules(place)]
        assert folder in homes or not homes, f"{path.name} is in {folder}, and the module {name} in {homes}"


# A path below a folder of the repository, wherever it is written: in a comment, a docstring, a page.
NAMED = re.compile(
    r"(?<![\w./-])(?:isuit|docs|schemas|benchmarks|tools|verifier|tests)/[\w./-]*\.(?:py|md|json|js|html)\b"
)


def test_every_file_that_is_named_is_there() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split() or [path.relative_to(ROOT).as_posix() for path in ROOT.glob("[!.]*/**/*.py")]
    found = {(name, path) for name in names for path in NAMED.findall((ROOT / name).read_text())}
    assert len(found) > 100
    assert [(name, path) for name, path in sorted(found) if not (ROOT / path).exists()] == []
