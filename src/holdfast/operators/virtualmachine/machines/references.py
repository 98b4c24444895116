"""What a machine refers to, and what of that does not exist.  Pure."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.operators.virtualmachine.machines.observe import World


def missing(world: World, *, image: bool = False) -> Iterator[str]:
    """The class, networks and Secrets that a machine needs, and that do not exist.

    `image`: its image too, which a machine whose disk is there does not need.
    """
    spec = world.machine.spec
    if world.vm_class is None:
        yield f"VMClass {spec.class_ref.name}"
    if image and spec.image_ref is not None and world.image is None:
        yield f"VMImage {spec.image_ref.name}"
    for card in spec.networks:
        if card.network_ref is not None and card.name not in world.networks:
            yield f"VMNetworkAttachment {card.network_ref.name}"
    user, meta = spec.user_data, spec.meta_data
    for source in (user and user.cloud_init, user and user.ignition, meta and meta.cloud_init):
        if source and source.secret_ref and source.secret_ref.name not in world.secrets:
            yield f"Secret {source.secret_ref.name}"
