"""Printing objects for programs: JSON, YAML, names, JSONPath, columns of one's own; as kubectl does.

From objects to text.  Where they come from is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.manifests.scalars import LEGACY_BOOLEANS, NotAScalar, scalar
from holdfast.meta.errors import MalformedError
from holdfast.meta.jsonpath import evaluate
from holdfast.meta.objects import GVK
from holdfast.views import tables
from holdfast.views.columns import Alignment

Object = dict[str, Any]

_HTML: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_STR: Final = "tag:yaml.org,2002:str"
_ONE_VALUE: Final = {
    "jsonpath": "'{.metadata.name}'",
    "custom-columns": "NAME:.metadata.name",
}
"""Formats that take something after ``=``, and an example of it."""


def name_of(obj: Object) -> str:
    """``deployment.apps/web``: an object as messages and ``-o name`` call it."""
    return f"{type_of(obj)}/{obj['metadata'].get('name', '')}"


def type_of(obj: Object) -> str:
    """``deployment.apps``, or ``pod``."""
    return GVK.of(obj).group_kind.lower()


def as_json(value: Any) -> str:
    """JSON with sorted keys, and nothing in it that a browser could take for HTML."""
    return json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False).translate(_HTML) + "\n"


def as_yaml(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=True, allow_unicode=True)
    return text


def _text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else '"' if _looks_like_another(dumper, text) else None
    return dumper.represent_scalar(_STR, text, style=style)


def _looks_like_another(dumper: Any, text: str) -> bool:
    """Whether any reader would take it for something else than text: YAML's own, such as of dates, or Go's."""
    if text in LEGACY_BOOLEANS or dumper.resolve(yaml.ScalarNode, text, (True, False)) != _STR:
        return True
    try:
        return not isinstance(scalar(text), str)
    except NotAScalar:
        return True


_Dumper: Any = type(
    "_Dumper",
    (yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper,),
    {"ignore_aliases": lambda self, data: True},
)
"""Writes what `documents` and kubectl alike read as the same again."""
_Dumper.add_representer(str, _text)


# What -o names.


@dataclass(frozen=True, slots=True)
class Printer:
    """How objects are printed: each by itself, or all as one List."""

    every: Callable[[Sequence[Object]], str]
    """The text of several objects."""
    one: Callable[[Object], str]
    between: str = ""
    """What separates one object from the next, where they come one by one."""


def printer(output: str, *, headers: bool = True, width: int | None = None) -> Printer:
    """The printer that ``-o`` names, for a screen of a width; raises `InputError`."""
    form, _, rest = output.partition("=")
    if form in _ONE_VALUE and not rest:
        raise _wrong(f"{form} needs a value", f"write -o {form}={_ONE_VALUE[form]}")
    match form:
        case "json":
            return _whole(as_json)
        case "yaml":
            return _whole(as_yaml, between="---\n")
        case "name":
            return _each(lambda obj: f"{name_of(obj)}\n")
        case "jsonpath":
            return _whole(_compiled(rest))
        case "custom-columns":
            return _columns(rest, headers=headers, width=width)
        case "go-template" | "go-template-file" | "template" | "templatefile":
            raise _wrong(f"{form} is Go's", "write it as -o jsonpath='{.metadata.name}', or read -o json")
        case _:
            forms = "wide, json, yaml, name, jsonpath=PATH or custom-columns=HEADING:PATH,..."
            raise _wrong(f"{form!r} is not a format", f"write {forms}")


def as_list(objects: Sequence[Object]) -> Object:
    return {"apiVersion": "v1", "items": list(objects), "kind": "List", "metadata": {"resourceVersion": ""}}


def _whole(written: Callable[[Any], str], *, between: str = "") -> Printer:
    return Printer(lambda objects: written(as_list(objects)), written, between)


def _each(written: Callable[[Object], str]) -> Printer:
    return Printer(lambda objects: "".join(map(written, objects)), written)


def _compiled(expression: str) -> Callable[[Any], str]:
    try:
        path = evaluate.compile(expression)
    except evaluate.JSONPathError as error:
        raise _wrong(str(error), "'{.metadata.name}' is one that works") from None

    def written(value: Any) -> str:
        try:
            return path.render(value)
        except evaluate.JSONPathError as error:
            raise _wrong(str(error), "-o json shows what there is") from None

    return written


def _columns(written: str, *, headers: bool, width: int | None) -> Printer:
    try:
        columns = tables.custom_columns(written)
    except (ValueError, MalformedError) as error:
        raise _wrong(str(error), "write -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName") from None
    titles = [column.heading for column in columns]
    heading = [titles] if headers else []
    alignment = Alignment(width)

    def every(objects: Sequence[Object]) -> str:
        rows = [*heading, *(tables.custom_line(columns, obj) for obj in objects)]
        heading.clear()  # once, however many there are to come
        return "".join(f"{line}\n" for line in alignment.lines(rows, titles))

    return Printer(every, lambda obj: every([obj]))


def _wrong(message: str, hint: str) -> InputError:
    return InputError(Complaint(message=message, hint=hint, path="-o"))
