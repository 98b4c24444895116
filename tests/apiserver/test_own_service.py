"""The Service ``kubernetes``: it is there once the server listens, and comes back."""

from __future__ import annotations

import asyncio

from tests.apiserver.servers import Api

SERVICE = "/api/v1/namespaces/default/services/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"


def test_the_service_of_the_server_leads_to_it(api: Api) -> None:
    assert api.get(SERVICE).status == 404
    api.run(api.server.own_service.start("127.0.0.1", 6443))
    spec = api.get(SERVICE).ok["spec"]
    assert spec["clusterIP"]
    assert [(port["port"], port["targetPort"]) for port in spec["ports"]] == [(443, 6443)]
    found = api.get(SLICE).ok
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "kubernetes"
    assert (found["addressType"], found["endpoints"][0]["addresses"]) == ("IPv4", ["127.0.0.1"])
    assert found["ports"][0]["port"] == 6443


def test_the_service_of_the_server_comes_back_and_keeps_its_address(api: Api) -> None:
    api.run(api.server.own_service.start("127.0.0.1", 6443))
    address = api.get(SERVICE).ok["spec"]["clusterIP"]
    api.patch(SERVICE, {"spec": {"ports": [{"port": 1}]}, "metadata": {"labels": {"own": "label"}}}).done()
    api.run(asyncio.sleep(1))
    kept = api.get(SERVICE).ok
    assert (kept["spec"]["clusterIP"], kept["spec"]["ports"][0]["port"]) == (address, 443)
    assert kept["metadata"]["labels"]["own"] == "label"
    api.delete(SERVICE).done()
    api.delete(SLICE).done()
    api.run(asyncio.sleep(1))
    assert api.get(SERVICE).status == api.get(SLICE).status == 200


def test_a_server_that_listens_elsewhere_changes_its_service(api: Api) -> None:
    api.run(api.server.own_service.start("127.0.0.1", 6443))
    api.run(api.server.own_service.stop())
    api.run(api.server.own_service.start("127.0.0.1", 7443))
    assert api.get(SERVICE).ok["spec"]["ports"][0]["targetPort"] == 7443
    assert api.get(SLICE).ok["ports"][0]["port"] == 7443
