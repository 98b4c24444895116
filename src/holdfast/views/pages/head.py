"""The top of a page: what an object is, and where it stands."""

from __future__ import annotations

from holdfast.views.overview import FloorBar, Row
from holdfast.views.pages.sections import Section, Wire
from holdfast.views.rollouts import ending
from holdfast.views.trees import Tree


class Fact(Section, frozen=True, kw_only=True):
    """Something worth knowing: a name and a value."""

    label: str
    value: str


class Head(Section, frozen=True, kw_only=True):
    """The top of a page: what the object is, and where it stands.

    summary  the state in one line
    remedy   what to change, where it is blocked
    leaf     the resource of the leaves of its tree, where they have pages
    """

    row: Row
    uid: str
    generation: int = 0
    summary: str = ""
    strategy: str = ""
    unit: str = "replica"
    step: int = 1
    steps: int = 1
    remedy: str = ""
    facts: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()
    floors: tuple[FloorBar, ...] = ()
    images: tuple[str, ...] = ()
    leaf: str = ""


def head(row: Row, wire: Wire, tree: Tree | None, *, leaf: str = "") -> Head:
    """The top of the page; `tree` where the kind rolls out, and `leaf` the resource of its leaves."""
    meta = wire.get("metadata") or {}
    uid, generation = str(meta.get("uid", "")), int(meta.get("generation") or 0)
    if tree is None:
        return Head(row=row, uid=uid, generation=generation, summary=row.because)
    standing = tree.standing
    same = standing.current == standing.target
    revisions = (
        ("revision" if same else "current revision", standing.current),
        ("new revision", "" if same else standing.target),
    )
    named = [Fact(label=label, value=value) for label, value in revisions if value]
    return Head(
        row=row,
        uid=uid,
        generation=generation,
        summary=ending(standing).partition(": ")[2],
        strategy=standing.strategy,
        unit=standing.unit,
        step=standing.step,
        steps=standing.steps,
        remedy=standing.remedy,
        facts=(*named, *(Fact(label="", value=each) for each in standing.facts)),
        warnings=standing.warnings,
        floors=tuple(map(FloorBar.of, standing.floors)),
        images=tree.images,
        leaf=leaf,
    )
