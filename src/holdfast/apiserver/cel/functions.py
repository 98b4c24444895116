"""Implementations of Kubernetes' CEL functions, on plain values.

The engine cannot carry values of foreign types, so a quantity, an address, a URL or a version is a map with one
entry, ``{"quantity()": ...}``, in a form that makes equal values equal.  A function that fails raises ValueError,
which the engine reports as an error of the rule.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import SplitResult, parse_qs, urlsplit

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from holdfast.apiserver.crd import patterns
from holdfast.meta import names
from holdfast.meta.quantities import Quantity, QuantityError
from holdfast.meta.schemas import formats

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
NANO: Final = 10**9


# --- values that the engine has no type for ----------------------------------


def boxed(kind: str, form: str) -> dict[str, str]:
    return {f"{kind}()": form}


def _unboxed(box: Any) -> Any:
    """The value of a boxed map: a Quantity, address, interface, URL or version."""
    if not isinstance(box, dict) or len(box) != 1:
        return box
    ((kind, form),) = box.items()
    read = _READERS.get(kind)
    return read(form) if read else box


def quantity(text: str) -> dict[str, str]:
    return boxed("quantity", str(Quantity.parse(text).nanos))


def ip(text: str) -> dict[str, str]:
    if "%" in text or (text.lower().startswith("::ffff:") and "." in text):
        raise ValueError(f"IP address {text!r} with a zone or mapped from IPv4 is not allowed")
    return boxed("ip", str(ipaddress.ip_address(text)))


def cidr(text: str) -> dict[str, str]:
    if "/" not in text:
        raise ValueError(f"network address parse error during conversion from string: {text!r} has no prefix length")
    return boxed("cidr", str(ipaddress.ip_interface(text)))


def url(text: str) -> dict[str, str]:
    parts = urlsplit(text)
    if not (parts.scheme or text.startswith("/")) or re.search(r"\s", text):
        raise ValueError(f"URL parse error during conversion from string: {text!r}")
    _ = parts.port  # an invalid port raises here, not later
    return boxed("url", text)


def semver(text: str, loose: bool = False) -> dict[str, str]:
    if loose:
        core, *rest = re.split(r"(?=[-+])", text.strip().removeprefix("v"), maxsplit=1)
        numbers = [number.lstrip("0") or "0" for number in core.split(".")]
        text = ".".join([*numbers, *["0"] * (3 - len(numbers))]) + "".join(rest)
    if not _SEMVER.fullmatch(text):
        raise ValueError(f"{text!r} is not a semantic version; write it like 1.2.3")
    return boxed("semver", text)


@dataclass(frozen=True, slots=True)
class _Version:
    major: int
    minor: int
    patch: int
    labels: tuple[tuple[int, int, str], ...]
    """Numbers sort before words; a version without a prerelease sorts after those with one."""

    @property
    def order(self) -> tuple[Any, ...]:
        return self.major, self.minor, self.patch, not self.labels, self.labels


def _version(form: str) -> _Version:
    match = _SEMVER.fullmatch(form)
    if match is None:
        raise ValueError(f"{form!r} is not a semantic version")
    labels = tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in (match[4] or "").split(".") if part
    )
    return _Version(int(match[1]), int(match[2]), int(match[3]), labels)


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "quantity()": lambda form: Quantity(int(form)),
    "ip()": ipaddress.ip_address,
    "cidr()": ipaddress.ip_interface,
    "url()": urlsplit,
    "semver()": _version,
}


def _order(value: Any) -> Any:
    return value.order if isinstance(value, _Version) else value


def compared(one: Any, other: Any) -> int:
    a, b = _order(_unboxed(one)), _order(_unboxed(other))
    if type(a) is not type(b):
        raise ValueError("cannot compare values of different types")
    return int(a > b) - int(a < b)


def _amount(value: Any) -> Quantity:
    return Quantity(value * NANO) if isinstance(value, int) else _unboxed(value)


def total(one: Any, other: Any) -> dict[str, str]:
    return boxed("quantity", str((_amount(one) + _amount(other)).nanos))


def difference(one: Any, other: Any) -> dict[str, str]:
    return boxed("quantity", str((_amount(one) - _amount(other)).nanos))


def is_whole(box: Any) -> bool:
    units, rest = divmod(_unboxed(box).nanos, NANO)
    return not rest and -(2**63) <= units < 2**63


def whole(box: Any) -> int:
    if not is_whole(box):
        raise ValueError("cannot convert value to integer")
    return int(_unboxed(box).nanos // NANO)


def approximately(amount: Quantity) -> float:
    return amount.nanos / NANO


def succeeds(make: Callable[..., Any]) -> Callable[..., bool]:
    def attempt(*arguments: Any) -> bool:
        try:
            make(*arguments)
        except (ValueError, QuantityError):
            return False
        return True

    return attempt


# --- lists, texts, addresses -------------------------------------------------


def returned(value: Any) -> Any:
    """A result in a form that the engine accepts."""
    if isinstance(value, datetime):
        stamp = Timestamp()
        stamp.FromDatetime(value)
        return stamp
    if isinstance(value, timedelta):
        length = Duration()
        length.FromTimedelta(value)
        return length
    return value


def sum_of(values: list[Any]) -> Any:
    if not values:
        return 0
    total = values[0]
    for value in values[1:]:
        total += value
    return returned(total)


def least(values: list[Any]) -> Any:
    if not values:
        raise ValueError("min called on empty list")
    return returned(min(values))


def greatest(values: list[Any]) -> Any:
    if not values:
        raise ValueError("max called on empty list")
    return returned(max(values))


def first_index(values: list[Any], wanted: Any) -> int:
    return next((index for index, value in enumerate(values) if value == wanted), -1)


def last_index(values: list[Any], wanted: Any) -> int:
    return next((index for index in range(len(values) - 1, -1, -1) if values[index] == wanted), -1)


def distinct(values: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if value not in kept:
            kept.append(value)
    return [returned(value) for value in kept]


def sort(values: list[Any]) -> list[Any]:
    return [returned(value) for value in sorted(values)]


def slice_of(values: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(values):
        raise ValueError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return [returned(value) for value in values[start:end]]


def flattened(values: list[Any]) -> list[Any]:
    return [inner for value in values for inner in (value if isinstance(value, list) else [value])]


def find_in(text: str, pattern: str) -> str:
    match = patterns.compiled(pattern).search(text)
    return match[0] if match else ""


def find_all_in(text: str, pattern: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    for match in patterns.compiled(pattern).finditer(text):
        if len(found) == limit:
            break
        found.append(match[0])
    return found


def contains_ip(network: Any, address: Any) -> bool:
    inner = ipaddress.ip_address(address) if isinstance(address, str) else _unboxed(address)
    return inner in _unboxed(network).network


def contains_cidr(network: Any, other: Any) -> bool:
    outer = _unboxed(network).network
    inner = (ipaddress.ip_interface(other) if isinstance(other, str) else _unboxed(other)).network
    return inner.version == outer.version and inner.subnet_of(outer)


def masked(network: Any) -> dict[str, str]:
    return boxed("cidr", str(_unboxed(network).network))


def query_of(parts: SplitResult) -> dict[str, list[str]]:
    return parse_qs(parts.query, keep_blank_values=True)


def is_canonical(text: str) -> bool:
    return str(ipaddress.ip_address(text)) == text


def is_global_unicast(address: _Address) -> bool:
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


def is_link_local_unicast(address: _Address) -> bool:
    return address.is_link_local and not address.is_multicast


def is_link_local_multicast(address: _Address) -> bool:
    return address in ipaddress.ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")


def unboxing(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of the value of a boxed map."""
    return lambda box: read(_unboxed(box))


# --- named formats -----------------------------------------------------------


def _by_format(name: str) -> Callable[[str], list[str]]:
    check = formats.check_of(name)
    assert check is not None, f"{name} is a format"
    return lambda text: [] if check(text) else [f"must be a valid {name}"]


def _prefix(problems: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """A rule for a name prefix, which may end in a dash."""
    return lambda text: problems(f"{text[:-1]}a" if text.endswith("-") else text)


FORMATS: Final[dict[str, Callable[[str], list[str]]]] = {
    "dns1123Label": names.dns_label,
    "dns1123Subdomain": names.dns_subdomain,
    "dns1035Label": names.dns_1035_label,
    "dns1123LabelPrefix": _prefix(names.dns_label),
    "dns1123SubdomainPrefix": _prefix(names.dns_subdomain),
    "dns1035LabelPrefix": _prefix(names.dns_1035_label),
    "qualifiedName": names.label_key,
    "labelValue": names.label_value,
    "uri": _by_format("uri"),
    "uuid": _by_format("uuid"),
    "byte": _by_format("byte"),
    "date": _by_format("date"),
    "datetime": _by_format("date-time"),
}


def _perhaps(value: Any) -> dict[str, Any]:
    """An optional value as a map, because the engine accepts no optionals from functions."""
    return {"optional()": [value] if value is not None else []}


def validated(form: dict[str, str], text: str) -> dict[str, Any]:
    return _perhaps(FORMATS[form["format()"]](text) or None)


def named(name: str) -> dict[str, Any]:
    return _perhaps(boxed("format", name) if name in FORMATS else None)


def value_of(box: dict[str, Any]) -> Any:
    if not box["optional()"]:
        raise ValueError("optional.none() dereference")
    return box["optional()"][0]
