"""How the dashboard is served."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line decides for the dashboard.

    server      the URL of the API server, for viewers
    hosts       names by which viewers reach it, beside addresses and localhost
    changes     whether verbs can be carried out
    links       whether a link begins a session for the user of the kubeconfig; else viewers enter tokens
    """

    server: str
    hosts: tuple[str, ...] = ()
    changes: bool = False
    links: bool = True
