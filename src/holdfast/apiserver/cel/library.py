"""Declarations of Kubernetes' CEL functions, in addition to those of the engine.

Each function is declared once, with the types that Kubernetes gives it; rules are checked against these.  When rules
run, values of types that the engine does not know are maps (see `functions`), and the declarations say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cel_expr_python import cel

from holdfast.apiserver.cel import functions


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
    "bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration", "list<dyn>", "map<dyn, dyn>",
)  # fmt: skip
_PROBLEMS: Final = "optional_type<list<string>>"
_PERHAPS_FORMAT: Final = "optional_type<Format>"

FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("isSorted", "bool", ("list<dyn>",), lambda values: all(map(lambda a, b: a <= b, values, values[1:]))),
    Function("sum", "dyn", ("list<dyn>",), functions.sum_of),
    Function("min", "dyn", ("list<dyn>",), functions.least),
    Function("max", "dyn", ("list<dyn>",), functions.greatest),
    Function("indexOf", "int", ("list<dyn>", "any"), functions.first_index),
    Function("lastIndexOf", "int", ("list<dyn>", "any"), functions.last_index),
    Function("distinct", "list<dyn>", ("list<dyn>",), functions.distinct),
    Function("sort", "list<dyn>", ("list<dyn>",), functions.sort),
    Function("slice", "list<dyn>", ("list<dyn>", "int", "int"), functions.slice_of),
    Function("flatten", "list<dyn>", ("list<dyn>",), functions.flattened),
    Function("sets.contains", "bool", ("list<dyn>", "list<dyn>"), lambda a, b: all(x in a for x in b), member=False),
    Function("sets.intersects", "bool", ("list<dyn>", "list<dyn>"), lambda a, b: any(x in a for x in b), member=False),
    Function(
        "sets.equivalent", "bool", ("list<dyn>", "list<dyn>"),
        lambda a, b: all(x in a for x in b) and all(x in b for x in a), member=False,
    ),
    Function("find", "string", ("string", "string"), functions.find_in),
    Function("findAll", "list<string>", ("string", "string"), functions.find_all_in),
    Function("findAll", "list<string>", ("string", "string", "int"), functions.find_all_in),
    Function("url", "URL", ("string",), functions.url, member=False),
    Function("isURL", "bool", ("string",), functions.succeeds(functions.url), member=False),
    Function("getScheme", "string", ("URL",), functions.unboxing(lambda url: url.scheme)),
    Function("getHost", "string", ("URL",), functions.unboxing(lambda url: url.netloc.rpartition("@")[2])),
    Function("getHostname", "string", ("URL",), functions.unboxing(lambda url: url.hostname or "")),
    Function("getPort", "string", ("URL",), functions.unboxing(lambda url: str(url.port or ""))),
    Function("getEscapedPath", "string", ("URL",), functions.unboxing(lambda url: url.path)),
    Function("getQuery", "map<string, list<string>>", ("URL",), functions.unboxing(functions.query_of)),
    Function("quantity", "Quantity", ("string",), functions.quantity, member=False),
    Function("isQuantity", "bool", ("string",), functions.succeeds(functions.quantity), member=False),
    Function("sign", "int", ("Quantity",), functions.unboxing(lambda amount: (amount.nanos > 0) - (amount.nanos < 0))),
    Function("isInteger", "bool", ("Quantity",), functions.is_whole),
    Function("asInteger", "int", ("Quantity",), functions.whole),
    Function("asApproximateFloat", "double", ("Quantity",), functions.unboxing(functions.approximately)),
    Function("add", "Quantity", ("Quantity", "Quantity"), functions.total),
    Function("add", "Quantity", ("Quantity", "int"), functions.total),
    Function("sub", "Quantity", ("Quantity", "Quantity"), functions.difference),
    Function("sub", "Quantity", ("Quantity", "int"), functions.difference),
    *(
        function
        for kind in ("Quantity", "Semver")
        for function in (
            Function("compareTo", "int", (kind, kind), functions.compared),
            Function("isLessThan", "bool", (kind, kind), lambda a, b: functions.compared(a, b) < 0),
            Function("isGreaterThan", "bool", (kind, kind), lambda a, b: functions.compared(a, b) > 0),
        )
    ),
    Function("semver", "Semver", ("string",), functions.semver, member=False),
    Function("semver", "Semver", ("string", "bool"), functions.semver, member=False),
    Function("isSemver", "bool", ("string",), functions.succeeds(functions.semver), member=False),
    Function("isSemver", "bool", ("string", "bool"), functions.succeeds(functions.semver), member=False),
    Function("major", "int", ("Semver",), functions.unboxing(lambda version: version.major)),
    Function("minor", "int", ("Semver",), functions.unboxing(lambda version: version.minor)),
    Function("patch", "int", ("Semver",), functions.unboxing(lambda version: version.patch)),
    Function("ip", "IP", ("string",), functions.ip, member=False),
    Function("isIP", "bool", ("string",), functions.succeeds(functions.ip), member=False),
    Function("ip.isCanonical", "bool", ("string",), functions.is_canonical, member=False),
    Function("family", "int", ("IP",), functions.unboxing(lambda address: address.version)),
    Function("isUnspecified", "bool", ("IP",), functions.unboxing(lambda address: address.is_unspecified)),
    Function("isLoopback", "bool", ("IP",), functions.unboxing(lambda address: address.is_loopback)),
    Function("isLinkLocalMulticast", "bool", ("IP",), functions.unboxing(functions.is_link_local_multicast)),
    Function("isLinkLocalUnicast", "bool", ("IP",), functions.unboxing(functions.is_link_local_unicast)),
    Function("isGlobalUnicast", "bool", ("IP",), functions.unboxing(functions.is_global_unicast)),
    Function("cidr", "CIDR", ("string",), functions.cidr, member=False),
    Function("isCIDR", "bool", ("string",), functions.succeeds(functions.cidr), member=False),
    Function("containsIP", "bool", ("CIDR", "IP"), functions.contains_ip),
    Function("containsIP", "bool", ("CIDR", "string"), functions.contains_ip),
    Function("containsCIDR", "bool", ("CIDR", "CIDR"), functions.contains_cidr),
    Function("containsCIDR", "bool", ("CIDR", "string"), functions.contains_cidr),
    Function("ip", "IP", ("CIDR",), functions.unboxing(lambda network: functions.boxed("ip", str(network.ip)))),
    Function("masked", "CIDR", ("CIDR",), functions.masked),
    Function("prefixLength", "int", ("CIDR",), functions.unboxing(lambda network: network.network.prefixlen)),
    Function("format.named", _PERHAPS_FORMAT, ("string",), functions.named, member=False),
    *(
        Function(f"format.{name}", "Format", (), lambda name=name: functions.boxed("format", name), member=False)
        for name in functions.FORMATS
    ),
    Function("validate", _PROBLEMS, ("Format", "string"), functions.validated),
)  # fmt: skip

_OPTIONAL_FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("hasValue", "bool", ("map<dyn, dyn>",), lambda box: bool(box["optional()"])),
    Function("value", "dyn", ("map<dyn, dyn>",), functions.value_of),
)
"""The functions of optional values, for those that Kubernetes' functions return."""


def for_checking() -> Any:
    """The functions with Kubernetes' types, for an environment that only checks rules.

    Its descriptor pool must have a message of the name of each `OPAQUE` type.
    """
    return _extension(FUNCTIONS, {kind: f"{PACKAGE}.{kind}" for kind in OPAQUE})


def for_running() -> Any:
    """The functions with the types of the values that are really passed."""
    boxed = dict.fromkeys((*OPAQUE, _PROBLEMS, _PERHAPS_FORMAT), "map<dyn, dyn>")
    return _extension((*FUNCTIONS, *_OPTIONAL_FUNCTIONS), boxed)


def _extension(functions: Iterable[Function], types: Mapping[str, str]) -> Any:
    """The functions, with `types` for those that the engine does not know by name."""
    overloads: dict[str, dict[tuple[Any, ...], Any]] = {}
    for function in functions:
        declared = overloads.setdefault(function.name, {})
        result = types.get(function.result) or _renamed(function.result, types)
        for parameters in _expanded(tuple(types.get(kind, kind) for kind in function.parameters)):
            # Boxed values of two kinds have one signature; the function distinguishes them.
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
