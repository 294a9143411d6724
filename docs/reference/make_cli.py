"""Writes cli.md from the app itself: `python docs/reference/make_cli.py`, or `make docs`. A test compares the two."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from isuit.cli.app import app_of
from typer.models import ArgumentInfo, OptionInfo

PAGE = Path(__file__).with_name("cli.md")
HEAD = """# The command line

Generated from the app by `make docs`, in the order of `isuit --help`. Every command takes `--json` and then prints
exactly one JSON object on stdout, which [schemas](../../schemas) describe. [Exit codes](exit-codes.md) are the same
everywhere.

`isuit --version` prints the versions of isuit, duckdb, numpy and scipy. `isuit --install-completion` installs
completion for your shell. Colours and progress bars appear on a terminal only, and `NO_COLOR` switches colours off.
"""


@dataclass(frozen=True)
class Parameter:
    """One argument or option of a command, as its signature declares it."""

    info: ArgumentInfo | OptionInfo
    kind: Any  # its type
    default: Any  # `inspect.Parameter.empty` where it must be given
    name: str

    @property
    def is_option(self) -> bool:
        return isinstance(self.info, OptionInfo)

    @property
    def options(self) -> tuple[str, ...]:
        # Inside `Annotated` typer keeps the first name that is given in the place of the default.
        names = [name for name in (self.info.default, *(self.info.param_decls or [])) if str(name).startswith("-")]
        return tuple(names or [f"--{self.name.replace('_', '-')}"])

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def placeholder(self) -> str:
        """What stands for its value in a line of usage."""
        inner = [part for part in get_args(self.kind) if part is not type(None)]
        if get_origin(self.kind) is Literal:
            return "|".join(map(str, inner))
        if self.is_option:
            kind = inner[0] if inner else self.kind
            return {bool: "", int: "N", float: "X", Path: "PATH", datetime: "DATE"}.get(kind, "TEXT")
        several = get_origin(self.kind) is list
        return self.info.metavar or f"{self.name.upper()}{'...' if several else ''}"


def parameters(function: Any) -> list[Parameter]:
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, declared in inspect.signature(function).parameters.items():
        kind, info = get_args(hints[name])[:2]
        found.append(Parameter(info, kind, declared.default, name))
    return found


def reference() -> str:
    parts, panel = [HEAD], None
    for command in app_of().registered_commands:
        if command.rich_help_panel != panel:
            panel = command.rich_help_panel
            parts.append(f"## {str(panel).split(':')[0]}\n")
        parts.append(_section(str(command.name), command.callback))
    return "\n".join(parts)


def _section(name: str, function: Any) -> str:
    arguments = [part for part in parameters(function) if not part.is_option]
    options = [part for part in parameters(function) if part.is_option]
    needed = [f"{part.options[0]} {part.placeholder}" for part in options if part.required]
    usage = " ".join([f"isuit {name}", *(part.placeholder for part in arguments), *needed, "[OPTIONS]"])
    lines = [f"### isuit {name}", "", f"    {usage}", "", inspect.cleandoc(function.__doc__), ""]
    lines += ["| argument or option | meaning | default |", "|---|---|---|"]
    lines += [f"| `{part.placeholder}` | {_cell(part.info.help)} | |" for part in arguments]
    lines += [f"| {_names(part)} | {_cell(part.info.help)} | {_default(part)} |" for part in options]
    return "\n".join([*lines, ""])


def _names(part: Parameter) -> str:
    value = _cell(f" {part.placeholder}" if part.placeholder else "")
    return ", ".join(f"`{name}{value}`" for name in part.options)


def _default(part: Parameter) -> str:
    if part.required:
        return "required"
    shown = "" if part.default is None or part.default is False else f"`{part.default}`"
    return f"`{part.info.envvar}`, or {shown}" if part.info.envvar else shown


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference())
