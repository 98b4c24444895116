"""Credentials that change: a file that is renewed, and a command that gives them out."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import plugins
from holdfast.client.credentials import REREAD_SECONDS, KeyPair, Proof, TokenFile
from holdfast.client.plugins import VERSIONS, Command, Plugin
from holdfast.client.protocols import Untrusted
from holdfast.testing import loops

NOW = datetime(2030, 1, 1, tzinfo=UTC)

# Token files.


def test_a_token_file_is_read_again_after_a_while_and_after_a_refusal(tmp_path: Path) -> None:
    async def test(loop: loops.VirtualLoop) -> None:
        path = tmp_path / "token"
        path.write_text("one\n")
        credentials = TokenFile(path)
        first = await credentials.proof()
        path.write_text("two\n")
        assert await credentials.proof() == first == Proof(authorization="Bearer one")
        loop.advance(REREAD_SECONDS)
        second = await credentials.proof()
        assert second == Proof(authorization="Bearer two")
        path.write_text("three\n")
        assert credentials.refused(second)
        assert await credentials.proof() == Proof(authorization="Bearer three")
        assert credentials.refused(second)
        path.write_text("four\n")
        assert await credentials.proof() == Proof(authorization="Bearer three"), "an old refusal says nothing of it"

    loops.run(test)


@pytest.mark.parametrize("content", [None, "", " \n", "SECRET\nSECRET"])
def test_a_token_file_without_a_token_says_so(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Untrusted, match=r"the token [^S]*$"):
        loops.run(lambda loop: TokenFile(path).proof())


# Plugins.

SCRIPT = """#!/bin/sh
echo run >> "$COUNT"
printf '%s' "$KUBERNETES_EXEC_INFO" > "$COUNT.info"
printf '%s' "$*" > "$COUNT.args"
echo "the user may read this" >&2
cat "$ANSWER"
"""


class Setting:
    """A plugin that is a real script, which answers with what a file says and leaves traces of its runs."""

    def __init__(self, directory: Path) -> None:
        self.script = directory / "plugin"
        self.script.write_text(SCRIPT)
        self.script.chmod(0o755)
        self.count = directory / "count"
        self.reply = directory / "answer"
        self.now = NOW

    def plugin(self, *, interactive: bool = False, **options: Any) -> Plugin:
        environment = {"COUNT": str(self.count), "ANSWER": str(self.reply)}
        command = Command(
            **{"version": VERSIONS[0], "command": str(self.script), "environment": environment, **options}
        )
        return Plugin(command, now=lambda: self.now, interactive=lambda: interactive)

    def answer(self, version: str = VERSIONS[0], **status: str) -> None:
        self.reply.write_text(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status}))

    @property
    def runs(self) -> int:
        return len(self.count.read_text().splitlines()) if self.count.exists() else 0

    @property
    def info(self) -> Any:
        return json.loads(self.count.with_suffix(".info").read_text())


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


def proofs(plugin: Plugin, times: int = 1) -> list[Proof]:
    async def test() -> list[Proof]:
        return await asyncio.gather(*(plugin.proof() for _ in range(times)))

    return asyncio.run(test())


def test_a_command_is_run_once_for_all_requests_until_what_it_gave_expires(setting: Setting) -> None:
    setting.answer(token="one", expirationTimestamp="2030-01-01T01:00:00Z")
    plugin = setting.plugin(args=("get-token", "--cluster=x"))

    async def test() -> None:
        assert set(await asyncio.gather(*(plugin.proof() for _ in range(5)))) == {Proof(authorization="Bearer one")}
        assert setting.runs == 1
        assert setting.count.with_suffix(".args").read_text() == "get-token --cluster=x"
        setting.answer(token="two")
        setting.now = NOW + timedelta(minutes=59)
        assert await plugin.proof() == Proof(authorization="Bearer one")
        setting.now = NOW + timedelta(hours=1)
        assert await plugin.proof() == Proof(authorization="Bearer two")
        setting.now = NOW + timedelta(days=365)
        assert await plugin.proof() == Proof(authorization="Bearer two")
        assert setting.runs == 2

    asyncio.run(test())


def test_a_refused_credential_is_asked_for_again(setting: Setting) -> None:
    setting.answer(token="one")
    plugin = setting.plugin()

    async def test() -> None:
        first = await plugin.proof()
        assert plugin.refused(first)
        setting.answer(token="two")
        assert await plugin.proof() == Proof(authorization="Bearer two")
        assert plugin.refused(first), "an old refusal says nothing of the new one"
        await plugin.proof()
        assert setting.runs == 2

    asyncio.run(test())


def test_a_command_may_give_a_certificate(setting: Setting) -> None:
    setting.answer(clientCertificateData="CERT", clientKeyData="KEY")
    assert proofs(setting.plugin()) == [Proof(pair=KeyPair(b"CERT", b"KEY"))]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_command_is_told_what_it_may_want_to_know(setting: Setting, version: str) -> None:
    setting.answer(version, token="one")
    proofs(setting.plugin(version=version, cluster={"server": "https://x"}))
    spec = {"interactive": False, "cluster": {"server": "https://x"}}
    assert setting.info == {"apiVersion": version, "kind": "ExecCredential", "spec": spec}


def test_a_command_that_must_ask_is_not_run_where_no_user_can_answer(setting: Setting) -> None:
    setting.answer(token="one")
    with pytest.raises(Untrusted, match="terminal"):
        proofs(setting.plugin(interaction="Always"))
    assert setting.runs == 0
    proofs(setting.plugin(interaction="Always", interactive=True))
    assert setting.info["spec"] == {"interactive": True}
    proofs(setting.plugin(interaction="Never", interactive=True))
    assert setting.info["spec"] == {"interactive": False}


def test_a_command_that_is_not_there_is_said_with_how_to_install_it(setting: Setting) -> None:
    with pytest.raises(Untrusted, match=r"cannot be run[\s\S]*brew install it"):
        proofs(setting.plugin(command="no-such-credential-plugin", hint="brew install it"))


@pytest.mark.parametrize(
    ("script", "message"),
    [("exit 3", "exit code 3"), ("echo SECRET; exit 0", "did not write an ExecCredential"), ("kill -9 $$", "code -9")],
)
def test_a_command_that_fails_is_said_without_what_it_wrote(setting: Setting, script: str, message: str) -> None:
    setting.script.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(Untrusted, match=message) as caught:
        proofs(setting.plugin())
    assert "SECRET" not in str(caught.value)


def test_a_command_that_takes_too_long_is_ended(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "PATIENCE_SECONDS", 0.2)
    setting.script.write_text('#!/bin/sh\necho $$ > "$COUNT"\nexec sleep 60\n')
    with pytest.raises(Untrusted, match="took longer"):
        proofs(setting.plugin())
    with pytest.raises(ProcessLookupError):
        os.kill(int(setting.count.read_text()), 0)


def credential(**rest: Any) -> dict[str, Any]:
    return {"apiVersion": VERSIONS[0], "kind": "ExecCredential"} | rest


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ([], "did not write"),
        ({"kind": "ExecCredential"}, "no version"),
        (credential(apiVersion="client.authentication.k8s.io/v1alpha1"), "make users"),
        (credential(kind="Other"), "wrote a Other"),
        (credential(), "neither a token"),
        (credential(status={}), "neither a token"),
        (credential(status={"clientKeyData": "SECRET"}), "only one of"),
        (credential(status={"token": "SECRET", "expirationTimestamp": "soon"}), "is no time"),
        (credential(status={"token": 5}), "did not write"),
    ],
)
def test_what_is_no_credential_is_said_without_its_secrets(output: Any, message: str) -> None:
    command = Command(version=VERSIONS[0], command="plugin")
    with pytest.raises(Untrusted, match=message) as caught:
        plugins.read(json.dumps(output).encode(), command)
    assert "SECRET" not in str(caught.value)
