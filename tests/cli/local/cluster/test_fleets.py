"""``holdfast up --node``: nodes of other kinds."""

from __future__ import annotations

import pytest

from holdfast.cli.errors import InputError
from holdfast.cli.local.cluster.fleets import parsed_fleets
from holdfast.cluster.simulation.nodes import Fleet


def test_nodes_are_described_by_resources_labels_and_a_count() -> None:
    gpus, small = parsed_fleets(
        ("cpu=32,memory=128Gi,nvidia.com/gpu=8,count=4,labels=disk=ssd,labels=tier:a", "cpu=2,memory=4Gi,count=2")
    )
    assert gpus.names == ("node-1", "node-2", "node-3", "node-4")
    assert gpus.resources | {"nvidia.com/gpu": "8", "cpu": "32"} == gpus.resources
    assert gpus.labels | {"disk": "ssd", "tier": "a", "nvidia.com/gpu.product": "NVIDIA-H200"} == gpus.labels
    assert small.names == ("node-5", "node-6")
    assert small.labels == {}


def test_a_label_of_a_gpu_can_be_another_one() -> None:
    (fleet,) = parsed_fleets(("nvidia.com/gpu=4,labels=nvidia.com/gpu.product:NVIDIA-A30",))
    assert fleet.labels["nvidia.com/gpu.product"] == "NVIDIA-A30"
    assert fleet.labels["nvidia.com/gpu.count"] == "4"


def test_without_a_description_there_is_none() -> None:
    assert parsed_fleets(()) == ()
    assert Fleet().discoverable() == Fleet()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("memroy=4Gi", "did you mean memory?"),
        ("disk=1", "write one of cpu, memory"),
        ("cpu", "'cpu' has no value"),
        ("cpu=many", "cpu=many"),
        ("count=0", "count=0 is not a number from 1 to 1000"),
        ("count=2000", "from 1 to 1000"),
        ("nvidia.com/gpu=-1", "is not a number"),
        ("labels=disk", "write labels=KEY=VALUE"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(InputError, match="--node") as refused:
        parsed_fleets((text,))
    assert message in refused.value.format_message()
