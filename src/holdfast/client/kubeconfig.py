"""Connections: from a kubeconfig, or from inside a cluster, to a client that works.

Puts settings, credentials, transport and client together, as kubectl would with
the same files and environment.
"""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from holdfast.client import settings
from holdfast.client.api import ApiClient, Observed
from holdfast.client.credentials import Credentials, Fixed, KeyPair, Proof, TokenFile, basic, bearer
from holdfast.client.http import Endpoint, Http, show
from holdfast.client.plugins import VERSIONS, Command, Plugin
from holdfast.client.protocols import Client, Transport, Untrusted
from holdfast.client.proxies import proxy_for
from holdfast.client.settings import Choice, Cluster, Entry, KubeconfigError, User

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds what it needs to reach its cluster."""

_CLUSTER_CONFIG: Final = "client.authentication.k8s.io/exec"
"""The extension of a cluster that is meant for credential plugins."""

_IN_NAMES: Final = "!#$&'*+^`|"
"""What the name of a header may hold besides what `quote` leaves anyway."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A client, and what is known of where it leads."""

    client: Client
    namespace: str
    """The namespace of commands that name none."""
    server: str
    source: str
    """Where all this was found: files, or the cluster around us."""
    transport: Transport
    """What the client sends with, for other clients that share its connections."""
    endpoint: Endpoint
    """Where the server is, for clients of other users."""


def connect(
    kubeconfig: Path | None = None,
    *,
    context: str = "",
    environment: Mapping[str, str] | None = None,
    observed: Observed | None = None,
) -> Connection:
    """A connection by a kubeconfig: the given one, those of ``KUBECONFIG``, the one at home, or the cluster around us.

    Nothing is sent yet.  Raises `KubeconfigError`.
    """
    environment = os.environ if environment is None else environment
    home = Path(environment["HOME"]) if environment.get("HOME") else Path.home()
    files = (kubeconfig,) if kubeconfig else settings.paths(environment, home=home)
    found = settings.load(files)
    if not found.paths:
        if kubeconfig is None and not context and "KUBERNETES_SERVICE_HOST" in environment:
            return in_cluster(environment=environment, observed=observed)
        looked = ", ".join(str(path) for path in files)
        raise KubeconfigError(f"there is no kubeconfig at {looked}; name one that exists, or set KUBECONFIG to it")
    choice = found.choose(context)
    endpoint = endpoint_of(choice, environment)
    try:
        transport = Http(endpoint, credentials_of(choice))
    except ValueError as error:
        raise choice.cluster.wrong(str(error), "write the one that signed the server's certificate") from None
    namespace = choice.context.value.namespace or "default"
    return Connection(
        ApiClient(transport, observed=observed), namespace, endpoint.url, found.source, transport, endpoint
    )


def in_cluster(
    directory: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    observed: Observed | None = None,
) -> Connection:
    """A connection as the service account of the pod that we are in."""
    directory = directory or SERVICE_ACCOUNT
    environment = os.environ if environment is None else environment
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    token = directory / "token"
    if not host or not port or not token.exists():
        raise KubeconfigError(
            f"this is no pod with a service account: KUBERNETES_SERVICE_HOST and _PORT and {token} must be there; "
            "outside of a cluster, name a kubeconfig"
        )
    url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    try:
        endpoint = Endpoint(url=url, authority=(directory / "ca.crt").read_bytes())
        transport = Http(endpoint, TokenFile(token))
        namespace = (directory / "namespace").read_text().strip()
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"{directory}: {error}") from None
    return Connection(
        ApiClient(transport, observed=observed), namespace or "default", url, str(directory), transport, endpoint
    )


def with_token(endpoint: Endpoint, token: str) -> Client:
    """A client of the user whom a token names, and of no other; raises `Untrusted` for what is no token."""
    own = replace(endpoint, headers=())
    return ApiClient(Http(own, Fixed(Proof(authorization=bearer(token)))))


# The server.


def endpoint_of(choice: Choice, environment: Mapping[str, str]) -> Endpoint:
    """The server of a context, as its user acts on it."""
    entry = choice.cluster
    cluster = entry.value
    parts = urlsplit(cluster.server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise entry.wrong(
            f"its server is {cluster.server!r}" if cluster.server else "it has no server",
            "write a URL such as https://127.0.0.1:6443",
        )
    authority = entry.read(
        cluster.certificate_authority_data, cluster.certificate_authority, what="certificate-authority"
    )
    if cluster.insecure_skip_tls_verify and authority:
        raise entry.wrong(
            "it has a certificate authority and insecure-skip-tls-verify", "remove one of them, preferably the latter"
        )
    return Endpoint(
        url=cluster.server.rstrip("/"),
        authority=authority,
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=_proxy(entry, environment),
        headers=_impersonation(choice.user),
    )


def _proxy(entry: Entry[Cluster], environment: Mapping[str, str]) -> str:
    """The proxy that the cluster names, or the one that everything here goes through."""
    given = entry.value.proxy_url
    if given:
        if urlsplit(given).scheme not in ("http", "https"):
            raise entry.wrong("its proxy-url is neither http nor https", "write a URL such as http://proxy:3128")
        return given
    return proxy_for(entry.value.server, environment)


def _impersonation(entry: Entry[User]) -> tuple[tuple[str, str], ...]:
    user = entry.value
    rest = [("Impersonate-Uid", user.as_uid)] if user.as_uid else []
    rest += [("Impersonate-Group", group) for group in user.as_groups or ()]
    extra = sorted((user.as_user_extra or {}).items())
    rest += [(f"Impersonate-Extra-{quote(key, safe=_IN_NAMES)}", value) for key, values in extra for value in values]
    if rest and not user.as_:
        raise entry.wrong("it has as-uid, as-groups or as-user-extra without as", "write as: USER with them")
    return (("Impersonate-User", user.as_), *rest) if user.as_ else ()


# The user.


def credentials_of(choice: Choice) -> Credentials:
    """The credentials of the user of a context."""
    entry = choice.user
    user = entry.value
    if user.auth_provider is not None:
        raise entry.wrong(
            f"auth-provider {user.auth_provider.name!r} is of the past, and not supported",
            "use the provider's credential plugin instead, under exec",
        )
    if user.username and (user.token or user.token_file):
        raise entry.wrong("it has a username and a token", "remove one of them")
    pair = _pair(entry)
    if user.token_file:
        return TokenFile(entry.beside(user.token_file), pair=pair)
    if user.token:
        try:
            return Fixed(Proof(authorization=bearer(user.token), pair=pair))
        except Untrusted as error:
            raise entry.wrong(str(error), "write it again") from None
    if user.username:
        return Fixed(Proof(authorization=basic(user.username, user.password), pair=pair))
    if user.exec is not None:
        return Plugin(_command(entry, user.exec, choice.cluster), now=lambda: datetime.now(UTC))
    return Fixed(Proof(pair=pair))


def _pair(entry: Entry[User]) -> KeyPair | None:
    user = entry.value
    certificate = entry.read(user.client_certificate_data, user.client_certificate, what="client-certificate")
    key = entry.read(user.client_key_data, user.client_key, what="client-key")
    if not (certificate or key):
        return None
    if not (certificate and key):
        missing = "client-key" if certificate else "client-certificate"
        raise entry.wrong(f"it has no {missing}", f"write {missing} or {missing}-data")
    pair = KeyPair(certificate, key)
    try:
        show(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), pair)
    except ValueError as error:
        raise entry.wrong(str(error), "write the two that belong together") from None
    return pair


def _command(entry: Entry[User], given: settings.Exec, cluster: Entry[Cluster]) -> Command:
    if given.api_version not in VERSIONS:
        raise entry.wrong(f"its exec.apiVersion is {given.api_version!r}", f"write {' or '.join(VERSIONS)}")
    # A bare name is looked for as a shell would; anything else is a path, from where the file is.
    command = given.command if os.sep not in given.command else str(entry.beside(given.command))
    return Command(
        version=given.api_version,
        command=command,
        args=tuple(given.args or ()),
        environment={each.name: each.value for each in given.env or ()},
        interaction=given.interactive_mode or "IfAvailable",
        hint=given.install_hint,
        cluster=_cluster_info(cluster) if given.provide_cluster_info else None,
    )


def _cluster_info(entry: Entry[Cluster]) -> dict[str, Any]:
    """A cluster as credential plugins get it."""
    cluster = entry.value
    authority = entry.read(
        cluster.certificate_authority_data, cluster.certificate_authority, what="certificate-authority"
    )
    config = next(
        (each.get("extension") for each in cluster.extensions or () if each.get("name") == _CLUSTER_CONFIG), None
    )
    fields = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.proxy_url,
        "config": config,
    }
    return {name: value for name, value in fields.items() if value}
