"""Every command's `--json` is one object that follows the schema published for it: each is run, none is assumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from isuit.cli.app import COMMANDS as LISTED

from isuit.published.schemas import SCHEMAS, printed_by

if TYPE_CHECKING:
    from conftest import Answer

FOLDER = Path(__file__).parents[2] / "schemas"
COMMANDS = [command.name for command in LISTED]
SITES = "site,latitude,longitude\nnorth,60,10\nsouth,45.5,-3.25\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_schema(command: str) -> None:
    assert set(printed_by(command)) <= set(SCHEMAS)


@pytest.mark.long
def test_every_command_prints_what_its_schema_says(  # noqa: PLR0915  # one line for each command
    isuit: Callable[..., Answer], tmp_path: Path, cohort_table: Callable[..., pa.Table]
) -> None:
    seen: set[tuple[str, str]] = set()

    def said(schema: str, *command: str, code: int = 0) -> dict:
        assert schema in printed_by(command[0])
        answer = isuit(*command, "--json")
        assert answer.code == code, answer.err
        jsonschema.validate(answer.json, json.loads((FOLDER / f"{schema}.schema.json").read_text()))
        seen.add((command[0], schema))
        return answer.json

    pq.write_table(cohort_table(3, riders=60, outcomes=20, sites=("north", "south")), tmp_path / "cohort.parquet")
    (tmp_path / "sites.csv").write_text(SITES)
    (tmp_path / "conditions.csv").write_text("metric,site,skill\n18,north,expert\n12,,0.5\n")
    (tmp_path / "bad.csv").write_text("rider,metric,outcome\na,1,7\n")

    said("init", "init")
    said("hash", "hash", "cohort.parquet")
    said("refused-cohort", "hash", "bad.csv", code=2)
    said("canonicalise", "canonicalise", "cohort.parquet", "--out", "cohort.tsv")
    said("refused-cohort", "canonicalise", "bad.csv", "--out", "bad.tsv", code=2)
    said("pseudonymise", "pseudonymise", "cohort.parquet", "--out", "tokens.parquet")
    made = said("fit", "fit", "--cohort", "cohort.parquet", "--sites", "sites.csv", "--dimension", "wind")
    fit = made["fit_id"]
    said("fits", "fits")
    said("add", "add", "--series", "kite", "cohort.parquet")
    assert said("series", "series")["series"][0]["parts"] == 1
    said("refused-cohort", "add", "--series", "kite", "bad.csv", code=2)
    said("show", "show", fit)
    said("report", "report", fit, "--out", "report.html")
    said("score", "score", fit, "--metric", "18", "--skill", "expert")
    said("score-conditions", "score", fit, "--conditions", "conditions.csv", "--out", "scores.csv")
    said("rank", "rank", fit)
    other = said("fit", "fit", "--cohort", "cohort.parquet", "--gate", "strict", "--dimension", "wind")
    said("compare", "compare", fit, other["fit_id"])
    said("alias", "alias", "kite-2026", fit)
    said("atlas", "atlas")
    said("trajectory", "trajectory", "rider-0007")
    said("rederive", "rederive", fit)
    said("bundle", "bundle", fit, "--out", "bundle")
    said("head", "head", "--signed")
    said("prove", "prove", fit, "--out", "proof.json")
    said("check-proof", "check-proof", "proof.json")
    said("witness", "witness", "--state", "witness")
    said("rotate-key", "rotate-key")
    said("export-atlas", "export-atlas", "--release", "2026-01-01", "--out", "atlas.jsonl")
    said("check-release", "check-release", "atlas.jsonl")
    said("rederive-release", "rederive", "2026-01-01")
    said("show-rider", "show-rider", "rider-0007")
    said("erasure-plan", "delete-rider", "rider-0007", "--dry-run")
    said("erasure-receipt", "delete-rider", "rider-0007", "--yes", "--receipt", "copy.json")
    said("erasure-receipt-copy", "receipt", "copy.json")
    said("reinstate", "reinstate", "rider-0007")
    said("verify", "verify")
    said("status", "status")
    said("latent-demo", "latent-demo", "--out", "demo", "--replicates", "1")

    assert seen == {(command, schema) for command in COMMANDS for schema in printed_by(command)}
    for schema, lines in (("release-row", slice(None, -1)), ("release-metadata", slice(-1, None))):
        for line in (tmp_path / "atlas.jsonl").read_text().splitlines()[lines]:
            jsonschema.validate(json.loads(line), json.loads((FOLDER / f"{schema}.schema.json").read_text()))
