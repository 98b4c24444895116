"""Completion of types and names in a shell: the server is asked, for a short time, and errors complete nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem

from holdfast.cli import connecting
from holdfast.client.discovery import Discovery, UnknownResource, discover
from holdfast.client.kubeconfig import Connection, connect
from holdfast.client.protocols import Scope, Unreachable
from holdfast.client.settings import KubeconfigError
from holdfast.meta.errors import StatusError

PATIENCE: Final = 2.0
"""Seconds after which the shell gets no completions."""

MOST: Final = 200


def objects(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Types, ``TYPE/NAME``, or the names of a type that was written before."""
    return _asked(ctx, parameter, incomplete, pods=False)


def objects_or_pods(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The same, and the names of pods alone."""
    return _asked(ctx, parameter, incomplete, pods=True)


def _asked(ctx: click.Context, parameter: click.Parameter, incomplete: str, *, pods: bool) -> list[CompletionItem]:
    before = tuple(ctx.params.get(parameter.name or "") or ())
    try:
        return asyncio.run(_found(ctx, before, incomplete, pods=pods))
    except (StatusError, Unreachable, KubeconfigError, UnknownResource, TimeoutError, OSError):
        return []


async def _found(ctx: click.Context, before: tuple[str, ...], incomplete: str, *, pods: bool) -> list[CompletionItem]:
    path = connecting.kubeconfig(ctx.params.get("kubeconfig"), environment=os.environ, directory=Path.cwd())
    connection = connect(path, context=ctx.params.get("context") or "")
    namespace = ctx.params.get("namespace") or connection.namespace
    try:
        async with asyncio.timeout(PATIENCE):
            known = await discover(connection.client)
            if "/" in incomplete:
                type, _, start = incomplete.partition("/")
                names = await _names(connection, known, type, namespace, start)
                return [CompletionItem(f"{type}/{name}") for name in names]
            if before and "/" not in before[0]:
                return [
                    CompletionItem(name) for name in await _names(connection, known, before[0], namespace, incomplete)
                ]
            found = [CompletionItem(f"{each}/" if pods else each) for each in _types(known, incomplete)]
            names = await _names(connection, known, "pods", namespace, incomplete) if pods else []
            return [*(CompletionItem(name) for name in names), *found]
    finally:
        await connection.client.close()


def _types(known: Discovery, start: str) -> list[str]:
    served = (each for each in known.preferred() if "list" in each.verbs)
    names = dict.fromkeys(each.singular or each.resource.kind.lower() for each in served)
    return [name for name in names if name.startswith(start)]


async def _names(connection: Connection, known: Discovery, type: str, namespace: str, start: str) -> list[str]:
    resource = known.find(type).resource
    scope = Scope(namespace=namespace if resource.namespaced else "")
    listing = await connection.client.list(resource, scope, metadata_only=True)
    return [each.key.name for each in listing.objects if each.key.name.startswith(start)][:MOST]
