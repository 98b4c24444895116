"""Every live namespace has the certificate of the server's authority."""

from __future__ import annotations

from holdfast.client.resources import CONFIG_MAPS, NAMESPACES
from holdfast.cluster.controllers import root_certificates
from holdfast.testing.clusters import Cluster, play


def test_the_certificate_is_published_in_every_namespace_and_kept() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NAMESPACES, {"metadata": {"name": "other"}})
        await cluster.settle()
        for namespace in ("default", "other"):
            found = await cluster.get(CONFIG_MAPS, "kube-root-ca.crt", namespace)
            assert found["data"] == {"ca.crt": "PEM"}
        await cluster.patch(CONFIG_MAPS, "kube-root-ca.crt", {"data": {"ca.crt": "another"}})
        await cluster.delete(CONFIG_MAPS, "kube-root-ca.crt", "other")
        await cluster.settle()
        for namespace in ("default", "other"):
            found = await cluster.get(CONFIG_MAPS, "kube-root-ca.crt", namespace)
            assert found["data"] == {"ca.crt": "PEM"}

    play(story, controllers=(root_certificates.controller("PEM"),))
