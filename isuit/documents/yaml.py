"""YAML from elsewhere: plain values only, with aliases counted as what they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from isuit.documents.files import LARGEST_FILE, UnsafeDocument, read_text
from isuit.documents.notation import DEEPEST, Refused, finite, from_json, integer
from isuit.errors import InputError

LARGEST_YAML = 1 << 20  # bytes; its parser is slow, and a large catalogue is better JSON
MOST_NODES = 1_000_000


class _Loader(yaml.SafeLoader):
    """The safe loader, with a depth, a size that counts what aliases repeat, and the numbers that JSON may hold."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._size: dict[int, int] = {}  # nodes below a node, itself included, by its identity

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Refused(f"is nested more than {DEEPEST} levels deep; check it")
        node = super().compose_node(parent, index)
        self._depth -= 1
        if id(node) not in self._size:
            self._size[id(node)] = 1 + sum(self._size_of(part) for part in _parts(node))
        if self._size[id(node)] > MOST_NODES:
            raise Refused(f"stands for more than {MOST_NODES} values; check it")
        return node

    def _size_of(self, node: Any) -> int:
        if id(node) not in self._size:  # an alias inside of what it names
            raise Refused("repeats itself without end; check it")
        return self._size[id(node)]

    def construct_yaml_int(self, node: Any) -> Any:
        return integer(str(self.construct_scalar(node)).replace("_", ""))

    def construct_yaml_float(self, node: Any) -> Any:
        text = str(self.construct_scalar(node)).replace("_", "").lower()
        return finite(text.replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)


def _parts(node: Any) -> list[Any]:
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return []


def from_yaml(text: str, what: str) -> Any:
    """The value of a YAML document; ValueError where it is malformed, `UnsafeDocument` where it is refused."""
    loader = None
    try:
        if len(text) > LARGEST_YAML:
            raise Refused(f"is YAML of more than {LARGEST_YAML >> 20} MiB; write it as JSON, which is read faster")
        loader = _Loader(text)
        return loader.get_single_data()
    except Refused as error:
        raise UnsafeDocument(f"{what} {error}") from None
    except (yaml.YAMLError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(type(error).__name__) from None
    finally:
        if loader is not None:
            loader.dispose()


def read_document(path: Path, what: str, largest: int = LARGEST_FILE) -> Any:
    """A JSON or YAML file by its ending; InputError with one sentence for whatever is wrong with it."""
    try:
        text = read_text(path, what, largest)
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{what} cannot be read; check its path and that it is text in UTF-8") from None
    try:
        # YAML contains JSON, except for tabs; and its parser is slow.
        return from_json(text, what) if path.suffix.lower() == ".json" else from_yaml(text, what)
    except ValueError:
        raise InputError(f"{what} is no well-formed JSON or YAML; correct it") from None
