"""What a deleted person leaves in PostgreSQL: copies of a marked ID in its files after each way to delete.

    python benchmarks/postgres_leftovers.py [--rows 200000]

Needs PostgreSQL's server programs. A cluster of its own is started in a temporary directory, with archiving on, as it
is for restoring to a point in time. One row in a hundred is of the rider who is erased. docs/adr says what follows.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

MARKED = b"Zq7-marked-rider-Xw"


def programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb") or "initdb")]
    return found[-1].parent


class Cluster:
    """A server that only this process talks to; root may not run one, so it runs as the user `postgres`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, programs()
        self.user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        self.archive = folder / "archive"
        self.archive.mkdir()
        if os.getuid() == 0:
            shutil.chown(folder, self.user)
            shutil.chown(self.archive, self.user)
        self._run("initdb", "--pgdata", str(folder / "data"), "--auth", "trust", "--username", self.user)
        settings = (
            f"-k {folder} -c listen_addresses= -c archive_mode=on -c wal_level=replica "
            f"-c archive_command='cp %p {self.archive}/%f'"
        )
        self._run("pg_ctl", "--pgdata", str(folder / "data"), "--wait", "--options", settings, "start")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.bin / program), *arguments]
        subprocess.run(command, user=self.user, cwd=self.folder, stdout=subprocess.DEVNULL, check=True)

    def sql(self, *statements: str) -> None:
        for statement in statements:
            self._run("psql", "--host", str(self.folder), "--dbname", "postgres", "--quiet", "--command", statement)

    def stop(self) -> None:
        self._run("pg_ctl", "--pgdata", str(self.folder / "data"), "--mode", "fast", "stop")

    def copies(self) -> dict[str, int]:
        """How often the marked ID stands in the tables' files, in the log of changes, and in its archive."""
        places = {
            "tables": self.folder / "data" / "base",
            "log": self.folder / "data" / "pg_wal",
            "archive": self.archive,
        }
        return {
            name: sum(path.read_bytes().count(MARKED) for path in place.rglob("*") if path.is_file())
            for name, place in places.items()
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder))
        steps = {
            "inserted": (
                "CREATE TABLE outcomes (rider text, metric double precision, outcome smallint)",
                f"INSERT INTO outcomes SELECT CASE WHEN i % 100 = 0 THEN '{MARKED.decode()}' ELSE md5(i::text) END, "
                f"random(), i % 2 FROM generate_series(1, {options.rows}) t(i)",
                "CHECKPOINT",
            ),
            "DELETE": (f"DELETE FROM outcomes WHERE rider = '{MARKED.decode()}'", "CHECKPOINT"),
            "VACUUM": ("VACUUM outcomes", "CHECKPOINT"),
            "VACUUM FULL": ("VACUUM FULL outcomes", "CHECKPOINT"),
            "a new log file": ("SELECT pg_switch_wal()", "CHECKPOINT"),
        }
        try:
            for step, statements in steps.items():
                cluster.sql(*statements)
                print(f"{step:<15} " + ", ".join(f"{name} {count}" for name, count in cluster.copies().items()))
        finally:
            cluster.stop()


if __name__ == "__main__":
    main()
