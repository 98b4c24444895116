"""What the kinds of the group share: the group, and the engine and version of an inference runtime."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from holdfast.kinds.model import Group, api

GROUP: Final = Group("nvidia.com", "v1beta1")

Backend = Literal["sglang", "trtllm", "vllm"]

Semver = Annotated[str, api(pattern=r"^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$")]
"""``MAJOR.MINOR.PATCH``, of at most four digits each."""
