"""Who may import whom: the whole graph of packages, stated once, with the libraries that each may use.

Every import counts, also inside a function, for type checkers only, by a relative name or through `import_module`. The
graph is as tight as the code: an edge that nothing uses any more must go too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = {"isuit": "isuit", "isuit.cli": "cli", "isuit.schemas": "schemas"}  # as they are installed


@dataclass(frozen=True)
class Allowed:
    """What a package may import: of isuit's own, and of others' libraries. The standard library is free to all but
    those whose results must follow from their arguments alone."""

    own: str = ""
    libraries: str = ""
    pure: bool = False


ROOMS = "estimator.model estimator.likelihood estimator.diagnostics"
GRAPH = {
    # What the program speaks of, its bytes, its errors, its files, what leaves it.
    "errors": Allowed(),
    "spelling": Allowed(),
    "shown": Allowed(),
    "reading": Allowed(),
    "record": Allowed("shown"),
    "files": Allowed("errors"),
    "documents": Allowed("errors", "pyarrow yaml"),
    "tables": Allowed("documents errors files", "pyarrow"),
    "columns": Allowed("errors", "numpy"),
    "compiled": Allowed("", "numba"),
    "limits": Allowed("errors"),
    "canonical": Allowed("errors", "numpy pyarrow"),
    "domain": Allowed("columns errors record", "numpy"),
    "published": Allowed("domain errors record shown", "pydantic"),
    "look": Allowed(),
    "pages": Allowed("documents errors files look", "numpy"),
    # Arrays in, estimates out.
    "estimator.model": Allowed("columns compiled domain", "numpy scipy", pure=True),
    "estimator.likelihood": Allowed(
        "columns compiled domain errors estimator.model", "numpy scipy threadpoolctl", pure=True
    ),
    "estimator.diagnostics": Allowed(
        "columns domain errors record estimator.model estimator.likelihood", "numpy scipy", pure=True
    ),
    "estimator": Allowed(f"columns domain errors record {ROOMS}", "numpy scipy", pure=True),
    "cluster": Allowed("compiled errors estimator", "dask distributed numba numpy scipy"),
    # Files in, cohorts out.
    "ingest": Allowed(
        "canonical columns documents domain errors files reading tables", "adbc_driver_postgresql duckdb numpy pyarrow"
    ),
    # Where rows live, and what is done with them.
    "store": Allowed("canonical documents domain errors", "duckdb pyarrow rfc8785"),
    "audit": Allowed(
        "canonical documents domain errors files published record store", "cryptography duckdb numpy pyarrow rfc8785"
    ),
    "erasure": Allowed("audit errors published spelling store", "duckdb pyarrow rfc8785"),
    "release": Allowed(
        "audit columns compiled documents domain errors estimator look pages published schemas spelling store",
        "duckdb h3 numpy pyarrow pydantic rfc8785",
    ),
    # The use cases, and who calls them.
    "service": Allowed(
        "audit canonical cluster documents domain erasure errors estimator files ingest limits look pages "
        "published reading record release shown store tables",
        "duckdb matplotlib numpy pyarrow rfc8785",
    ),
    "experiment": Allowed(
        "domain errors estimator estimator.likelihood files look tables", "matplotlib numpy pyarrow scipy"
    ),
    "cli": Allowed("documents domain errors experiment published reading record service", "_typeshed rich typer"),
    "schemas": Allowed("published"),
    "sklearn": Allowed("domain errors estimator", "numpy sklearn"),  # an extra: nothing else imports it
    "isuit": Allowed("cli domain errors experiment published reading service"),  # isuit/__init__.py: what is public
}
# The clock, the disk, the network and chance: no estimate may depend on them.
IMPURE = {
    "asyncio", "datetime", "glob", "http", "io", "locale", "logging", "multiprocessing", "os", "pathlib", "random",
    "secrets", "shutil", "socket", "sqlite3", "subprocess", "sys", "tempfile", "time", "urllib", "uuid",
}  # fmt: skip


def test_rows_in_parts_are_read_too() -> None:
    """Of four tables large cohorts have their rows in files: whoever reads the bare table overlooks them."""
    bare = re.compile(r"(FROM|JOIN) (personal\.(outcomes|skills|commitments)|ledger\.leaves)\b")
    found = {path.relative_to(ROOT) for path in (ROOT / "isuit").rglob("*.py") if bare.search(path.read_text())}
    assert not found, "read all_outcomes, all_skills, all_commitments or all_leaves (isuit/store/parts.py)"


def module_of(path: Path) -> tuple[str, bool]:
    """A file's module by its installed name, and whether it is a package."""
    folder = next(name for name, place in FOLDERS.items() if path.parts[0] == place)
    parts = [folder, *path.with_suffix("").parts[1:]]
    return (".".join(parts[:-1]), True) if parts[-1] == "__init__" else (".".join(parts), False)


def package_of(module: str) -> str:
    """The node of the graph that a module or a name in it belongs to."""
    parts = module.split(".")[1:]
    known = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((name for name in known if name in GRAPH), "isuit")


def imports(path: Path, source: str) -> Iterator[str]:
    """Everything that the source imports, by absolute name."""
    module, is_package = module_of(path)
    parents = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            name = node.args[0] if node.args else None
            yield name.value if isinstance(name, ast.Constant) else "an import whose name is computed"


def used(path: Path, source: str) -> tuple[set[str], set[str], set[str]]:
    """Packages of isuit, libraries, and modules of the standard library that the source imports."""
    own, libraries, standard = set(), set(), set()
    for name in imports(path, source):
        top = name.split(".")[0]
        if name == "isuit.__version__":
            continue
        if top == "isuit":
            own.add(package_of(name))
        elif top in sys.stdlib_module_names:
            standard.add(top)
        else:
            libraries.add(top)
    return own - {package_of(module_of(path)[0])}, libraries, standard


def wrong(path: Path, source: str) -> set[str]:
    """What the source imports and its package may not."""
    allowed = GRAPH[package_of(module_of(path)[0])]
    own, libraries, standard = used(path, source)
    impure = standard & IMPURE if allowed.pure else set()
    return (own - set(allowed.own.split())) | (libraries - set(allowed.libraries.split())) | impure


def every_file() -> list[Path]:
    return [path.relative_to(ROOT) for folder in FOLDERS.values() for path in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("path", every_file(), ids=str)
def test_a_module_imports_what_its_package_may(path: Path) -> None:
    found = wrong(path, (ROOT / path).read_text())
    assert not found, f"{path} imports {', '.join(sorted(found))}, which {package_of(module_of(path)[0])} may not"


def test_the_graph_is_no_looser_than_the_code() -> None:
    for package, allowed in GRAPH.items():
        own: set[str] = set()
        libraries: set[str] = set()
        for path in every_file():
            if package_of(module_of(path)[0]) == package:
                found = used(path, (ROOT / path).read_text())
                own |= found[0]
                libraries |= found[1]
        assert set(allowed.own.split()) == own, package
        assert set(allowed.libraries.split()) == libraries, package


def test_the_graph_has_every_package_and_no_circle() -> None:
    order = list(TopologicalSorter({name: allowed.own.split() for name, allowed in GRAPH.items()}).static_order())
    assert set(order) == set(GRAPH)
    folders = {path.parts[1].removesuffix(".py") for path in every_file() if path.parts[0] == "isuit"}
    assert folders - {"__init__", "__main__"} <= set(GRAPH), "a package or module that the graph does not have"


PLANTED = [
    ("isuit/estimator/model/basis.py", "from ...store import opening", "store"),
    ("isuit/estimator/model/basis.py", "from ... import store", "store"),
    ("isuit/estimator/model/basis.py", "from isuit.ingest import read_cohort", "ingest"),
    ("isuit/estimator/model/basis.py", "import isuit.ingest.times", "ingest"),
    ("isuit/estimator/model/basis.py", "import requests", "requests"),
    ("isuit/estimator/model/basis.py", "from requests.adapters import HTTPAdapter", "requests"),
    ("isuit/estimator/model/basis.py", "from ..likelihood.solver import Progress", "estimator.likelihood"),
    ("isuit/estimator/model/basis.py", "from .. import fit", "estimator"),
    ("isuit/estimator/model/basis.py", "import time", "time"),
    ("isuit/estimator/likelihood/solver.py", "from ..diagnostics import heldout", "estimator.diagnostics"),
    ("isuit/ingest/times.py", "from isuit.store.query import rows", "store"),
    ("isuit/ingest/times.py", "from ..store.query import rows", "store"),
    ("cli/fits.py", "from isuit.store.opening import Store", "store"),
    ("cli/fits.py", "import duckdb", "duckdb"),
    ("isuit/experiment/run.py", "from isuit.service import fitting", "service"),
    ("isuit/erasure/erasure.py", "from isuit.release import policy", "release"),
    ("isuit/release/making.py", "from isuit.erasure.personal import searching", "erasure"),
    ("isuit/store/query.py", "from isuit.audit.log import append_event", "audit"),
    ("isuit/domain.py", "from isuit.published import FitRecord", "published"),
    ("isuit/record/parameters.py", "from pydantic import BaseModel", "pydantic"),
    ("isuit/errors.py", "import isuit.cli.app", "cli"),
    ("schemas/__main__.py", "from isuit.service import history", "service"),
    ("isuit/pages/__init__.py", "from isuit import open as opened", "isuit"),
    ("isuit/columns.py", "__import__('pandas')", "pandas"),
    ("isuit/columns.py", "importlib.import_module('isuit.store')", "store"),
]


@pytest.mark.parametrize(
    "inside", ["{}", "def f():\n    {}", "if TYPE_CHECKING:\n    {}"], ids=["top", "function", "types"]
)
@pytest.mark.parametrize(("path", "line", "named"), PLANTED, ids=[f"{path}: {line}" for path, line, _ in PLANTED])
def test_a_planted_import_is_found(path: str, line: str, named: str, inside: str) -> None:
    source = (ROOT / path).read_text()
    assert wrong(Path(path), f"{source}\n{inside.format(line)}\n") == {named}


def test_whatever_a_package_may_not_import_is_found_in_it() -> None:
    """Every edge that the graph does not have, and every library of others, planted in a module of every package."""
    libraries = {library for allowed in GRAPH.values() for library in allowed.libraries.split()}
    samples = {package_of(module_of(path)[0]): path for path in every_file()}
    assert samples.keys() == GRAPH.keys()
    for package, path in samples.items():
        allowed = GRAPH[package]
        within = {name for name in GRAPH if name == package or name.startswith(f"{package}.")} | {"isuit"}
        foreign = GRAPH.keys() - set(allowed.own.split()) - within
        for name in sorted(foreign):
            assert wrong(path, f"import isuit.{name}.any\n") == {name}, (package, name)
        for library in sorted(libraries - set(allowed.libraries.split())):
            assert wrong(path, f"import {library}.any\n") == {library}, (package, library)
        for module in sorted(IMPURE) if allowed.pure else ():
            assert wrong(path, f"import {module}\n") == {module}, (package, module)
