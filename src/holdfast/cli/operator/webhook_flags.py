"""The options of webhooks: where they are served, how the API server reaches them, and what they review."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from holdfast.cli.arguments import PathType
from holdfast.cli.bundling import bundled
from holdfast.cli.operator.registration import WebhookOptions, parsed_name, parsed_selector
from holdfast.meta.selectors import SelectorError
from holdfast.runtime.health import LOOPBACK


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFlags:
    """What webhooks review, and whether objects are refused while none answers."""

    strict: bool
    selector: str
    exempt: tuple[str, ...]

    @property
    def are_given(self) -> bool:
        """Whether at least one of them is given."""
        return bool(self.strict or self.selector or self.exempt)

    @property
    def namespaces(self) -> dict[str, Any]:
        """The selector of namespaces; raises `click.UsageError`."""
        try:
            return parsed_selector(self.selector)
        except SelectorError as error:
            message = f"--webhook-selector {self.selector!r} selects no labels of namespaces: {error}"
            raise click.UsageError(f"{message}; write KEY=VALUE,KEY=VALUE") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFlags(ReviewFlags):
    """Where webhooks are served, and how the API server reaches and trusts them."""

    port: int | None
    bind: str
    service: str
    url: str
    certificate: Path | None
    injected: str

    def webhooks(self) -> WebhookOptions | None:
        """The webhooks that are asked for, or None; raises `click.UsageError`."""
        service, url = self.service, self.url
        if self.port is None:
            if self.are_given or service or url or self.certificate or self.injected:
                raise click.UsageError("options of webhooks need --webhook-port; add it, or leave them out")
            return None
        if service and url:
            raise click.UsageError("webhooks are reached by --webhook-service or by --webhook-url; leave one out")
        if service and parsed_name(service) is None:
            raise click.UsageError(f"--webhook-service {service!r} is no Service; write NAMESPACE/NAME")
        if self.injected and (self.certificate is None or parsed_name(self.injected) is None):
            raise click.UsageError(
                "--webhook-inject-from names a Certificate, NAMESPACE/NAME, of --webhook-certificate"
            )
        if url and not (url.startswith("https://") and urlsplit(url).hostname):
            raise click.UsageError(f"--webhook-url {url!r} is no URL of a webhook; write https://HOST:PORT")
        return WebhookOptions(
            bind=self.bind,
            port=self.port,
            service=parsed_name(service) or ("", ""),
            url="" if service else url or f"https://127.0.0.1:{self.port}",
            strict=self.strict,
            selector=self.namespaces,
            exempt=self.exempt,
            files=self.certificate,
            injected=self.injected,
        )


_REVIEWS: Final = (
    click.option(
        "--webhook-strict", "strict", is_flag=True, help="Refuse objects while no webhook answers.  [default: accept]"
    ),
    click.option(
        "--webhook-selector",
        "selector",
        default="",
        metavar="LABELS",
        help="Review only in namespaces with these.  [default: all]",
    ),
    click.option(
        "--webhook-exempt",
        "exempt",
        metavar="NS",
        multiple=True,
        help="Review nothing in this namespace; may be repeated.",
    ),
)

review_flags: Final = bundled("reviews", ReviewFlags, *_REVIEWS)
"""Give a command the options about reviews, as one argument `reviews`."""

serving_flags: Final = bundled(
    "serving",
    ServingFlags,
    click.option(
        "--webhook-port",
        "port",
        type=click.IntRange(1, 65535),
        help="Serve webhooks, which review objects and convert older versions, on this port.  [default: none]",
    ),
    click.option(
        "--webhook-bind",
        "bind",
        metavar="ADDRESS",
        default=LOOPBACK,
        show_default=True,
        help="Where webhooks are served.",
    ),
    click.option(
        "--webhook-service",
        "service",
        default="",
        metavar="NS/NAME",
        help="The Service by which the server reaches them, port 443.",
    ),
    click.option("--webhook-url", "url", default="", help="Or their URL.  [default: https://127.0.0.1 and the port]"),
    *_REVIEWS,
    click.option(
        "--webhook-certificate",
        "certificate",
        type=PathType(file_okay=False),
        metavar="DIRECTORY",
        help="Serve tls.crt and tls.key of it, which are read again when they change.  [default: one of our own]",
    ),
    click.option(
        "--webhook-inject-from",
        "injected",
        default="",
        metavar="NS/NAME",
        help="The Certificate of cert-manager that they are from, which then has the server trust it.",
    ),
)
"""Give a command all options of webhooks, as one argument `serving`."""
