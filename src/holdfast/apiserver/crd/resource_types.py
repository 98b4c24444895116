"""CustomResourceDefinitions as values: validation, status, and the resource types that they define.

::

    problems(crd, old)             why it is refused
    accept(crd, others, now=...)   its status: names, conditions, stored versions
    types_of(crd)                  what it serves

All functions are pure; `registry` stores and serves the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from holdfast.apiserver.crd import compiling
from holdfast.apiserver.crd.checks import definition_problems
from holdfast.apiserver.resources import ALL_METADATA, Column, Object, ResourceType, Scale
from holdfast.meta import times
from holdfast.meta.errors import FieldError, FieldProblem
from holdfast.meta.schemas.structural import has_rules
from holdfast.meta.schemas.walk import Schema

if TYPE_CHECKING:
    from holdfast.apiserver.cel.rules import Rules
    from holdfast.apiserver.crd.conversion import ConvertAll

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"

_BLOCKING: Final = frozenset(
    {
        FieldProblem.NOT_SUPPORTED,
        FieldProblem.REQUIRED,
        FieldProblem.TOO_LONG,
        FieldProblem.TOO_MANY,
        FieldProblem.TYPE_INVALID,
    }
)
"""Problems after which rules are not evaluated."""

_RULES_SKIPPED: Final = FieldError.invalid(
    "<nil>",
    None,
    detail="some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
_INT32_MAX: Final = 2**31 - 1
_GO_TYPES: Final = {
    str: "string", int: "int64", float: "float64", bool: "bool", dict: "map[string]interface {}",
    list: "[]interface {}", type(None): "<nil>",
}  # fmt: skip


def problems(crd: Object, old: Object | None) -> list[FieldError]:
    """All problems of a definition; `old` is the one that an update replaces."""
    return definition_problems(crd, old, established=old is not None and is_established(old))


# --- status ------------------------------------------------------------------


def is_established(crd: Mapping[str, Any]) -> bool:
    """Whether the condition Established is true."""
    return _condition(crd, "Established").get("status") == "True"


def accept(crd: Object, others: Iterable[Object], *, now: datetime) -> Object:
    """The status of a definition among `others`.

    Names that another definition of its group has are not accepted; an established definition continues to be
    served under its accepted names.
    """
    spec, status = crd["spec"], crd.get("status") or {}
    accepted, conflict = _accepted_names(spec, status.get("acceptedNames") or {}, others)
    stored = list(status.get("storedVersions") or ())
    stored += [each["name"] for each in spec["versions"] if each["storage"] and each["name"] not in stored]
    if conflict:
        named = ("NamesAccepted", "False", *conflict)
    else:
        named = ("NamesAccepted", "True", "NoConflicts", "no conflicts found")
    if not conflict or is_established(crd):
        served = ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
    else:
        served = ("Established", "False", "NotAccepted", "not all names are accepted")
    rest = [each for each in status.get("conditions") or () if each["type"] not in (named[0], served[0])]
    conditions = [_updated(crd, condition, now=now) for condition in (named, served)]
    return {"conditions": [*conditions, *rest], "acceptedNames": accepted, "storedVersions": stored}


def begin_deletion(crd: Object, *, now: datetime) -> None:
    """Mark a definition as terminating, because its objects must be deleted first; owns its argument."""
    finalizers = crd["metadata"].setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    words = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    condition = _updated(crd, ("Terminating", "True", "InstanceDeletionPending", words), now=now)
    status = crd.setdefault("status", {})
    rest = [each for each in status.get("conditions") or () if each["type"] != "Terminating"]
    status["conditions"] = [*rest, condition]


def _condition(crd: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    conditions: Iterable[Mapping[str, Any]] = (crd.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), {})


def _updated(crd: Object, condition: tuple[str, str, str, str], *, now: datetime) -> Object:
    kind, status, reason, message = condition
    known = _condition(crd, kind)
    since = known["lastTransitionTime"] if known.get("status") == status else times.format(now)
    return {"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}


def _accepted_names(spec: Object, accepted: Object, others: Iterable[Object]) -> tuple[Object, tuple[str, str] | None]:
    """The accepted names of a definition, and the last conflict."""
    wanted, names = spec["names"], dict(accepted)
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"]["group"] == spec["group"]:
            held = (other.get("status") or {}).get("acceptedNames") or {}
            resources |= {held.get("plural", ""), held.get("singular", ""), *held.get("shortNames", ())}
            kinds |= {held.get("kind", ""), held.get("listKind", "")}
    conflict: tuple[str, str] | None = None

    def conflicts(name: str, used: set[str]) -> bool:
        return name in used and bool(name)

    for field, used, reason in (
        ("plural", resources, "PluralConflict"),
        ("singular", resources, "SingularConflict"),
        ("shortNames", resources, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    ):
        asked = wanted.get(field)
        if asked == accepted.get(field):
            continue
        taken = [name for name in (asked if isinstance(asked, list) else [asked or ""]) if conflicts(name, used)]
        if taken:
            texts = [f'"{name}" is already in use' for name in taken]
            conflict = (reason, texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
        elif asked:
            names[field] = asked
        else:
            names.pop(field, None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    else:
        names.pop("categories", None)
    return names, conflict


# --- resource types ----------------------------------------------------------


def types_of(crd: Object, convert: ConvertAll | None = None) -> tuple[ResourceType, ...]:
    """The resource types of a definition, one for each served version; `convert` converts between them."""
    spec = crd["spec"]
    names = {**spec["names"], **((crd.get("status") or {}).get("acceptedNames") or {})}
    storage = next((each["name"] for each in spec["versions"] if each["storage"]), "")
    served = [version for version in spec["versions"] if version["served"]]
    return tuple(_type_of(spec, names, version, storage=storage, convert=convert) for version in served)


def _type_of(spec: Object, names: Object, version: Object, *, storage: str, convert: ConvertAll | None) -> ResourceType:
    schema = version["schema"]["openAPIV3Schema"]
    subresources = version.get("subresources") or {}
    scale = _scale(subresources["scale"]) if subresources.get("scale") else None
    return ResourceType(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        namespaced=spec["scope"] == "Namespaced",
        status="status" in subresources,
        scale=scale,
        schema=schema,
        prune=True,
        custom=True,
        unconditional=False,
        status_leaves=ALL_METADATA,
        columns=tuple(_column(each) for each in version.get("additionalPrinterColumns") or ()),
        fields=tuple(each["jsonPath"].removeprefix(".") for each in version.get("selectableFields") or ()),
        validate=_validation(schema, scale),
        storage_version=storage,
        convert=convert,
        deprecation=_deprecation(spec, names, version),
    )


def _deprecation(spec: Object, names: Object, version: Object) -> str:
    if not version.get("deprecated"):
        return ""
    default = f"{spec['group']}/{version['name']} {names['kind']} is deprecated"
    return str(version.get("deprecationWarning") or default)


def _scale(scale: Object) -> Scale:
    return Scale(
        spec=scale["specReplicasPath"],
        status=scale["statusReplicasPath"],
        selector=scale.get("labelSelectorPath") or None,
    )


def _column(column: Object) -> Column:
    return Column(
        name=column["name"],
        value=column["jsonPath"],
        type=column["type"],
        format=column.get("format", ""),
        description=column.get("description", ""),
        priority=column.get("priority", 0),
    )


# --- objects -----------------------------------------------------------------


def _validation(schema: Mapping[str, Any], scale: Scale | None) -> Callable[[Object, Object | None], list[FieldError]]:
    """All problems of an object of the kind, in the order of Kubernetes."""

    @cache
    def compiled() -> tuple[Schema, Rules | None]:
        # Compiled on first use, so that a server with many definitions starts quickly.
        return compiling.compiled(schema), _rules(schema)

    def validate(obj: Object, old: Object | None) -> list[FieldError]:
        values, rules = compiled()
        found = values.check_values(obj, old=old)
        if scale is not None:
            found += _scale_problems(obj, scale)
        found += values.check_rest(obj, old=old)
        if rules is None:
            return found
        if any(problem.type in _BLOCKING for problem in found):
            return [*found, _RULES_SKIPPED]
        return [*found, *rules.check(obj, old)]

    return validate


def _rules(schema: Mapping[str, Any]) -> Rules | None:
    if not has_rules(schema):
        return None
    # The CEL engine takes 28 MB and 70 ms, so it is loaded only for kinds with rules.
    from holdfast.apiserver.cel.rules import compile_rules

    return compile_rules(schema)


def _scale_problems(obj: Object, scale: Scale) -> list[FieldError]:
    found = _count_problems(obj, scale.spec)
    if scale.selector is not None:
        _, problem = _nested(obj, scale.selector, str)
        found += [FieldError.invalid(scale.selector, "", detail=problem)] if problem else []
    return found + _count_problems(obj, scale.status)


def _count_problems(obj: Object, path: str) -> list[FieldError]:
    count, problem = _nested(obj, path, int)
    if problem:
        return [FieldError.invalid(path, 0, detail=problem)]
    if count is not None and count < 0:
        return [FieldError.invalid(path, count, detail="should be a non-negative integer")]
    if count is not None and count > _INT32_MAX:
        return [FieldError.invalid(path, count, detail=f"should be less than or equal to {_INT32_MAX}")]
    return []


def _nested(obj: Object, path: str, wanted: type) -> tuple[Any, str]:
    """The value at a dotted path, None if there is none; or why it has the wrong type."""
    value: Any = obj
    steps = path.removeprefix(".").split(".")
    for number, step in enumerate(steps):
        if not isinstance(value, dict):
            return None, _mistyped(steps[: number + 1], value, "map[string]interface{}")
        if step not in value:
            return None, ""
        value = value[step]
    if type(value) is not wanted:
        return None, _mistyped(steps, value, _GO_TYPES[wanted])
    return value, ""


def _mistyped(steps: list[str], value: Any, wanted: str) -> str:
    shown = str(value).lower() if isinstance(value, bool) else "<nil>" if value is None else value
    return f".{'.'.join(steps)} accessor error: {shown} is of the type {_GO_TYPES[type(value)]}, expected {wanted}"
