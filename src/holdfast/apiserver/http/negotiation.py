"""Content negotiation: chooses the form of a response by the Accept header.

Responses are JSON or YAML; objects can also be requested as a Table or as PartialObjectMetadata.  The first
alternative that can be served is taken, in the client's order of preference.  Protocol buffers cannot be served, so
clients that prefer them get their next choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import msgspec
import yaml

from holdfast.meta.errors import NotAcceptable
from holdfast.meta.exchange import JSON, Request, Response
from holdfast.meta.objects import GVK

YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"

_SERVED: Final = (JSON, YAML)
_KNOWN: Final = (*_SERVED, PROTOBUF)
_STREAMS: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_CONVERSIONS: Final = {
    GVK("meta.k8s.io", "v1", kind): kind.removesuffix("List")
    for kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
}
_HUMAN_CLIENTS: Final = ("curl", "Wget", "Mozilla/5.0")


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a response: its encoding, and what objects are converted to."""

    media_type: str = JSON
    kind: str = ""
    """``Table``, ``PartialObjectMetadata`` or ``PartialObjectMetadataList``; empty for objects as they are."""
    pretty: bool = False

    @property
    def stream_content_type(self) -> str:
        """The media type of a watch, which only JSON has."""
        if self.media_type != JSON:
            raise NotAcceptable.of(_STREAMS[:1])
        return self.media_type


def form_of(request: Request, *, many: bool = False) -> Form:
    """The form that a request accepts, or 406; `many`: the response may be a list or a watch."""
    pretty = request.flag("pretty") if "pretty" in request.query else _is_human(request)
    return _negotiated(request.headers.get("accept", ""), pretty=pretty, many=many)


def respond(form: Form, body: bytes) -> Response:
    """The response 200 with `body`, which is JSON, in the negotiated encoding."""
    if form.media_type == YAML:
        return Response(200, _as_yaml(body), content_type=YAML)
    return Response(200, msgspec.json.format(body, indent=2) + b"\n" if form.pretty else body)


def _is_human(request: Request) -> bool:
    return request.headers.get("user-agent", "").startswith(_HUMAN_CLIENTS)


# --- What a client accepts ---


@dataclass(frozen=True, slots=True)
class Clause:
    """One alternative of an Accept header."""

    media_type: str
    quality: float = 1.0
    params: Mapping[str, str] = field(default_factory=dict)

    def takes(self, offered: str) -> bool:
        """Whether it accepts a media type."""
        return self.media_type in ("*/*", offered) or self.media_type == f"{offered.partition('/')[0]}/*"

    @property
    def target(self) -> GVK | None:
        """What the response is to be converted to; empty for nothing."""
        group, version, kind = (self.params.get(name, "") for name in ("g", "v", "as"))
        return GVK(group, version, kind) if group or version or kind else None


@lru_cache(maxsize=1024)
def clauses(accept: str) -> tuple[Clause, ...]:
    """The alternatives of an Accept header, best first; of equals, those that name a type come first."""
    found = filter(None, map(_clause, accept.split(",")))
    return tuple(sorted(found, key=lambda clause: (-clause.quality, clause.media_type.count("*"))))


def _clause(text: str) -> Clause | None:
    media_type, *rest = (part.strip() for part in text.split(";"))
    pairs = (part.partition("=") for part in rest)
    params = {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}
    try:
        quality = float(params.pop("q", "1"))
    except ValueError:
        quality = 1.0
    return Clause(media_type.lower(), quality, params) if media_type and quality > 0 else None


@lru_cache(maxsize=1024)
def _negotiated(accept: str, *, pretty: bool, many: bool) -> Form:
    if not accept.strip():
        return Form(pretty=pretty)
    asked = clauses(accept)
    takers = [(clause, offered) for clause in asked for offered in _SERVED if clause.takes(offered)]
    for clause, offered in takers:
        kind = _CONVERSIONS.get(clause.target) if clause.target else ""
        stream = clause.params.get("stream", "")
        if kind is not None and (not stream or (stream == "watch" and offered == JSON)):
            return Form(offered, kind, pretty or clause.params.get("pretty") == "1")
    if takers:
        raise NotAcceptable(f"only the following media types are accepted: {', '.join(_KNOWN)}")
    offers: tuple[str, ...] = (*_KNOWN, *_STREAMS) if many else _KNOWN
    if any(clause.takes(PROTOBUF) for clause in asked):
        # Not the message of Kubernetes: clients that want protobuf are to learn that it is not served.
        offers = tuple(offer for offer in offers if not offer.startswith(PROTOBUF))
    raise NotAcceptable.of(offers)


# --- YAML ---


class _Dumper(yaml.CSafeDumper):
    """YAML that Go parsers read back unchanged: to them ``y`` is a boolean and ``1e3`` a number."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^[yYnN]$"), list("yYnN"))
_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def _as_yaml(body: bytes) -> bytes:
    text: str = yaml.dump(
        msgspec.json.decode(body), Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=10_000
    )
    return text.encode()
