"""isuit and the programs one would use instead, on the same cohorts in one run.

    python benchmarks/peers.py                         # 1,000 x 50, 10,000 x 50 and 100,000 x 20
    python benchmarks/peers.py --cohort 1000x50 --draws 5 --program isuit --program gpboost

Cohorts are drawn from the reference truth. Each program runs in a process of its own with a limit of CPU time; those
that are not installed are named and left out. Nothing is installed. See docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from peers.accuracy import measures, skill_with_known_curve
from peers.exchange import read_answer, read_columns, write_columns
from peers.processes import run
from peers.programs import PROGRAMS, Program

from isuit.experiment.cohort import REFERENCE_SEED, Truth, draw

COHORTS = ("1000x50", "10000x50", "100000x20")


def main() -> None:
    asked = _arguments()
    chosen = [program for program in PROGRAMS if not asked.program or program.name in asked.program]
    present = [program for program in chosen if program.version is not None]
    for program in chosen:
        if program.version is None:
            print(f"{program.name}: not installed, left out", file=sys.stderr)
    results = []
    for size in asked.cohort or COHORTS:
        riders, outcomes = (int(part) for part in size.lower().split("x"))
        truth = Truth(riders=riders, outcomes=outcomes)
        rows: dict[str, list[dict[str, Any]]] = {}
        for seed in range(REFERENCE_SEED, REFERENCE_SEED + asked.draws):
            for name, row in _compare(truth, seed, present, asked):
                rows.setdefault(name, []).append(row)
                print(f"{size} seed {seed} {name}: {json.dumps(row)}", file=sys.stderr, flush=True)
        result = {"cohort": size, "draws": asked.draws, "rows": [_mean(name, part) for name, part in rows.items()]}
        results.append(result)
        print(_table(result, {program.name: program for program in PROGRAMS}), flush=True)
        if asked.out:
            versions = {program.package: program.version for program in present}
            asked.out.write_text(json.dumps({"versions": versions, "cohorts": results}, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohort", action="append", help="riders x outcomes each, such as 1000x50 (repeatable)")
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--program", action="append", choices=names, help="only this one (repeatable)")
    parser.add_argument("--draws", type=int, default=1, help="cohorts of each size; means are shown (default 1)")
    parser.add_argument("--limit", type=int, default=900, help="CPU seconds for one program (default 900)")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    return parser.parse_args()


def _compare(truth: Truth, seed: int, programs: list[Program], asked: argparse.Namespace) -> Any:
    """Name and figures of each program on one cohort, as they come."""
    data, skill = draw(truth, seed)
    known = float(np.corrcoef(skill_with_known_curve(data, truth), skill)[0, 1])
    yield "curve known", {"skill_correlation": known}
    with tempfile.TemporaryDirectory() as temporary:
        cohort = Path(temporary) / "cohort"
        cohort.mkdir()
        write_columns(cohort, data.rider, data.metric, data.outcome)
        grid = read_columns(cohort).grid
        for number, program in enumerate(programs):
            named = asked.program and program.name in asked.program
            if program.most_riders is not None and truth.riders > program.most_riders and not named:
                yield program.name, {"failure": f"not started: {program.hopeless}"}
                continue
            out = Path(temporary) / f"out-{number}"
            out.mkdir()
            failure = run(program.command(cohort, out), asked.limit, out, program.directory, program.one_thread)
            if failure is not None:
                yield program.name, {"failure": failure}
                continue
            answer, peak = read_answer(out)
            figures = {"cpu_seconds": answer.cpu_seconds, "peak_megabytes": peak}
            yield program.name, figures | measures(answer, truth, skill, grid)


def _mean(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean of each figure over draws; a failure in one draw is the program's result."""
    for row in rows:
        if "failure" in row:
            return {"name": name, "failure": row["failure"]}
    means: dict[str, Any] = {"name": name}
    for figure, value in rows[0].items():
        means[figure] = None if value is None else float(np.mean([row[figure] for row in rows]))
    return means


def _table(result: dict[str, Any], programs: dict[str, Program]) -> str:
    riders, outcomes = result["cohort"].lower().split("x")
    draws = result["draws"]
    lines = [
        f"### {int(riders):,} riders x {outcomes} outcomes" + (f" (means of {draws} cohorts)" if draws > 1 else ""),
        "",
        "| program | fits | CPU s | peak MB | skill correlation | RMSE of difficulty | a | minimum | coverage "
        "| isuit's CPU / its |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    own = next((row.get("cpu_seconds") for row in result["rows"] if row["name"] == "isuit"), None)
    for row in result["rows"]:
        what = programs[row["name"]].what if row["name"] in programs else "the best that can be known of skill"
        if "failure" in row:
            lines.append(f"| {row['name']} | {what} | {row['failure']} | | | | | | | |")
            continue
        ratio = own / row["cpu_seconds"] if own and row.get("cpu_seconds") else None
        cells = [
            _number(row.get("cpu_seconds"), ".3g"),
            _number(row.get("peak_megabytes"), ".0f"),
            _number(row.get("skill_correlation"), ".4f"),
            _number(row.get("difficulty_rmse"), ".4f"),
            _number(row.get("discrimination"), ".3f"),
            _number(row.get("minimum"), ".2f"),
            _number(row.get("coverage_95"), ".2f"),
            _number(ratio, ".3f"),
        ]
        lines.append(f"| {row['name']} | {what} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


if __name__ == "__main__":
    main()
