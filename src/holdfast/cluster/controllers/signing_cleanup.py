"""Certificate signing requests that are over are deleted: certificates are read soon after they are signed.

A request lives an hour after its certificate was signed or after it was denied or failed, and a day while it waits for
a decision, as in Kubernetes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.cluster.controllers.signing import SIGNING_REQUESTS
from holdfast.kernel.outcomes import until
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.decisions import NOTHING, Decision, Delete

DECIDED: Final = timedelta(hours=1)
PENDING: Final = timedelta(days=1)


class _Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    last_update_time: str | None = None


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()
    certificate: Any = None


class _Request(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    status: _Status = _Status()


def observe(view: View, key: Key) -> Object | None:
    return view.get(SIGNING_REQUESTS, key)


def decide(obj: Object, now: datetime) -> Decision:
    ends = None if obj.deleting else _end(obj.decode(_Request))
    if ends is None:
        return NOTHING
    if now < ends:
        return Decision(outcome=until(ends, now=now, because="the request is deleted then"))
    because = "it was decided an hour ago, or has waited for a decision for a day"
    return Decision(writes=(Delete(resource=SIGNING_REQUESTS, key=obj.key, uid=obj.uid, because=because),))


def _end(request: _Request) -> datetime | None:
    """When a request is deleted; None while an approved one waits for its signer."""
    status = request.status
    if not status.conditions:
        created = times.read(request.metadata.creation_timestamp)
        return None if created is None else created + PENDING
    over = {"Denied", "Failed", *(("Approved",) if status.certificate else ())}
    stamps = [times.read(each.last_update_time) for each in status.conditions if each.type in over]
    return min((stamp + DECIDED for stamp in stamps if stamp is not None), default=None)


CONTROLLER: Final = Controller(
    name="certificate-cleaner",
    resource=SIGNING_REQUESTS,
    observe=observe,
    decide=decide,
)
