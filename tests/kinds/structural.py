"""Kubernetes' rules for the schemas of CustomResourceDefinitions, as a checker.

An API server refuses a definition that breaks one of them, so they are checked
where the definition is made.  checks any schema; it
must not know any kind, nor how schemas are generated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.meta.schemas import walk
from holdfast.meta.schemas.hints import problems

Schema = Mapping[str, Any]

_TYPES: Final = frozenset({"object", "array", "string", "integer", "number", "boolean"})
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})
_FORBIDDEN: Final = (
    "$ref", "definitions", "dependencies", "deprecated", "discriminator", "id",
    "patternProperties", "readOnly", "writeOnly", "xml", "additionalItems",
)  # fmt: skip
_JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_NOT_IN_JUNCTORS: Final = ("type", "default", "additionalProperties", "nullable", "description", "title")
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_INT_OR_STRING_TYPES: Final = [{"type": "integer"}, {"type": "string"}]
_LIST_TYPE: Final = "x-kubernetes-list-type"
_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
_MAP_TYPE: Final = "x-kubernetes-map-type"
_NOT_RE2: Final = re.compile(r"\(\?(=|!|<=|<!|>|P=)|\\[1-9]")
_OLD_SELF: Final = re.compile(r"\boldSelf\b")
_SELF_PATH: Final = re.compile(r"\b(?:self|oldSelf)((?:\.[A-Za-z_][A-Za-z0-9_]*)+)(?!\w)(\(?)")
_ALWAYS_THERE: Final = frozenset({".metadata.name", ".metadata.generateName"})
_ESCAPES: Final = {"__dash__": "-", "__dot__": ".", "__slash__": "/", "__underscores__": "__"}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node stands, and what that forbids."""

    path: str
    correlatable: bool = True
    """Whether the API server can find the old value of this node."""
    metadata: bool = False

    def under(self, step: str) -> _Place:
        return replace(self, path=f"{self.path}{step}")


def is_open(schema: Schema) -> bool:
    """Whether an object keeps fields that its schema does not name."""
    return bool(schema.get("x-kubernetes-preserve-unknown-fields"))


def structural_problems(schema: Schema) -> list[str]:
    """What an API server would refuse of ``schema`` as the root schema of a kind."""
    return [*_root(schema), *_node(schema, _Place("$"))]


def crd_problems(crd: Mapping[str, Any]) -> list[str]:
    """What is wrong with a definition: its schemas, and paths that lead nowhere."""
    found: list[str] = []
    names, group = crd["spec"]["names"], crd["spec"]["group"]
    if crd["metadata"]["name"] != f"{names['plural']}.{group}":
        found.append(f"metadata.name must be {names['plural']}.{group}")
    if "." not in group:
        found.append(f"spec.group: {group!r} must be a domain name, with a dot")
    if sum(version["storage"] for version in crd["spec"]["versions"]) != 1:
        found.append("spec.versions: exactly one version must be the storage version")
    for version in crd["spec"]["versions"]:
        found += [f"{version['name']}: {text}" for text in _version(version)]
    return found


def _version(version: Mapping[str, Any]) -> Iterator[str]:
    schema = version["schema"]["openAPIV3Schema"]
    yield from structural_problems(schema)
    subresources = version.get("subresources", {})
    if ("status" in schema.get("properties", {})) != ("status" in subresources):
        yield "a status field and the status subresource must come together"
    for name, path in subresources.get("scale", {}).items():
        wanted = "string" if name == "labelSelectorPath" else "integer"
        found = _at(schema, path)
        if found is None or found.get("type") != wanted:
            yield f"subresources.scale.{name}: {path} must lead to {wanted} values"
    for column in version.get("additionalPrinterColumns", ()):
        if not column["jsonPath"].startswith(".metadata.") and _at(schema, column["jsonPath"]) is None:
            yield f"column {column['name']}: {column['jsonPath']} leads nowhere in the schema"


def _at(schema: Schema, path: str) -> Schema | None:
    """The node that a JSONPath of the simple form leads to; anything inside a free-form object is found."""
    before, wildcard, after = path.partition(".*")
    if wildcard:
        # It leads somewhere if it does so from every field.
        above = _at(schema, before) or {}
        found = [_at(inner, after) for inner in above.get("properties", {}).values()]
        return found[0] if found and None not in found else None
    node: Schema = schema
    for step in re.findall(r"\.[A-Za-z0-9_-]+|\[[^\]]*\]", path):
        if step.startswith("[") and not step.startswith("['"):
            following = node.get("items")
        else:
            key = step.strip(".[]'")
            following = node.get("properties", {}).get(key) or node.get("additionalProperties")
        if following is None:
            return {} if is_open(node) else None
        node = following
    return node


def _root(schema: Schema) -> Iterator[str]:
    if schema.get("type") != "object":
        yield "$: the root must be of type object"
    for name in ("apiVersion", "kind"):
        if schema.get("properties", {}).get(name, {"type": "string"}).get("type") != "string":
            yield f"$.{name}: must be of type string"
    yield from _metadata(schema, "$")


def _metadata(schema: Schema, path: str) -> Iterator[str]:
    """Of a resource's metadata, a schema may restrict the name and nothing else."""
    metadata = schema.get("properties", {}).get("metadata")
    if metadata is None:
        return
    if metadata.get("type") != "object":
        yield f"{path}.metadata: must be of type object"
    extra = set(metadata) - {"type", "description", "properties"}
    extra |= set(metadata.get("properties", {})) - {"name", "generateName"}
    if extra:
        yield f"{path}.metadata: may restrict name and generateName only, not {', '.join(sorted(extra))}"


def _node(schema: Schema, place: _Place) -> Iterator[str]:
    yield from _keywords(schema, place.path)
    yield from _type(schema, place.path)
    yield from _junctors(schema, place.path)
    yield from _default(schema, place)
    yield from _rules(schema, place)
    kind = schema.get("type")
    if kind == "array":
        yield from _list(schema, place.path)
    elif _LIST_TYPE in schema or _MAP_KEYS in schema:
        yield f"{place.path}: {_LIST_TYPE} is for arrays only"
    if _MAP_TYPE in schema and (kind != "object" or schema[_MAP_TYPE] not in {"granular", "atomic"}):
        yield f"{place.path}: {_MAP_TYPE} is granular or atomic, and for objects only"
    yield from _children(schema, place)


def _children(schema: Schema, place: _Place) -> Iterator[str]:
    is_resource = place.path == "$" or bool(schema.get("x-kubernetes-embedded-resource"))
    inside = replace(place, correlatable=place.correlatable and schema.get(_MAP_TYPE) != "atomic")
    for name, inner in schema.get("properties", {}).items():
        step = inside.under(f".{name}")
        yield from _node(inner, replace(step, metadata=True) if is_resource and name == "metadata" else step)
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield from _node(schema["additionalProperties"], inside.under(".*"))
    if isinstance(schema.get("items"), Mapping):
        keyed = schema.get(_LIST_TYPE) == "map"
        entry = replace(inside.under("[*]"), correlatable=inside.correlatable and keyed)
        yield from _node(schema["items"], entry)


def _keywords(schema: Schema, path: str) -> Iterator[str]:
    for keyword in _FORBIDDEN:
        if keyword in schema:
            yield f"{path}: {keyword} is forbidden"
    if schema.get("uniqueItems"):
        yield f"{path}: uniqueItems is forbidden; make it a list of type set"
    if schema.get("additionalProperties") is False:
        yield f"{path}: additionalProperties must not be false"
    if "additionalProperties" in schema and "properties" in schema:
        yield f"{path}: properties and additionalProperties exclude each other"
    for name in schema.get("required", ()):
        if "properties" in schema and name not in schema["properties"]:
            yield f"{path}: required field {name} is not among the properties"
    if "enum" in schema and not schema["enum"]:
        yield f"{path}: the enum is empty"
    pattern = schema.get("pattern")
    if pattern is not None and _NOT_RE2.search(pattern):
        yield f"{path}: the pattern {pattern} is not RE2 (no look-around, no back-references)"


def _type(schema: Schema, path: str) -> Iterator[str]:
    kind = schema.get("type")
    if schema.get(_INT_OR_STRING):
        if kind is not None:
            yield f"{path}: int-or-string must not have a type"
        if is_open(schema):
            yield f"{path}: int-or-string cannot preserve unknown fields"
    elif kind is None and not is_open(schema):
        yield f"{path}: a type is required"
    elif kind is not None and kind not in _TYPES:
        yield f"{path}: {kind!r} is not a type"
    if kind == "array" and not isinstance(schema.get("items"), Mapping):
        yield f"{path}: an array must say its items, as one schema"
    if schema.get("x-kubernetes-embedded-resource"):
        if kind != "object" or not (is_open(schema) or schema.get("properties")):
            yield f"{path}: an embedded resource is an object with properties or unknown fields"
        yield from _metadata(schema, path)


def _junctors(schema: Schema, path: str) -> Iterator[str]:
    """Inside logical operators stand validations of what is declared outside, never declarations."""
    for junctor in _JUNCTORS:
        branches = schema.get(junctor, [])
        if schema.get(_INT_OR_STRING) and branches == _INT_OR_STRING_TYPES:
            continue
        for index, branch in enumerate(branches):
            yield from _branch(branch, schema, f"{path}.{junctor}[{index}]")
    if "not" in schema:
        yield from _branch(schema["not"], schema, f"{path}.not")


def _branch(branch: Schema, outer: Schema, path: str) -> Iterator[str]:
    for keyword in branch:
        if keyword in _NOT_IN_JUNCTORS or keyword.startswith("x-kubernetes-"):
            yield f"{path}: {keyword} is forbidden inside a logical operator"
    for name, inner in branch.get("properties", {}).items():
        declared = outer.get("properties", {}).get(name)
        if declared is None:
            yield f"{path}: {name} is not declared outside the logical operator"
        else:
            yield from _branch(inner, declared, f"{path}.{name}")
    yield from _junctors(branch, path)


def _default(schema: Schema, place: _Place) -> Iterator[str]:
    if "default" not in schema:
        return
    if place.metadata:
        yield f"{place.path}: metadata takes no defaults"
    for problem in problems(walk.compile(schema, resource=False), schema["default"], place.path):
        yield f"the default of {problem}"


def _rules(schema: Schema, place: _Place) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        uses_old = bool(_OLD_SELF.search(rule["rule"]))
        if not rule["rule"].strip():
            yield f"{place.path}: a rule is empty"
        if uses_old and not place.correlatable:
            yield f"{place.path}: {rule['rule']!r} uses oldSelf below a list without keys, where none is found"
        if "optionalOldSelf" in rule and not uses_old:
            yield f"{place.path}: {rule['rule']!r} has optionalOldSelf but no oldSelf"
        if "\n" in rule.get("message", ""):
            yield f"{place.path}: a rule's message must be one line"
        if not rule.get("message") and "messageExpression" not in rule:
            yield f"{place.path}: {rule['rule']!r} has no message"
        for path in _unknown_fields(schema, rule):
            yield f"{place.path}: {rule['rule']!r} speaks of {path}, which is not in the schema"
        if "fieldPath" in rule and _at(schema, rule["fieldPath"]) is None:
            yield f"{place.path}: fieldPath {rule['fieldPath']} leads nowhere"


def _unknown_fields(schema: Schema, rule: Mapping[str, Any]) -> Iterator[str]:
    """The fields that a rule reads and the schema does not have."""
    if rule.get("optionalOldSelf"):
        return  # oldSelf is then an optional, whose methods look like fields
    for fields, call in _SELF_PATH.findall(rule["rule"]):
        steps = fields.split(".")[1 : -1 if call else None]
        for escape, character in _ESCAPES.items():
            steps = [step.replace(escape, character) for step in steps]
        path = "".join(f".{step}" for step in steps)
        if path not in _ALWAYS_THERE and _at(schema, path) is None:
            yield f"self{path}"


def _list(schema: Schema, path: str) -> Iterator[str]:
    kind, items = schema.get(_LIST_TYPE), schema.get("items", {})
    if kind not in {None, "atomic", "set", "map"}:
        yield f"{path}: {_LIST_TYPE} is atomic, set or map, not {kind!r}"
    if kind in {"set", "map"} and items.get("nullable"):
        yield f"{path}: the items of a {kind} must not be nullable"
    if kind == "set" and not _is_atomic(items):
        yield f"{path}: the items of a set must be scalar or atomic"
    if (kind == "map") != bool(schema.get(_MAP_KEYS)):
        yield f"{path}: {_MAP_KEYS} and the list type map need each other"
    if kind != "map":
        return
    if items.get("type") != "object":
        yield f"{path}: the items of a map must be objects"
    for key in schema.get(_MAP_KEYS, ()):
        declared = items.get("properties", {}).get(key)
        if declared is None:
            yield f"{path}: the key {key} is not a field of the items"
        elif declared.get("type") not in _SCALARS:
            yield f"{path}: the key {key} must be scalar"
        elif declared.get("nullable"):
            yield f"{path}: the key {key} must not be nullable"
        elif key not in items.get("required", ()) and "default" not in declared:
            yield f"{path}: the key {key} must be required or have a default"


def _is_atomic(schema: Schema) -> bool:
    if schema.get("type") == "object":
        return schema.get(_MAP_TYPE) == "atomic"
    return schema.get("type") != "array" or schema.get(_LIST_TYPE, "atomic") == "atomic"
