"""Kubernetes' functions for CEL, beside those that the engine brings.

Each function is declared once, with the types that Kubernetes gives it.  Rules
are checked against these.  The engine cannot carry values of types that are not
its own, so when rules run, a quantity, an address, a URL or a version is a map
with one entry, ``{"quantity()": ...}``, in a form that makes equal values equal;
`for_checking` and `for_running` declare the functions for either purpose.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from cel_expr_python import cel
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from holdfast.apiserver import patterns
from holdfast.meta import formats, names
from holdfast.meta.quantities import Quantity, QuantityError

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
_NANO: Final = 10**9


@dataclass(frozen=True, slots=True)
class Function:
    """One overload: parameters and result by their CEL names, ``any`` for what may be of any type."""

    name: str
    result: str
    parameters: tuple[str, ...]
    call: Callable[..., Any]
    member: bool = True


PACKAGE: Final = "kubernetes"
OPAQUE: Final = ("Quantity", "IP", "CIDR", "URL", "Semver", "Format")
_ANY: Final = (
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "timestamp",
    "duration",
    "list<dyn>",
    "map<dyn, dyn>",
)


# --- values that the engine has no type for ----------------------------------


def _boxed(kind: str, form: str) -> dict[str, str]:
    return {f"{kind}()": form}


def _unboxed(box: Any) -> Any:
    """The value in a box: a Quantity, address, interface, URL, version, or whatever else it was."""
    if not isinstance(box, dict) or len(box) != 1:
        return box
    ((kind, form),) = box.items()
    read = _READERS.get(kind)
    return read(form) if read else box


def _quantity(text: str) -> dict[str, str]:
    return _boxed("quantity", str(Quantity.parse(text).nanos))


def _ip(text: str) -> dict[str, str]:
    if "%" in text or (text.lower().startswith("::ffff:") and "." in text):
        raise ValueError(f"IP address {text!r} with a zone or mapped from IPv4 is not allowed")
    return _boxed("ip", str(ipaddress.ip_address(text)))


def _cidr(text: str) -> dict[str, str]:
    if "/" not in text:
        raise ValueError(f"network address parse error during conversion from string: {text!r} has no prefix length")
    return _boxed("cidr", str(ipaddress.ip_interface(text)))


def _url(text: str) -> dict[str, str]:
    parts = urlsplit(text)
    if not (parts.scheme or text.startswith("/")) or re.search(r"\s", text):
        raise ValueError(f"URL parse error during conversion from string: {text!r}")
    _ = parts.port  # an impossible port raises here rather than when it is asked for
    return _boxed("url", text)


def _semver(text: str, *, loose: bool = False) -> dict[str, str]:
    if loose:
        core, *rest = re.split(r"(?=[-+])", text.strip().removeprefix("v"), maxsplit=1)
        numbers = [number.lstrip("0") or "0" for number in core.split(".")]
        text = ".".join([*numbers, *["0"] * (3 - len(numbers))]) + "".join(rest)
    if not _SEMVER.fullmatch(text):
        raise ValueError(f"{text!r} is not a semantic version; write it like 1.2.3")
    return _boxed("semver", text)


@dataclass(frozen=True, slots=True)
class _Version:
    major: int
    minor: int
    patch: int
    labels: tuple[tuple[int, int, str], ...]
    """Numbers sort before words; none at all sorts after any."""

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


def _compared(one: Any, other: Any) -> int:
    a, b = _order(_unboxed(one)), _order(_unboxed(other))
    if type(a) is not type(b):
        raise ValueError("cannot compare values of different types")
    return int(a > b) - int(a < b)


def _amount(value: Any) -> Quantity:
    return Quantity(value * _NANO) if isinstance(value, int) else _unboxed(value)


def _total(one: Any, other: Any) -> dict[str, str]:
    return _boxed("quantity", str((_amount(one) + _amount(other)).nanos))


def _difference(one: Any, other: Any) -> dict[str, str]:
    return _boxed("quantity", str((_amount(one) - _amount(other)).nanos))


def _is_whole(box: Any) -> bool:
    units, rest = divmod(_unboxed(box).nanos, _NANO)
    return not rest and -(2**63) <= units < 2**63


def _whole(box: Any) -> int:
    if not _is_whole(box):
        raise ValueError("cannot convert value to integer")
    return int(_unboxed(box).nanos // _NANO)


def _succeeds(make: Callable[..., Any]) -> Callable[..., bool]:
    def attempt(*arguments: Any) -> bool:
        try:
            make(*arguments)
        except (ValueError, QuantityError):
            return False
        return True

    return attempt


# --- lists, texts, addresses -------------------------------------------------


def _returned(value: Any) -> Any:
    """A result in a form that the engine takes."""
    if isinstance(value, datetime):
        stamp = Timestamp()
        stamp.FromDatetime(value)
        return stamp
    if isinstance(value, timedelta):
        length = Duration()
        length.FromTimedelta(value)
        return length
    return value


def _sum(values: list[Any]) -> Any:
    if not values:
        return 0
    total = values[0]
    for value in values[1:]:
        total += value
    return _returned(total)


def _least(values: list[Any]) -> Any:
    if not values:
        raise ValueError("min called on empty list")
    return _returned(min(values))


def _greatest(values: list[Any]) -> Any:
    if not values:
        raise ValueError("max called on empty list")
    return _returned(max(values))


def _first_index(values: list[Any], wanted: Any) -> int:
    return next((index for index, value in enumerate(values) if value == wanted), -1)


def _last_index(values: list[Any], wanted: Any) -> int:
    return next((index for index in range(len(values) - 1, -1, -1) if values[index] == wanted), -1)


def _distinct(values: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if value not in kept:
            kept.append(value)
    return [_returned(value) for value in kept]


def _slice(values: list[Any], start: int, end: int) -> list[Any]:
    if not 0 <= start <= end <= len(values):
        raise ValueError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return [_returned(value) for value in values[start:end]]


def _flattened(values: list[Any]) -> list[Any]:
    return [inner for value in values for inner in (value if isinstance(value, list) else [value])]


def _find(text: str, pattern: str) -> str:
    match = patterns.compiled(pattern).search(text)
    return match[0] if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    for match in patterns.compiled(pattern).finditer(text):
        if len(found) == limit:
            break
        found.append(match[0])
    return found


def _contains_ip(network: Any, address: Any) -> bool:
    inner = ipaddress.ip_address(address) if isinstance(address, str) else _unboxed(address)
    return inner in _unboxed(network).network


def _contains_cidr(network: Any, other: Any) -> bool:
    outer = _unboxed(network).network
    inner = (ipaddress.ip_interface(other) if isinstance(other, str) else _unboxed(other)).network
    return inner.version == outer.version and inner.subnet_of(outer)


def _masked(network: Any) -> dict[str, str]:
    return _boxed("cidr", str(_unboxed(network).network))


def _is_canonical(text: str) -> bool:
    return str(ipaddress.ip_address(text)) == text


def _is_global_unicast(address: _Address) -> bool:
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


def _link_local_multicast(address: _Address) -> bool:
    return address in ipaddress.ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")


def _of(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of what is in a box."""
    return lambda box: read(_unboxed(box))


# --- named formats -----------------------------------------------------------


def _by_format(name: str) -> Callable[[str], list[str]]:
    check = formats.check_of(name)
    assert check is not None, f"{name} is a format"
    return lambda text: [] if check(text) else [f"must be a valid {name}"]


def _prefix(problems: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Of a name that more follows, so that it may end in a dash."""
    return lambda text: problems(f"{text[:-1]}a" if text.endswith("-") else text)


_FORMATS: Final[dict[str, Callable[[str], list[str]]]] = {
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
    """An optional value; the engine does not take its own from outside."""
    return {"optional()": [value] if value is not None else []}


def _validated(form: dict[str, str], text: str) -> dict[str, Any]:
    return _perhaps(_FORMATS[form["format()"]](text) or None)


def _named(name: str) -> dict[str, Any]:
    return _perhaps(_boxed("format", name) if name in _FORMATS else None)


def _value(box: dict[str, Any]) -> Any:
    if not box["optional()"]:
        raise ValueError("optional.none() dereference")
    return box["optional()"][0]


_PROBLEMS: Final = "optional_type<list<string>>"
_PERHAPS_FORMAT: Final = "optional_type<Format>"

FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("isSorted", "bool", ("list<dyn>",), lambda values: all(map(lambda a, b: a <= b, values, values[1:]))),
    Function("sum", "dyn", ("list<dyn>",), _sum),
    Function("min", "dyn", ("list<dyn>",), _least),
    Function("max", "dyn", ("list<dyn>",), _greatest),
    Function("indexOf", "int", ("list<dyn>", "any"), _first_index),
    Function("lastIndexOf", "int", ("list<dyn>", "any"), _last_index),
    Function("distinct", "list<dyn>", ("list<dyn>",), _distinct),
    Function("sort", "list<dyn>", ("list<dyn>",), lambda values: [_returned(value) for value in sorted(values)]),
    Function("slice", "list<dyn>", ("list<dyn>", "int", "int"), _slice),
    Function("flatten", "list<dyn>", ("list<dyn>",), _flattened),
    Function("sets.contains", "bool", ("list<dyn>", "list<dyn>"), lambda a, b: all(x in a for x in b), member=False),
    Function("sets.intersects", "bool", ("list<dyn>", "list<dyn>"), lambda a, b: any(x in a for x in b), member=False),
    Function(
        "sets.equivalent", "bool", ("list<dyn>", "list<dyn>"),
        lambda a, b: all(x in a for x in b) and all(x in b for x in a), member=False,
    ),
    Function("find", "string", ("string", "string"), _find),
    Function("findAll", "list<string>", ("string", "string"), _find_all),
    Function("findAll", "list<string>", ("string", "string", "int"), _find_all),
    Function("url", "URL", ("string",), _url, member=False),
    Function("isURL", "bool", ("string",), _succeeds(_url), member=False),
    Function("getScheme", "string", ("URL",), _of(lambda url: url.scheme)),
    Function("getHost", "string", ("URL",), _of(lambda url: url.netloc.rpartition("@")[2])),
    Function("getHostname", "string", ("URL",), _of(lambda url: url.hostname or "")),
    Function("getPort", "string", ("URL",), _of(lambda url: str(url.port or ""))),
    Function("getEscapedPath", "string", ("URL",), _of(lambda url: url.path)),
    Function(
        "getQuery", "map<string, list<string>>", ("URL",), _of(lambda url: parse_qs(url.query, keep_blank_values=True))
    ),
    Function("quantity", "Quantity", ("string",), _quantity, member=False),
    Function("isQuantity", "bool", ("string",), _succeeds(_quantity), member=False),
    Function("sign", "int", ("Quantity",), _of(lambda amount: (amount.nanos > 0) - (amount.nanos < 0))),
    Function("isInteger", "bool", ("Quantity",), _is_whole),
    Function("asInteger", "int", ("Quantity",), _whole),
    Function("asApproximateFloat", "double", ("Quantity",), _of(lambda amount: amount.nanos / _NANO)),
    Function("add", "Quantity", ("Quantity", "Quantity"), _total),
    Function("add", "Quantity", ("Quantity", "int"), _total),
    Function("sub", "Quantity", ("Quantity", "Quantity"), _difference),
    Function("sub", "Quantity", ("Quantity", "int"), _difference),
    *(
        function
        for kind in ("Quantity", "Semver")
        for function in (
            Function("compareTo", "int", (kind, kind), _compared),
            Function("isLessThan", "bool", (kind, kind), lambda a, b: _compared(a, b) < 0),
            Function("isGreaterThan", "bool", (kind, kind), lambda a, b: _compared(a, b) > 0),
        )
    ),
    Function("semver", "Semver", ("string",), _semver, member=False),
    Function("semver", "Semver", ("string", "bool"), lambda text, loose: _semver(text, loose=loose), member=False),
    Function("isSemver", "bool", ("string",), _succeeds(_semver), member=False),
    Function(
        "isSemver", "bool", ("string", "bool"), _succeeds(lambda text, loose: _semver(text, loose=loose)), member=False
    ),
    Function("major", "int", ("Semver",), _of(lambda version: version.major)),
    Function("minor", "int", ("Semver",), _of(lambda version: version.minor)),
    Function("patch", "int", ("Semver",), _of(lambda version: version.patch)),
    Function("ip", "IP", ("string",), _ip, member=False),
    Function("isIP", "bool", ("string",), _succeeds(_ip), member=False),
    Function("ip.isCanonical", "bool", ("string",), _is_canonical, member=False),
    Function("family", "int", ("IP",), _of(lambda address: address.version)),
    Function("isUnspecified", "bool", ("IP",), _of(lambda address: address.is_unspecified)),
    Function("isLoopback", "bool", ("IP",), _of(lambda address: address.is_loopback)),
    Function("isLinkLocalMulticast", "bool", ("IP",), _of(_link_local_multicast)),
    Function(
        "isLinkLocalUnicast", "bool", ("IP",), _of(lambda address: address.is_link_local and not address.is_multicast)
    ),
    Function("isGlobalUnicast", "bool", ("IP",), _of(_is_global_unicast)),
    Function("cidr", "CIDR", ("string",), _cidr, member=False),
    Function("isCIDR", "bool", ("string",), _succeeds(_cidr), member=False),
    Function("containsIP", "bool", ("CIDR", "IP"), _contains_ip),
    Function("containsIP", "bool", ("CIDR", "string"), _contains_ip),
    Function("containsCIDR", "bool", ("CIDR", "CIDR"), _contains_cidr),
    Function("containsCIDR", "bool", ("CIDR", "string"), _contains_cidr),
    Function("ip", "IP", ("CIDR",), _of(lambda network: _boxed("ip", str(network.ip)))),
    Function("masked", "CIDR", ("CIDR",), _masked),
    Function("prefixLength", "int", ("CIDR",), _of(lambda network: network.network.prefixlen)),
    Function("format.named", _PERHAPS_FORMAT, ("string",), _named, member=False),
    *(
        Function(f"format.{name}", "Format", (), lambda name=name: _boxed("format", name), member=False)
        for name in _FORMATS
    ),
    Function("validate", _PROBLEMS, ("Format", "string"), _validated),
)  # fmt: skip

_OPTIONAL_FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("hasValue", "bool", ("map<dyn, dyn>",), lambda box: bool(box["optional()"])),
    Function("value", "dyn", ("map<dyn, dyn>",), _value),
)
"""What optional values offer, for those that our own functions return."""


def for_checking() -> Any:
    """The functions with Kubernetes' types, for an environment that checks rules and runs none.

    Its descriptor pool must have a message of the name of each `OPAQUE` type.
    """
    return _extension(FUNCTIONS, {kind: f"{PACKAGE}.{kind}" for kind in OPAQUE})


def for_running() -> Any:
    """The functions with the types of what is really passed."""
    boxed = dict.fromkeys((*OPAQUE, _PROBLEMS, _PERHAPS_FORMAT), "map<dyn, dyn>")
    return _extension((*FUNCTIONS, *_OPTIONAL_FUNCTIONS), boxed)


def _extension(functions: Iterable[Function], types: Mapping[str, str]) -> Any:
    """The functions, with `types` for those that the engine does not know by name."""
    overloads: dict[str, dict[tuple[Any, ...], Any]] = {}
    for function in functions:
        declared = overloads.setdefault(function.name, {})
        result = types.get(function.result) or _renamed(function.result, types)
        for parameters in _expanded(tuple(types.get(kind, kind) for kind in function.parameters)):
            # Two kinds of box in the same place are one signature; the function itself tells them apart.
            declared.setdefault(
                (function.member, parameters),
                cel.Overload(
                    f"{function.name}_{len(declared)}_{'_'.join(parameters)}",
                    cel.Type(result),
                    [cel.Type(kind) for kind in parameters],
                    function.member,
                    function.call,
                ),
            )
    declarations = [cel.FunctionDecl(name, list(declared.values())) for name, declared in overloads.items()]
    return cel.CelExtension(PACKAGE, declarations)


def _renamed(result: str, types: Mapping[str, str]) -> str:
    return re.sub(r"\b[A-Z]\w*", lambda kind: types[kind[0]], result)


def _expanded(parameters: tuple[str, ...]) -> list[tuple[str, ...]]:
    """One signature for each type that a parameter of any type may have."""
    if "any" not in parameters:
        return [parameters]
    return [tuple(each if kind == "any" else kind for kind in parameters) for each in _ANY]
