"""Label selectors, as Kubernetes writes them.

This module must not know what is selected.
"""

from __future__ import annotations

from typing import Annotated, Literal

from holdfast.kinds.model import Model, api

SelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class LabelSelectorRequirement(Model):
    """A requirement of one label."""

    key: Annotated[str, api("Key of the label.")]
    operator: Annotated[SelectorOperator, api("How the label relates to the values.")]
    values: Annotated[tuple[str, ...], api("The values, for In and NotIn.", list_type="atomic")] = ()


class LabelSelector(Model):
    """Objects by their labels; all requirements must hold."""

    match_labels: Annotated[dict[str, str], api("Labels and the values that they must have.")] = {}
    match_expressions: Annotated[
        tuple[LabelSelectorRequirement, ...], api("Requirements of labels.", list_type="atomic")
    ] = ()
