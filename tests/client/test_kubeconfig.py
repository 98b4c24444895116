"""Kubeconfigs: what they say together, what is wrong with them, and that they lead to a server."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.certificates import client_certificate
from tests.client.api_servers import Listening, configmap, listening

from holdfast.client import kubeconfig, settings
from holdfast.client.kubeconfig import Connection, connect, credentials_of, endpoint_of, in_cluster
from holdfast.client.plugins import VERSIONS
from holdfast.client.resources import CONFIG_MAPS
from holdfast.client.settings import KubeconfigError
from holdfast.meta.errors import Forbidden, Unauthorized
from holdfast.meta.objects import Key

SERVER = "https://10.0.0.1:6443"


def config(
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    name: str = "main",
    **rest: Any,
) -> dict[str, Any]:
    """A kubeconfig of one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(context or {})}}],
        "current-context": name,
        **rest,
    }


def written(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def connected(*files: Path, context: str = "", **environment: str) -> Connection:
    named = {"KUBECONFIG": os.pathsep.join(map(str, files))} if files else {}
    return connect(context=context, environment={"HOME": "/nonexistent", **named, **environment})


# Files.


def test_a_context_says_where_and_who(tmp_path: Path) -> None:
    found = connected(written(tmp_path / "config", config(context={"namespace": "team"})))
    assert (found.server, found.namespace, found.source) == (SERVER, "team", str(tmp_path / "config"))


def test_the_file_at_home_counts_if_nothing_else_is_said(tmp_path: Path) -> None:
    home = written(tmp_path / ".kube" / "config", config())
    assert connected(HOME=str(tmp_path)).source == str(home)


def test_of_several_files_the_first_to_name_something_counts(tmp_path: Path) -> None:
    first = written(
        tmp_path / "first",
        config(name="a", cluster={"server": "https://first"}) | {"current-context": None, "users": None},
    )
    second = written(
        tmp_path / "second",
        config(name="a", cluster={"server": "https://second"}, context={"namespace": "second"}),
    )
    third = written(tmp_path / "third", config(name="b", cluster={"server": "https://third"}))
    files = (first, tmp_path / "absent", second, first, third)
    found = connected(*files)
    assert (found.server, found.namespace) == ("https://first", "default")
    assert found.source == os.pathsep.join(map(str, (first, second, third)))
    assert connected(*files, context="b").server == "https://third"


def test_a_file_that_is_named_is_the_only_one(tmp_path: Path) -> None:
    other = written(tmp_path / "other", config(cluster={"server": "https://other"}))
    named = written(tmp_path / "named", config(cluster={"server": "https://named"}))
    found = connect(named, environment={"KUBECONFIG": str(other), "HOME": str(tmp_path)})
    assert found.server == "https://named"


def test_paths_are_meant_from_where_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    written(tmp_path / "config", config(user={"tokenFile": "token"}))
    choice = settings.load([tmp_path / "config"]).choose()
    proof = asyncio.run(credentials_of(choice).proof())
    assert proof.authorization == "Bearer secret"


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ({}, ""),
        ({"token": "secret"}, "Bearer secret"),
        ({"username": "u", "password": "p"}, "Basic dTpw"),
        ({"token": "secret", "exec": {"apiVersion": VERSIONS[0], "command": "x"}}, "Bearer secret"),
    ],
)
def test_users_show_what_they_have(tmp_path: Path, user: dict[str, Any], authorization: str) -> None:
    choice = settings.load([written(tmp_path / "config", config(user=user))]).choose()
    assert asyncio.run(credentials_of(choice).proof()).authorization == authorization


def test_clusters_say_how_to_reach_them(tmp_path: Path) -> None:
    cluster = {"server": f"{SERVER}/", "tls-server-name": "api", "insecure-skip-tls-verify": True}
    user = {"as": "jane", "as-uid": "5", "as-groups": ["a", "b"], "as-user-extra": {"example.com/why": ["x"]}}
    choice = settings.load([written(tmp_path / "config", config(cluster=cluster, user=user))]).choose()
    endpoint = endpoint_of(choice, {"HTTPS_PROXY": "http://proxy:3128"})
    assert (endpoint.url, endpoint.server_name, endpoint.insecure) == (SERVER, "api", True)
    assert endpoint.proxy == "http://proxy:3128"
    assert endpoint.headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "5"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.com%2Fwhy", "x"),
    )


WRONG: list[tuple[Any, str]] = [
    ("a: [", "this is not YAML"),
    ("a: \x00", "this is not YAML"),
    ([], "this is not a kubeconfig: Expected `object`"),
    ({"kind": "Pod"}, "this is a Pod, not a kubeconfig"),
    ({"clusters": [{"name": 5}]}, r"Expected `str`, got `int` - at `\$.clusters\[0\].name`"),
    ({}, "it has no contexts, so it says nothing about any server"),
    (config() | {"current-context": ""}, "one of its contexts: main"),
    (config() | {"current-context": "other"}, "no context 'other'; there are main"),
    (config(context={"cluster": "other"}), "context 'main': there is no cluster 'other'; name one of main"),
    (config(context={"user": "other"}), "context 'main': there is no user 'other'; name one of main"),
    (config() | {"users": config()["users"] * 2}, "users has 'main' twice"),
    (config(cluster={"server": ""}), "cluster 'main': it has no server; write a URL"),
    (config(cluster={"server": "10.0.0.1:6443"}), "its server is '10.0.0.1:6443'; write a URL"),
    (config(cluster={"certificate-authority-data": "%%%"}), "certificate-authority-data is not base64"),
    (config(cluster={"certificate-authority-data": "bm8="}), "not a certificate in PEM"),
    (config(cluster={"certificate-authority": "none.crt"}), "certificate-authority 'none.crt' cannot be read"),
    (
        config(cluster={"certificate-authority-data": "bm8=", "insecure-skip-tls-verify": True}),
        "preferably the latter",
    ),
    (config(cluster={"proxy-url": "socks5://user:SECRET@proxy"}), "neither http nor https"),
    (config(user={"auth-provider": {"name": "gcp"}}), "auth-provider 'gcp'.*under exec"),
    (config(user={"username": "u", "token": "SECRET"}), "a username and a token"),
    (config(user={"token": "SECRET\n1"}), "user 'main': the token has characters"),
    (config(user={"token": ["SECRET"]}), r"at `\$.users\[0\].user.token`"),
    (config(user={"client-key-data": "bm8="}), "it has no client-certificate; write client-certificate or"),
    (config(user={"client-certificate-data": "bm8="}), "it has no client-key"),
    (config(user={"client-certificate-data": "bm8=", "client-key-data": "U0VDUkVU"}), "no pair in PEM"),
    (config(user={"as-groups": ["a"]}), "without as"),
    (config(user={"exec": {}}), "missing required field `command`"),
    (config(user={"exec": {"command": "x"}}), "exec.apiVersion is ''; write client.authentication"),
    (config(user={"exec": {"command": "x", "interactiveMode": "Maybe"}}), "interactiveMode"),
]


@pytest.mark.parametrize(("content", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_is_wrong_is_said_with_its_file_and_without_secrets(tmp_path: Path, content: Any, message: str) -> None:
    path = written(tmp_path / "config", content)
    with pytest.raises(KubeconfigError, match=message) as caught:
        connected(path)
    assert str(caught.value).startswith(str(path))
    assert "SECRET" not in str(caught.value)


def test_a_file_that_is_not_there_is_missed(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match=r"there is no kubeconfig at .*absent"):
        connect(tmp_path / "absent", environment={})
    with pytest.raises(KubeconfigError, match=r"\.kube/config; .*set KUBECONFIG"):
        connected(HOME=str(tmp_path))
    with pytest.raises(KubeconfigError, match=r"cannot be read: Is a directory$"):
        connect(tmp_path, environment={})
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KubeconfigError, match=r"binary: this is not a text file, so it is no kubeconfig$"):
        connect(tmp_path / "binary", environment={})


def test_a_representation_shows_no_secret(tmp_path: Path) -> None:
    found = settings.load([written(tmp_path / "config", config(user={"token": "SECRET"}))])
    assert "SECRET" not in repr((found, found.choose(), connected(tmp_path / "config")))


# Servers.


async def names(found: Connection) -> list[str]:
    """What there is for this client, whose end this is."""
    try:
        return [each.meta.name for each in (await found.client.list(CONFIG_MAPS)).objects]
    finally:
        await found.client.close()


def cluster_of(api: Listening) -> dict[str, Any]:
    data = base64.b64encode(api.endpoint.authority).decode()
    return {"server": api.endpoint.url, "certificate-authority-data": data}


def test_a_kubeconfig_of_the_embedded_server_leads_to_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with listening() as api:
            path = tmp_path / "kubeconfig"
            path.write_text(json.dumps(api.server.identity.kubeconfig(api.endpoint.url)))
            seen = []
            found = connect(path, observed=lambda *call: seen.append(call[:3]))
            await found.client.create(CONFIG_MAPS, configmap("one"))
            assert await names(found) == ["one"]
            assert seen == [("create", "configmaps", 201), ("list", "configmaps", 200)]

    asyncio.run(test())


def test_impersonation_is_obeyed(tmp_path: Path) -> None:
    async def test() -> None:
        async with listening() as api:
            user = {"token": api.token, "as": "jane"}
            path = written(tmp_path / "config", config(cluster=cluster_of(api), user=user))
            with pytest.raises(Forbidden, match="jane"):
                await names(connect(path, environment={}))

    asyncio.run(test())


def test_a_credential_plugin_is_run_again_when_its_token_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with listening() as api:
            plugin = tmp_path / "plugin"
            plugin.write_text('#!/bin/sh\nprintf "%s" "$KUBERNETES_EXEC_INFO" > "$0.info"\ncat "$0.answer"\n')
            plugin.chmod(0o755)

            def answer(token: str) -> None:
                wire = {"apiVersion": VERSIONS[0], "kind": "ExecCredential", "status": {"token": token}}
                (tmp_path / "plugin.answer").write_text(json.dumps(wire))

            extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
            spec = {"apiVersion": VERSIONS[0], "command": "./plugin", "provideClusterInfo": True}
            path = written(
                tmp_path / "config",
                config(cluster={**cluster_of(api), "extensions": [extension]}, user={"exec": spec}),
            )
            answer("old")
            with pytest.raises(Unauthorized):
                await names(connect(path, environment={}))
            found = connect(path, environment={})
            with pytest.raises(Unauthorized):
                await found.client.get(CONFIG_MAPS, Key("default", "one"))
            answer(api.token)
            assert await names(found) == []
            given = json.loads((tmp_path / "plugin.info").read_text())["spec"]["cluster"]
            assert given == {**cluster_of(api), "config": {"audience": "x"}}

    asyncio.run(test())


def test_a_client_certificate_proves_who_asks(tmp_path: Path) -> None:
    async def test() -> None:
        async with listening() as api:
            authority, now = api.server.identity.authority, datetime.now(UTC)
            for name, groups in (("root", ["system:masters"]), ("jane", [])):
                pair = client_certificate(authority, name, groups=groups, now=now)
                (tmp_path / f"{name}.crt").write_bytes(pair.certificate_pem)
                key = base64.b64encode(pair.key_pem).decode()
                user = {"client-certificate": f"{name}.crt", "client-key-data": key}
                written(tmp_path / name, config(cluster=cluster_of(api), user=user))
            assert await names(connect(tmp_path / "root", environment={})) == []
            with pytest.raises(Forbidden, match="jane"):
                await names(connect(tmp_path / "jane", environment={}))

    asyncio.run(test())


# In a cluster.


def test_a_pod_finds_its_cluster_and_reads_its_token_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with listening() as api:
            (tmp_path / "token").write_text("old")
            (tmp_path / "ca.crt").write_bytes(api.endpoint.authority)
            (tmp_path / "namespace").write_text("team\n")
            host, _, port = api.endpoint.url.removeprefix("https://").rpartition(":")
            environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
            found = in_cluster(tmp_path, environment=environment)
            assert (found.namespace, found.server, found.source) == ("team", api.endpoint.url, str(tmp_path))
            with pytest.raises(Unauthorized):
                await found.client.get(CONFIG_MAPS, Key("default", "one"))
            (tmp_path / "token").write_text(api.token)
            assert await names(found) == []

    asyncio.run(test())


def test_who_has_no_kubeconfig_is_in_a_cluster_if_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).write_text("")
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    environment = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert connect(environment=environment).server == "https://[fd00::1]:443"
    with pytest.raises(KubeconfigError, match="there is no kubeconfig"):
        connect(context="other", environment=environment)


def test_outside_of_a_cluster_it_is_said_that_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="no pod with a service account"):
        in_cluster(tmp_path, environment={})
