"""``holdfast rollout history``: the revisions of an object, or what is in one of them."""

from __future__ import annotations

import time
from functools import partial

import click
import msgspec

from holdfast.cli import painting
from holdfast.cli.connecting import Refused, Session
from holdfast.cli.errors import ExitCode, printable
from holdfast.cli.objects import printers
from holdfast.cli.objects.targets import Target
from holdfast.cli.rollout import following
from holdfast.client.resources import CONTROLLER_REVISIONS
from holdfast.meta.ages import age
from holdfast.operators.rollouts import RolloutKind, records_of
from holdfast.views import rollouts
from holdfast.views.columns import aligned
from holdfast.views.rollouts import Past


async def show_history(
    session: Session, target: Target, kind: RolloutKind, *, number: int | None, output: str | None
) -> ExitCode | None:
    kept = kind.history
    if kept is None:
        raise Refused(*kind.unsupported["history"].lines(f"{target.type}/{target.name}"))
    observed = await following.look(session, target, kind)
    records = records_of(observed.view.owned(CONTROLLER_REVISIONS, observed.object.uid), observed.object)
    refused, why = kept.refused(observed.object), kept.why(observed.object)
    past = rollouts.history(kind.standing(observed), records, label=kept.label, refused=refused, why=why)
    if number is not None:
        click.echo(printable(_one(past, number, output)), nl=False)
    elif output:
        written = printers.as_json if output == "json" else printers.as_yaml
        click.echo(written(rollouts.history_json(past)), nl=False)
    else:
        rows = rollouts.history_rows(past, age=partial(age, now=time.time()))
        click.echo(printable("\n".join(aligned(rows, painting.width()))))
        if why:
            click.echo(painting.folded([why]))
        if refused and not any("rejected" in each.marks for each in past):
            note = f"revision {refused} is rejected: the operator does not roll it out when it is applied again"
            click.echo(painting.folded([note]))
    return None


def _one(past: tuple[Past, ...], number: int, output: str | None) -> str:
    """What is in one revision; raises `Refused`."""
    found = next((each for each in past if each.number == number), None)
    if found is None:
        known = ", ".join(str(each.number) for each in past) or "none yet"
        raise Refused(f"error: there is no revision {number}; the history has {known}")
    shown = {**rollouts.history_json((found,))[0], **msgspec.to_builtins(found.record.data)}
    if output:
        return printers.as_json(shown) if output == "json" else printers.as_yaml(shown)
    marks = f" ({', '.join(found.marks)})" if found.marks else ""
    return (
        f"revision {found.number}, {found.revision}{marks}: {found.change}\n{printers.as_yaml(found.record.data.spec)}"
    )
