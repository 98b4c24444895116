"""The string formats that OpenAPI schemas name, as Kubernetes checks them.

A format that is not in the table is not checked: a schema may name any.  This
module judges texts alone; numeric formats are a matter of ranges.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from typing import Final

from holdfast.meta import durations, names, quantities
from holdfast.meta.errors import MalformedError

Check = Callable[[str], bool]

_HEX: Final = "[0-9a-fA-F]"
_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-]\d\d:?\d\d)", re.ASCII
)
_WORDY_DURATION: Final = re.compile(
    r"(?:\d+\s*(?:ns|nanos?|us|µs|micros?|ms|millis?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?"
    r"|d|days?|w|weeks?)\s*)+",
    re.ASCII,
)
_HOSTNAME: Final = r"[a-zA-Z0-9](?:[-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
_COLOUR: Final = r"(?:[01]?\d?\d|2[0-4]\d|25[0-5])"


def check_of(name: str) -> Check | None:
    """How a text of this format is checked; None where it is not."""
    return _CHECKS.get(name.replace("-", ""))


def _matches(pattern: str) -> Check:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _parses(parse: Callable[[str], object]) -> Check:
    def check(text: str) -> bool:
        try:
            parse(text)
        except (MalformedError, ValueError, binascii.Error):
            return False
        return True

    return check


def _is_date_time(text: str) -> bool:
    match = _DATE_TIME.fullmatch(text)
    return match is not None and _is_date(match[1])


def _is_date(text: str) -> bool:
    return len(text) == 10 and _parses(date.fromisoformat)(text)


def _is_duration(text: str) -> bool:
    return _parses(durations.parse_nanoseconds)(text) or _WORDY_DURATION.fullmatch(text) is not None


def _is_hostname(text: str) -> bool:
    return len(text) <= 253 and re.fullmatch(rf"{_HOSTNAME}(?:\.{_HOSTNAME})*\.?", text) is not None


def _is_isbn10(text: str) -> bool:
    digits = re.sub("[ -]", "", text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) is None:
        return False
    return sum((10 - place) * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub("[ -]", "", text)
    if re.fullmatch(r"[0-9]{13}", digits) is None:
        return False
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = [int(digit) for digit in reversed(re.sub(r"[^0-9]", "", text))]
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return 12 < len(digits) < 20 and (sum(digits[::2]) + doubled) % 10 == 0


def _uuid(version: str = "", variant: str = "") -> Check:
    third = f"{version}{_HEX}{{{3 if version else 4}}}"
    fourth = f"{variant}{_HEX}{{{3 if variant else 4}}}"
    return _matches(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


_CHECKS: Final[dict[str, Check]] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}"),
    "byte": _parses(lambda text: base64.b64decode(text, validate=True)),
    "cidr": lambda text: "/" in text and _parses(ipaddress.ip_interface)(text),
    "creditcard": _is_credit_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _matches(r"[^@\s]+@[^@\s]+|.*<[^@\s]+@[^@\s]+>"),
    "hexcolor": _matches(rf"#?(?:{_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": _is_hostname,
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": lambda text: not names.dns_subdomain(text),
    "k8sshortname": lambda text: not names.dns_label(text),
    "mac": _matches(rf"{_HEX}{{2}}(?:([:-]){_HEX}{{2}}(?:\1{_HEX}{{2}}){{4}}(?:(?:\1{_HEX}{{2}}){{2}})?)"),
    "password": lambda text: True,
    "quantity": _parses(quantities.Quantity.parse),
    "rgbcolor": _matches(rf"rgb\(\s*{_COLOUR}\s*,\s*{_COLOUR}\s*,\s*{_COLOUR}\s*\)"),
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": _matches(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*:|/)[^\s\x00-\x1f\x7f]*"),
    "uuid": _uuid(),
    "uuid3": _uuid(version="3"),
    "uuid4": _uuid(version="4", variant="[89abAB]"),
    "uuid5": _uuid(version="5", variant="[89abAB]"),
}
