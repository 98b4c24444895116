"""References of a Tenant to objects in its namespace.

This module must not know their content.
"""

from __future__ import annotations

from typing import Annotated

from holdfast.kinds.model import Model, Name, api


class LocalReference(Model):
    """An object in the Tenant's namespace."""

    name: Annotated[Name, api("The name of the object.")]


class KeyReference(LocalReference):
    """A key of a Secret or ConfigMap in the Tenant's namespace."""

    key: Annotated[Name, api("The key inside the Secret or ConfigMap.")]
