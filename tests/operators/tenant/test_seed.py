"""The seed's example, to the letter: a Tenant of four servers, and the status it reaches."""

from __future__ import annotations

from tests.operators.tenant.stories import play_story, pool, reaches, tenant

from holdfast.operators.tenant.observe import TENANTS
from holdfast.testing.clusters import Cluster


def test_the_tenant_of_the_seed_reaches_the_status_of_the_seed() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("dev-minimal", pool("dev-pool")))
        status = await reaches(cluster, "Ready", "dev-minimal")
        (found,) = status["pools"]
        revision, moment = found["currentRevision"], found["lastUpdateTime"]
        assert revision.startswith("dev-minimal-dev-pool-")
        assert found.pop("floor") == {"required": 3, "available": 4, "most": 4, "lowest": 3}
        assert {field: status[field] for field in ("currentState", "availableReplicas", "pools")} == {
            "currentState": "Ready",
            "availableReplicas": 4,
            "pools": [
                {
                    "ssName": "dev-minimal-dev-pool",
                    "state": "PoolRolloutComplete",
                    "replicas": 4,
                    "readyReplicas": 4,
                    "currentReplicas": 4,
                    "updatedReplicas": 4,
                    "currentRevision": revision,
                    "updateRevision": revision,
                    "lastUpdateTime": moment,
                }
            ],
        }
        assert set(status) == {"currentState", "availableReplicas", "pools", "conditions", "observedGeneration"}

    play_story(story)
