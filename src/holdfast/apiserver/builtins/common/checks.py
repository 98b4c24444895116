"""Validation that many kinds share, with the error messages of Kubernetes.

Each check yields the problems of one value at one path.  Values already have the types of their fields, because
decoding comes first.  This module knows no particular kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from holdfast.meta import names
from holdfast.meta.errors import FieldError
from holdfast.meta.quantities import Quantity
from holdfast.meta.selectors import LabelSelector

Problems = Iterator[FieldError]

IMMUTABLE: Final = "field is immutable"
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
POSITIVE: Final = "must be greater than 0"
PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
PERCENT_RULE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
CONFIG_KEY_RULE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_USUAL_CONFIG_KEY: Final = re.compile(r"[-_a-zA-Z0-9][-._a-zA-Z0-9]{,63}")
_PERCENT: Final = re.compile(r"[0-9]+%", re.ASCII)


def each(items: Sequence[Any] | None, path: str) -> Iterator[tuple[str, Any]]:
    """The items of a list, each with its path."""
    for index, item in enumerate(items or ()):
        yield f"{path}[{index}]", item


def named(value: str | None, path: str, *, rule: Callable[[str], list[str]] = names.dns_subdomain) -> Problems:
    """A required name that must follow a rule."""
    if not value:
        yield FieldError.required(path)
        return
    for problem in rule(value):
        yield FieldError.invalid(path, value, detail=problem)


def required(value: Any, path: str, *, detail: str = "") -> Problems:
    if not value:
        yield FieldError.required(path, detail)


def chosen(value: str | None, path: str, *, among: Iterable[str]) -> Problems:
    """A required value that must be one of several."""
    choices = tuple(among)
    if not value:
        yield FieldError.required(path)
    elif value not in choices:
        yield FieldError.not_supported(path, value, supported=choices)


def maybe_chosen(value: str | None, path: str, *, among: Iterable[str]) -> Problems:
    if value:
        yield from chosen(value, path, among=among)


def not_negative(value: int | None, path: str) -> Problems:
    if value is not None and value < 0:
        yield FieldError.invalid(path, value, detail=NOT_NEGATIVE)


def positive(value: int | None, path: str) -> Problems:
    if value is not None and value <= 0:
        yield FieldError.invalid(path, value, detail=POSITIVE)


def port(value: int | str | None, path: str) -> Problems:
    """A port by number, or by the name of one."""
    match value:
        case None:
            yield FieldError.required(path)
        case str():
            yield from (FieldError.invalid(path, value, detail=problem) for problem in port_name_problems(value))
        case int():
            if not 1 <= value <= 65535:
                yield FieldError.invalid(path, value, detail=PORT_RANGE)


def port_name_problems(name: str) -> list[str]:
    problems = []
    if len(name) > 15:
        problems.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def unique(items: Sequence[Mapping[str, Any]] | None, path: str, *, key: str) -> Problems:
    """No two items of a list may have the same value of a field."""
    seen = set()
    for place, item in each(items, path):
        value = item.get(key)
        if value in seen and value:
            yield FieldError.duplicate(f"{place}.{key}", value)
        seen.add(value)


def int_or_percent(value: int | str | None, path: str) -> Problems:
    """A count that is not negative, or a percentage."""
    match value:
        case str() if not _PERCENT.fullmatch(value):
            yield FieldError.invalid(path, value, detail=PERCENT_RULE)
        case int() if value >= 2**31:
            yield FieldError.invalid(path, value, detail=f"must be no more than {2**31 - 1}")
        case int():
            yield from not_negative(value, path)


def at_most_all(value: int | str | None, path: str) -> Problems:
    if isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:-1]) > 100:
        yield FieldError.invalid(path, value, detail="must not be greater than 100%")


def config_keys(keys: Iterable[str], path: str) -> Problems:
    """The keys of a ConfigMap or Secret, which may become file names."""
    if not all(map(_USUAL_CONFIG_KEY.fullmatch, keys)):
        for key in keys:
            yield from config_key(key, f"{path}[{key}]")


def config_key(key: str, path: str) -> Problems:
    """A key of a ConfigMap or Secret, which may become a file name."""
    if len(key) > names.SUBDOMAIN_MAX:
        yield FieldError.invalid(path, key, detail=f"must be no more than {names.SUBDOMAIN_MAX} characters")
    if not _CONFIG_KEY.fullmatch(key):
        yield FieldError.invalid(path, key, detail=CONFIG_KEY_RULE)
    elif key in (".", ".."):
        yield FieldError.invalid(path, key, detail=f"must not be '{key}'")
    elif key.startswith(".."):
        yield FieldError.invalid(path, key, detail="must not start with '..'")


def labels(values: Mapping[str, str] | None, path: str) -> Problems:
    for key, value in (values or {}).items():
        yield from (FieldError.invalid(path, key, detail=problem) for problem in names.label_key(key))
        yield from (FieldError.invalid(path, value, detail=problem) for problem in names.label_value(value))


def label_selector(selector: Mapping[str, Any] | None, path: str) -> Problems:
    if selector is None:
        return
    yield from labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for place, term in each(selector.get("matchExpressions"), f"{path}.matchExpressions"):
        operator, values = term.get("operator"), term.get("values")
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be specified when `operator` is 'In' or 'NotIn'"
                yield FieldError.required(f"{place}.values", detail)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield FieldError.forbidden(f"{place}.values", detail)
        else:
            yield FieldError.invalid(f"{place}.operator", operator, detail="not a valid selector operator")
        key = term.get("key") or ""
        yield from (FieldError.invalid(f"{place}.key", key, detail=problem) for problem in names.label_key(key))
        for at, value in each(values, f"{place}.values"):
            yield from (FieldError.invalid(at, value, detail=problem) for problem in names.label_value(value))


def selects(selector: Mapping[str, Any], labels: Mapping[str, str] | None) -> bool:
    """Whether a selector that passed `label_selector` matches."""
    return LabelSelector.from_object(selector).matches(labels)


def quantity(value: str) -> Quantity:
    """A quantity that decoding has accepted."""
    return Quantity.parse(value)


def unchanged(new: Any, old: Any, *, path: str) -> Problems:
    """A field must not change."""
    if new != old:
        yield FieldError.invalid(path, new, detail=IMMUTABLE)
