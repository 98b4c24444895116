"""The names, labels and annotations of virtual machines and of their providers."""

from __future__ import annotations

from typing import Final

from holdfast.meta.names import make_name

ADOPTED: Final = "virtrigaud.io/adopted"
"""The label of a VirtualMachine whose machine existed before it."""

ADOPT_ID: Final = "virtrigaud.io/adopt-id"
"""The annotation that names the machine that a VirtualMachine adopts, by the provider's identifier."""

FORCE_DELETE: Final = "virtrigaud.io/force-delete"
"""The annotation that lets a VirtualMachine go although its provider has not confirmed the deletion."""

REBOOT: Final = "virtrigaud.io/reboot"
"""The annotation that asks for a reboot: each new value is one request."""

ADOPT: Final = "virtrigaud.io/adopt-vms"
"""The annotation of a Provider whose existing machines are adopted."""

ADOPT_FILTER: Final = "virtrigaud.io/adopt-filter"
"""The annotation that says which, as JSON."""

ON_DEMAND: Final = "virtrigaud.io/start-on-demand"
"""The annotation of a Provider whose process starts when the first machine refers to it."""

FINALIZER: Final = "virtualmachine.infra.virtrigaud.io/finalizer"

_NAME_MAX: Final = 63
_UID_PART: Final = 8


def machine(name: str, uid: str) -> str:
    """The name of a machine in the inventory of its provider.

    It ends with a part of the UID: two namespaces may have machines of one name on one provider, and a machine that is
    asked for again after a lost reply must be recognized.
    """
    return f"{name[: _NAME_MAX - _UID_PART - 1].rstrip('-.')}-{uid[:_UID_PART]}"


def runtime(namespace: str, name: str) -> str:
    """The name of the Deployment and the Service of a provider."""
    return make_name(f"virtrigaud-provider-{namespace}", name)


def certificate(namespace: str, name: str) -> str:
    """The name of the Secret with the certificates of a provider."""
    return make_name(f"virtrigaud-provider-{namespace}", f"{name}-tls")


def data(namespace: str, name: str) -> str:
    """The name of the claim with the data of a provider."""
    return make_name(f"virtrigaud-provider-{namespace}", f"{name}-data")
