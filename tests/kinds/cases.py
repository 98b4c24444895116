"""The cases of ``cel_cases.yaml``: what the rules of definitions say of objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.kinds.values import with_value

from holdfast import kinds
from holdfast.kinds.model import Kind


@dataclass(frozen=True, kw_only=True)
class Case:
    """An object that is created or updated, and what is said of it."""

    kind: Kind
    new: dict[str, Any]
    old: dict[str, Any] | None
    """The object before the update; None for a creation."""
    at: str | None
    """The field that the message is about; None if the object is accepted."""
    says: str | None

    def __str__(self) -> str:
        return f"{self.kind.name}: {self.says or 'accepted'}"


@cache
def cases() -> tuple[Case, ...]:
    return tuple(_cases(yaml.safe_load(Path(__file__).with_name("cel_cases.yaml").read_text())))


def _cases(data: Mapping[str, Any]) -> Iterator[Case]:
    for name, entry in data.items():
        kind = kinds.by_name(name)
        assert kind is not None, name
        for case in entry["cases"]:
            yield Case(
                kind=kind,
                new=_changed(entry["base"], case["new"]),
                old=_changed(entry["base"], case["old"]) if "old" in case else None,
                at=case.get("at"),
                says=case.get("says"),
            )


def _changed(base: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    changed = base
    for path, value in changes.items():
        changed = with_value(changed, path, value)
    return changed
