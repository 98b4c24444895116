"""Proxies by environment: which one a URL goes through, as kubectl reads the variables.

Pure: the environment is an argument.  Never through a proxy goes what does not
leave this machine.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_for(url: str, environment: Mapping[str, str]) -> str:
    """The proxy for a URL by ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``, in either case; empty if none."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    excepted = _variable(environment, "NO_PROXY").split(",")
    if _is_local(host) or any(_covers(each.strip(), host, parts.port) for each in excepted):
        return ""
    proxy = _variable(environment, f"{parts.scheme.upper()}_PROXY")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def _variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower(), "")


def _is_local(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _covers(pattern: str, host: str, port: int | None) -> bool:
    """Whether a part of ``NO_PROXY`` means a host: itself, its domain, its network, or everything."""
    if not pattern:
        return False
    if pattern == "*":
        return True
    address = _address(host)
    if address is not None and "/" in pattern:
        try:
            return address in ipaddress.ip_network(pattern, strict=False)
        except ValueError:
            return False
    name, colon, wanted = pattern.rpartition(":")
    if colon and wanted.isdigit() and ":" not in name:  # not an address of IPv6
        if str(port) != wanted:
            return False
        pattern = name
    bare = pattern.removeprefix("*").removeprefix(".").lower()
    return host.endswith(f".{bare}") or (host == bare and not pattern.startswith((".", "*")))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
