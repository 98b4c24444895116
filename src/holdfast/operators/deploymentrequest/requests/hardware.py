"""The hardware of a request: what its spec gives, completed by what the labels of nodes say.

GPU feature discovery labels nodes with ``nvidia.com/gpu.product``, ``gpu.memory`` and ``gpu.count``.  Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holdfast.kinds.nvidia.requests import Hardware, Sku
from holdfast.meta.quantities import Quantity, QuantityError

GPU: Final = "nvidia.com/gpu"
PRODUCT: Final = "nvidia.com/gpu.product"
MEMORY: Final = "nvidia.com/gpu.memory"
COUNT: Final = "nvidia.com/gpu.count"

BUDGET: Final = 32
"""The most GPUs that are planned for where the spec does not say how many may be used."""

_SKUS: Final[tuple[tuple[str, Sku], ...]] = (
    (r"\bGB200\b", "gb200_sxm"),
    (r"\bGB10\b", "gb10"),
    (r"\bB200\b", "b200_sxm"),
    (r"\bH200\b", "h200_sxm"),
    (r"\bH100\b.*\bPCIE\b", "h100_pcie"),
    (r"\bH100\b", "h100_sxm"),
    (r"\bA100\b.*\bPCIE\b", "a100_pcie"),
    (r"\bA100\b", "a100_sxm"),
    (r"\bA30\b", "a30"),
    (r"\bL40S\b", "l40s"),
    (r"\bL40\b", "l40"),
    (r"\bL4\b", "l4"),
    (r"\bV100\b.*\bPCIE\b", "v100_pcie"),
    (r"\bV100\b", "v100_sxm"),
    (r"\bT4\b", "t4"),
    (r"\bMI2\d\dX?\b", "mi200"),
    (r"\bMI3\d\dX?\b", "mi300"),
)
"""The SKUs of products, by what their names contain; the first that matches counts."""


def sku_of(product: str) -> Sku | None:
    """The SKU of a product as a label names it: ``NVIDIA-H100-80GB-HBM3`` is ``h100_sxm``."""
    return next((sku for pattern, sku in _SKUS if re.search(pattern, product, re.IGNORECASE)), None)


# --- nodes


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""
    labels: dict[str, str] = {}


class _Spec(msgspec.Struct, frozen=True):
    unschedulable: bool = False


class _Status(msgspec.Struct, frozen=True):
    allocatable: dict[str, Any] = {}


class GpuNode(msgspec.Struct, frozen=True):
    """The fields of a node that tell of its GPUs."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def gpus(self) -> int:
        """The GPUs that pods can be given."""
        return _number(self.status.allocatable.get(GPU)) or 0

    @property
    def per_node(self) -> int:
        """The GPUs that the node has."""
        return _number(self.metadata.labels.get(COUNT)) or self.gpus

    @property
    def product(self) -> str:
        return self.metadata.labels.get(PRODUCT, "")

    @property
    def memory(self) -> float | None:
        """The memory of one GPU, in MiB."""
        number = _number(self.metadata.labels.get(MEMORY))
        return None if number is None else float(number)


def _number(value: Any) -> int | None:
    try:
        return None if value is None else int(Quantity.parse(value).to_int())
    except (QuantityError, ValueError):
        return None


# --- the hardware


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is known of the hardware, and what is missing; `problem` says what to write where something is."""

    hardware: Hardware
    problem: str = ""


def resolve(given: Hardware | None, nodes: Iterable[GpuNode]) -> Resolution:
    """The hardware of a spec, completed from nodes.  What the spec gives always counts.

    Of several kinds of nodes, those with the most GPUs count, then those with the most memory.
    """
    given = given or Hardware()
    with_gpus = [node for node in nodes if node.gpus and not node.spec.unschedulable]
    usable = [
        node
        for node in with_gpus
        if (sku := sku_of(node.product)) is not None and given.gpu_sku in (None, sku)
    ]  # fmt: skip
    best = max(usable, key=lambda node: (node.per_node, node.memory or 0), default=GpuNode())
    on_nodes = sum(node.gpus for node in usable if sku_of(node.product) == sku_of(best.product))
    per_node = given.num_gpus_per_node or best.per_node or None
    resolved = Hardware(
        gpu_sku=given.gpu_sku or sku_of(best.product),
        vram_mb=given.vram_mb or best.memory,
        total_gpus=given.total_gpus or min(on_nodes, BUDGET) or per_node,
        num_gpus_per_node=per_node,
        interconnect=given.interconnect,
        rdma=given.rdma,
    )
    return Resolution(resolved, _problem(resolved, given, with_gpus))


def _problem(resolved: Hardware, given: Hardware, with_gpus: list[GpuNode]) -> str:
    fields = {"gpuSku": resolved.gpu_sku, "numGpusPerNode": resolved.num_gpus_per_node}
    missing = [f"spec.hardware.{name}" for name, value in fields.items() if value is None]
    if not missing:
        return ""
    return f"{_seen(given, with_gpus)}; set {' and '.join(missing)}, or add such a node"


def _seen(given: Hardware, with_gpus: list[GpuNode]) -> str:
    if not with_gpus:
        return f"no node has the resource {GPU}"
    products: Mapping[str, None] = dict.fromkeys(node.product or f"no label {PRODUCT}" for node in with_gpus)
    listed = ", ".join(list(products)[:5])
    if given.gpu_sku is not None:
        return f"no node has GPUs of {given.gpu_sku} (there are: {listed})"
    return f"the GPUs of the nodes are of no known SKU ({listed})"
