"""The revisions of a page."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.views.pages.revisions import DiffLine, revisions
from holdfast.views.rollouts import Past, Record


def past(number: int, image: str) -> Past:
    record = msgspec.convert({"revision": number, "data": {"spec": {"image": image, "port": 80}}}, Record)
    return Past(number=number, revision=f"r{number}", image=image, made=None, marks=(), change="", record=record)


def test_revisions_are_shown_newest_first_with_a_diff_to_the_one_before() -> None:
    def dump(value: Any) -> str:
        return "\n".join(f"{name}: {each}" for name, each in value["spec"].items())

    new, old = revisions((past(1, "a:1"), past(2, "a:2")), dump=dump)
    assert (new.number, old.number, old.diff) == (2, 1, ())
    assert new.diff == (
        DiffLine("@", ""),
        DiffLine("-", "image: a:1"),
        DiffLine("+", "image: a:2"),
        DiffLine(" ", "port: 80"),
    )
