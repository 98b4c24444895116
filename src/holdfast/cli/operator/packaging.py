"""Packages for clusters: a kustomize base and a Helm chart, made from the parts of `holdfast operator manifests`.

Texts by path, and one function that writes them.  In the chart, a value stands where an installation has one, an
operator's part is there if the operator is enabled, and an option's if the option is.  Nothing in the packages is
written by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

import holdfast
from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.manifests import writing
from holdfast.cli.operator import definitions, deploying, pages, registration, selection
from holdfast.cli.operator.deploying import Installation, Part
from holdfast.cli.operator.registration import WebhookOptions
from holdfast.runtime.controllers import Controller

Files = dict[str, str]

_MARK: Final = ".holdfast-package"
"""The file that lists what was written, so that only that is removed."""

_NAMESPACE: Final = "holdfast-system"
_IMAGE: Final = f"holdfast:{holdfast.__version__}"

# Strings that no manifest has, and what a template has in their place.
_VALUES: Final = {
    "value-namespace": "{{ .Release.Namespace }}",
    "value-image": '{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}',
    "value-replicas": "{{ .Values.replicas }}",
    "value-controllers": '--controllers={{ include "holdfast.controllers" . }}',
}

_WEBHOOKS: Final = ".Values.webhooks.enabled"
_CERT_MANAGER: Final = f"(and {_WEBHOOKS} .Values.webhooks.certManager)"
_OWN_CERTIFICATE: Final = f"(and {_WEBHOOKS} (not .Values.webhooks.certManager))"

_CONDITIONS: Final = {
    "role-definitions": _WEBHOOKS,
    "role-webhooks": _WEBHOOKS,
    "webhook-service": _WEBHOOKS,
    "webhook-configurations": _WEBHOOKS,
    "webhook-certificate": _CERT_MANAGER,
    "role-certificate": _OWN_CERTIFICATE,
    "webhook-secret": _OWN_CERTIFICATE,
}
"""The parts that are there only with some values; with webhooks, the operator itself completes the definitions."""

_CHOSEN: Final = "value-chosen"
"""Stands for all arguments that a value has: settings, and more arguments."""

_ARGUMENTS: Final = """\
        {{- range $name, $value := .Values.settings }}
        - {{ printf "--set=%s=%v" $name $value | quote }}
        {{- end }}
        {{- range .Values.extraArguments }}
        - {{ . | quote }}
        {{- end }}
"""


def kustomize() -> Files:
    """The kustomize base: what `holdfast operator manifests` prints, a file for each part, and optional components."""
    installation = Installation(namespace=_NAMESPACE, image=_IMAGE, controllers=_everything())
    files: Files = {}
    base = []
    for part in deploying.parts(installation):
        if part.option:
            files |= _component(part.name, (part,))
        else:
            files[f"base/{part.name}.yaml"] = _documents(part)
            base.append(part)
    for name, cert_manager in (("webhooks", False), ("webhooks-cert-manager", True)):
        options = deploying.webhook_options(_NAMESPACE, cert_manager=cert_manager)
        known = {part.name for part in base}
        more = [
            part
            for part in deploying.parts(replace(installation, webhooks=options))
            if not part.option and part.name not in known
        ]
        files |= _component(name, more, _webhook_patches(options))
    about = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{part.name}.yaml" for part in base],
        "images": [{"name": "holdfast", "newTag": holdfast.__version__}],
    }
    return files | {"base/kustomization.yaml": _yaml(about)}


def _component(name: str, parts: Sequence[Part], patches: Sequence[Mapping[str, Any]] = ()) -> Files:
    """What an option adds to the base; `patches` change the Deployment of the operator."""
    target = {"kind": "Deployment", "name": deploying.NAME}
    component: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "resources": [f"{part.name}.yaml" for part in parts],
    }
    if patches:
        component["patches"] = [{"target": target, "patch": _yaml(list(patches))}]
    home = f"components/{name}"
    files = {f"{home}/{part.name}.yaml": _documents(part) for part in parts}
    return files | {f"{home}/kustomization.yaml": _yaml(component)}


def _webhook_patches(options: WebhookOptions) -> list[dict[str, Any]]:
    """The changes of the Deployment of an operator that serves webhooks."""
    pod = "/spec/template/spec"
    added: list[tuple[str, Any]] = [
        (f"{pod}/containers/0/args/-", each) for each in deploying.webhook_arguments(options)
    ]
    if options.files is not None:
        mount, volume = deploying.certificate_mount(options.files)
        added += [(f"{pod}/containers/0/volumeMounts/-", mount), (f"{pod}/volumes/-", volume)]
    return [{"op": "add", "path": path, "value": value} for path, value in added]


def _documents(part: Part) -> str:
    return "".join(f"---\n{_yaml(manifest)}" for manifest in part.manifests)


def chart() -> Files:
    """The Helm chart."""
    everything = _everything()
    installation = Installation(
        namespace="value-namespace",
        image="value-image",
        controllers=everything,
        replicas=0,
        webhooks=deploying.webhook_options("value-namespace"),
        arguments=("value-controllers", _CHOSEN),
    )
    certified = replace(installation, webhooks=deploying.webhook_options("value-namespace", cert_manager=True))
    files = {
        "Chart.yaml": _yaml(_about()),
        "values.yaml": _values(everything),
        "values.schema.json": _values_schema(_values(everything)),
        "templates/_helpers.tpl": _helpers(everything),
        "templates/crds.yaml": _DEFINITIONS,
        "templates/NOTES.txt": _NOTES,
    }
    # What is in both has the values of both.
    for part in {each.name: each for each in (*deploying.parts(certified), *deploying.parts(installation))}.values():
        # Helm makes the namespace of a release itself.
        if part.name != "namespace":
            files[f"templates/{part.name}.yaml"] = _template(part)
    converted = registration.conversion(deploying.webhook_options("set-by-the-template"), b"")
    for kind in selection.kinds_of(it for each in everything.values() for it in each):
        files[f"files/crds/{kind.crd_name}.yaml"] = _yaml(definitions.marked(kind))
        if kind.older is not None:
            files[f"files/converted/{kind.crd_name}.yaml"] = _yaml(definitions.marked(kind, conversion=converted))
    return files


def write(files: Files, directory: Path) -> None:
    """Write the files of a package; files of an earlier one that it no longer has are removed."""
    mark = directory / _MARK
    if directory.exists() and any(directory.iterdir()) and not mark.exists():
        message = f"{directory} has files that are not those of a package"
        raise InputError(Complaint(message=message, hint="name another directory, or empty this one", path="--output"))
    before = mark.read_text().split() if mark.exists() else []
    for name in set(before) - set(files):
        (directory / name).unlink(missing_ok=True)
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    mark.write_text("".join(f"{name}\n" for name in files))


def _everything() -> dict[str, tuple[Controller[Any], ...]]:
    return deploying.by_operator(selection.operators(), selection.every_controller())


def _about() -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": "holdfast",
        "description": "Rolls out and operates stateful fleets on Kubernetes; the floor holds and the status is true.",
        "type": "application",
        "version": _semantic(holdfast.__version__),
        "appVersion": holdfast.__version__,
        "kubeVersion": ">=1.27.0-0",
    }


def _semantic(version: str) -> str:
    """A version of Python's form in Helm's: ``0.1.0.dev0`` is ``0.1.0-dev0``."""
    release, dot, rest = version.partition(".dev")
    return f"{release}-dev{rest}" if dot else version


def _values(operators: Mapping[str, Any]) -> str:
    enabled = "".join(f"  {name}: true\n" for name in operators)
    return f"""\
# How many operators run: one leads, the others stand by.
replicas: 2

image:
  repository: holdfast
  # The version of the chart, if empty.
  tag: ""
  pullPolicy: IfNotPresent
imagePullSecrets: []

# Which operators run. The role of an operator that is off is not installed.
operators:
{enabled}
crds:
  # Whether the chart installs the definitions of the kinds.
  install: true
  # Whether they, and with them all objects of the kinds, stay when the chart is uninstalled.
  keep: true

# Webhooks default and review objects before they are stored, and convert between versions of kinds.
webhooks:
  enabled: true
  # Ignore: objects are accepted without a review while no operator answers. Fail: they are refused.
  failurePolicy: Ignore
  # The namespaces whose objects are reviewed, by matchLabels and matchExpressions; empty: all.
  namespaceSelector: {{}}
  # Namespaces in which nothing is reviewed, beside kube-system, kube-public, kube-node-lease and that of the release.
  exemptNamespaces: []
  # Whether cert-manager issues the certificate; else the operator makes and renews one of its own.
  certManager: false

# Settings of operators by name: docs/operator.md lists them.
settings: {{}}
# More arguments of "holdfast operator run".
extraArguments: []

resources:
  requests: {{cpu: 50m, memory: 128Mi}}
  limits: {{memory: 1Gi}}
nodeSelector: {{}}
tolerations: []
affinity: {{}}
priorityClassName: ""

# A web page of all objects. Viewers sign in with their own bearer tokens, and see and change what these may.
dashboard:
  enabled: false
  # Whether viewers may pause, promote, undo and so on.
  allowChanges: false
  # The names under which browsers reach it, beside localhost and addresses.
  hosts: []

# What only some clusters can take.
networkPolicy: false
serviceMonitor: false
prometheusRule: false
grafanaDashboard: false
"""


_CHOICES: Final[dict[str, dict[str, Any]]] = {
    "webhooks.failurePolicy": {"enum": ["Ignore", "Fail"]},
    "image.pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    # Helm reads a tag that is a number as one.
    "image.tag": {"type": ["string", "number"]},
    "resources": {"type": "object"},
    "replicas": {"type": "integer", "minimum": 0},
}
"""The values that are limited otherwise than by the type of their default."""


def _values_schema(values: str) -> str:
    """By what Helm checks values: the types of the defaults, and no values that the chart does not know."""
    schema = _schema_of(yaml.safe_load(values), "")
    schema["properties"]["global"] = {"type": "object"}
    about = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart of Holdfast"}
    return json.dumps({**about, **schema}, indent=2) + "\n"


def _schema_of(value: Any, path: str) -> dict[str, Any]:
    if path in _CHOICES:
        return dict(_CHOICES[path])
    match value:
        case dict() if value:
            properties = {name: _schema_of(each, f"{path}.{name}".lstrip(".")) for name, each in value.items()}
            return {"type": "object", "properties": properties, "additionalProperties": False}
        case dict():
            return {"type": "object"}
        case list():
            return {"type": "array"}
        case bool():
            return {"type": "boolean"}
        case _:
            return {"type": "string"}


def _helpers(operators: Mapping[str, tuple[Controller[Any], ...]]) -> str:
    lines = ['{{- define "holdfast.controllers" -}}', "{{- $names := list -}}"]
    for name, controllers in operators.items():
        names = " ".join(f'"{each.name}"' for each in controllers)
        lines.append(
            f"{{{{- if .Values.operators.{name} }}}}{{{{- $names = concat $names (list {names}) }}}}{{{{- end -}}}}"
        )
    lines.append('{{- if not $names }}{{ fail "enable at least one of operators" }}{{ end -}}')
    lines += ['{{- join "," $names -}}', "{{- end -}}"]
    return "\n".join(lines) + "\n"


_DEFINITIONS: Final = """\
{{- if .Values.crds.install }}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" }}
{{- $definition := $.Files.Get $path | fromYaml }}
{{- $converted := $.Files.Get (printf "files/converted/%s" (base $path)) }}
{{- if and $.Values.webhooks.enabled $converted }}
{{- $definition = $converted | fromYaml }}
{{- $_ := set $definition.spec.conversion.webhook.clientConfig.service "namespace" $.Release.Namespace }}
{{- if $.Values.webhooks.certManager }}
{{- $_ := set $definition.metadata.annotations "value-annotation" (printf "%s/value-certificate" $.Release.Namespace) }}
{{- end }}
{{- end }}
{{- if $.Values.crds.keep }}
{{- $_ := set $definition.metadata.annotations "helm.sh/resource-policy" "keep" }}
{{- end }}
---
{{ toYaml $definition }}
{{- end }}
{{- end }}
""".replace("value-annotation", registration.INJECTED).replace("value-certificate", deploying.CERTIFICATE)

_NOTES: Final = """\
Holdfast runs in {{ .Release.Namespace }}:

  kubectl -n {{ .Release.Namespace }} get pods -l app.kubernetes.io/name=holdfast-operator
  kubectl holdfast rollout status --help
"""


def _template(part: Part) -> str:
    # Alerts and dashboards have braces of their own, which are not Helm's.
    text = _documents(part).replace("{{", "{{ `{{` }}")
    for marker, value in _VALUES.items():
        text = text.replace(marker, value)
    if part.name == "deployment":
        text = _with_pod_values(text)
    if part.name == "pages":
        text = _replaced(text, _PAGE_VALUES)
    if part.name == "webhook-configurations":
        text = _replaced(text, _CONFIGURATION_VALUES)
    value = f"operators.{part.operator}" if part.operator else part.option
    condition = f".Values.{value}" if value else _CONDITIONS.get(part.name, "")
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def _with_pod_values(text: str) -> str:
    """The Deployment, with what the values say about its pods."""
    resources = """\
        resources:
          requests:
            cpu: 50m
            memory: 128Mi
          limits:
            memory: 1Gi
"""
    options = deploying.webhook_options(_VALUES["value-namespace"])
    webhooks = "".join(f"        - {each}\n" for each in deploying.webhook_arguments(options))
    mount, volume = (_yaml([each]) for each in deploying.certificate_mount(deploying.CERTIFICATE_FILES))
    replaced = {
        webhooks: f"        {{{{- if {_WEBHOOKS} }}}}\n{webhooks}{_WEBHOOK_ARGUMENTS}{_OTHERWISE}",
        "        volumeMounts:\n": "        volumeMounts:\n" + _only(_CERT_MANAGER, mount, 8),
        "      volumes:\n": "      volumes:\n" + _only(_CERT_MANAGER, volume, 6),
        "  replicas: 0\n": "  replicas: {{ .Values.replicas }}\n",
        f"        - {_CHOSEN}\n": _ARGUMENTS,
        resources: "        resources:\n          {{- toYaml .Values.resources | nindent 10 }}\n",
        "        command:\n": "        imagePullPolicy: {{ .Values.image.pullPolicy }}\n        command:\n",
        "      serviceAccountName:": _POD + "      serviceAccountName:",
    }
    return _replaced(text, replaced)


def _only(condition: str, text: str, indent: int) -> str:
    """Lines that are there only if a condition holds."""
    space = " " * indent
    lines = "".join(f"{space}{line}\n" for line in text.splitlines())
    return f"{space}{{{{- if {condition} }}}}\n{lines}{space}{{{{- end }}}}\n"


def _replaced(text: str, replaced: Mapping[str, str]) -> str:
    for old, new in replaced.items():
        if old not in text:
            raise RuntimeError(f"the manifests have no {old!r} for the chart to replace")
        text = text.replace(old, new)
    return text


_WEBHOOK_ARGUMENTS: Final = f"""\
        {{{{- if eq .Values.webhooks.failurePolicy "Fail" }}}}
        - --webhook-strict
        {{{{- end }}}}
        {{{{- with .Values.webhooks.namespaceSelector }}}}
        - {{{{ printf "--webhook-selector=%s" (toJson .) | quote }}}}
        {{{{- end }}}}
        {{{{- range .Values.webhooks.exemptNamespaces }}}}
        - {{{{ printf "--webhook-exempt=%s" . | quote }}}}
        {{{{- end }}}}
        {{{{- if .Values.webhooks.certManager }}}}
        - --webhook-certificate={deploying.CERTIFICATE_FILES}
        - --webhook-inject-from={{{{ .Release.Namespace }}}}/{deploying.CERTIFICATE}
        {{{{- end }}}}
"""

_CONFIGURATION_VALUES: Final = {
    f"metadata:\n  name: {registration.CONFIGURATION}\n": f"""\
metadata:
  name: {registration.CONFIGURATION}
  {{{{- if .Values.webhooks.certManager }}}}
  annotations:
    {registration.INJECTED}: {{{{ .Release.Namespace }}}}/{deploying.CERTIFICATE}
  {{{{- end }}}}
""",
    "      - {{ .Release.Namespace }}\n": """\
      - {{ .Release.Namespace }}
      {{- range .Values.webhooks.exemptNamespaces }}
      - {{ . | quote }}
      {{- end }}
    {{- range $key, $value := .Values.webhooks.namespaceSelector.matchLabels }}
    - key: {{ $key | quote }}
      operator: In
      values:
      - {{ $value | quote }}
    {{- end }}
    {{- with .Values.webhooks.namespaceSelector.matchExpressions }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
""",
    "  failurePolicy: Ignore\n": "  failurePolicy: {{ .Values.webhooks.failurePolicy }}\n",
}
"""What the registration of webhooks has from values."""


_OTHERWISE: Final = """\
        {{- else }}
        - --no-install-crds
        {{- end }}
"""

_POD: Final = "".join(
    f"      {{{{- with .Values.{name} }}}}\n      {name}: {{{{- toYaml . | nindent 8 }}}}\n      {{{{- end }}}}\n"
    for name in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", "priorityClassName")
)


_PAGE_VALUES: Final = {
    f"        - {pages.READ_ONLY}\n": f"""\
        {{{{- if .Values.dashboard.allowChanges }}}}
        - --allow-changes
        {{{{- else }}}}
        - {pages.READ_ONLY}
        {{{{- end }}}}
        {{{{- range .Values.dashboard.hosts }}}}
        - {{{{ printf "--host=%s" . | quote }}}}
        {{{{- end }}}}
""",
    "        command:\n": "        imagePullPolicy: {{ .Values.image.pullPolicy }}\n        command:\n",
    "      serviceAccountName:": _POD + "      serviceAccountName:",
}
"""What the dashboard has from values."""


def _yaml(value: Any) -> str:
    # Values of the chart are put into the lines, so none may be broken.
    return writing.text(value, width=10_000)
