"""The words for an inference runtime: its engine and its version.

This module must not know who runs it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from holdfast.kinds.model import api

Backend = Literal["sglang", "trtllm", "vllm"]

Semver = Annotated[str, api(pattern=r"^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$")]
"""``MAJOR.MINOR.PATCH``, of at most four digits each."""
