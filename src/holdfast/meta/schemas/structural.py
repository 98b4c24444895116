"""Checks of the schema in a CustomResourceDefinition, with the messages of the API server.

Such a schema must be *structural*: it declares the type of everything, and
logical operators only narrow what is declared outside of them.  Its defaults
must be values that it accepts itself.  Of CEL rules the module checks the form
alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.meta.errors import FieldError
from holdfast.meta.fieldpaths import PathError, find
from holdfast.meta.schemas import walk
from holdfast.meta.schemas.constraints import PatternError, Patterns, python_patterns
from holdfast.meta.schemas.nodes import EMBEDDED, INT_OR_STRING, LIST_TYPE, MAP_KEYS, PRESERVE

RULES: Final = "x-kubernetes-validations"
MAP_TYPE: Final = "x-kubernetes-map-type"

_Schema = Mapping[str, Any]
_DEEPEST: Final = 64
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
_INT_OR_STRING_TYPES: Final = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_ROOT_WITH_STATUS: Final = frozenset(
    {
        "description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
        "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items",
        "properties", "externalDocs", "example", PRESERVE, RULES,
    }
)  # fmt: skip
_NOT_IN_BRANCHES: Final[tuple[tuple[str, str], ...]] = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("externalDocs", "must be undefined to be structural"),
    (PRESERVE, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (MAP_KEYS, "must be empty to be structural"),
    (LIST_TYPE, "must be undefined to be structural"),
    (MAP_TYPE, "must be undefined to be structural"),
    (RULES, "must be empty to be structural"),
)
_UNTYPED: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}

_ANYTHING: Final = {PRESERVE: True}
_OPEN: Final = {"type": "object", PRESERVE: True}
_LIST_OF_OPEN: Final = {"type": "array", "items": _OPEN}
_LIST_OF_TEXT: Final = {"type": "array", "items": {"type": "string"}}


def _all(kind: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return dict.fromkeys(names, kind)


_WORDS: Final = walk.compile(
    {
        "type": "object",
        "properties": {
            **_all({"type": "string"}, "type", "format", "title", "description", "pattern", "id", "$ref"),
            **_all({"type": "string"}, LIST_TYPE, MAP_TYPE),
            **_all({"type": "number"}, "minimum", "maximum", "multipleOf"),
            **_all({"type": "integer"}, "minLength", "maxLength", "minItems", "maxItems"),
            **_all({"type": "integer"}, "minProperties", "maxProperties"),
            **_all({"type": "boolean"}, "nullable", "exclusiveMinimum", "exclusiveMaximum", "uniqueItems"),
            **_all({"type": "boolean"}, PRESERVE, EMBEDDED, INT_OR_STRING),
            **_all(_LIST_OF_TEXT, "required", MAP_KEYS),
            **_all(_LIST_OF_OPEN, "allOf", "anyOf", "oneOf"),
            **_all({"type": "object", "additionalProperties": _OPEN}, "properties"),
            "not": _OPEN,
            "enum": {"type": "array", "items": _ANYTHING},
            RULES: {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        **_all({"type": "string"}, "rule", "message", "messageExpression", "reason", "fieldPath"),
                        "optionalOldSelf": {"type": "boolean"},
                    },
                },
            },
        },
        PRESERVE: True,
    },
    resource=False,
)
"""The shape of one node of a schema, so that the checks below may rely on it."""


def problems(
    schema: _Schema, path: str, *, status: bool = False, patterns: Patterns = python_patterns
) -> list[FieldError]:
    """Everything wrong with the root schema of a kind; `status` says that the kind has that subresource."""
    misshapen = list(_shape(schema, path))
    if misshapen:
        return misshapen
    found = [*_root(schema, path, status=status)]
    broken = sorted((*_structure(schema, path, patterns=patterns), *_completeness(schema, path)), key=str)
    found += broken or _defaults(schema, path, _Place(), patterns=patterns)
    found += _words(schema, path, _Place(root=True))
    return found


def branches(schema: _Schema) -> Iterator[tuple[str, _Schema]]:
    """The schemas under logical operators, each with its step."""
    for word in ("allOf", "anyOf", "oneOf"):
        for index, branch in enumerate(schema.get(word, ())):
            yield f".{word}[{index}]", branch
    if "not" in schema:
        yield ".not", schema["not"]


def children(schema: _Schema) -> Iterator[tuple[str, str, _Schema]]:
    """The schemas of what is inside: the name of a property (or nothing), the step, and the schema."""
    for name, inner in schema.get("properties", {}).items():
        yield name, f".properties[{name}]", inner
    if isinstance(schema.get("items"), Mapping):
        yield "", ".items", schema["items"]
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield "", ".additionalProperties", schema["additionalProperties"]


def has_rules(schema: _Schema) -> bool:
    """Whether there are rules in it, at any depth."""
    return bool(schema.get(RULES)) or any(has_rules(inner) for _, _, inner in children(schema))


# --- shape -------------------------------------------------------------------


def _shape(schema: Any, path: str, *, depth: int = 0) -> Iterator[FieldError]:
    """Words with values of a wrong type; the other checks rely on there being none."""
    if depth > _DEEPEST:
        yield FieldError.forbidden(path, f"schemas may not be nested more than {_DEEPEST} levels deep")
        return
    found = _WORDS.validate(schema, path=path)
    yield from found
    if found:
        return
    items = schema.get("items")
    if items is not None and not isinstance(items, Mapping):
        yield FieldError.forbidden(f"{path}.items", "items must be a schema object and not an array")
        return
    for _, step, inner in children(schema):
        yield from _shape(inner, f"{path}{step}", depth=depth + 1)
    for step, inner in branches(schema):
        yield from _shape(inner, f"{path}{step}", depth=depth + 1)


def _root(schema: _Schema, path: str, *, status: bool) -> Iterator[FieldError]:
    if status:
        surplus = sorted(word for word in schema if word not in _ROOT_WITH_STATUS and schema[word])
        if surplus:
            detail = f"{', '.join(surplus)} not allowed at the root of the schema if the status subresource is enabled"
            yield FieldError.forbidden(path, detail)
    if schema.get("nullable"):
        yield FieldError.forbidden(f"{path}.nullable", "nullable cannot be true at the root")


# --- structure ---------------------------------------------------------------


def _structure(schema: _Schema, path: str, *, level: str = "root", patterns: Patterns) -> Iterator[FieldError]:
    kind, embedded = schema.get("type", ""), bool(schema.get(EMBEDDED))
    if kind == "array" and not isinstance(schema.get("items"), Mapping):
        yield FieldError.required(f"{path}.items", "must be specified")
    for _, step, inner in children(schema):
        yield from _structure(inner, f"{path}{step}", level="item" if step == ".items" else "field", patterns=patterns)
    if "additionalProperties" in schema and (level == "root" or embedded):
        why = "at the root" if level == "root" else f"if {EMBEDDED} is set"
        yield FieldError.forbidden(f"{path}.additionalProperties", f"must not be used {why}")
    for word in (PRESERVE, EMBEDDED):
        if schema.get(INT_OR_STRING) and schema.get(word):
            yield FieldError.invalid(f"{path}.{word}", True, detail=f"must be false if {INT_OR_STRING} is true")
    yield from _narrowing(schema, path, patterns=patterns)
    if embedded and kind != "object":
        yield _wrong_type(path, kind, f"must be object if {EMBEDDED} is true")
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield FieldError.required(f"{path}.type", _UNTYPED[level])
    if level == "root" and kind and kind != "object":
        yield FieldError.invalid(f"{path}.type", kind, detail="must be object at the root")
    yield from _type_meta(schema, path, level=level)
    if embedded and not schema.get(PRESERVE) and not schema.get("properties"):
        detail = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        yield FieldError.required(f"{path}.properties", detail)


def _type_meta(schema: _Schema, path: str, *, level: str) -> Iterator[FieldError]:
    """Of apiVersion, kind and metadata a schema may only restrict the name."""
    properties = schema.get("properties", {})
    if level != "root" and not schema.get(EMBEDDED):
        return
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        if name in properties and properties[name].get("type", "") != wanted:
            kind = properties[name].get("type", "")
            yield FieldError.invalid(f"{path}.properties[{name}].type", kind, detail=f"must be {wanted}")
    metadata = properties.get("metadata")
    if level == "root" and metadata is not None:
        fields = set(metadata.get("properties", {}))
        words = {word for word in metadata if metadata[word]} - {"type", "properties", "default", "description"}
        if fields - {"name", "generateName"} or words:
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield FieldError.forbidden(f"{path}.properties[metadata]", detail)


def _narrowing(schema: _Schema, path: str, *, patterns: Patterns, skip_any: bool = False) -> Iterator[FieldError]:
    """The words that narrow values, also those under logical operators."""
    restated = schema.get("anyOf") == _INT_OR_STRING_TYPES
    for step, branch in branches(schema):
        if step.startswith(".anyOf") and restated and (skip_any or "type" not in schema):
            continue
        first_all = step == ".allOf[0]" and branch.get("anyOf") == _INT_OR_STRING_TYPES
        yield from _branch(branch, f"{path}{step}", patterns=patterns, skip_any=first_all)
    if schema.get("pattern"):
        try:
            patterns(schema["pattern"])
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield FieldError.invalid(f"{path}.pattern", schema["pattern"], detail=detail)


def _branch(branch: _Schema, path: str, *, patterns: Patterns, skip_any: bool = False) -> Iterator[FieldError]:
    yield from _narrowing(branch, path, patterns=patterns, skip_any=skip_any)
    if isinstance(branch.get("items"), Mapping):
        yield from _branch(branch["items"], f"{path}.items", patterns=patterns)
    for name, inner in branch.get("properties", {}).items():
        yield from _branch(inner, f"{path}.properties[{name}]", patterns=patterns)
    for word, detail in _NOT_IN_BRANCHES:
        if branch.get(word):
            yield FieldError.forbidden(f"{path}.{word}", detail)
    if "metadata" in branch.get("properties", {}):
        yield FieldError.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(schema: _Schema, path: str) -> Iterator[FieldError]:
    """What logical operators speak of must be declared outside of them."""
    outside = _Outside(schema)
    for step, branch in branches(schema):
        yield from _declared(branch, outside, path, here=f"{path}{step}")
    for _, step, inner in children(schema):
        yield from _completeness(inner, f"{path}{step}")


class _Outside:
    """A schema outside of logical operators, with its children by step; many branches look for them."""

    def __init__(self, schema: _Schema) -> None:
        self._schema = schema
        self._children: dict[str, _Outside] | None = None

    def child(self, step: str) -> _Outside | None:
        if self._children is None:
            self._children = {other: _Outside(schema) for _, other, schema in reversed(list(children(self._schema)))}
        return self._children.get(step)


def _declared(branch: _Schema, outside: _Outside, path: str, *, here: str) -> Iterator[FieldError]:
    for step, inner in branches(branch):
        yield from _declared(inner, outside, path, here=f"{here}{step}")
    for _, step, inner in children(branch):
        declared = outside.child(step)
        if declared is None:
            yield FieldError.required(f"{path}{step}", f"because it is defined in {here}{step}")
        else:
            yield from _declared(inner, declared, f"{path}{step}", here=f"{here}{step}")


# --- defaults and words ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node stands, and what that forbids."""

    root: bool = False
    in_meta: bool = False
    no_defaults: str = ""
    """Why defaults are forbidden here; empty if they are not."""


def _defaults(schema: _Schema, path: str, place: _Place, *, patterns: Patterns) -> list[FieldError]:
    found: list[FieldError] = []
    default = schema.get("default")
    if default is not None:
        judge = walk.compile(schema, patterns=patterns, resource=bool(schema.get(EMBEDDED)))
        at = f"{path}.default"
        if judge.unknown(default) and not place.in_meta:
            found.append(FieldError.invalid(at, default, detail="must not have unknown fields"))
        for problem in judge.validate(default):
            inside = "" if problem.field in ("", "<nil>") else f".{problem.field}"
            found.append(replace(problem, field=f"{at}{inside}".replace(".[", "[")))
    for name, step, inner in children(schema):
        meta = place.in_meta or (bool(schema.get(EMBEDDED)) and name in _META_FIELDS)
        found += _defaults(inner, f"{path}{step}", _Place(in_meta=meta), patterns=patterns)
    return found


def _words(schema: _Schema, path: str, place: _Place) -> Iterator[FieldError]:
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        yield FieldError.not_supported(f"{path}.type", kind, supported=_TYPES)
    if schema.get("default") is not None and place.no_defaults:
        yield FieldError.forbidden(f"{path}.default", f"must not be set {place.no_defaults}")
    for word in _UNSUPPORTED:
        if schema.get(word):
            yield FieldError.forbidden(f"{path}.{word}", f"{word} is not supported")
    if place.in_meta and schema.get(EMBEDDED):
        yield FieldError.forbidden(f"{path}.{EMBEDDED}", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield FieldError.forbidden(f"{path}.uniqueItems", detail)
    additional = schema.get("additionalProperties")
    if schema.get("properties") and (additional is False or isinstance(additional, Mapping)):
        detail = "additionalProperties and properties are mutual exclusive"
        yield FieldError.forbidden(f"{path}.additionalProperties", detail)
    for name, step, inner in children(schema):
        yield from _words(inner, f"{path}{step}", _below(schema, name, step=step, place=place))
    for step, inner in branches(schema):
        yield from _words(inner, f"{path}{step}", replace(place, root=False))
    if schema.get(PRESERVE) is False:
        yield FieldError.invalid(f"{path}.{PRESERVE}", False, detail="must be true or undefined")
    yield from _containers(schema, path)
    for index, rule in enumerate(schema.get(RULES, ())):
        yield from _rule(schema, rule, f"{path}.{RULES}[{index}]")


def _below(schema: _Schema, name: str, *, step: str, place: _Place) -> _Place:
    if name in _META_FIELDS and (place.root or schema.get(EMBEDDED)):
        return _Place(in_meta=True, no_defaults=f"in top-level {name}" if place.root else place.no_defaults)
    if place.in_meta and step == ".additionalProperties":
        return replace(place, root=False, no_defaults="inside additionalProperties applying to object metadata")
    return replace(place, root=False)


def _containers(schema: _Schema, path: str) -> Iterator[FieldError]:
    """List and map types."""
    kind, list_type, map_type = schema.get("type", ""), schema.get(LIST_TYPE), schema.get(MAP_TYPE)
    if map_type is not None and kind != "object":
        yield _wrong_type(path, kind, f"must be object if {MAP_TYPE} is specified")
    if map_type not in (None, "atomic", "granular"):
        yield FieldError.not_supported(f"{path}.{MAP_TYPE}", map_type, supported=("atomic", "granular"))
    if list_type is not None and kind != "array":
        yield _wrong_type(path, kind, f"must be array if {LIST_TYPE} is specified")
    if list_type not in (None, "atomic", "set", "map"):
        yield FieldError.not_supported(f"{path}.{LIST_TYPE}", list_type, supported=("atomic", "set", "map"))
    if schema.get(MAP_KEYS) and list_type != "map":
        detail = f"must be map if {MAP_KEYS} is non-empty"
        if list_type is None:
            yield FieldError.required(f"{path}.{LIST_TYPE}", detail)
        else:
            yield FieldError.invalid(f"{path}.{LIST_TYPE}", list_type, detail=detail)
    items = schema.get("items")
    if list_type in ("set", "map") and isinstance(items, Mapping):
        if items.get("nullable"):
            detail = f"cannot be nullable when {LIST_TYPE} is {list_type}"
            yield FieldError.forbidden(f"{path}.items.nullable", detail)
        yield from (_set if list_type == "set" else _map)(schema, items, path)


def _set(schema: _Schema, items: _Schema, path: str) -> Iterator[FieldError]:
    detail = f"must be atomic as item of a list with {LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(LIST_TYPE, "atomic") != "atomic":
        yield FieldError.invalid(f"{path}.items.{LIST_TYPE}", items[LIST_TYPE], detail=detail)
    if items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
        yield FieldError.invalid(f"{path}.items.{MAP_TYPE}", items.get(MAP_TYPE), detail=detail)


def _map(schema: _Schema, items: _Schema, path: str) -> Iterator[FieldError]:
    keys, properties = schema.get(MAP_KEYS, ()), items.get("properties", {})
    if not keys:
        yield FieldError.required(f"{path}.{MAP_KEYS}", f"must not be empty if {LIST_TYPE} is map")
    if items.get("type") != "object":
        detail = f"must be object if parent array's {LIST_TYPE} is map"
        yield FieldError.invalid(f"{path}.items.type", items.get("type", ""), detail=detail)
        return
    if len(set(keys)) != len(keys):
        yield FieldError.invalid(f"{path}.{MAP_KEYS}", keys, detail="must not contain duplicate entries")
    for key in keys:
        at = f"{path}.items.properties[{key}]"
        if key not in properties:
            detail = "entries must all be names of item properties"
            yield FieldError.invalid(f"{path}.{MAP_KEYS}", keys, detail=detail)
            continue
        if properties[key].get("type") in ("array", "object"):
            detail = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield FieldError.invalid(f"{at}.type", properties[key]["type"], detail=detail)
        if key not in items.get("required", ()) and properties[key].get("default") is None:
            detail = f"this property is in {MAP_KEYS}, so it must have a default or be a required property"
            yield FieldError.required(f"{at}.default", detail)
        if properties[key].get("nullable"):
            detail = f"this property is in {MAP_KEYS}, so it cannot be nullable"
            yield FieldError.forbidden(f"{at}.nullable", detail)


def _rule(schema: _Schema, rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """The form of a rule; whether it compiles is another matter."""
    text, message, place = rule.get("rule", "").strip(), rule.get("message", ""), rule.get("fieldPath", "")
    if not text:
        yield FieldError.required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield FieldError.invalid(f"{path}.message", message, detail="message must be non-empty if specified")
    elif _is_broken(message.strip()):
        yield FieldError.invalid(f"{path}.message", message, detail="message must not contain line breaks")
    elif _is_broken(text) and not message.strip():
        yield FieldError.required(f"{path}.message", "message must be specified if rule contains line breaks")
    if rule.get("messageExpression") and not rule["messageExpression"].strip():
        yield FieldError.required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if "reason" in rule and rule["reason"] not in _REASONS:
        yield FieldError.not_supported(f"{path}.reason", rule["reason"], supported=_REASONS)
    if place:
        try:
            find(schema, place)
        except PathError:
            yield FieldError.invalid(f"{path}.fieldPath", place, detail="fieldPath must be a valid path")


def _is_broken(text: str) -> bool:
    return "\n" in text or "\r" in text


def _wrong_type(path: str, kind: str, detail: str) -> FieldError:
    if not kind:
        return FieldError.required(f"{path}.type", detail)
    return FieldError.invalid(f"{path}.type", kind, detail=detail)
