"""Credential plugins: a command that is run for a token or a certificate.

Speaks ``client.authentication.k8s.io`` with the command: what it may want to
know goes in through its environment, and an ExecCredential comes out on its
standard output.  That is a secret, so nothing of it is ever shown.  What the
command says on its standard error is for the user, who sees it as it comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from holdfast.client.credentials import KeyPair, Proof, bearer
from holdfast.client.protocols import Untrusted
from holdfast.meta import times

VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

PATIENCE_SECONDS: Final = 60.0
"""How long a command may take that cannot ask the user anything."""

Interaction = Literal["Never", "IfAvailable", "Always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A plugin as a kubeconfig describes it."""

    version: str
    command: str
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    interaction: Interaction = "IfAvailable"
    hint: str = ""
    """How to install it, as the kubeconfig says."""
    cluster: Mapping[str, Any] | None = None
    """The cluster that credentials are for, where the command wants to know."""


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    expiration_timestamp: str | None = None
    client_certificate_data: str = ""
    client_key_data: str = ""


class _Credential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class Issued:
    """What a command gave out, and until when it holds; None: until the server says otherwise."""

    proof: Proof
    expires: datetime | None = None

    def holds(self, now: datetime) -> bool:
        return self.expires is None or now < self.expires


class Plugin:
    """Credentials from a command, kept until they expire or are refused."""

    def __init__(
        self,
        command: Command,
        *,
        now: Callable[[], datetime],
        environment: Mapping[str, str] | None = None,
        interactive: Callable[[], bool] = lambda: sys.stdin is not None and sys.stdin.isatty(),
    ) -> None:
        self._command = command
        self._now = now
        self._environment = os.environ if environment is None else environment
        self._interactive = interactive
        self._issued: Issued | None = None
        self._running = asyncio.Lock()

    async def proof(self) -> Proof:
        async with self._running:  # one run for all requests that wait
            if self._issued is None or not self._issued.holds(self._now()):
                self._issued = read(await self._run(), self._command)
            return self._issued.proof

    def refused(self, proof: Proof) -> bool:
        if self._issued is not None and self._issued.proof == proof:
            self._issued = None
        return True

    async def _run(self) -> bytes:
        command = self._command
        interactive = command.interaction != "Never" and self._interactive()
        if command.interaction == "Always" and not interactive:
            raise Untrusted(f"the credential plugin {command.command!r} asks questions, and there is no terminal here")
        try:
            process = await asyncio.create_subprocess_exec(
                command.command,
                *command.args,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env={**self._environment, **command.environment, **_info(command, interactive=interactive)},
            )
        except OSError as error:
            hint = f"\n{command.hint}" if command.hint else ""
            raise Untrusted(
                f"the credential plugin {command.command!r} cannot be run: {error.strerror}; "
                f"install it, or correct users[].user.exec.command in the kubeconfig{hint}"
            ) from None
        try:
            async with asyncio.timeout(None if interactive else PATIENCE_SECONDS):
                output, _ = await process.communicate()
        except TimeoutError:
            raise Untrusted(
                f"the credential plugin {command.command!r} took longer than {PATIENCE_SECONDS:g} seconds"
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if process.returncode:
            raise Untrusted(
                f"the credential plugin {command.command!r} failed with exit code {process.returncode}; "
                "run it by hand to see why"
            )
        return output


def _info(command: Command, *, interactive: bool) -> dict[str, str]:
    """What the command may want to know, as its one environment variable."""
    spec: dict[str, Any] = {"interactive": interactive}
    if command.cluster is not None:
        spec["cluster"] = dict(command.cluster)
    info = {"apiVersion": command.version, "kind": "ExecCredential", "spec": spec}
    return {"KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}


def read(output: bytes, command: Command) -> Issued:
    """What a command wrote, as credentials; raises `Untrusted` and says what is missing, not what there is."""
    plugin = f"the credential plugin {command.command!r}"
    try:
        credential = msgspec.json.decode(output, type=_Credential)
    except msgspec.DecodeError:
        raise Untrusted(f"{plugin} did not write an ExecCredential as JSON") from None
    if (credential.api_version, credential.kind) != (command.version, "ExecCredential"):
        raise Untrusted(
            f"{plugin} was asked for an ExecCredential of {command.version} and wrote a "
            f"{credential.kind or 'nameless kind'} of {credential.api_version or 'no version'}; "
            "make users[].user.exec.apiVersion the version that it speaks"
        )
    status = credential.status or _Status()
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise Untrusted(f"{plugin} wrote only one of clientCertificateData and clientKeyData; it must write both")
    if not (status.token or status.client_certificate_data):
        raise Untrusted(f"{plugin} wrote neither a token nor a client certificate into its status")
    pair = None
    if status.client_certificate_data:
        pair = KeyPair(status.client_certificate_data.encode(), status.client_key_data.encode())
    return Issued(Proof(authorization=bearer(status.token) if status.token else "", pair=pair), _expiry(status, plugin))


def _expiry(status: _Status, plugin: str) -> datetime | None:
    if not status.expiration_timestamp:
        return None
    try:
        return times.parse_micro(status.expiration_timestamp)
    except times.TimeError as error:
        raise Untrusted(f"{plugin} wrote an expirationTimestamp that is no time: {error}") from None
