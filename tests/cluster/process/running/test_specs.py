"""From containers to processes, and from volumes to files."""

from __future__ import annotations

import base64
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import CLAIMS, CONFIG_MAPS, PODS, SECRETS
from holdfast.cluster.process.lifecycle.pods import Pod, referred
from holdfast.cluster.process.running.env import Refused, Surroundings
from holdfast.cluster.process.running.specs import Launch, launch
from holdfast.cluster.process.storage.directories import Directories
from holdfast.cluster.process.storage.files import publish
from holdfast.cluster.process.storage.volumes import Contents, File, contents
from holdfast.testing.snapshots import Snapshot

AROUND = Surroundings(ip="127.70.0.9", host_ip="127.0.0.1", capacity={})
DIRECTORIES = Directories(root=Path("/node"))

WORLD = Snapshot(
    [
        (CONFIG_MAPS, {"metadata": {"name": "conf", "namespace": "default"}, "data": {"a": "1", "b": "2"}}),
        (
            SECRETS,
            {
                "metadata": {"name": "keys", "namespace": "default"},
                "data": {"tls": base64.b64encode(b"private").decode()},
            },
        ),
        (CLAIMS, {"metadata": {"name": "disk", "namespace": "default", "uid": "c1"}}),
    ]
)


def pod(container: Mapping[str, Any], *volumes: Mapping[str, Any], **spec: Any) -> Pod:
    main = {"name": "main", "command": ["run"], **container}
    wire = {
        "metadata": {"name": "p", "namespace": "default", "uid": "u1", "labels": {"a": 'x"y', "b": "z"}},
        "spec": {"runtimeClassName": "process", "containers": [main], "volumes": list(volumes), **spec},
    }
    return Pod.of(Object.of(PODS, wire))


def launched(of: Pod, directories: Directories = DIRECTORIES) -> Launch:
    return launch(
        of, of.spec.containers[0], directories=directories, lookup=WORLD.get, around=AROUND, machine={"PATH": "/bin"}
    )


def mount(name: str, path: str, **rest: Any) -> dict[str, Any]:
    return {"volumeMounts": [{"name": name, "mountPath": path, **rest}]}


def test_command_and_arguments_are_expanded_with_the_variables() -> None:
    container = {"args": ["--name=$(NAME)", "$$(NAME)"], "env": [{"name": "NAME", "value": "x"}]}
    assert launched(pod(container)).argv == ("run", "--name=x", "$(NAME)")


def test_a_process_gets_a_home_and_temporary_files_of_its_own_and_nothing_of_the_users() -> None:
    made = launched(pod({}))
    assert made.env == {
        "PATH": "/bin",
        "HOSTNAME": "p",
        "HOME": "/node/pods/u1/containers/main/work",
        "TMPDIR": "/node/pods/u1/containers/main/tmp",
    }
    assert made.directory == Path("/node/pods/u1/containers/main/work")


def test_mounts_are_found_by_path_and_by_variable() -> None:
    container = {"args": ["/data/x"], "env": [{"name": "DIR", "value": "/data"}], "workingDir": "/data/w"}
    made = launched(pod({**container, **mount("my-data", "/data")}, {"name": "my-data", "emptyDir": {}}))
    real = "/node/pods/u1/volumes/my-data"
    assert made.argv == ("run", f"{real}/x")
    assert (made.env["DIR"], made.env["HOLDFAST_VOLUME_MY_DATA"]) == (real, real)
    assert made.directory == Path(f"{real}/w")
    assert Path(real) in made.needed
    assert made.command(("test", "-f", "/data/x")) == ("test", "-f", f"{real}/x")


@pytest.mark.parametrize(
    ("sub", "real"),
    [
        ({"subPath": "a/b"}, "/node/pods/u1/volumes/v/a/b"),
        ({"subPathExpr": "$(NAME)"}, "/node/pods/u1/volumes/v/web"),
    ],
)
def test_a_part_of_a_volume_can_be_mounted(sub: dict[str, str], real: str) -> None:
    container = {"args": ["/data"], "env": [{"name": "NAME", "value": "web"}], **mount("v", "/data", **sub)}
    assert launched(pod(container, {"name": "v", "emptyDir": {}})).argv == ("run", real)


def test_a_claim_belongs_to_itself_and_not_to_the_pod() -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "disk"}}
    assert launched(pod({"args": ["/data"], **mount("v", "/data")}, volume)).argv[1] == "/node/claims/default/c1"


def test_the_termination_message_is_written_where_it_is_read() -> None:
    made = launched(pod({"args": ["echo bye >/dev/termination-log"]}))
    assert made.argv[1] == "echo bye >/node/pods/u1/containers/main/termination-log"


def test_variables_are_not_shown() -> None:
    container = {"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "tls"}}}]}
    made = launched(pod(container))
    assert made.env["K"] == "private"
    assert "private" not in repr(made)


@pytest.mark.parametrize(
    ("container", "volumes", "message"),
    [
        ({"command": []}, (), "runs commands, not images; set command"),
        ({"livenessProbe": {"grpc": {"port": 1}}}, (), "no grpc probes; use exec, httpGet or tcpSocket"),
        (mount("v", "/"), ({"name": "v", "emptyDir": {}},), "mount at another path"),
        (mount("v", "/x"), (), "there is no volume v"),
        (mount("v", "/x"), ({"name": "v", "hostPath": {"path": "/etc"}},), "hostPath is not allowed"),
        (mount("v", "/x"), ({"name": "v", "nfs": {"server": "s", "path": "/"}},), "this volume is none of these"),
        (
            mount("v", "/x"),
            ({"name": "v", "persistentVolumeClaim": {"claimName": "none"}},),
            'persistentvolumeclaim "none" not found',
        ),
        (mount("v", "/x", subPath="../y"), ({"name": "v", "emptyDir": {}},), "not a path within a volume"),
        (mount("v", "/x", subPath="/y"), ({"name": "v", "emptyDir": {}},), "not a path within a volume"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_remedy(container: Any, volumes: Any, message: str) -> None:
    with pytest.raises(Refused, match=message):
        launched(pod(container, *volumes))


def test_a_pod_that_did_not_ask_for_processes_is_refused() -> None:
    with pytest.raises(Refused, match=r"set spec.runtimeClassName to process"):
        launched(pod({}, runtimeClassName=None))


def test_host_paths_can_be_allowed() -> None:
    of = pod({"args": ["/x/hosts"], **mount("v", "/x")}, {"name": "v", "hostPath": {"path": "/etc"}})
    assert launched(of, Directories(root=Path("/node"), host_paths=True)).argv[1] == "/etc/hosts"


def test_a_pod_is_told_of_everything_that_it_refers_to() -> None:
    container = {
        "envFrom": [{"configMapRef": {"name": "c1"}}, {"secretRef": {"name": "s1"}}],
        "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s2", "key": "k"}}}],
    }
    volumes = (
        {"name": "a", "configMap": {"name": "c2"}},
        {"name": "b", "projected": {"sources": [{"secret": {"name": "s3"}}, {"configMap": {"name": "c3"}}]}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "p1"}},
        {"name": "d", "secret": {"secretName": "s4"}},
    )
    assert referred(pod(container, *volumes)) == {
        *(("ConfigMap", name) for name in ("c1", "c2", "c3")),
        *(("Secret", name) for name in ("s1", "s2", "s3", "s4")),
        ("PersistentVolumeClaim", "p1"),
    }


# --- files


def files(**volume: Any) -> Contents | None:
    of = pod({}, {"name": "v", **volume})
    return contents(of, of.spec.volumes[0], lookup=WORLD.get, around=AROUND)


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"emptyDir": {}}, None),
        ({"configMap": {"name": "conf"}}, {"a": File(b"1", 0o644), "b": File(b"2", 0o644)}),
        (
            {
                "configMap": {
                    "name": "conf",
                    "defaultMode": 0o400,
                    "items": [{"key": "a", "path": "x/y", "mode": 0o755}],
                }
            },
            {"x/y": File(b"1", 0o755)},
        ),
        ({"configMap": {"name": "none", "optional": True}}, {}),
        ({"secret": {"secretName": "keys"}}, {"tls": File(b"private", 0o600)}),
        ({"secret": {"secretName": "keys", "defaultMode": 0o444}}, {"tls": File(b"private", 0o400)}),
        (
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"labels": File(b'a="x\\"y"\nb="z"', 0o644)},
        ),
        (
            {
                "projected": {
                    "defaultMode": 0o640,
                    "sources": [
                        {"configMap": {"name": "conf", "items": [{"key": "b", "path": "b"}]}},
                        {"secret": {"name": "keys"}},
                        {"downwardAPI": {"items": [{"path": "ip", "fieldRef": {"fieldPath": "status.podIP"}}]}},
                    ],
                }
            },
            {"b": File(b"2", 0o640), "tls": File(b"private", 0o600), "ip": File(b"127.70.0.9", 0o640)},
        ),
    ],
)
def test_volumes_are_made_of_other_objects(volume: dict[str, Any], expected: Contents | None) -> None:
    assert files(**volume) == expected


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"configMap": {"name": "none"}}, 'configmap "none" not found'),
        ({"configMap": {"name": "conf", "items": [{"key": "z", "path": "z"}]}}, "conf has no key z"),
        ({"configMap": {"name": "conf", "items": [{"key": "a", "path": "../a"}]}}, "not a path within a volume"),
        ({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}, "is not there yet"),
        ({"projected": {"sources": [{"clusterTrustBundle": {"path": "t"}}]}}, "this source is none of these"),
        ({"downwardAPI": {"items": [{"path": "x"}]}}, "write a fieldRef"),
    ],
)
def test_volumes_that_cannot_be_made_are_refused(volume: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        files(**volume)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_changed_all_at_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    volume = tmp_path / "pods" / "volume"
    assert publish(volume, {"a": File(b"1", 0o644), "d/b": File(b"2", 0o600)})
    held = (volume / "a").open("rb")
    before = (volume / "..data").resolve()
    assert (volume / "d" / "b").read_bytes() == b"2"
    assert (mode(volume), mode(before), mode(volume / "a"), mode(volume / "d" / "b")) == (0o700, 0o700, 0o644, 0o600)

    assert publish(volume, {"a": File(b"new", 0o644)})
    with held:
        assert held.read() == b"1", "who has opened a file reads it to its end"
    assert (volume / "a").read_bytes() == b"new"
    assert sorted(path.name for path in volume.iterdir() if not path.name.startswith("..")) == ["a"]
    assert not before.exists()


def test_files_that_are_as_they_should_be_are_left_alone(tmp_path: Path) -> None:
    wanted = {"a": File(b"1", 0o644)}
    publish(tmp_path / "v", wanted)
    data = (tmp_path / "v" / "..data").resolve()
    assert not publish(tmp_path / "v", wanted)
    assert (tmp_path / "v" / "..data").resolve() == data
