"""``holdfast scale``: what is changed, what is refused, and who owns the field afterwards."""

from __future__ import annotations

from typing import Any

from tests.cli.api_runs import WIDGETS, Cli, deployment, widget


def budget(least: Any) -> dict[str, Any]:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": "web"}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web-floor"}, "spec": spec}


def replicas(cli: Cli) -> int:
    found: int = cli.object("deploy", "web")["spec"]["replicas"]
    return found


def test_the_number_of_replicas_is_set_and_the_next_apply_meets_no_conflict(cli: Cli) -> None:
    cli.apply(deployment("web", replicas=2))
    said = cli("scale", "deployment/web", "--replicas", "5")
    assert said == "web: 2 → 5 replicas\ndeployment.apps/web scaled from 2 to 5\n"
    assert replicas(cli) == 5
    cli.apply(deployment("web", replicas=3))
    assert replicas(cli) == 3


def test_a_dry_run_and_an_unexpected_number_change_nothing(cli: Cli) -> None:
    cli.apply(deployment("web", replicas=2))
    assert "not changed (dry run)" in cli("scale", "deployment/web", "--replicas", "5", "--dry-run")
    said = cli.refused("scale", "deployment/web", "--replicas", "5", "--current-replicas", "4")
    assert said.startswith("error: deployment.apps/web has 2 replicas, and --current-replicas says 4")
    assert f"-n {cli.namespace}" in said
    assert replicas(cli) == 2
    assert cli("scale", "deployment/web", "--replicas", "2") == "deployment.apps/web has 2 replicas already\n"


def test_a_number_below_a_disruption_budget_is_refused_unless_it_is_meant(cli: Cli) -> None:
    cli.apply(deployment("web", replicas=5), budget(3))
    said = cli.refused("scale", "deployment/web", "--replicas", "2")
    assert "2 replicas are too few: poddisruptionbudget/web-floor needs 3 available pods" in said
    assert "--below-floor" in said
    assert replicas(cli) == 5
    cli("scale", "deployment/web", "--replicas", "3")
    cli("scale", "deployment/web", "--replicas", "2", "--below-floor")
    assert replicas(cli) == 2


def test_a_percentage_of_a_budget_refuses_nothing(cli: Cli) -> None:
    cli.apply(deployment("web", replicas=5), budget("80%"))
    cli("scale", "deployment/web", "--replicas", "1")
    assert replicas(cli) == 1


def test_an_autoscaler_that_will_change_the_number_is_named(cli: Cli) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4}
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "auto"}}
    cli.apply(deployment("web"), {**scaler, "spec": spec})
    assert "warning: horizontalpodautoscaler/auto keeps it at 2 to 4 replicas" in cli(
        "scale", "deployment/web", "--replicas", "9"
    )


def test_a_kind_without_replicas_is_refused(cli: Cli) -> None:
    cli.apply(WIDGETS, widget("w"))
    said = cli.refused("scale", "widget/w", "--replicas", "2")
    assert "have no number of replicas that can be set" in said
    assert "is not in the range" in cli.refused("scale", "widget/w", "--replicas", "-2", code=2)
