"""Matching of webhooks: configurations as values, and their rules and selectors against a request.

Pure: this module calls no webhook and does not know where configurations and namespaces are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.exchange import User
from holdfast.meta.selectors import EVERYTHING, LabelSelector, SelectorError

NAMESPACES: Final = "/namespaces"
ANY: Final = "*"
DEFAULT_SECONDS: Final = 10
LONGEST_SECONDS: Final = 30
HARMLESS: Final = frozenset({"None", "NoneOnDryRun"})
"""Side effects with which a webhook can be called on a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The attributes of a request that webhooks match, without its objects.

    `namespace` is empty for cluster-scoped objects; a Namespace is in itself.
    """

    kind: ResourceType
    operation: str
    namespace: str
    name: str
    user: User
    options: Object
    subresource: str = ""
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of a webhook: the requests that it matches."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: frozenset[str]
    scope: str = ANY

    @classmethod
    def read(cls, rule: Mapping[str, Any]) -> Rule:
        return cls(
            operations=frozenset(rule.get("operations") or ()),
            groups=frozenset(rule.get("apiGroups") or ()),
            versions=frozenset(rule.get("apiVersions") or ()),
            resources=frozenset(rule.get("resources") or ()),
            scope=rule.get("scope") or ANY,
        )

    def matches(self, kind: ResourceType, subresource: str, *, operation: str) -> bool:
        return (
            self.scope in (ANY, "Namespaced" if kind.namespaced else "Cluster")
            and not self.operations.isdisjoint((ANY, operation))
            and not self.groups.isdisjoint((ANY, kind.group))
            and not self.versions.isdisjoint((ANY, kind.version))
            and not self.resources.isdisjoint(_names(kind.plural, subresource))
        )


def _names(plural: str, subresource: str) -> tuple[str, ...]:
    """All patterns by which a rule can name a resource; a single star does not match subresources."""
    exact = (f"{plural}/{subresource}", f"*/{subresource}") if subresource else (plural, ANY)
    return (*exact, f"{plural}/*", "*/*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The address of a webhook: a URL or a service, and the CA bundle of its certificate (PEM in base64)."""

    url: str = ""
    namespace: str = ""
    service: str = ""
    port: int = 443
    path: str = ""
    authority: str = ""

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> Client:
        service = config.get("service") or {}
        return cls(
            url=config.get("url") or "",
            namespace=service.get("namespace") or "",
            service=service.get("name") or "",
            port=service.get("port") or 443,
            path=service.get("path") or "",
            authority=config.get("caBundle") or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hook:
    """One webhook of one configuration.

    problem       what makes it unusable: every call that its rules require then fails
    equivalent    its rules also match the other versions of a resource
    again         it is called again if later webhooks change the object
    lenient       if a call fails, the request continues without it
    """

    name: str
    client: Client
    rules: tuple[Rule, ...]
    versions: tuple[str, ...]
    namespaces: LabelSelector = EVERYTHING
    objects: LabelSelector = EVERYTHING
    conditions: tuple[str, ...] = ()
    seconds: int = DEFAULT_SECONDS
    equivalent: bool = True
    side_effects: bool = False
    again: bool = False
    lenient: bool = False
    problem: str = ""


def read(configuration: Object) -> tuple[Hook, ...]:
    """The webhooks of a configuration, in its order."""
    return tuple(_hook(each) for each in configuration.get("webhooks") or ())


def _hook(webhook: Mapping[str, Any]) -> Hook:
    problem, namespaces, objects = "", EVERYTHING, EVERYTHING
    try:
        namespaces = LabelSelector.from_object(webhook.get("namespaceSelector") or {}, "namespaceSelector")
        objects = LabelSelector.from_object(webhook.get("objectSelector") or {}, "objectSelector")
    except SelectorError as error:
        problem = str(error)
    seconds = webhook.get("timeoutSeconds") or DEFAULT_SECONDS
    return Hook(
        name=webhook["name"],
        client=Client.read(webhook.get("clientConfig") or {}),
        rules=tuple(Rule.read(rule) for rule in webhook.get("rules") or ()),
        versions=tuple(webhook.get("admissionReviewVersions") or ()),
        namespaces=namespaces,
        objects=objects,
        conditions=tuple(each["expression"] for each in webhook.get("matchConditions") or ()),
        seconds=min(max(seconds, 1), LONGEST_SECONDS),
        equivalent=webhook.get("matchPolicy") != "Exact",
        side_effects=webhook.get("sideEffects") not in HARMLESS,
        again=webhook.get("reinvocationPolicy") == "IfNeeded",
        lenient=webhook.get("failurePolicy") == "Ignore",
        problem=problem,
    )


def version_for(hook: Hook, question: Question, others: Iterable[ResourceType]) -> ResourceType | None:
    """The version of the resource that the webhook gets; None if its rules do not match.

    `others` are the other versions that are served.
    """
    asked, subresource, operation = question.kind, question.subresource, question.operation
    if any(rule.matches(asked, subresource, operation=operation) for rule in hook.rules):
        return asked
    if not hook.equivalent:
        return None
    versions = tuple(others)
    return next(
        (
            each
            for rule in hook.rules
            for each in versions
            if rule.matches(each, subresource, operation=operation)
        ),
        None,
    )  # fmt: skip


def selects(
    hook: Hook,
    question: Question,
    obj: Object | None,
    old: Object | None,
    *,
    labels_of: Callable[[str], Mapping[str, str]],
) -> bool:
    """Whether its selectors match the namespace and the object; `labels_of` returns the labels of stored namespaces."""
    return _selects_namespace(hook, question, obj, labels_of) and _selects_object(hook, obj, old)


def _selects_namespace(
    hook: Hook, question: Question, obj: Object | None, labels_of: Callable[[str], Mapping[str, str]]
) -> bool:
    if hook.namespaces == EVERYTHING or not question.namespace:
        return True
    if question.kind.key == NAMESPACES and obj is not None and not question.subresource:
        # The stored object is about to change, or does not exist yet.
        return hook.namespaces.matches(_labels(obj))
    return hook.namespaces.matches(labels_of(question.namespace))


def _selects_object(hook: Hook, obj: Object | None, old: Object | None) -> bool:
    if hook.objects == EVERYTHING:
        return True
    return any(each is not None and hook.objects.matches(_labels(each)) for each in (obj, old))


def _labels(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}
