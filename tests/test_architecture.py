"""The direction of dependence between modules."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent

# What a package may import of isuit's own; everything may import the base.
ALLOWED = {
    "estimator": {"estimator"},
    "store": {"store"},
    "audit": {"audit", "store", "estimator"},
    "erasure": {"erasure", "audit", "store"},
    "release": {"release", "audit", "store", "estimator"},
}
BASE = {"domain", "columns", "canonical", "errors", "ingest", "pages", "published", "schemas"}


def own_imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("isuit."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.ImportFrom) and node.module == "isuit":
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(alias.name.split(".")[1] for alias in node.names if alias.name.startswith("isuit."))
    return found - {"__version__"}


def test_dependencies_point_one_way() -> None:
    for package, allowed in ALLOWED.items():
        for path in (ROOT / "isuit" / package).rglob("*.py"):
            wrong = own_imports(path) - allowed - BASE
            assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_the_estimator_is_numpy_and_scipy_only() -> None:
    banned = {"duckdb", "pyarrow", "time", "datetime", "pathlib", "os", "rich", "matplotlib"}
    for path in (ROOT / "isuit" / "estimator").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name.split(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module.split(".")[0]]
            assert not banned & set(names), f"{path.name} imports {banned & set(names)}"


def test_a_release_knows_one_module_of_the_estimator() -> None:
    """What a release asks of estimation is an interface; how a fit is made is none of its business."""
    found = set()
    for path in (ROOT / "isuit" / "release").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "isuit.estimator":
                found.update(f"isuit.estimator.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isuit.estimator."):
                found.add(node.module or "")
            elif isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names if alias.name.startswith("isuit.estimator"))
    assert found == {"isuit.estimator.weighted_fit"}
