"""Changes the program in one place at a time and runs the tests that should notice: `python tests/tools/mutants.py`.

    python tests/tools/mutants.py                          a sample of every module below
    python tests/tools/mutants.py gate --each 0            every mutant of the modules with `gate` in their path
    python tests/tools/mutants.py --seed 2 --each 20       another and larger sample
    python tests/tools/mutants.py --quick                  only with the tests that take seconds
    python tests/tools/mutants.py witness --lines 62 70    every mutant of these lines

A mutant lives in memory: a forked process compiles the changed source when the module is imported and runs pytest, so
no file is touched and what takes long to import is imported once. Tests that start the console script see the program
as it is, and a constant in a compiled loop is that of the machine code that was kept. What survives is printed with its
line; it is either a test that is missing or a change that means nothing.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PATIENCE = (
    3.0  # times the CPU time of the tests without a change, and some seconds: a mutant that takes longer is noticed
)

# Modules by the beginning of their path; the tests that should notice a change in them within seconds; and further ones
# that are run where those did not, unless `--quick` is given. The longest beginning that fits a module counts.
TARGETS: dict[str, tuple[str, str]] = {
    "isuit/audit/": ("audit/test_digests audit/test_verification", "audit/test_rederivation cli/test_audit"),
    **{f"isuit/audit/{name}": (f"audit/test_{name}", "audit/test_verification") for name in ("commitments", "digests")},
    **{
        f"isuit/audit/{name}": (f"audit/test_{name}", "cli/test_audit")
        for name in ("catalogue", "directory", "witness")
    },
    **dict.fromkeys(("isuit/audit/merkle", "isuit/audit/extension"), ("audit/test_merkle", "audit/test_extension")),
    "isuit/audit/notes": ("audit/test_notes", "audit/test_extension"),
    "isuit/audit/keys": ("audit/test_keys audit/test_notes", "audit/test_extension audit/test_rotations"),
    **dict.fromkeys(("isuit/audit/proofs", "isuit/audit/proving"), ("audit/test_proofs", "release/test_proof")),
    **{f"isuit/audit/{name}": (f"audit/test_{name}", "audit/test_extension") for name in ("checkpoints", "rotations")},
    "isuit/audit/results": ("audit/test_results", "audit/test_rederivation"),
    "isuit/audit/rederivation": ("audit/test_rederivation", "cli/test_audit"),
    "isuit/audit/bundle": ("audit/test_rederivation", "cli/test_audit"),
    "isuit/audit/log": ("audit/test_log audit/test_verification audit/test_extension", "audit/test_rederivation"),
    "isuit/audit/subjects": ("audit/test_verification audit/test_rederivation", "cli/test_audit"),
    "isuit/erasure/": ("erasure/test_rewrite erasure/test_erasure_leftovers", "erasure/test_elsewhere cli/test_riders"),
    "isuit/erasure/part_copies": ("erasure/test_part_copies", "erasure/test_erasure_crashes"),
    "isuit/erasure/rewrite": (
        "erasure/test_rewrite erasure/test_erasure_leftovers",
        "erasure/test_erasure_unfinished erasure/test_part_copies",
    ),
    **{
        f"isuit/erasure/{name}": (
            "erasure/test_erasure erasure/test_erasure_names erasure/test_erasure_unfinished",
            "erasure/test_shared_rows cli/test_riders",
        )
        for name in ("erasure", "receipt")
    },
    "isuit/erasure/personal": (
        "erasure/test_personal erasure/test_erasure_names",
        "erasure/test_shared_rows cli/test_riders",
    ),
    "isuit/erasure/pseudonyms": ("erasure/test_pseudonyms", "cli/test_riders"),
    "isuit/erasure/elsewhere": ("erasure/test_elsewhere erasure/test_pseudonyms", "cli/test_riders"),
    "isuit/erasure/suppression": ("service/test_opting_out service/test_fitting", "cli/test_riders"),
    "isuit/release/": ("release/test_release", "release/test_release_attacks release/test_release_page"),
    **{
        f"isuit/release/{name}": (f"release/test_{name}", "release/test_release") for name in ("noise", "proof", "site")
    },
    **{
        f"isuit/release/private/{name}": (f"release/private/test_{name}", "release/private/test_releasing")
        for name in ("accounting", "contributions", "declaration", "discrete_gaussian")
    },
    "isuit/release/private/releasing": (
        "release/private/test_solving release/private/test_releasing",
        "release/private/test_private_mode",
    ),
    "isuit/release/private/solving": ("release/private/test_solving", "release/private/test_private_mode"),
    **{
        f"isuit/release/{name}": (f"release/test_{name}", "release/test_release")
        for name in ("dates", "standing", "timeline")
    },
    "isuit/release/checking": (
        "release/test_checking release/test_proof release/test_release",
        "release/test_release_page",
    ),
    "isuit/release/one_series": ("release/test_one_series", "release/test_release_attacks"),
    "isuit/release/page": ("release/test_release_page", "release/test_site"),
    "isuit/release/persons": ("release/test_persons", "release/test_release_attacks"),
    **dict.fromkeys(
        [
            f"isuit/release/{name}"
            for name in ("bins", "carrying", "cells", "identities", "influence", "rounding", "screening")
        ],
        ("release/test_screening release/test_carrying release/test_rounding", "release/test_release"),
    ),
    "isuit/estimator/gate": ("estimator/test_gate", "estimator/test_slices"),
    "isuit/estimator/promotion": ("estimator/test_promotion", "estimator/test_fit"),
    "isuit/estimator/diagnostics/heldout": (
        "estimator/diagnostics/test_heldout",
        "estimator/diagnostics/test_forecasts",
    ),
    "isuit/estimator/diagnostics/forecasts": ("estimator/diagnostics/test_forecasts", "estimator/test_fit"),
}
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


class Mutant(NamedTuple):
    path: Path
    line: int
    before: str
    after: str
    source: str  # the whole module, changed


def places(path: Path) -> list[int]:
    """Where a module can be changed: the numbers of its syntax nodes, as `ast.walk` meets them."""
    tree = ast.parse(path.read_text())
    declared = _declarations(tree)
    return [
        number
        for number, node in enumerate(ast.walk(tree))
        if id(node) not in declared and _change(ast.Module([], []), node) is not None
    ]


def mutant(path: Path, place: int) -> Mutant:
    """The module with one operator, constant, condition or statement changed."""
    tree = ast.parse(path.read_text())
    node = list(ast.walk(tree))[place]
    before = ast.unparse(node).split("\n")[0]
    after = _change(tree, node)
    assert after is not None
    return Mutant(path, getattr(node, "lineno", 0), before, after.split("\n")[0], ast.unparse(tree))


def _change(tree: ast.AST, node: ast.AST) -> str | None:
    """Change the node in place; what it says afterwards, or None where nothing can be changed."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[assignment]
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        _replace(tree, node, node.operand)
        return ast.unparse(node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        node.value = node.value + 1
    elif isinstance(node, ast.If | ast.IfExp):
        node.test = ast.Constant(False)
        return "if False"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        _replace(tree, node, ast.Pass())
        return "pass"
    else:
        return None
    return ast.unparse(node)


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    class Replacing(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else self.generic_visit(node)

    Replacing().visit(tree)
    ast.fix_missing_locations(tree)


def _declarations(tree: ast.AST) -> set[int]:
    """The identities of nodes in types and decorators (`frozen=True`): they are no behaviour."""
    declared: list[ast.AST] = []
    for owner in ast.walk(tree):
        declared += getattr(owner, "decorator_list", [])
        parts = (getattr(owner, "annotation", None), getattr(owner, "returns", None))
        declared += [part for part in parts if isinstance(part, ast.AST)]
    return {id(inner) for declaration in declared for inner in ast.walk(declaration)}


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Gives one module another source."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._name = ".".join(mutant.path.relative_to(ROOT).with_suffix("").parts)

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._mutant.path, loader=self)

    def get_filename(self, fullname: str) -> str:
        return str(self._mutant.path)

    def get_data(self, path: str | bytes) -> bytes:
        return self._mutant.source.encode()

    def path_stats(self, path: str | bytes) -> dict[str, float]:
        raise OSError  # so that no compiled file is read or written


def survives(changed: Mutant | None, tests: list[str], seconds: int = 3600) -> bool:
    """Whether the tests pass all the same, in a process of their own that may take so much CPU time."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            if changed is not None:
                sys.meta_path.insert(0, _Changed(changed))
            import pytest

            # Neither rewriting of assertions nor hypothesis' own report: they take longer than most of the tests.
            without = [
                word for name in ("cacheprovider", "randomly", "hypothesispytest") for word in ("-p", f"no:{name}")
            ]
            code = int(pytest.main([*tests, "-x", "-q", "-m", "not long", "--assert=plain", *without]))
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def modules(wanted: list[str], quick: bool) -> Iterator[tuple[Path, list[str]]]:
    """Every module to change, with the files of its tests in the order in which they are run."""
    for path in sorted(ROOT.glob("isuit/**/[!_]*.py")):
        name = path.relative_to(ROOT).with_suffix("").as_posix()
        fitting = [beginning for beginning in TARGETS if name.startswith(beginning)]
        if fitting and (not wanted or any(word in name for word in wanted)):
            first, further = TARGETS[max(fitting, key=len)]
            tests = first.split() + ([] if quick else further.split())
            yield path, [f"tests/{test}.py" for test in tests] + (["-k", "not influence"] if quick else [])


# Packages that import none of those whose mutants are of interest, as tests/test_architecture.py keeps it.
BELOW = ("isuit.estimator", "isuit.ingest", "isuit.store.opening", "isuit.experiment.cohort")


def preload(paths: list[Path]) -> None:
    """What every test imports, and of isuit only what imports none of the modules to change."""
    for name in (
        *("duckdb", "h3", "hypothesis", "numba", "pandas", "pyarrow.parquet", "pydantic", "pytest", "rich.console"),
        *("scipy.optimize", "scipy.sparse.csgraph", "scipy.special", "scipy.stats", "typer"),
    ):
        importlib.import_module(name)
    if any(path.is_relative_to(ROOT / "isuit" / "estimator") for path in paths):
        return
    for name in BELOW:
        importlib.import_module(name)
    from isuit.domain import FitConfig
    from isuit.estimator import fit
    from isuit.experiment.cohort import Truth, draw

    fit(draw(Truth(riders=40, outcomes=20), 1)[0], FitConfig())  # loads the compiled loops
    early = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths} & sys.modules.keys()
    assert not early, f"imported before they are changed: {early}"


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("module", nargs="*", help="only modules with this in their path")
    parser.add_argument("--each", type=int, default=8, help="mutants of each module; 0 for all")
    parser.add_argument("--quick", action="store_true", help="only the tests that take seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=int, nargs="+", help="every mutant of these lines, and no other")
    given = parser.parse_args()
    os.chdir(ROOT)
    chosen_modules = list(modules(given.module, given.quick))
    preload([path for path, _ in chosen_modules])
    chance = random.Random(given.seed)
    tried, left, limits = 0, [], dict[tuple[str, ...], int]()
    for path, tests in chosen_modules:
        if tuple(tests) not in limits:
            before = _children_seconds()
            if not survives(None, tests):
                print(f"these tests fail without any change: {' '.join(tests)}")
                return 1
            limits[tuple(tests)] = 10 + int(PATIENCE * (_children_seconds() - before))
        found = places(path)
        chosen = chance.sample(found, min(given.each, len(found))) if given.each and not given.lines else found
        mutants = [one for one in (mutant(path, place) for place in chosen) if one.line in (given.lines or [one.line])]
        for changed in sorted(mutants, key=lambda one: one.line):
            started = time.monotonic()
            alive = survives(changed, tests, limits[tuple(tests)])
            tried += 1
            where = f"{path.relative_to(ROOT)}:{changed.line}"
            change = f"{changed.before}  ->  {changed.after}"
            verdict = "SURVIVED" if alive else "noticed "
            print(f"{verdict} {where}: {change} [{time.monotonic() - started:.0f} s]", flush=True)
            if alive:
                left.append(f"{where}: {change}")
    print(f"{tried} mutants, {len(left)} survived")
    print("\n".join(left))
    return 0


if __name__ == "__main__":
    sys.exit(main())
