"""The address that a command listens on: only this machine reaches it, unless other machines are allowed to."""

from __future__ import annotations

from ipaddress import ip_address

from holdfast.cli.errors import Complaint, ExitCode, InputError


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
        local = False
    if not local and not allow_others:
        message = f"{bind} can be reached by other machines; add --allow-non-loopback if they shall, or bind 127.0.0.1"
        raise InputError(Complaint(message=message, path="--bind"))
    return bind
