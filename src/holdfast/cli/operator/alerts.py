"""What operators are watched by: alerts for Prometheus and a dashboard for Grafana.

Pure.  Every metric that is named here exists (a test compares), and every alert says what to do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

_OBJECT: Final = "{{ $labels.kind }} {{ $labels.namespace }}/{{ $labels.name }}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert: when it fires, and what it says."""

    name: str
    expression: str
    severity: Literal["warning", "critical"]
    lasts: str = "5m"
    summary: str
    remedy: str

    def rule(self) -> dict[str, Any]:
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.lasts,
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.summary, "description": self.remedy},
        }


ALERTS: Final = (
    Alert(
        name="HoldfastOperatorDown",
        expression='absent(up{job="holdfast-operator-metrics"} == 1)',
        severity="critical",
        summary="No Holdfast operator answers.",
        remedy="Look at the pods of the Deployment holdfast-operator and their Events.",
    ),
    Alert(
        name="HoldfastNoLeader",
        expression="sum(holdfast_leader) < 1",
        severity="critical",
        summary="No Holdfast operator leads, so nothing is reconciled.",
        remedy="Look at the Lease holdfast-operator, and at the log of the operators for 'lease request failed'.",
    ),
    Alert(
        name="HoldfastBelowFloor",
        expression="holdfast_rollout_floor_ready < holdfast_rollout_floor",
        severity="critical",
        lasts="2m",
        summary=f"{_OBJECT} has fewer ready replicas than its floor.",
        remedy="holdfast rollout status says which replicas are missing, and why. No rollout stops a replica now.",
    ),
    Alert(
        name="HoldfastRolloutStopped",
        expression='holdfast_rollout_stopped{state=~"Blocked|Failed"} == 1',
        severity="warning",
        lasts="10m",
        summary=f"The rollout of {_OBJECT} does not go on: {{{{ $labels.reason }}}}.",
        remedy="holdfast rollout status says what to change; holdfast rollout undo returns to the revision before.",
    ),
    Alert(
        name="HoldfastRolloutNearDeadline",
        expression="holdfast_rollout_seconds_to_deadline < 120",
        severity="warning",
        lasts="1m",
        summary=f"The rollout of {_OBJECT} makes no progress and fails in less than two minutes.",
        remedy="holdfast rollout status says what it waits for.",
    ),
    Alert(
        name="HoldfastReconcileErrors",
        expression="sum by (controller, reason) (rate(holdfast_reconcile_errors_total[5m])) > 0.1",
        severity="warning",
        lasts="15m",
        summary="The controller {{ $labels.controller }} fails again and again: {{ $labels.reason }}.",
        remedy="Its log says of which objects, and why.",
    ),
    Alert(
        name="HoldfastControllerCrashes",
        expression="increase(holdfast_crashes_total[15m]) > 0",
        severity="warning",
        lasts="0m",
        summary="{{ $labels.part }} crashed and was started again.",
        remedy="This is a defect: report it with the traceback from the log.",
    ),
    Alert(
        name="HoldfastQueueStuck",
        expression="holdfast_queue_longest_running_seconds > 600",
        severity="warning",
        summary="A pass of the controller {{ $labels.controller }} has run for ten minutes.",
        remedy="The log says which object; a restart of the operator is safe at any time.",
    ),
)

PANELS: Final = (
    ("Ready replicas by object", "sum by (kind, namespace, name) (holdfast_rollout_ready)"),
    ("Distance to the floor", "min by (kind, namespace, name) (holdfast_rollout_floor_ready - holdfast_rollout_floor)"),
    ("Rollouts by state", "count by (state) (holdfast_rollout_state)"),
    ("Rollouts that do not go on", "holdfast_rollout_stopped"),
    ("Time to the deadline", "holdfast_rollout_seconds_to_deadline"),
    ("Rollouts that finished", "sum by (kind, result) (increase(holdfast_rollouts_finished_total[1h]))"),
    (
        "Duration of rollouts, p90",
        "histogram_quantile(0.9, sum by (kind, le) (rate(holdfast_rollout_duration_seconds_bucket[1h])))",
    ),
    ("Floors that were broken", "increase(holdfast_floor_breaches_total[1h])"),
    ("Passes", "sum by (controller, result) (rate(holdfast_reconcile_total[5m]))"),
    ("Keys that wait", "holdfast_queue_depth"),
    ("Requests to the API", "sum by (verb, code) (rate(holdfast_api_requests_total[5m]))"),
    ("Objects in the stores", "holdfast_store_objects"),
)
"""The panels of the dashboard: a title, and what is shown."""


def dashboard() -> str:
    """The dashboard as Grafana reads it."""
    panels = [
        {
            "id": number + 1,
            "title": title,
            "type": "timeseries",
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "gridPos": {"x": 12 * (number % 2), "y": 8 * (number // 2), "w": 12, "h": 8},
            "targets": [{"expr": expression, "refId": "A"}],
        }
        for number, (title, expression) in enumerate(PANELS)
    ]
    source = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    board = {
        "title": "Holdfast",
        "uid": "holdfast",
        "schemaVersion": 39,
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source]},
        "panels": panels,
    }
    return json.dumps(board, indent=2) + "\n"
