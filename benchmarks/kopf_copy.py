"""What `copying` does, as an operator of kopf; run by ``kopf run``.

It is written as its manual has it.  Events are left out, which Holdfast's controller does not tell either.
"""

from __future__ import annotations

from typing import Any

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False


@kopf.on.resume("bench.holdfast.dev", "v1", "copies")
@kopf.on.create("bench.holdfast.dev", "v1", "copies")
@kopf.on.update("bench.holdfast.dev", "v1", "copies")
async def copy(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
    patch.status["value"] = spec["value"]
