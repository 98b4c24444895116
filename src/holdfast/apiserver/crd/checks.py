"""Validation of CustomResourceDefinitions, with the error messages of Kubernetes.

Kubernetes stores what all versions have in common once, so a shared schema is
named ``spec.validation`` in its messages, subresources
``spec.subresources`` and columns ``spec.additionalPrinterColumns``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.apiserver.crd import patterns
from holdfast.meta import names
from holdfast.meta.errors import OMITTED, FieldError
from holdfast.meta.fieldpaths import PathError, find
from holdfast.meta.jsonpath import evaluate
from holdfast.meta.schemas import structural, walk
from holdfast.meta.schemas.nodes import PRESERVE

_Object = Mapping[str, Any]

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE: Final = ("string", "boolean", "integer")
_MOST_SELECTABLE: Final = 8
_LONGEST_WARNING: Final = 256
_APPROVAL: Final = "api-approved.kubernetes.io"
_PROTECTED: Final = ("k8s.io", "kubernetes.io")

_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_TEXTS: Final = {"type": "array", "items": _TEXT}


def _record(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), PRESERVE: True}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_SHAPE: Final = walk.compile(
    _record(
        ("metadata", "spec"),
        metadata=_record(name=_TEXT, annotations={"type": "object", "additionalProperties": _TEXT}),
        spec=_record(
            ("names", "versions"),
            group=_TEXT,
            scope=_TEXT,
            preserveUnknownFields=_FLAG,
            names=_record(
                plural=_TEXT, singular=_TEXT, kind=_TEXT, listKind=_TEXT, shortNames=_TEXTS, categories=_TEXTS
            ),
            conversion=_record(
                strategy=_TEXT,
                webhook=_record(
                    clientConfig=_record(
                        url=_TEXT,
                        caBundle=_TEXT,
                        service=_record(name=_TEXT, namespace=_TEXT, path=_TEXT, port={"type": "integer"}),
                    ),
                    conversionReviewVersions=_TEXTS,
                ),
            ),
            versions=_list(
                _record(
                    name=_TEXT,
                    served=_FLAG,
                    storage=_FLAG,
                    deprecated=_FLAG,
                    deprecationWarning=_TEXT,
                    schema=_record(openAPIV3Schema=_record()),
                    subresources=_record(
                        status=_record(),
                        scale=_record(specReplicasPath=_TEXT, statusReplicasPath=_TEXT, labelSelectorPath=_TEXT),
                    ),
                    additionalPrinterColumns=_list(
                        _record(
                            name=_TEXT,
                            type=_TEXT,
                            format=_TEXT,
                            description=_TEXT,
                            jsonPath=_TEXT,
                            priority={"type": "integer", "format": "int32"},
                        )
                    ),
                    selectableFields=_list(_record(jsonPath=_TEXT)),
                )
            ),
        ),
        status=_record(storedVersions=_TEXTS),
    )
)
"""The shape of a definition, so that the checks below may rely on it."""


def definition_problems(crd: _Object, old: _Object | None, *, established: bool) -> list[FieldError]:
    """All problems of a definition; `established`: the old definition is served."""
    misshapen = _SHAPE.validate(crd)
    if misshapen:
        return misshapen
    spec = crd["spec"]
    found: list[FieldError] = []
    # An unchanged definition is not checked again: checks are expensive, and the status is written often.
    if old is None or spec != old["spec"]:
        found += [*_name(crd), *_group_and_scope(spec), *_versions(spec), *_names(spec["names"]), *_common(spec)]
        found += _conversion(spec)
    if old is not None:
        found += _changes(spec, old["spec"], established=established)
        found += _stored_versions(crd, spec)
    return [*found, *_approval(crd), *_preserving(spec)]


def _name(crd: _Object) -> Iterator[FieldError]:
    spec, name = crd["spec"], crd["metadata"].get("name", "")
    if name != f"{spec['names'].get('plural', '')}.{spec.get('group', '')}":
        yield FieldError.invalid("metadata.name", name, detail='must be spec.names.plural+"."+spec.group')


def _group_and_scope(spec: _Object) -> Iterator[FieldError]:
    group, scope = spec.get("group", ""), spec.get("scope", "")
    if not group:
        yield FieldError.required("spec.group")
    elif broken := names.dns_subdomain(group):
        yield FieldError.invalid("spec.group", group, detail=",".join(broken))
    elif "." not in group:
        yield FieldError.invalid("spec.group", group, detail="should be a domain with at least one dot")
    if not scope:
        yield FieldError.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield FieldError.not_supported("spec.scope", scope, supported=("Cluster", "Namespaced"))


def _versions(spec: _Object) -> Iterator[FieldError]:
    versions = spec["versions"]
    for index, version in enumerate(versions):
        if _schema_of(version) is None:
            at = f"spec.versions[{index}].schema.openAPIV3Schema"
            yield FieldError.required(at, "schemas are required")
    for index, version in enumerate(versions):
        yield from _version(spec, version, f"spec.versions[{index}]")
    listed = [version.get("name", "") for version in versions]
    if len(set(listed)) != len(listed):
        yield FieldError.invalid("spec.versions", OMITTED, detail="must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield FieldError.invalid("spec.versions", OMITTED, detail=detail)


def _version(spec: _Object, version: _Object, path: str) -> Iterator[FieldError]:
    name = version.get("name", "")
    if broken := names.dns_1035_label(name):
        yield FieldError.invalid(f"{path}.name", name, detail=",".join(broken))
    for word in ("served", "storage"):
        if word not in version:
            yield FieldError.required(f"{path}.{word}")
    warning = version.get("deprecationWarning")
    for broken_warning in _warning_problems(warning, deprecated=bool(version.get("deprecated"))):
        yield FieldError.invalid(f"{path}.deprecationWarning", warning, detail=broken_warning)
    if not _is_common(spec, "schema"):
        yield from _schema(version, f"{path}.schema.openAPIV3Schema")
    if not _is_common(spec, "subresources"):
        yield from _subresources(version.get("subresources"), f"{path}.subresources")
    if not _is_common(spec, "additionalPrinterColumns"):
        yield from _columns(version.get("additionalPrinterColumns"), f"{path}.additionalPrinterColumns")
    if not _is_common(spec, "selectableFields"):
        yield from _selectable_fields(version, f"{path}.selectableFields")


def _common(spec: _Object) -> Iterator[FieldError]:
    """What all versions have in common."""
    if not spec["versions"]:
        return
    version = spec["versions"][0]
    if _is_common(spec, "schema"):
        yield from _schema(version, "spec.validation.openAPIV3Schema")
    if _is_common(spec, "subresources"):
        yield from _subresources(version.get("subresources"), "spec.subresources")
    if _is_common(spec, "additionalPrinterColumns"):
        yield from _columns(version.get("additionalPrinterColumns"), "spec.additionalPrinterColumns")
    if _is_common(spec, "selectableFields"):
        yield from _selectable_fields(version, "spec.selectableFields")


def _is_common(spec: _Object, word: str) -> bool:
    versions = spec["versions"]
    return all(version.get(word) == versions[0].get(word) for version in versions)


def _warning_problems(warning: str | None, *, deprecated: bool) -> Iterator[str]:
    if warning is None:
        return
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(warning) > _LONGEST_WARNING:
        yield f"must be <= {_LONGEST_WARNING} characters long"
    if not warning:
        yield "must not be an empty string"
    strange = next((index for index, letter in enumerate(warning) if not letter.isprintable()), None)
    if strange is not None:
        yield f"must only contain printable UTF-8 characters; non-printable character found at index {strange}"


def _schema_of(version: _Object) -> _Object | None:
    schema: _Object | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return schema


def _schema(version: _Object, path: str) -> list[FieldError]:
    schema = _schema_of(version)
    if schema is None:
        return []
    status = "status" in (version.get("subresources") or {})
    found = structural.problems(schema, path, status=status, patterns=patterns.search)
    if found or not structural.has_rules(schema):
        return found
    # The CEL engine is large, and most definitions have no rules.
    from holdfast.apiserver.cel.rules import rule_problems

    return rule_problems(schema, path)


def _subresources(subresources: _Object | None, path: str) -> Iterator[FieldError]:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return
    for word, roots in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        given, at = scale.get(word, ""), f"{path}.scale.{word}"
        if not given:
            if word != "labelSelectorPath":
                yield FieldError.required(at)
        elif not given.startswith("."):
            yield FieldError.invalid(at, given, detail="must be a simple json path starting with .")
        elif not given.startswith(roots):
            where = roots[0].rstrip(".") if len(roots) == 1 else "either .spec or .status"
            yield FieldError.invalid(at, given, detail=f"should be a json path under {where}")


def _columns(columns: list[_Object] | None, path: str) -> Iterator[FieldError]:
    for index, column in enumerate(columns or ()):
        at = f"{path}[{index}]"
        if not column.get("name"):
            yield FieldError.required(f"{at}.name")
        kind, form, value = column.get("type", ""), column.get("format", ""), column.get("jsonPath", "")
        if not kind:
            yield FieldError.required(f"{at}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
        elif kind not in _COLUMN_TYPES:
            yield FieldError.invalid(f"{at}.type", kind, detail=f"must be one of {','.join(_COLUMN_TYPES)}")
        if form and form not in _COLUMN_FORMATS:
            yield FieldError.invalid(f"{at}.format", form, detail=f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not value:
            yield FieldError.required(f"{at}.JSONPath")
        elif not value.startswith("."):
            yield FieldError.invalid(f"{at}.JSONPath", value, detail="must be a simple json path starting with .")
        else:
            try:
                evaluate.compile(value)
            except evaluate.JSONPathError as error:
                yield FieldError.invalid(f"{at}.JSONPath", value, detail=str(error))


def _selectable_fields(version: _Object, path: str) -> Iterator[FieldError]:
    schema = _schema_of(version) or {}
    seen: set[str] = set()
    for index, selectable in enumerate(version.get("selectableFields") or ()):
        at, given = f"{path}[{index}].jsonPath", selectable.get("jsonPath", "")
        if not given:
            yield FieldError.required(at)
            continue
        try:
            name, found = find(schema, given, brackets=False)
        except PathError as error:
            yield FieldError.invalid(at, given, detail=f"is an invalid path: {error}")
            continue
        if name.partition(".")[0] == "metadata":
            yield FieldError.invalid(at, given, detail="must not point to fields in metadata")
        if found.get("type") not in _SELECTABLE:
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield FieldError.invalid(at, given, detail=detail)
        if name in seen:
            yield FieldError.duplicate(at, given)
        seen.add(name)
    if len(seen) > _MOST_SELECTABLE:
        yield FieldError.too_many(path, len(seen), max_items=_MOST_SELECTABLE)


def _names(wanted: _Object) -> Iterator[FieldError]:
    for word in ("plural", "singular", "kind", "listKind"):
        if not wanted.get(word):
            yield FieldError.required(f"spec.names.{word}")
    for word in ("plural", "singular"):
        if wanted.get(word) and (broken := names.dns_1035_label(wanted[word])):
            yield FieldError.invalid(f"spec.names.{word}", wanted[word], detail=",".join(broken))
    for word in ("kind", "listKind"):
        if wanted.get(word) and (broken := names.dns_1035_label(wanted[word].lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(broken)}"
            yield FieldError.invalid(f"spec.names.{word}", wanted[word], detail=detail)
    for word in ("shortNames", "categories"):
        for index, name in enumerate(wanted.get(word) or ()):
            if broken := names.dns_1035_label(name):
                yield FieldError.invalid(f"spec.names.{word}[{index}]", name, detail=",".join(broken))
    if wanted.get("kind") and wanted["kind"] == wanted.get("listKind"):
        detail = "kind and listKind may not be the same"
        yield FieldError.invalid("spec.names.listKind", wanted["listKind"], detail=detail)


def _conversion(spec: _Object) -> Iterator[FieldError]:
    conversion = spec.get("conversion")
    if conversion is None:
        return
    match conversion.get("strategy", ""):
        case "None":
            for word in ("webhook", "webhookClientConfig", "conversionReviewVersions"):
                if conversion.get(word):
                    detail = "should not be set when strategy is not set to Webhook"
                    yield FieldError.forbidden(f"spec.conversion.{word}", detail)
        case "":
            yield FieldError.required("spec.conversion.strategy")
        case "Webhook":
            yield from _webhook(conversion.get("webhook"))
        case other:
            yield FieldError.not_supported("spec.conversion.strategy", other, supported=("None", "Webhook"))


def _webhook(webhook: _Object | None) -> Iterator[FieldError]:
    at = "spec.conversion.webhook"
    config = (webhook or {}).get("clientConfig")
    if config is None:
        yield FieldError.required(f"{at}.clientConfig", "required when strategy is set to Webhook")
    elif bool(config.get("url")) == bool(config.get("service")):
        yield FieldError.required(f"{at}.clientConfig", "exactly one of url or service is required")
    versions = (webhook or {}).get("conversionReviewVersions") or []
    if not versions:
        yield FieldError.required(f"{at}.conversionReviewVersions", "")
    elif not set(versions) & {"v1", "v1beta1"}:
        detail = "must include at least one of v1, v1beta1"
        yield FieldError.invalid(f"{at}.conversionReviewVersions", versions, detail=detail)


def _changes(spec: _Object, old: _Object, *, established: bool) -> Iterator[FieldError]:
    fixed: list[tuple[str, ...]] = [("group",), ("names", "plural")]
    if established:
        # Objects are stored under these.
        fixed = [("scope",), ("names", "kind"), *fixed]
    for steps in fixed:
        new_value, old_value = _at(spec, steps), _at(old, steps)
        if new_value != old_value:
            yield FieldError.invalid(f"spec.{'.'.join(steps)}", new_value, detail="field is immutable")


def _at(value: Any, steps: tuple[str, ...]) -> Any:
    for step in steps:
        value = value.get(step, "")
    return value


def _stored_versions(crd: _Object, spec: _Object) -> Iterator[FieldError]:
    declared = {version.get("name") for version in spec["versions"]}
    for index, name in enumerate((crd.get("status") or {}).get("storedVersions") or ()):
        if name not in declared:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, "
                "and must remain in spec.versions until a storage migration ensures no data remains persisted "
                f"in {name} and removes {name} from status.storedVersions"
            )
            yield FieldError.invalid(f"status.storedVersions[{index}]", name, detail=detail)


def _approval(crd: _Object) -> Iterator[FieldError]:
    """Groups of kubernetes.io are for reviewed kinds."""
    group = crd["spec"].get("group", "")
    annotations = crd["metadata"].get("annotations") or {}
    protected = group in _PROTECTED or group.endswith(tuple(f".{owner}" for owner in _PROTECTED))
    if protected and not annotations.get(_APPROVAL):
        detail = (
            f'protected groups must have approval annotation "{_APPROVAL}", '
            "see https://github.com/kubernetes/enhancements/pull/1111"
        )
        yield FieldError.required(f"metadata.annotations[{_APPROVAL}]", detail)


def _preserving(spec: _Object) -> Iterator[FieldError]:
    if spec.get("preserveUnknownFields"):
        detail = (
            f"cannot set to true, set {PRESERVE} to true in spec.versions[*].schema instead, "
            "see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/"
            "custom-resource-definitions/#field-pruning for details"
        )
        yield FieldError.invalid("spec.preserveUnknownFields", True, detail=detail)
