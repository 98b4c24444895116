"""Validation of pod specs, in pods and in pod templates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems, each
from holdfast.apiserver.builtins.pods.volumes import volume_problems
from holdfast.apiserver.resources import Object
from holdfast.meta import names
from holdfast.meta.errors import FieldError

RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
OVERCOMMITTED: Final = CONTAINER_RESOURCES
"""Resources whose request may be less than the limit."""

ENV_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '=' "
    "(e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '^[ -<>-~]+$')"
)
_ENV_NAME: Final = re.compile("[ -<>-~]+")
_ENV_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_NO_OPERATOR: Final = "not a valid selector operator"
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")


def spec_problems(spec: Object, path: str) -> Problems:
    """All problems of a pod spec."""
    yield from _volumes(spec, path)
    yield from _containers(spec, path)
    yield from checks.chosen(spec.get("restartPolicy"), f"{path}.restartPolicy", among=RESTART_POLICIES)
    yield from checks.chosen(spec.get("dnsPolicy"), f"{path}.dnsPolicy", among=DNS_POLICIES)
    yield from checks.labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    if spec.get("dnsPolicy") == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield FieldError.required(f"{path}.dnsConfig.nameservers", detail)
    for name in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        if spec.get(name):
            yield from checks.named(spec[name], f"{path}.{name}")
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            yield from checks.named(spec[name], f"{path}.{name}", rule=names.dns_label)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        detail = f"must be between 1 and {2**31 - 1}, inclusive"
        yield FieldError.invalid(f"{path}.activeDeadlineSeconds", deadline, detail=detail)
    yield from checks.not_negative(spec.get("terminationGracePeriodSeconds"), f"{path}.terminationGracePeriodSeconds")
    for place, toleration in each(spec.get("tolerations"), f"{path}.tolerations"):
        yield from _toleration(toleration, place)
    for place, constraint in each(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints"):
        yield from _spread(constraint, place)
    yield from _affinity(spec.get("affinity") or {}, f"{path}.affinity")
    yield from checks.unique(spec.get("imagePullSecrets"), f"{path}.imagePullSecrets", key="name")


def _volumes(spec: Object, path: str) -> Problems:
    for place, volume in each(spec.get("volumes"), f"{path}.volumes"):
        yield from volume_problems(volume, place)
    yield from checks.unique(spec.get("volumes"), f"{path}.volumes", key="name")


def _containers(spec: Object, path: str) -> Problems:
    if not spec.get("containers"):
        yield FieldError.required(f"{path}.containers")
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    seen: set[str] = set()
    for listed in ("containers", "initContainers", "ephemeralContainers"):
        for place, container in each(spec.get(listed), f"{path}.{listed}"):
            name = container.get("name")
            if name in seen and name:
                yield FieldError.duplicate(f"{place}.name", name)
            seen.add(name or "")
            yield from _container(container, place, volumes=volumes)
            if listed == "initContainers":
                yield from _init_container(container, place)
    ports = [port for each in spec.get("containers") or () for port in each.get("ports") or ()]
    yield from _host_ports(ports, f"{path}.containers")


def _container(container: Object, path: str, *, volumes: set[Any]) -> Problems:
    yield from checks.named(container.get("name"), f"{path}.name", rule=names.dns_label)
    image = container.get("image")
    if not image:
        yield FieldError.required(f"{path}.image")
    elif image != image.strip():
        yield FieldError.invalid(f"{path}.image", image, detail="must not have leading or trailing whitespace")
    yield from checks.maybe_chosen(container.get("imagePullPolicy"), f"{path}.imagePullPolicy", among=PULL_POLICIES)
    policies = ("File", "FallbackToLogsOnError")
    policy = container.get("terminationMessagePolicy")
    yield from checks.chosen(policy, f"{path}.terminationMessagePolicy", among=policies)
    yield from _ports(container.get("ports"), f"{path}.ports")
    for place, variable in each(container.get("env"), f"{path}.env"):
        yield from _variable(variable, place)
    for place, source in each(container.get("envFrom"), f"{path}.envFrom"):
        yield from _one_of(source, place, among=("configMapRef", "secretRef"))
    yield from _mounts(container, path, volumes=volumes)
    yield from resource_problems(container.get("resources") or {}, f"{path}.resources")
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            yield from _probe(container[name], f"{path}.{name}", ready=name == "readinessProbe")
    for name, handler in (container.get("lifecycle") or {}).items():
        if isinstance(handler, dict):
            yield from _handler(handler, f"{path}.lifecycle.{name}")


def _init_container(container: Object, path: str) -> Problems:
    policy = container.get("restartPolicy")
    if policy == "Always":
        return
    for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            detail = "may not be set for init containers without restartPolicy=Always"
            yield FieldError.forbidden(f"{path}.{name}", detail)


def _ports(ports: Sequence[Object] | None, path: str) -> Problems:
    yield from checks.unique(ports, path, key="name")
    for place, port in each(ports, path):
        if port.get("name"):
            for problem in checks.port_name_problems(port["name"]):
                yield FieldError.invalid(f"{place}.name", port["name"], detail=problem)
        yield from checks.port(port.get("containerPort") or None, f"{place}.containerPort")
        if port.get("hostPort"):
            yield from checks.port(port["hostPort"], f"{place}.hostPort")
        yield from checks.chosen(port.get("protocol"), f"{place}.protocol", among=PROTOCOLS)


def _host_ports(ports: Sequence[Object], path: str) -> Problems:
    seen = set()
    for port in ports:
        taken = (port.get("hostIP", ""), port.get("hostPort"), port.get("protocol"))
        if port.get("hostPort") and taken in seen:
            shown = "/".join(map(str, taken))
            yield FieldError.duplicate(f"{path}.ports.hostPort", shown)
        seen.add(taken)


def _variable(variable: Object, path: str) -> Problems:
    name = variable.get("name")
    if not name:
        yield FieldError.required(f"{path}.name")
    elif not _ENV_NAME.fullmatch(name):
        yield FieldError.invalid(f"{path}.name", name, detail=ENV_RULE)
    source = variable.get("valueFrom")
    if source is None:
        return
    at = f"{path}.valueFrom"
    if variable.get("value"):
        yield FieldError.invalid(at, "", detail="may not be specified when `value` is not empty")
    yield from _one_of(source, at, among=_ENV_SOURCES)
    for chosen in ("configMapKeyRef", "secretKeyRef"):
        if chosen in source:
            yield from checks.required(source[chosen].get("name"), f"{at}.{chosen}.name")
            yield from checks.required(source[chosen].get("key"), f"{at}.{chosen}.key")
    if "fieldRef" in source:
        yield from checks.required(source["fieldRef"].get("fieldPath"), f"{at}.fieldRef.fieldPath")
    if "resourceFieldRef" in source:
        yield from checks.required(source["resourceFieldRef"].get("resource"), f"{at}.resourceFieldRef.resource")


def _one_of(value: Mapping[str, Any], path: str, *, among: Sequence[str]) -> Problems:
    """Exactly one of several sources must be set."""
    given = [name for name in among if name in value]
    if not given:
        listed = ", ".join(f"`{name}`" for name in among)
        yield FieldError.invalid(path, "", detail=f"must specify one of: {listed}")
    elif len(given) > 1:
        yield FieldError.invalid(path, "", detail="may not have more than one field specified at a time")


def _mounts(container: Object, path: str, *, volumes: set[Any]) -> Problems:
    points: set[str] = set()
    for place, mount in each(container.get("volumeMounts"), f"{path}.volumeMounts"):
        name, point = mount.get("name"), mount.get("mountPath")
        if not name:
            yield FieldError.required(f"{place}.name")
        elif name not in volumes:
            yield FieldError.not_found(f"{place}.name", name)
        if not point:
            yield FieldError.required(f"{place}.mountPath")
        elif point in points:
            yield FieldError.invalid(f"{place}.mountPath", point, detail="must be unique")
        points.add(point or "")
        if mount.get("subPath") and mount.get("subPathExpr"):
            detail = "subPathExpr and subPath are mutually exclusive"
            yield FieldError.invalid(f"{place}.subPathExpr", mount["subPathExpr"], detail=detail)
        inside = mount.get("subPath", "")
        if inside.startswith("/"):
            yield FieldError.invalid(f"{place}.subPath", inside, detail="must be a relative path")
        elif ".." in inside.split("/"):
            yield FieldError.invalid(f"{place}.subPath", inside, detail="must not contain '..'")
    for place, device in each(container.get("volumeDevices"), f"{path}.volumeDevices"):
        name = device.get("name")
        if name not in volumes:
            yield FieldError.not_found(f"{place}.name", name)
        yield from checks.required(device.get("devicePath"), f"{place}.devicePath")


def resource_problems(resources: Object, path: str) -> Problems:
    """Requests and limits: known names, no negative amounts, no request beyond its limit."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for listed, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            yield from _resource_name(name, f"{path}.{listed}")
            if checks.quantity(amount).nanos < 0:
                yield FieldError.invalid(f"{path}.{listed}[{name}]", amount, detail=checks.NOT_NEGATIVE)
    for name, amount in requests.items():
        at = f"{path}.requests"
        if name in limits:
            asked, allowed = checks.quantity(amount), checks.quantity(limits[name])
            if name not in OVERCOMMITTED and asked != allowed:
                detail = f"must be equal to {name} limit of {limits[name]}"
                yield FieldError.invalid(at, amount, detail=detail)
            elif asked > allowed:
                detail = f"must be less than or equal to {name} limit of {limits[name]}"
                yield FieldError.invalid(at, amount, detail=detail)
        elif name not in OVERCOMMITTED:
            yield FieldError.required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _resource_name(name: str, path: str) -> Problems:
    for problem in names.label_key(name):
        yield FieldError.invalid(path, name, detail=problem)
    if "/" not in name and name not in CONTAINER_RESOURCES and not name.startswith("hugepages-"):
        detail = "must be a standard resource type or fully qualified"
        yield FieldError.invalid(path, name, detail=detail)


def _probe(probe: Object, path: str, *, ready: bool) -> Problems:
    yield from _handler(probe, path)
    for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        yield from checks.not_negative(probe.get(name), f"{path}.{name}")
    if not ready and probe.get("successThreshold", 1) != 1:
        yield FieldError.invalid(f"{path}.successThreshold", probe["successThreshold"], detail="must be 1")
    grace = probe.get("terminationGracePeriodSeconds")
    if ready and grace is not None:
        detail = "must not be set for readinessProbes"
        yield FieldError.invalid(f"{path}.terminationGracePeriodSeconds", grace, detail=detail)
    else:
        yield from checks.positive(grace, f"{path}.terminationGracePeriodSeconds")


def _handler(handler: Object, path: str) -> Problems:
    given = [name for name in _HANDLERS if name in handler]
    if not given:
        yield FieldError.required(path, "must specify a handler type")
    for extra in given[1:]:
        yield FieldError.forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")
    if "exec" in handler:
        yield from checks.required(handler["exec"].get("command"), f"{path}.exec.command")
    if "httpGet" in handler:
        get = handler["httpGet"]
        yield from checks.required(get.get("path"), f"{path}.httpGet.path")
        yield from checks.port(get.get("port"), f"{path}.httpGet.port")
        yield from checks.chosen(get.get("scheme"), f"{path}.httpGet.scheme", among=("HTTP", "HTTPS"))
    for name in ("tcpSocket", "grpc"):
        if name in handler:
            yield from checks.port(handler[name].get("port"), f"{path}.{name}.port")


def _toleration(toleration: Object, path: str) -> Problems:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    if key:
        yield from (FieldError.invalid(f"{path}.key", key, detail=problem) for problem in names.label_key(key))
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield FieldError.invalid(f"{path}.operator", operator, detail=detail)
    yield from checks.maybe_chosen(operator, f"{path}.operator", among=("Equal", "Exists", "Lt", "Gt"))
    if operator == "Exists" and toleration.get("value"):
        detail = "value must be empty when `operator` is 'Exists'"
        yield FieldError.invalid(f"{path}.operator", toleration["value"], detail=detail)
    effect = toleration.get("effect")
    yield from checks.maybe_chosen(effect, f"{path}.effect", among=TAINT_EFFECTS)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield FieldError.invalid(f"{path}.effect", effect or "", detail=detail)


def _spread(constraint: Object, path: str) -> Problems:
    yield from checks.positive(constraint.get("maxSkew", 0), f"{path}.maxSkew")
    yield from checks.required(constraint.get("topologyKey"), f"{path}.topologyKey", detail="can not be empty")
    among = ("DoNotSchedule", "ScheduleAnyway")
    yield from checks.chosen(constraint.get("whenUnsatisfiable"), f"{path}.whenUnsatisfiable", among=among)
    yield from checks.label_selector(constraint.get("labelSelector"), f"{path}.labelSelector")


def _affinity(affinity: Object, path: str) -> Problems:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    for kind in ("podAffinity", "podAntiAffinity"):
        rules, at = affinity.get(kind) or {}, f"{path}.{kind}"
        for place, term in each(rules.get(required), f"{at}.{required}"):
            yield from _affinity_term(term, place)
        for place, weighted in each(rules.get(preferred), f"{at}.{preferred}"):
            yield from _weight(weighted, place)
            yield from _affinity_term(weighted.get("podAffinityTerm") or {}, f"{place}.podAffinityTerm")
    rules, at = affinity.get("nodeAffinity") or {}, f"{path}.nodeAffinity"
    terms = (rules.get(required) or {}).get("nodeSelectorTerms")
    if required in rules and not terms:
        detail = "must have at least one node selector term"
        yield FieldError.required(f"{at}.{required}.nodeSelectorTerms", detail)
    for place, term in each(terms, f"{at}.{required}.nodeSelectorTerms"):
        yield from _node_term(term, place)
    for place, weighted in each(rules.get(preferred), f"{at}.{preferred}"):
        yield from _weight(weighted, place)
        yield from _node_term(weighted.get("preference") or {}, f"{place}.preference")


def _node_term(term: Object, path: str) -> Problems:
    """A node selector term: requirements on the labels and the name of a node."""
    for place, asked in each(term.get("matchExpressions"), f"{path}.matchExpressions"):
        key, operator, values = asked.get("key", ""), asked.get("operator", ""), asked.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                yield FieldError.required(f"{place}.values", detail)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield FieldError.forbidden(f"{place}.values", detail)
        elif operator in ("Gt", "Lt"):
            if len(values) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield FieldError.required(f"{place}.values", detail)
        else:
            yield FieldError.invalid(f"{place}.operator", operator, detail=_NO_OPERATOR)
        yield from (FieldError.invalid(f"{place}.key", key, detail=problem) for problem in names.label_key(key))
    for place, asked in each(term.get("matchFields"), f"{path}.matchFields"):
        key, operator = asked.get("key", ""), asked.get("operator", "")
        if operator not in ("In", "NotIn"):
            yield FieldError.invalid(f"{place}.operator", operator, detail=_NO_OPERATOR)
        elif len(asked.get("values") or ()) != 1:
            detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield FieldError.required(f"{place}.values", detail)
        if key != "metadata.name":
            yield FieldError.invalid(f"{place}.key", key, detail="not a valid field selector key")


def _affinity_term(term: Object, path: str) -> Problems:
    yield from checks.label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    yield from checks.label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    yield from checks.required(term.get("topologyKey"), f"{path}.topologyKey", detail="can not be empty")


def _weight(weighted: Object, path: str) -> Problems:
    weight = weighted.get("weight", 0)
    if not 1 <= weight <= 100:
        yield FieldError.invalid(f"{path}.weight", weight, detail="must be in the range 1-100")


def template_problems(template: Object, path: str) -> Problems:
    """All problems of a pod template."""
    meta = template.get("metadata") or {}
    yield from checks.labels(meta.get("labels"), f"{path}.metadata.labels")
    for key in meta.get("annotations") or {}:
        yield from (
            FieldError.invalid(f"{path}.metadata.annotations", key, detail=problem)
            for problem in names.annotation_key(key)
        )
    yield from spec_problems(template.get("spec") or {}, f"{path}.spec")
