"""Writes manifests as YAML that people read: keys in their order, and values in full wherever they are repeated."""

from __future__ import annotations

from typing import Any

import yaml

_Dumper: Any = type(
    "_Dumper",
    (yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper,),
    {"ignore_aliases": lambda self, data: True},
)


def text(manifest: Any, *, width: int = 120) -> str:
    """One manifest."""
    written: str = yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, width=width, allow_unicode=True)
    return written
