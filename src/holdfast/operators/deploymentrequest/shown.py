"""How requests, graphs and what belongs to them are shown: counts, charts, and which objects they refer to."""

from __future__ import annotations

from typing import Final

from holdfast.operators.deploymentrequest.graphs import view as graphs
from holdfast.operators.deploymentrequest.graphs.resources import ADAPTERS, GRAPHS
from holdfast.operators.deploymentrequest.requests import view as requests
from holdfast.operators.deploymentrequest.requests.observe import REQUESTS
from holdfast.operators.shown import Reference, ShownKind

SHOWN: Final = (
    ShownKind(
        resource=REQUESTS,
        counts=requests.counts,
        chart=requests.chart,
        references=(Reference(path="status.dgdName", resource=GRAPHS, relation="deployment", back="request"),),
    ),
    ShownKind(resource=GRAPHS, counts=graphs.counts),
    ShownKind(
        resource=ADAPTERS,
        references=(Reference(path="spec.dgdRef", resource=GRAPHS, relation="deployment", back="scaling adapter"),),
    ),
)
