"""The wire is VirtRigaud's: the numbers of all fields, bytes by hand in both directions, JSON in both casings."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from google.protobuf.descriptor import FieldDescriptor
from tests.places import ROOT

from holdfast.providers.contract import Change, Code, Disk, Image, Machine, Nic, Placement, ProviderError, TaskState
from holdfast.providers.wire import documents, messages
from holdfast.providers.wire.generated import provider_pb2 as pb

UPSTREAM = """
TaskRef: id = 1 string
Empty:
ValidateRequest:
ValidateResponse: ok = 1 bool, message = 2 string
CreateRequest: name = 1 string, user_data = 2 bytes, meta_data = 9 bytes, class_json = 3 string, image_json = 4
    string, networks_json = 5 string, disks_json = 6 string, placement_json = 7 string, tags = 8 repeated string
CreateResponse: id = 1 string, task = 2 TaskRef
DeleteRequest: id = 1 string
PowerRequest: id = 1 string, op = 2 PowerOp, graceful_timeout_seconds = 3 int32
ReconfigureRequest: id = 1 string, desired_json = 2 string
HardwareUpgradeRequest: id = 1 string, target_version = 2 int32
TaskResponse: task = 1 TaskRef
DescribeRequest: id = 1 string
DescribeResponse: exists = 1 bool, power_state = 2 string, ips = 3 repeated string, console_url = 4 string,
    provider_raw_json = 5 string
TaskStatusRequest: task = 1 TaskRef
TaskStatusResponse: done = 1 bool, error = 2 string
SnapshotCreateRequest: vm_id = 1 string, name_hint = 2 string, include_memory = 3 bool, description = 4 string
SnapshotCreateResponse: snapshot_id = 1 string, task = 2 TaskRef
SnapshotDeleteRequest: vm_id = 1 string, snapshot_id = 2 string
SnapshotRevertRequest: vm_id = 1 string, snapshot_id = 2 string
CloneRequest: source_vm_id = 1 string, target_name = 2 string, linked = 3 bool, class_json = 4 string, placement_json
    = 5 string, customize_json = 6 string
CloneResponse: target_vm_id = 1 string, task = 2 TaskRef
ImagePrepareRequest: image_json = 1 string, target_name = 2 string, storage_hint = 3 string
ImagePrepareResponse: task = 1 TaskRef, prepared_image_id = 2 string, prepared_image_path = 3 string
ExportDiskRequest: vm_id = 1 string, disk_id = 2 string, snapshot_id = 3 string, destination_url = 4 string, format =
    5 string, compress = 6 bool, credentials = 7 map, backend_type = 8 string, transfer_mode = 9 string,
    storage_options_json = 10 string
ExportDiskResponse: export_id = 1 string, task = 2 TaskRef, estimated_size_bytes = 3 int64, checksum = 4 string
ImportDiskRequest: source_url = 1 string, storage_hint = 2 string, format = 3 string, target_name = 4 string,
    verify_checksum = 5 bool, expected_checksum = 6 string, credentials = 7 map, backend_type = 8 string,
    transfer_mode = 9 string, storage_options_json = 10 string
ImportDiskResponse: disk_id = 1 string, path = 2 string, task = 3 TaskRef, actual_size_bytes = 4 int64, checksum = 5
    string
GetDiskInfoRequest: vm_id = 1 string, disk_id = 2 string, snapshot_id = 3 string
GetDiskInfoResponse: disk_id = 1 string, format = 2 string, virtual_size_bytes = 3 int64, actual_size_bytes = 4 int64,
    path = 5 string, is_bootable = 6 bool, snapshots = 7 repeated string, backing_file = 8 string, metadata = 9 map
ListVMsRequest:
ListVMsResponse: vms = 1 repeated VMInfo
VMInfo: id = 1 string, name = 2 string, power_state = 3 string, ips = 4 repeated string, cpu = 5 int32, memory_mib = 6
    int64, disks = 7 repeated DiskInfo, networks = 8 repeated NetworkInfo, provider_raw = 9 map
DiskInfo: id = 1 string, path = 2 string, size_gib = 3 int32, format = 4 string
NetworkInfo: name = 1 string, mac = 2 string, ip_address = 3 string
GetCapabilitiesRequest:
GetCapabilitiesResponse: supports_reconfigure_online = 1 bool, supports_disk_expansion_online = 2 bool,
    supports_snapshots = 3 bool, supports_memory_snapshots = 4 bool, supports_linked_clones = 5 bool,
    supports_image_import = 6 bool, supported_disk_types = 7 repeated string, supported_network_types = 8 repeated
    string, supports_disk_export = 9 bool, supports_disk_import = 10 bool, supported_export_formats = 11 repeated
    string, supported_import_formats = 12 repeated string, supports_export_compression = 13 bool,
    supported_export_backends = 14 repeated string, supported_import_backends = 15 repeated string,
    supported_transfer_modes = 16 repeated string
"""
"""The messages and the numbers and types of their fields; lines that are indented go on with the message above."""

CALLS = {
    "Validate": ("ValidateRequest", "ValidateResponse"),
    "Create": ("CreateRequest", "CreateResponse"),
    "Delete": ("DeleteRequest", "TaskResponse"),
    "Power": ("PowerRequest", "TaskResponse"),
    "Reconfigure": ("ReconfigureRequest", "TaskResponse"),
    "HardwareUpgrade": ("HardwareUpgradeRequest", "TaskResponse"),
    "Describe": ("DescribeRequest", "DescribeResponse"),
    "TaskStatus": ("TaskStatusRequest", "TaskStatusResponse"),
    "SnapshotCreate": ("SnapshotCreateRequest", "SnapshotCreateResponse"),
    "SnapshotDelete": ("SnapshotDeleteRequest", "TaskResponse"),
    "SnapshotRevert": ("SnapshotRevertRequest", "TaskResponse"),
    "Clone": ("CloneRequest", "CloneResponse"),
    "ImagePrepare": ("ImagePrepareRequest", "ImagePrepareResponse"),
    "GetCapabilities": ("GetCapabilitiesRequest", "GetCapabilitiesResponse"),
    "ExportDisk": ("ExportDiskRequest", "ExportDiskResponse"),
    "ImportDisk": ("ImportDiskRequest", "ImportDiskResponse"),
    "GetDiskInfo": ("GetDiskInfoRequest", "GetDiskInfoResponse"),
    "ListVMs": ("ListVMsRequest", "ListVMsResponse"),
}

TYPES = {
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_BYTES: "bytes",
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
}


def described(field: FieldDescriptor) -> str:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        kind = "map"
    elif field.message_type is not None:
        kind = field.message_type.name
    elif field.enum_type is not None:
        kind = field.enum_type.name
    else:
        kind = TYPES[field.type]
    repeated = "repeated " if field.is_repeated and kind != "map" else ""
    return f"{field.name} = {field.number} {repeated}{kind}"


def test_the_messages_have_the_fields_of_the_wire_and_ours_from_one_hundred_on() -> None:
    for line in UPSTREAM.replace("\n    ", " ").strip().splitlines():
        name, _, fields = line.partition(":")
        expected = {field.strip() for field in fields.split(",") if field.strip()}
        message = pb.DESCRIPTOR.message_types_by_name[name]
        assert {described(field) for field in message.fields if field.number < 100} == expected, name


def test_the_service_has_the_calls_of_the_wire() -> None:
    service = pb.DESCRIPTOR.services_by_name["Provider"]
    assert service.full_name == "provider.v1.Provider"
    found = {name: (one.input_type.name, one.output_type.name) for name, one in service.methods_by_name.items()}
    assert {name: found[name] for name in CALLS} == CALLS
    assert not any(one.client_streaming or one.server_streaming for one in service.methods)


def test_power_operations_have_their_numbers() -> None:
    assert dict(pb.PowerOp.items()) == {
        "POWER_OP_UNSPECIFIED": 0,
        "POWER_OP_ON": 1,
        "POWER_OP_OFF": 2,
        "POWER_OP_REBOOT": 3,
        "POWER_OP_SHUTDOWN_GRACEFUL": 4,
    }


# --- bytes by hand ---------------------------------------------------------------------


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def text(number: int, value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def test_a_creation_as_upstreams_manager_sends_it_is_understood() -> None:
    sent = (
        text(1, "web-0")
        + text(2, b"#cloud-config\n")
        + text(
            3,
            '{"CPU":4,"MemoryMiB":8192,"Firmware":"UEFI","DiskDefaults":{"Type":"thin","SizeGiB":40},'
            '"GuestToolsPolicy":"install","ExtraConfig":{"Custom.Key":"Value"},'
            '"PerformanceProfile":{"LatencySensitivity":"low","CPUHotAddEnabled":true,"MemoryHotAddEnabled":true},'
            '"SecurityProfile":{"SecureBoot":true,"TPMEnabled":true,"TPMVersion":"2.0"},"ResourceLimits":null}',
        )
        + text(4, '{"TemplateName":"ubuntu","Path":"","URL":"","Format":"","Checksum":"","ChecksumType":""}')
        + text(
            5,
            '[{"Name":"lan","Portgroup":"pg","NetworkName":"VM Network","Bridge":"br0","VLAN":7,"Model":"virtio",'
            '"MacAddress":"52:54:00:00:00:01","IPPolicy":"static","StaticIP":"192.0.2.9","Prefix":24,'
            '"Gateway":"192.0.2.1","DNS":"192.0.2.2,192.0.2.3","PCISlotNumber":null}]',
        )
        + text(6, '[{"SizeGiB":100,"Type":"ssd","Name":"data"}]')
        + text(7, '{"Datastore":"ds","StoragePod":"","Cluster":"c1","Folder":"f","Host":"h1"}')
        + text(8, "a")
        + text(8, "b")
        + text(9, b"instance-id: web-0\n")
    )
    assert messages.read_create(pb.CreateRequest.FromString(sent)) == Machine(
        name="web-0",
        cpus=4,
        memory_mib=8192,
        firmware="UEFI",
        image=Image(template="ubuntu"),
        disks=(Disk(name="root", size_gib=40, type="thin"), Disk(name="data", size_gib=100, type="ssd")),
        nics=(
            Nic(
                name="lan",
                network="VM Network",
                bridge="br0",
                portgroup="pg",
                vlan=7,
                model="virtio",
                mac="52:54:00:00:00:01",
                ip_policy="static",
                static_ip="192.0.2.9",
                prefix=24,
                gateway="192.0.2.1",
                dns="192.0.2.2,192.0.2.3",
            ),
        ),
        user_data=b"#cloud-config\n",
        meta_data=b"instance-id: web-0\n",
        placement=Placement(datastore="ds", cluster="c1", folder="f", host="h1"),
        tags=("a", "b"),
        cpu_hot_add=True,
        memory_hot_add=True,
        secure_boot=True,
        tpm=True,
        extra={"Custom.Key": "Value"},
    )


def test_null_and_nothing_in_json_are_defaults() -> None:
    sent = text(1, "web") + text(3, "null") + text(5, "null") + text(6, "")
    assert messages.read_create(pb.CreateRequest.FromString(sent)) == Machine(name="web")


def test_a_creation_that_we_send_has_the_keys_that_upstreams_provider_reads() -> None:
    machine = Machine(
        name="web",
        cpus=2,
        memory_mib=1024,
        image=Image(url="https://example.com/a.qcow2", checksum="ab", checksum_type="sha256"),
        disks=(Disk(name="root", size_gib=5), Disk(name="data", size_gib=9, type="thin")),
        nics=(Nic(name="lan", static_ip="192.0.2.9"),),
        placement=Placement(host="h", resource_pool="p"),
        cpu_hot_add=True,
        tags=("t",),
    )
    request = messages.create_request(machine)
    assert pb.CreateRequest.FromString(request.SerializeToString()) == request
    assert request.SerializeToString().startswith(text(1, "web"))
    wanted = msgspec.json.decode(request.class_json)
    assert (wanted["CPU"], wanted["MemoryMiB"], wanted["DiskDefaults"]["SizeGiB"]) == (2, 1024, 5)
    assert wanted["PerformanceProfile"]["CPUHotAddEnabled"] is True
    assert msgspec.json.decode(request.image_json)["URL"] == "https://example.com/a.qcow2"
    assert msgspec.json.decode(request.networks_json)[0]["StaticIP"] == "192.0.2.9"
    assert msgspec.json.decode(request.disks_json) == [{"SizeGiB": 9, "Type": "thin", "Name": "data"}]
    assert msgspec.json.decode(request.placement_json)["Host"] == "h"
    assert messages.read_create(request) == machine


def test_a_change_is_read_in_every_form_that_is_sent() -> None:
    for sent in (
        '{"Name":"web","Class":{"CPU":8,"MemoryMiB":4096},"Disks":[{"SizeGiB":20,"Type":"","Name":"data"}]}',
        '{"class":{"cpu":8,"memoryMiB":4096},"disks":[{"sizeGiB":20,"name":"data"}]}',
        '{"cpu":8,"memoryMiB":4096,"disks":[{"sizeGiB":20,"name":"data"}]}',
    ):
        request = pb.ReconfigureRequest.FromString(text(1, "vm-1") + text(2, sent))
        expected = Change(cpus=8, memory_mib=4096, disks=(Disk(name="data", size_gib=20),))
        assert messages.read_reconfigure(request) == expected
    change = Change(memory_mib=2048, offline=True)
    assert messages.read_reconfigure(messages.reconfigure_request("vm", change)) == change


def test_answers_of_an_upstream_provider_are_understood() -> None:
    described = (
        integer(1, 1)
        + text(2, "poweredOn")
        + text(3, "192.0.2.4")
        + text(3, "2001:db8::4")
        + text(4, "vnc://host:5901")
        + text(5, '{"uuid":"x","cpus":2}')
    )
    found = messages.read_describe(pb.DescribeResponse.FromString(described))
    assert (found.exists, found.power, found.ips) == (True, "On", ("192.0.2.4", "2001:db8::4"))
    assert (found.cpus, found.guest_ready, found.host) == (None, None, "")
    assert found.raw == {"uuid": "x", "cpus": "2"}

    failed = pb.TaskStatusResponse.FromString(integer(1, 1) + text(2, "disk full"))
    assert messages.read_task_status(failed) == TaskState(done=True, error="disk full", code=Code.INTERNAL)
    running = pb.TaskStatusResponse.FromString(b"")
    assert messages.read_task_status(running) == TaskState()

    machine = (
        text(1, "42")
        + text(2, "old")
        + text(3, "shut off")
        + text(4, "192.0.2.5")
        + integer(5, 2)
        + integer(6, 2048)
        + text(7, text(1, "d") + text(2, "/d.qcow2") + integer(3, 10) + text(4, "qcow2"))
        + text(8, text(1, "lan") + text(2, "52:54:00:00:00:02"))
        + text(9, text(1, "k") + text(2, "v"))
    )
    (listed,) = messages.read_list(pb.ListVMsResponse.FromString(text(1, machine)))
    assert (listed.id, listed.power, listed.cpus, listed.memory_mib) == ("42", "Off", 2, 2048)
    assert listed.disks[0].virtual_bytes == 10 << 30


def test_our_answers_begin_with_what_upstreams_manager_reads() -> None:
    state = TaskState(done=True, error="no", code=Code.QUOTA, percentage=7)
    assert messages.task_response(state).SerializeToString().startswith(integer(1, 1) + text(2, "no"))
    assert messages.read_task_status(messages.task_response(state)) == state


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ('{"CPU":"two"}', r"class_json cannot be read: Expected `int`, got `str` - at `\$.cpu`"),
        ("{", "class_json cannot be read: Input data was truncated"),
        ("[]", "class_json cannot be read: Expected `object`, got `array`"),
    ],
)
def test_json_that_cannot_be_read_is_an_invalid_argument_with_its_path(sent: str, words: str) -> None:
    with pytest.raises(ProviderError, match=words) as raised:
        documents.read_machine(name="web", class_json=sent)
    assert raised.value.code is Code.INVALID


def test_the_generated_code_is_current(tmp_path: Path) -> None:
    if importlib.util.find_spec("grpc_tools") is None:
        pytest.skip("grpcio-tools is not installed")
    source = "holdfast/providers/wire/generated/provider.proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(ROOT / "src")]
    command += [f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", str(ROOT / "src" / source)]
    subprocess.run(command, check=True)
    version = re.compile(r"Protobuf Python Version: .*|^    \d+,$", re.MULTILINE)
    for name in ("provider_pb2.py", "provider_pb2.pyi"):
        fresh = (tmp_path / Path(source).with_name(name)).read_text()
        kept = (ROOT / "src" / source).with_name(name).read_text()
        assert version.sub("", fresh) == version.sub("", kept), f"{name} is not current: run `make proto`"
