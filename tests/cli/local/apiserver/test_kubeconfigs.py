"""The kubeconfig of a server, in a file of its own and among entries of other clusters."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.apiserver.auth.identity import Identity
from holdfast.cli.local.apiserver import kubeconfigs
from holdfast.client import settings
from holdfast.client.settings import KubeconfigError

OTHERS = """\
# my clusters
apiVersion: v1
kind: Config
preferences: {colors: true}
current-context: work
clusters:
- name: work
  cluster: {server: https://work.example.com, insecure-skip-tls-verify: true}
users:
- name: admin
  user: {token: "0123e4"}
contexts:
- name: work
  context: {cluster: work, user: admin, namespace: "yes"}
"""


@pytest.fixture(scope="module")
def identity() -> Identity:
    return Identity.ephemeral("127.0.0.1", now=datetime.now(UTC))


def config(identity: Identity, port: int = 6443) -> dict[str, Any]:
    return identity.kubeconfig(f"https://127.0.0.1:{port}")


def test_a_new_file_has_the_entries_of_the_server_alone(tmp_path: Path, identity: Identity) -> None:
    path = tmp_path / "new" / "config"
    kubeconfigs.merge(path, config(identity))
    assert yaml.safe_load(path.read_text()) == config(identity)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["config"]


def test_entries_of_other_clusters_stay(tmp_path: Path, identity: Identity) -> None:
    path = tmp_path / "config"
    path.write_text(OTHERS)
    kubeconfigs.merge(path, config(identity))
    before, after = yaml.safe_load(OTHERS), yaml.safe_load(path.read_text())
    for name in ("clusters", "users", "contexts"):
        assert after[name] == before[name] + config(identity)[name]
    assert after["preferences"] == before["preferences"]
    assert after["current-context"] == "holdfast"
    for context, server in (("work", "https://work.example.com"), ("", "https://127.0.0.1:6443")):
        assert settings.load([path]).choose(context).cluster.value.server == server


def test_the_file_of_before_is_kept_and_a_later_start_does_not_replace_it(tmp_path: Path, identity: Identity) -> None:
    path, backup = tmp_path / "config", tmp_path / "config.backup"
    path.write_text(OTHERS)
    for port in (1, 2):
        kubeconfigs.merge(path, config(identity, port))
        assert backup.read_text() == OTHERS
    assert backup.stat().st_mode & 0o777 == 0o600
    servers = [each["cluster"]["server"] for each in yaml.safe_load(path.read_text())["clusters"]]
    assert servers == ["https://work.example.com", "https://127.0.0.1:2"]


def test_a_symbolic_link_stays_one(tmp_path: Path, identity: Identity) -> None:
    path, link = tmp_path / "config", tmp_path / "link"
    path.write_text(OTHERS)
    link.symlink_to(path)
    kubeconfigs.merge(link, config(identity))
    assert link.is_symlink()
    assert "holdfast" in path.read_text()


@pytest.mark.parametrize("empty", ["", "# nothing yet\n", "apiVersion: v1\nkind: Config\nclusters: null\n"])
def test_a_file_without_entries_is_filled(tmp_path: Path, identity: Identity, empty: str) -> None:
    path = tmp_path / "config"
    path.write_text(empty)
    kubeconfigs.merge(path, config(identity))
    assert yaml.safe_load(path.read_text()) == config(identity)


@pytest.mark.parametrize(
    "wrong", [b"kind: Pod\n", b"clusters: 3\n", b"- a\n", b"a: [\n", b"\xff\xfe", b"clusters: [{cluster: {}}]\n"]
)
def test_a_file_that_is_no_kubeconfig_is_left_alone(tmp_path: Path, identity: Identity, wrong: bytes) -> None:
    path = tmp_path / "config"
    path.write_bytes(wrong)
    with pytest.raises(KubeconfigError, match=str(path)):
        kubeconfigs.merge(path, config(identity))
    assert path.read_bytes() == wrong
    assert [each.name for each in tmp_path.iterdir()] == ["config"]


# --- a context of kubectl


def test_a_context_is_added_and_removed_again_and_the_rest_stays(tmp_path: Path, identity: Identity) -> None:
    path, home = tmp_path / "config", tmp_path / "home"
    path.write_text(OTHERS)
    added = kubeconfigs.add_context(path, config(identity), home=home)
    there = yaml.safe_load(path.read_text())
    assert (added.context, there["current-context"]) == ("holdfast", "holdfast")
    assert {each["name"] for each in there["contexts"]} == {"work", "holdfast"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert kubeconfigs.remove_context(home) == added
    assert yaml.safe_load(path.read_text()) == yaml.safe_load(OTHERS)
    assert kubeconfigs.remove_context(home) is None


def test_a_second_cluster_gets_a_name_of_its_own(tmp_path: Path, identity: Identity) -> None:
    path = tmp_path / "config"
    kubeconfigs.add_context(path, config(identity), home=tmp_path / "one")
    second = kubeconfigs.add_context(path, config(identity, 7443), home=tmp_path / "two")
    assert second.context == "holdfast-2"
    assert settings.parse(path.read_text(), path) is not None
    kubeconfigs.remove_context(tmp_path / "one")
    there = yaml.safe_load(path.read_text())
    assert [each["name"] for each in there["contexts"]] == ["holdfast-2"]
    assert there["current-context"] == "holdfast-2"


def test_a_cluster_that_was_killed_and_started_again_has_one_context(tmp_path: Path, identity: Identity) -> None:
    path, home = tmp_path / "config", tmp_path / "home"
    for port in (6443, 7443):
        added = kubeconfigs.add_context(path, config(identity, port), home=home)
    there = yaml.safe_load(path.read_text())
    assert added.context == "holdfast"
    assert [each["cluster"]["server"] for each in there["clusters"]] == ["https://127.0.0.1:7443"]


def test_another_context_that_the_user_chose_meanwhile_stays_the_current_one(
    tmp_path: Path, identity: Identity
) -> None:
    path, home = tmp_path / "config", tmp_path / "home"
    path.write_text(OTHERS)
    kubeconfigs.add_context(path, config(identity), home=home)
    path.write_text(path.read_text().replace("current-context: holdfast", "current-context: work"))
    kubeconfigs.remove_context(home)
    assert yaml.safe_load(path.read_text())["current-context"] == "work"


def test_a_kubeconfig_that_was_removed_or_broken_meanwhile_does_no_harm(tmp_path: Path, identity: Identity) -> None:
    path, home = tmp_path / "config", tmp_path / "home"
    kubeconfigs.add_context(path, config(identity), home=home)
    path.write_text("[")
    assert kubeconfigs.remove_context(home) is not None
    assert path.read_text() == "["
    with pytest.raises(KubeconfigError):
        kubeconfigs.add_context(path, config(identity), home=home)


def test_kubectl_changes_the_first_file_of_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kubeconfigs.default_path({}) == tmp_path / ".kube" / "config"
    assert kubeconfigs.default_path({"KUBECONFIG": ":/a/b:/c"}) == Path("/a/b")
