"""The sdist and the wheel as an index takes them, and the wheel installed on every Python that it promises."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

import isuit

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
PICTURES = re.findall(r"!\[(.*?)\]\((.*?)\)", (ROOT / "README.md").read_text())  # the text, and where it stands
PROMISED = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]


def run(*command: str | Path, **more: object) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, **more)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def interpreter(version: str) -> Path | None:
    """The Python of this version, if there is one."""
    if sys.version.startswith(f"{version}."):
        return Path(sys.executable)
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [*sorted(kept.glob(f"{version}.*/bin/python{version}")), Path(f"/usr/bin/python{version}")]
    return next((path for path in found if path.exists()), None)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", out, ROOT)
    return out


@pytest.mark.long
def test_an_index_would_take_them(built: Path) -> None:
    run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir())
    [source] = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for wanted in (
        "docs/tutorial.md",
        *(path for _, path in PICTURES),
        "tests/conftest.py",
        "schemas/fit.schema.json",
        "cli/app.py",
        "CHANGELOG.md",
    ):
        assert wanted in names


@pytest.mark.long
@pytest.mark.parametrize("version", PROMISED)
def test_the_wheel_works_on(version: str, built: Path, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} is here")
    [wheel] = built.glob("*.whl")
    run(python, "-m", "venv", "--without-pip", tmp_path / "env")
    inside = tmp_path / "env" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", inside / "python", "install", "--quiet", "--no-compile"]
    if python == Path(sys.executable):  # the libraries are here; the other versions show that the wheel asks for all
        run(*pip, "--no-deps", wheel)
        [packages] = (tmp_path / "env").glob("lib/*/site-packages")
        (packages / "libraries.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    else:
        run(*pip, wheel)
    assert run(inside / "isuit", "--version").startswith(f"isuit {PROJECT['version']}")
    # Not a fit: its loops are compiled once per installation, which takes longer than all else here.
    script = "import isuit; print(isuit.hash({'rider': ['a'], 'metric': [1.0], 'outcome': [1]}).cohort_hash[:9])"
    script = f"{script}; print(isuit.__file__)"
    hashed, file = run(inside / "python", "-c", script, cwd=tmp_path).split()
    assert hashed == "isuit-c1:"
    assert Path(file).is_relative_to(tmp_path), "the wheel, not what is beside it"


def test_who_sees_no_picture_is_told_what_it_shows() -> None:
    """An index page resolves no relative path, and there is no host to name (docs/adr/0042)."""
    for text, path in PICTURES:
        assert len(text.split()) >= 8
        assert (ROOT / path).stat().st_size > 1000
    assert PICTURES
    assert "urls" not in PROJECT


@pytest.mark.long
def test_the_action_audits(store_copy: Path, tmp_path: Path) -> None:
    """Its own script, in the shell that it names: what passes, what fails, and an input that would be a command."""
    step = next(step for step in ACTION["runs"]["steps"] if step.get("name") == "Audit")
    assert "${{" not in step["run"], "an input inside of a script is a command"
    release = store_copy.with_name("atlas.jsonl")
    isuit.open(store_copy).export_atlas(release, release="2026-01-01")

    def audit(**inputs: str | Path) -> int:
        given = dict.fromkeys(("STORE", "HEAD", "BUNDLE", "RELEASE"), "") | {k: str(v) for k, v in inputs.items()}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        command = [step["shell"], "-c", step["run"]]
        done = subprocess.run(
            command, check=False, capture_output=True, cwd=tmp_path, env=os.environ | given | {"PATH": path}
        )
        return done.returncode

    assert audit(STORE=store_copy, HEAD=isuit.open(store_copy).status().log_head, RELEASE=release) == 0
    assert audit(STORE=store_copy, HEAD="f" * 64) == 1
    assert audit(BUNDLE=tmp_path) == 2, "no bundle"
    release.write_text(release.read_text().replace("0", "1", 1))
    assert audit(RELEASE=release) == 1
    assert audit(RELEASE="$(touch hacked)") == 2
    assert not (tmp_path / "hacked").exists()
