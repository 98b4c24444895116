"""Hardware from the spec and from the labels of nodes."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from holdfast.kinds.nvidia.requests import Hardware, Sku
from holdfast.operators.deploymentrequest.requests.hardware import GpuNode, resolve, sku_of


def node(product: str, *, gpus: int = 8, memory: int | None = 80_000, **more: Any) -> GpuNode:
    labels = {"nvidia.com/gpu.product": product}
    if memory is not None:
        labels["nvidia.com/gpu.memory"] = str(memory)
    status = {"allocatable": {"nvidia.com/gpu": str(gpus)}}
    return msgspec.convert({"metadata": {"labels": labels}, "status": status, **more}, GpuNode)


@pytest.mark.parametrize(
    ("product", "sku"),
    [
        ("NVIDIA-H200", "h200_sxm"),
        ("NVIDIA H200", "h200_sxm"),
        ("NVIDIA-H100-80GB-HBM3", "h100_sxm"),
        ("NVIDIA-H100-PCIe", "h100_pcie"),
        ("NVIDIA-A100-SXM4-80GB", "a100_sxm"),
        ("NVIDIA-A100-80GB-PCIe", "a100_pcie"),
        ("NVIDIA-A30", "a30"),
        ("NVIDIA-L40S", "l40s"),
        ("NVIDIA-L40", "l40"),
        ("NVIDIA-L4", "l4"),
        ("NVIDIA-B200", "b200_sxm"),
        ("NVIDIA-GB200", "gb200_sxm"),
        ("NVIDIA-GB10", "gb10"),
        ("Tesla-V100-SXM2-16GB", "v100_sxm"),
        ("Tesla-V100-PCIE-16GB", "v100_pcie"),
        ("Tesla-T4", "t4"),
        ("AMD-Instinct-MI300X", "mi300"),
        ("AMD-Instinct-MI250", "mi200"),
        ("NVIDIA-GeForce-RTX-4090", None),
        ("", None),
    ],
)
def test_products_are_known_by_their_names(product: str, sku: str | None) -> None:
    assert sku_of(product) == sku
    assert sku is None or sku in get_args(Sku)


def test_what_is_missing_is_taken_from_the_best_nodes() -> None:
    found = resolve(None, [node("NVIDIA-L4", gpus=2), node("NVIDIA-H200", memory=143771), node("NVIDIA-H200", gpus=8)])
    assert found.hardware == Hardware(gpu_sku="h200_sxm", vram_mb=143771, num_gpus_per_node=8, total_gpus=16)
    assert not found.problem


def test_what_the_spec_gives_counts() -> None:
    nodes = [node("NVIDIA-L4", gpus=2, memory=None), node("NVIDIA-H200")]
    assert resolve(Hardware(gpu_sku="l4"), nodes).hardware == Hardware(gpu_sku="l4", num_gpus_per_node=2, total_gpus=2)
    given = Hardware(
        gpu_sku="b200_sxm", num_gpus_per_node=4, total_gpus=64, vram_mb=1, interconnect="nvlink", rdma=True
    )
    assert resolve(given, nodes).hardware == given


def test_no_more_gpus_are_planned_for_than_the_budget_unless_the_spec_says_so() -> None:
    nodes = [node("NVIDIA-H200") for _ in range(10)]
    assert resolve(None, nodes).hardware.total_gpus == 32
    assert resolve(Hardware(total_gpus=80), nodes).hardware.total_gpus == 80


def test_a_cordoned_node_does_not_count() -> None:
    nodes = [node("NVIDIA-H200"), node("NVIDIA-H200", spec={"unschedulable": True})]
    assert resolve(None, nodes).hardware.total_gpus == 8


@pytest.mark.parametrize(
    ("given", "nodes", "problem"),
    [
        (
            None,
            [],
            "no node has the resource nvidia.com/gpu; set spec.hardware.gpuSku and spec.hardware.numGpusPerNode",
        ),
        (None, [node("GeForce")], "the GPUs of the nodes are of no known SKU (GeForce)"),
        (Hardware(gpu_sku="a30"), [node("NVIDIA-H200")], "no node has GPUs of a30 (there are: NVIDIA-H200)"),
        (Hardware(gpu_sku="a30"), [], "set spec.hardware.numGpusPerNode, or add such a node"),
    ],
)
def test_what_is_unknown_is_said_with_what_to_write(given: Hardware | None, nodes: list[GpuNode], problem: str) -> None:
    assert problem in resolve(given, nodes).problem
