"""The server: assembles the store, the registry, authentication, admission and the verbs.

`Server.handle` is the whole API: it takes a `Request` and returns a `Response`.  Sockets and TLS are in
`http.listener`; the in-process client calls `handle` directly.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import IPv4Network
from itertools import islice
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Final

from holdfast.apiserver.admission import certificates, checks, runtime_classes, service_addresses
from holdfast.apiserver.admission.checks import OwnAdmission
from holdfast.apiserver.admission.policies import Policies
from holdfast.apiserver.admission.webhooks.dispatch import Webhooks
from holdfast.apiserver.auth import default_roles, reviews
from holdfast.apiserver.auth.authentication import Authenticator
from holdfast.apiserver.auth.identity import Identity
from holdfast.apiserver.auth.rbac import Authorizer
from holdfast.apiserver.auth.tokens import Issuer
from holdfast.apiserver.builtins import BUILTINS
from holdfast.apiserver.crd import resource_types
from holdfast.apiserver.crd.conversion import OwnConversions, no_conversion
from holdfast.apiserver.crd.registry import DEFINITIONS, Definitions
from holdfast.apiserver.expiry import DEFAULT_SECONDS, Expiry
from holdfast.apiserver.http import bodies
from holdfast.apiserver.http.fairness import Bounds, Limits
from holdfast.apiserver.http.gate import Handle, guarded
from holdfast.apiserver.http.metrics import Metrics
from holdfast.apiserver.openapi import discovery, v3
from holdfast.apiserver.openapi.documents import page_not_found
from holdfast.apiserver.own_service import OwnService
from holdfast.apiserver.randomness import PooledRandom
from holdfast.apiserver.resources import Object, Registry, ResourceType
from holdfast.apiserver.routes import RequestInfo
from holdfast.apiserver.storage import backups
from holdfast.apiserver.storage.store import Entry, Store
from holdfast.apiserver.verbs import subresources
from holdfast.apiserver.verbs.handlers import Handlers
from holdfast.apiserver.verbs.subresources import Connectors, LogSource
from holdfast.apiserver.verbs.versions import shown
from holdfast.apiserver.verbs.writes import Writing
from holdfast.meta.errors import AlreadyExists, NotFound
from holdfast.meta.exchange import Request, Response, encode

OPENID_KEYS: Final = "/openid/v1/jwks"
OPENID: Final = ("/.well-known/openid-configuration", OPENID_KEYS)
BACKUP: Final = "/backup"
BACKUP_LINES: Final = 256
HEALTH: Final = ("/healthz", "/livez", "/readyz")


SYSTEM_RANDOM: Final = PooledRandom()
"""The source of uids and generated names; tests pass one with a seed."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def defining(registry: Registry) -> ResourceType:
    """The kind CustomResourceDefinition, with the validation and deletion of `crd`."""
    kind = registry.get("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    assert kind is not None, "definitions are built in"
    return replace(
        kind,
        validate=resource_types.problems,
        on_delete=lambda definition, now: resource_types.begin_deletion(definition, now=now),
    )


async def _backup(revision: int, entries: list[Entry]) -> AsyncIterator[bytes]:
    lines = backups.lines(revision, entries)
    while chunk := b"".join(islice(lines, BACKUP_LINES)):
        yield chunk
        await asyncio.sleep(0)  # other requests go on


class Server:
    """One API server: its store, its registry and the gate before them."""

    def __init__(
        self,
        store: Store,
        identity: Identity,
        *,
        now: Callable[[], datetime] = utc_now,
        random: Random = SYSTEM_RANDOM,
        bounds: Bounds | None = None,
        log_source: LogSource | None = None,
        connectors: Connectors = MappingProxyType({}),
        event_seconds: float = DEFAULT_SECONDS,
        service_network: IPv4Network = service_addresses.NETWORK,
        conversions: OwnConversions = no_conversion,
        admission: OwnAdmission | None = None,
    ) -> None:
        self.store = store
        self.identity = identity
        self.now = now
        self.registry = Registry(BUILTINS)
        self.registry.add(defining(self.registry))
        self.draining = False
        issuer = Issuer(identity.token_key)
        self.authenticator = Authenticator(admin_token=identity.admin_token, issuer=issuer, uid_of=self._uid_of)
        self.authorizer = Authorizer(store)
        self.limits = Limits(bounds)
        self.metrics = Metrics(known=self._is_served, counts=self._counts, in_flight=self._in_flight)
        self.policies = Policies(store, self.registry)
        self.webhooks = Webhooks(store, self.registry, reshape=self._reshape)
        admit = checks.in_order(
            checks.namespaces(store),
            service_addresses.services(store, service_network),
            self.webhooks.mutate,
            checks.no_escalation(self.authorizer),
            runtime_classes.host_pods(self.authorizer),
            certificates.signing_requests(self.authorizer, now=now),
            *(() if admission is None else (checks.own(admission),)),
        )
        self.handlers = Handlers(
            store,
            self.registry,
            now=now,
            random=random,
            admit=admit,
            judge=self._judge,
            authorize=self.authorizer.check,
            subresources={**subresources.table(log_source, connectors), ("create", "token"): self._token},
        )
        self.definitions = Definitions(self.handlers, self.webhooks.calls, conversions)
        self.own_service = OwnService(self.handlers)
        self.expiry = Expiry(store, seconds=event_seconds, now=now)
        self.handle: Handle = guarded(
            self.answer,
            self.authenticator,
            authorizer=self.authorizer,
            limits=self.limits,
            metrics=self.metrics,
            now=now,
        )

    @classmethod
    async def open(
        cls,
        data_dir: Path | None = None,
        *,
        bind: str = "127.0.0.1",
        now: Callable[[], datetime] = utc_now,
        random: Random = SYSTEM_RANDOM,
        bounds: Bounds | None = None,
        log_source: LogSource | None = None,
        connectors: Connectors = MappingProxyType({}),
        event_seconds: float = DEFAULT_SECONDS,
        service_network: IPv4Network = service_addresses.NETWORK,
        conversions: OwnConversions = no_conversion,
        admission: OwnAdmission | None = None,
    ) -> Server:
        """Open the server of a data directory, or an ephemeral one.

        Events expire after `event_seconds`; new Services get cluster IPs of `service_network`; `conversions`
        convert custom objects between versions where no webhook does; `admission` defaults and refuses custom objects.
        """
        if data_dir is None:
            identity, store = Identity.ephemeral(bind, now=now()), Store.open(None)
        else:
            # The store first: its lock prevents a second server from changing the files of the first one.
            store = Store.open(str(data_dir))
            identity = Identity.kept(data_dir, bind, now=now())
        server = cls(
            store,
            identity,
            now=now,
            random=random,
            bounds=bounds,
            log_source=log_source,
            connectors=connectors,
            event_seconds=event_seconds,
            service_network=service_network,
            conversions=conversions,
            admission=admission,
        )
        await server._bootstrap()
        server.definitions.load()
        server.expiry.start()
        return server

    async def close(self) -> None:
        self.draining = True
        await self.own_service.stop()
        await self.expiry.stop()
        await self.definitions.close()
        await self.webhooks.close()
        await self.store.close()

    async def answer(self, request: Request, info: RequestInfo) -> Response:
        """Answer an authorized request."""
        if not info.is_resource:
            return self._other(request)
        if not self.registry.serves(info.group, info.version):
            return page_not_found()
        answered = await self._review(request, info)
        if answered is not None:
            return answered
        response = await self.handlers.handle(request, info)
        if f"{info.group}/{info.resource}" == DEFINITIONS and info.verb in ("create", "update", "patch", "delete"):
            # From the request, because the response has the form that the client asks for.  A definition is named for
            # its plural and group, so that no name is generated.
            name = info.name or (await bodies.read_object(request, self.definitions.kind))["metadata"].get("name", "")
            await self.definitions.written(name)
        return response

    def _other(self, request: Request) -> Response:
        path = request.path.rstrip("/") or "/"
        if path in HEALTH or path.startswith(tuple(f"{each}/" for each in HEALTH)):
            return self._health(path)
        if path in OPENID:
            return self._openid(path)
        if path == BACKUP:
            return Response(200, stream=_backup(*self.store.snapshot()), content_type="application/x-ndjson")
        response = discovery.serve(request, self.registry) or v3.serve(request, self.registry)
        if response is None:
            raise NotFound.of_path()
        return response

    def _health(self, path: str) -> Response:
        """Alive, unless the store cannot write; ready, unless it is also draining.  It names no file to anyone."""
        trouble = "[-]storage failed: reason withheld" if self.store.trouble else ""
        trouble = trouble or ("draining" if self.draining and path.startswith("/readyz") else "")
        return Response(500 if trouble else 200, (trouble or "ok").encode(), content_type="text/plain")

    def _openid(self, path: str) -> Response:
        """The documents by which other programs verify service account tokens."""
        issuer = self.authenticator.issuer
        if path == OPENID_KEYS:
            return Response(200, encode(issuer.jwks()), content_type="application/jwk-set+json")
        return Response.of(issuer.discovery())

    # Reviews: created, answered, not stored.

    async def _review(self, request: Request, info: RequestInfo) -> Response | None:
        if info.verb != "create" or info.group not in (reviews.AUTHENTICATION, reviews.AUTHORIZATION):
            return None
        kind = self.registry.get(info.group, info.version, info.resource)
        if kind is None:
            raise NotFound.of_path()
        review = await bodies.read_object(request, kind)
        match info.resource:
            case "tokenreviews":
                answer = reviews.token_review(self.authenticator, review, now=self.now())
            case "selfsubjectreviews":
                answer = reviews.self_subject_review(request.user, review)
            case "selfsubjectrulesreviews":
                answer = reviews.rules_review(self.authorizer, request.user, review)
            case _:
                answer = reviews.access_review(self.authorizer, request.user, review)
        return Response.of(answer, 201)

    async def _token(self, handlers: Handlers, request: Request, info: RequestInfo, kind: ResourceType) -> Response:
        account = shown(handlers.entry(info, kind), kind)
        asked = await subresources.posted(request, info, subresources.TOKEN_REQUEST)
        issued = reviews.token_request(self.authenticator.issuer, account, asked, uid_of=self._uid_of, now=self.now())
        return Response.of(issued, 201)

    # Callbacks of webhooks, authentication, authorization and metrics.

    def _reshape(self, kind: ResourceType, obj: Object) -> None:
        self.handlers.writer.reshape(kind, obj)

    async def _judge(self, writing: Writing, obj: Object | None, old: Object | None, operation: str) -> tuple[str, ...]:
        said = await self.policies.judge(writing, obj, old, operation)
        return said + await self.webhooks.judge(writing, obj, old, operation)

    def _uid_of(self, resource: str, namespace: str, name: str) -> str | None:
        entry = self.store.get(f"/{resource}", namespace, name)
        return entry.uid if entry is not None and not entry.deleting else None

    def _is_served(self, info: RequestInfo) -> bool:
        kind = self.registry.get(info.group, info.version, info.resource)
        return kind is not None and (not info.subresource or info.subresource in kind.parts)

    def _counts(self) -> dict[str, int]:
        return {each.group_resource: self.store.count(each.key) for each in self.registry}

    def _in_flight(self) -> dict[str, int]:
        return {"requests": self.limits.seated, "queued": self.limits.queued, "watches": self.limits.watches}

    # The first start.

    async def _bootstrap(self) -> None:
        """Create the default namespaces and roles where they are missing."""
        for name in sorted(checks.PROTECTED):
            await self._ensure({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}})
        for obj in default_roles.bootstrap_objects():
            await self._ensure(obj)

    async def _ensure(self, obj: Object) -> None:
        group, _, version = obj["apiVersion"].rpartition("/")
        kind = next(each for each in BUILTINS if (each.group, each.version, each.kind) == (group, version, obj["kind"]))
        namespace = obj["metadata"].get("namespace", "")
        if self.store.get(kind.key, namespace, obj["metadata"]["name"]) is None:
            with contextlib.suppress(AlreadyExists):
                await self.handlers.writer.create(self.handlers.writing_by_server(kind, namespace), obj)
