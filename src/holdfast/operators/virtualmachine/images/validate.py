"""Problems of a VMImage that its schema does not find: durations, and how to log in where it is fetched.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud import VMImage
from holdfast.kinds.virtrigaud.images import HTTPImageSource
from holdfast.operators.virtualmachine.machines.validate import out_of_range


def problems(image: VMImage) -> tuple[Problem, ...]:
    """All problems of a spec."""
    return (*unreadable(image), *_http(image.spec.source.http))


def unreadable(image: VMImage) -> tuple[Problem, ...]:
    """The durations of a spec that are out of range."""
    prepare, http = image.spec.prepare, image.spec.source.http
    return (
        *out_of_range("spec.prepare.timeout", prepare.timeout if prepare else None),
        *out_of_range("spec.source.http.timeout", http.timeout if http else None),
    )


def _http(source: HTTPImageSource | None) -> Iterator[Problem]:
    login = source.authentication if source else None
    if source is None or login is None:
        return
    ways = {"basicAuth": login.basic_auth, "bearer": login.bearer, "clientCert": login.client_cert}
    given = [name for name, way in ways.items() if way is not None]
    header = next((name for name in source.headers if name.lower() == "authorization"), None)
    if {"basicAuth", "bearer"} <= set(given):
        yield Problem("spec.source.http.authentication", "basicAuth and bearer exclude each other", "remove one")
    elif header is not None and {"basicAuth", "bearer"} & set(given):
        message = f"the header contradicts spec.source.http.authentication.{given[0]}"
        yield Problem(f"spec.source.http.headers.{header}", message, "remove one")
