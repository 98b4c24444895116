"""Cloudless' own manifests (``cloudless/v1``) as Workloads of ``cloudless.io/v1``.  Pure.

Cloudless writes fields in snake_case, and some in other forms than a Workload: Secrets, security settings, probes,
resources.  `translate` gives a Workload that means the same.  What has no counterpart in Kubernetes is refused, with
the path and the reason; what has none and changes nothing is left out, with a note.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, count
from typing import Any, Final

from holdfast.kinds import checks
from holdfast.kinds.checks import InvalidDocument
from holdfast.kinds.cloudless import KINDS
from holdfast.kinds.crds import schema_of
from holdfast.kinds.translations import Moved, Translation, spelled
from holdfast.meta.fieldpaths import child
from holdfast.meta.schemas.hints import Problem

API_VERSION: Final = "cloudless/v1"
"""The version that Cloudless' manifests name."""

_TOPOLOGIES: Final = {
    "node": "kubernetes.io/hostname",
    "zone": "topology.kubernetes.io/zone",
    "region": "topology.kubernetes.io/region",
}
_PROBES: Final = ("liveness_probe", "readiness_probe", "startup_probe")
_PROBE_FIELDS: Final = {"http_get": "http", "tcp_socket": "tcp"}
_PROBE_TIMES: Final = {
    "initial_delay_seconds": "initialDelay",
    "period_seconds": "period",
    "timeout_seconds": "timeout",
}
_LINUX: Final = {
    "seccomp_profile": "seccompProfile",
    "apparmor_profile": "appArmorProfile",
    "selinux_options": "seLinuxOptions",
    "supplemental_groups": "supplementalGroups",
    "fs_group": "fsGroup",
    "sysctls": "sysctls",
}
_HOST_NAMESPACES: Final = {"host_network": "network", "host_pid": "processes", "host_ipc": "shared memory"}
_DEFAULT_RUNTIMES: Final = ("", "runc")
"""Runtimes of Cloudless that are what a cluster runs containers with unless a RuntimeClass is named."""

_LONGEST: Final = 58
"""How much of a Secret's name is in the name of its volume, which has at most 63 characters."""

Fields = dict[str, Any]


def translate(document: Mapping[str, Any]) -> Translation | None:
    """The Workload that a manifest of Cloudless describes; None where the document is not one, or needs no translation.

    Raises `InvalidDocument` with the paths of the given document.
    """
    (kind,) = KINDS
    api_version = document.get("apiVersion")
    if api_version not in (API_VERSION, kind.api_version):
        return None
    if document.get("kind") != kind.name:
        if api_version != API_VERSION:
            return None
        message = f"{document.get('kind')!r} is not a kind that can be translated"
        raise InvalidDocument(Problem("kind", message, f"of {API_VERSION}, Workload can; leave the document out"))
    rewriting = _Rewriting(document)
    spec = document.get("spec")
    changed = dict(document) | {"apiVersion": kind.api_version}
    if isinstance(spec, Mapping):
        changed["spec"] = rewriting.spec(dict(spec))
    origins: dict[str, str] = {}
    translated = spelled(changed, _schema(), new="", old="", origins=origins)
    if translated == document:
        return None
    made = Translation(translated, tuple(rewriting.notes), origins)
    problems = tuple(rewriting.problems) or tuple(
        Problem(made.origin(each.path), each.message, each.hint) for each in checks.problems(kind, translated)
    )
    if problems:
        raise InvalidDocument(*problems)
    return made


@cache
def _schema() -> dict[str, Any]:
    return schema_of(KINDS[0].model)


class _Rewriting:
    """The forms of Cloudless' manifests that are more than another spelling.

    Each method takes the fields of an object and gives those of a Workload.  Names may still be in snake_case; a value
    that stands elsewhere in the manifest is `Moved`.  Values of unexpected types stay: the schema refuses them.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        metadata = document.get("metadata")
        self._namespace = (metadata.get("namespace") if isinstance(metadata, Mapping) else None) or "default"
        self.notes: list[Problem] = []
        self.problems: list[Problem] = []

    def spec(self, spec: Fields) -> Fields:
        if isinstance(policy := spec.get("restart_policy"), str):
            spec["restart_policy"] = {"policy": Moved(policy, "spec.restart_policy")}
        for probe in _PROBES:
            if isinstance(spec.get(probe), Mapping):
                spec[probe] = self._probe(dict(spec[probe]), f"spec.{probe}")
        if "health_check" in spec:
            hint = "write liveness_probe (restarts the container) or readiness_probe (holds traffic back), or both"
            message = "it does not say what happens when the check fails"
            self.problems.append(Problem("spec.health_check", message, hint))
        if isinstance(spec.get("resources"), Mapping):
            spec["resources"] = self._resources(dict(spec["resources"]))
        if isinstance(spec.get("placement"), Mapping):
            spec["placement"] = self._placement(dict(spec["placement"]))
        if isinstance(spec.get("rollout"), Mapping):
            spec["rollout"] = self._rollout(dict(spec["rollout"]))
        if isinstance(spec.get("ports"), list):
            spec["ports"] = [self._port(each, f"spec.ports[{index}]") for index, each in enumerate(spec["ports"])]
        if isinstance(spec.get("volumes"), list):
            spec["volumes"] = [_volume(each, f"spec.volumes[{index}]") for index, each in enumerate(spec["volumes"])]
        self._secrets(spec)
        return self._security(spec)

    # --- probes, resources, ports

    def _probe(self, probe: Fields, path: str) -> Fields:
        for given, name in _PROBE_FIELDS.items():
            if given in probe:
                probe[name] = Moved(probe.pop(given), f"{path}.{given}")
        for given, name in _PROBE_TIMES.items():
            if isinstance(probe.get(given), (int, float)):
                probe[name] = Moved(f"{probe.pop(given)}s", f"{path}.{given}")
        return probe

    def _resources(self, resources: Fields) -> Fields:
        """Amounts by resource (``cpu: {min, max}``) as amounts by requests and limits."""
        for resource in [name for name, value in resources.items() if name not in ("requests", "limits")]:
            amounts, path = resources.pop(resource), f"spec.resources.{resource}"
            if not isinstance(amounts, Mapping) or not set(amounts) <= {"min", "max"}:
                hint = "write requests: and limits:, or min: and max: under the resource"
                self.problems.append(Problem(path, "is neither requests nor limits", hint))
                continue
            name = "ephemeral-storage" if resource == "storage" else resource
            for bound, field in (("min", "requests"), ("max", "limits")):
                if bound in amounts:
                    resources[field] = _with(resources.get(field), name, Moved(amounts[bound], f"{path}.{bound}"))
        for field in ("requests", "limits"):
            if isinstance(resources.get(field), Mapping):
                resources[field] = self._amounts(dict(resources[field]), f"spec.resources.{field}")
        return resources

    def _amounts(self, amounts: Fields, path: str) -> Fields:
        given = amounts.pop("iops_class", None)
        if given not in (None, "", "unknown"):
            message = f"a Kubernetes node does not promise a class of I/O operations, and {given!r} asks for one"
            hint = "choose nodes by placement.node_selector, or a volume by the StorageClass of its claim"
            self.problems.append(Problem(f"{path}.iops_class", message, hint))
        return amounts

    def _port(self, port: Any, path: str) -> Any:
        if not isinstance(port, Mapping) or "port" not in port:
            return port
        renamed = dict(port)
        return renamed | {"containerPort": Moved(renamed.pop("port"), f"{path}.port")}

    # --- placement, rollout

    def _placement(self, placement: Fields) -> Fields:
        for field in ("affinity", "anti_affinity"):
            rules, path = placement.get(field), f"spec.placement.{field}"
            if isinstance(rules, Mapping):
                placement[field] = list(self._affinities(rules, path))
            elif isinstance(rules, list):
                placement[field] = [_affinity(each, child(path, index)) for index, each in enumerate(rules)]
        return placement

    def _affinities(self, rules: Mapping[str, Any], path: str) -> Iterator[Fields]:
        """Labels by what they belong to (``node_labels``) as a list of preferences."""
        for field, labels in rules.items():
            target = {"node_labels": "Node", "workload_labels": "Workload"}.get(field)
            if target is None:
                hint = "write node_labels, workload_labels, or a list of type, match_labels and topology_key"
                self.problems.append(Problem(f"{path}.{field}", "is not known", hint))
            else:
                yield {"type": target, "matchLabels": Moved(labels, f"{path}.{field}")}

    def _rollout(self, rollout: Fields) -> Fields:
        surge, unavailable = rollout.get("max_surge"), rollout.get("max_unavailable")
        if surge == 0 and unavailable == 0:
            del rollout["max_surge"], rollout["max_unavailable"]
            message = "both are 0, which Cloudless reads as not set; one replica is replaced at a time"
            self.notes.append(Problem("spec.rollout.max_surge", message, "write 1 for one of them to be explicit"))
        return rollout

    # --- secrets

    def _secrets(self, spec: Fields) -> None:
        if "env_from" in spec:
            spec["envFrom"] = Moved(spec.pop("env_from"), "spec.env_from")
        for field, target, made in (
            ("secret_env", "envFrom", self._variables),
            ("secret_volumes", "volumes", self._files),
        ):
            given = spec.get(field)
            if not isinstance(given, list):
                continue
            del spec[field]
            before = _plain(spec.get(target))
            found = list(before) if isinstance(before, list) else []
            for index, source in enumerate(given):
                path = f"spec.{field}[{index}]"
                if isinstance(source, Mapping) and isinstance(source.get("secret_name"), str):
                    self._access(source, path)
                    found.append(Moved(made(source, path, found), path))
                else:
                    message = "must be an object with the secret_name of a Secret"
                    self.problems.append(Problem(path, message, "write - secret_name: NAME"))
            spec[target] = found

    def _access(self, source: Mapping[str, Any], path: str) -> None:
        namespace = source.get("namespace")
        if namespace is not None and namespace != self._namespace:
            message = f"pods cannot use a Secret of another namespace, and the Workload is in {self._namespace}"
            hint = f"copy the Secret to {self._namespace}, or create the Workload in {namespace}"
            self.problems.append(Problem(f"{path}.namespace", message, hint))
        if source.get("audience"):
            message = "left out: Kubernetes has no audiences; permissions (RBAC) decide who may read the Secret"
            self.notes.append(Problem(f"{path}.audience", message))

    def _variables(self, source: Mapping[str, Any], path: str, found: list[Any]) -> Fields:
        made: Fields = {"secretRef": {"name": Moved(source["secret_name"], f"{path}.secret_name")}}
        keys = source.get("key_to_env")
        if isinstance(keys, Mapping) and keys:
            at = f"{path}.key_to_env"
            made["keys"] = {str(variable): Moved(key, child(at, key)) for key, variable in keys.items()}
        self._known(source, path, {"secret_name", "namespace", "audience", "key_to_env"})
        return made

    def _files(self, source: Mapping[str, Any], path: str, found: list[Any]) -> Fields:
        secret = source["secret_name"]
        base = secret.replace(".", "-")[:_LONGEST]
        taken = [each.get("name") for each in (_plain(other) for other in found) if isinstance(each, Mapping)]
        numbered = (f"{base}-{number}" for number in count(2))
        name = next(each for each in chain((base,), numbered) if each not in taken)
        made: Fields = {"name": name, "source": "secret", "readOnly": True}
        if name != secret:
            made["options"] = {"name": Moved(secret, f"{path}.secret_name")}
        if "mount_path" in source:
            made["mountPath"] = Moved(source["mount_path"], f"{path}.mount_path")
        if "mode" in source:
            made["defaultMode"] = Moved(_mode(source["mode"]), f"{path}.mode")
        keys = source.get("key_to_path")
        if isinstance(keys, Mapping) and keys:
            at = f"{path}.key_to_path"
            made["keys"] = {str(file): Moved(key, child(at, key)) for key, file in keys.items()}
        self._known(source, path, {"secret_name", "namespace", "audience", "mount_path", "mode", "key_to_path"})
        return made

    # --- security

    def _security(self, spec: Fields) -> Fields:
        given, path = spec.get("security_context"), "spec.security_context"
        if not isinstance(given, Mapping):
            return spec
        made = dict(given)
        for field, shared in _HOST_NAMESPACES.items():
            if made.pop(field, False) is True:
                message = f"replicas cannot share the {shared} of their node"
                hint = "run it as a DaemonSet or a Deployment of Kubernetes, whose pods can"
                self.problems.append(Problem(f"{path}.{field}", message, hint))
        runtime = made.pop("runtime_class_name", None)
        if runtime not in (None, *_DEFAULT_RUNTIMES):
            spec["runtimeClassName"] = Moved(runtime, f"{path}.runtime_class_name")
        capabilities = {
            name: Moved(made.pop(field), f"{path}.{field}")
            for name, field in (("add", "capabilities_add"), ("drop", "capabilities_drop"))
            if field in made
        }
        if capabilities:
            made["capabilities"] = capabilities
        linux = made.pop("linux", None)
        if isinstance(linux, Mapping):
            self._known(linux, f"{path}.linux", set(_LINUX))
            made |= {
                name: Moved(linux[field], f"{path}.linux.{field}") for field, name in _LINUX.items() if field in linux
            }
            self._profile(linux.get("seccomp_profile"), f"{path}.linux.seccomp_profile")
        spec.pop("security_context")
        return spec | {"securityContext": Moved(made, path)}

    def _profile(self, profile: Any, path: str) -> None:
        file = profile.get("localhost_profile") if isinstance(profile, Mapping) else None
        if isinstance(file, str) and file.startswith("/"):
            message = f"Kubernetes reads seccomp profiles from the kubelet's directory, and {file} is an absolute path"
            hint = "copy it into /var/lib/kubelet/seccomp of the nodes, and write its path in there"
            self.problems.append(Problem(f"{path}.localhost_profile", message, hint))

    def _known(self, given: Mapping[str, Any], path: str, fields: set[str]) -> None:
        for field in given:
            if field not in fields:
                hint = f"known here: {', '.join(sorted(fields))}"
                self.problems.append(Problem(child(path, field), "unknown field", hint))


def _affinity(rule: Any, path: str) -> Any:
    """A rule with the node label that a topology is in Kubernetes."""
    key = rule.get("topology_key") if isinstance(rule, Mapping) else None
    if not isinstance(key, str) or key not in _TOPOLOGIES:
        return rule
    return {**rule, "topology_key": Moved(_TOPOLOGIES[key], f"{path}.topology_key")}


def _volume(volume: Any, path: str) -> Any:
    """A volume whose ``type`` says where its files come from and whose ``source`` names the object."""
    if not isinstance(volume, Mapping) or "type" not in volume:
        return volume
    made = dict(volume)
    named = made.pop("source", None)
    made["source"] = Moved(made.pop("type"), f"{path}.type")
    if named is not None:
        made["options"] = _with(made.get("options"), "name", Moved(named, f"{path}.source"))
    return made


def _mode(mode: Any) -> Any:
    """Permissions of files; a text is an octal number."""
    try:
        return int(mode, 8) if isinstance(mode, str) else mode
    except ValueError:
        return mode


def _with(fields: Any, name: str, value: Any) -> Fields:
    return {**(fields if isinstance(fields, Mapping) else {}), name: value}


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Moved) else value
