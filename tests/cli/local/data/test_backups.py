"""``holdfast backup`` and ``holdfast restore``: a cluster comes back as it was, with its keys."""

from __future__ import annotations

import gzip
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.apiserver.servers import CONFIGMAPS, Api, configmap
from tests.apiserver.storage.test_store import PODS, put, run
from tests.cli.local.apiserver.test_command import running

from holdfast.apiserver.storage.backups import SKIPPED
from holdfast.apiserver.storage.store import Store
from holdfast.cli.errors import ExitCode


def holdfast(*args: object) -> tuple[int, str]:
    command = [sys.executable, "-m", "holdfast", *map(str, args)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def filled(directory: Path) -> tuple[list[dict[str, object]], str, int]:
    """Some objects in a data directory: as they are, the admin token, and the version."""
    api = Api(directory)
    for number in range(3):
        api.post(CONFIGMAPS, configmap(f"c{number}", data={"text": "ä\n\u2028"})).done()
    api.delete(f"{CONFIGMAPS}/c0").done()
    items = api.get(CONFIGMAPS).ok["items"]
    found = items, api.server.identity.admin_token, api.server.store.revision
    api.close()
    return found


def test_a_cluster_comes_back_from_a_backup(tmp_path: Path) -> None:
    items, token, revision = filled(tmp_path / "one")
    file, other = tmp_path / "backup", tmp_path / "two"
    code, text = holdfast("backup", tmp_path / "one", file)
    assert code == ExitCode.OK, text
    assert text.endswith(f", version {revision}\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert holdfast("restore", file, other)[0] == ExitCode.OK
    assert stat.S_IMODE((other / "ca.key").stat().st_mode) == 0o600
    api = Api(other)
    assert api.server.identity.admin_token == token
    assert api.get(CONFIGMAPS).ok["items"] == items
    assert api.server.store.revision >= revision + SKIPPED
    event = api.get(f"{CONFIGMAPS}?watch=true&resourceVersion={revision}").body
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410), "clients list again"
    api.post(CONFIGMAPS, configmap("new")).done()
    api.close()
    assert holdfast("check", other)[0] == ExitCode.OK
    assert sorted(each.name for each in tmp_path.iterdir()) == ["backup", "one", "two"]


def test_a_backup_of_a_running_server(tmp_path: Path) -> None:
    async def write(store: Store) -> None:
        await store.write(*(put(f"pod-{number}", filler="x" * 1000) for number in range(600)))

    def held(directory: Path) -> dict[str, bytes]:
        entries: dict[str, bytes] = {}

        async def read(store: Store) -> None:
            entries.update((entry.name, entry.value) for entry in store.list(PODS))

        run(directory, read)
        return entries

    file = tmp_path / "backup"
    run(tmp_path / "one", write)
    with running("--data-dir", str(tmp_path / "one")):
        code, text = holdfast("backup", tmp_path / "one", file)
    assert code == ExitCode.OK, text
    assert holdfast("restore", file, tmp_path / "two")[0] == ExitCode.OK
    assert held(tmp_path / "two") == held(tmp_path / "one")
    assert len(held(tmp_path / "two")) == 600


def test_only_admins_get_a_backup() -> None:
    api = Api()
    assert api.get("/backup", token="").status == 403
    account = "/api/v1/namespaces/default/serviceaccounts"
    api.post(account, {"metadata": {"name": "a"}}).done()
    token = api.post(f"{account}/a/token", {"spec": {}}).ok["status"]["token"]
    assert api.get("/backup", token=token).status == 403
    api.close()


@pytest.mark.parametrize("damage", ["cut off", "flipped", "a line less", "another file", "another format"])
def test_a_backup_that_is_not_whole_is_refused(tmp_path: Path, damage: str) -> None:
    filled(tmp_path / "one")
    file = tmp_path / "backup"
    holdfast("backup", tmp_path / "one", file)
    content = bytearray(file.read_bytes())
    match damage:
        case "cut off":
            del content[-100:]
        case "flipped":
            content[len(content) // 2] ^= 16
        case "a line less":
            content = bytearray(gzip.compress(b"".join(gzip.decompress(content).splitlines(keepends=True)[:-1])))
        case "another file":
            content = bytearray(b"not a backup")
        case "another format":
            content = bytearray(gzip.compress(gzip.decompress(content).replace(b"holdfast-backup/v1", b"x/v2")))
    file.write_bytes(content)
    code, text = holdfast("restore", file, tmp_path / "two")
    assert code == ExitCode.BAD_INPUT
    assert text.startswith(f"error: {file}: ")
    assert text.endswith("nothing was restored\n")
    assert not (tmp_path / "two").exists()


def test_data_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    filled(tmp_path / "one")
    file = tmp_path / "backup"
    holdfast("backup", tmp_path / "one", file)
    code, text = holdfast("restore", file, tmp_path / "one")
    assert code == ExitCode.BLOCKED
    assert text == f"error: {tmp_path}/one/objects.db exists; move it away, or choose another directory\n"
    code, text = holdfast("backup", tmp_path, tmp_path / "other")
    assert code == ExitCode.BAD_INPUT
    assert "name a data directory" in text
    assert not (tmp_path / "other").exists()
