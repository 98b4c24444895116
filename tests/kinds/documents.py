"""Reading manifests and comparing documents, for the tests of kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast import kinds
from holdfast.cli.manifests.documents import read
from holdfast.kinds.model import Spelling

NAMES = {kind.name for kind in kinds.ALL}
GROUPS = {kind.group for kind in kinds.ALL}


def documents(path: Path) -> Iterator[dict[str, Any]]:
    """The documents of a file that are of our kinds or in our groups, not those that they bring along.

    Documents of another API are translated.
    """
    for document in read(str(path)):
        doc = document.translated().value
        if doc["kind"] in NAMES or doc["apiVersion"].split("/")[0] in GROUPS:
            yield doc


def plain(value: Any) -> Any:
    """``value`` without what means nothing: nulls, empty maps and lists, and other spellings of a word."""
    if isinstance(value, dict):
        inner = {key: plain(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item is not None and item != {} and item != []}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return SPELLINGS.get(value, value) if isinstance(value, str) else value


def _spellings(cls: type[Spelling]) -> Iterator[tuple[str, str]]:
    yield from cls.__spellings__.items()
    for inner in cls.__subclasses__():
        yield from _spellings(inner)


SPELLINGS = dict(_spellings(Spelling))
