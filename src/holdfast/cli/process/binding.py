"""The address that a command listens on: only this machine reaches it, unless other machines are allowed to."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final

from holdfast.cli.errors import Complaint, ExitCode, InputError

_HOST: Final = re.compile(r"[\w.-]+")


class CannotStart(InputError):
    """The options are valid, but the server cannot start now."""

    exit_code = ExitCode.BLOCKED


def checked_bind(bind: str, *, allow_others: bool) -> str:
    """The address to listen on; other machines may reach it only with --allow-non-loopback."""
    # As a name it would be two addresses, with a free port each.
    bind = "127.0.0.1" if bind == "localhost" else bind
    try:
        local = ip_address(bind).is_loopback
    except ValueError:
        if not _HOST.fullmatch(bind):
            message = f"{bind!r} is not an address; write such as 127.0.0.1"
            raise InputError(Complaint(message=message, path="--bind")) from None
        local = False
    if not local and not allow_others:
        message = f"{bind} can be reached by other machines; add --allow-non-loopback if they shall, or bind 127.0.0.1"
        raise InputError(Complaint(message=message, path="--bind"))
    return bind
