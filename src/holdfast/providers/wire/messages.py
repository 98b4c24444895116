"""The messages of the wire as values of the contract, and back.  Nothing here waits or fails by the network."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.meta.sizes import GIB, whole_gib
from holdfast.providers.contract import (
    Capabilities,
    Change,
    Code,
    Datastore,
    Description,
    DiskInfo,
    Gpu,
    Host,
    Image,
    Inventory,
    Listed,
    Machine,
    PowerOp,
    ResourcePool,
    Stage,
    Taint,
    Task,
    TaskState,
    Transfer,
)
from holdfast.providers.wire import documents
from holdfast.providers.wire.generated import provider_pb2 as pb

POWER_OPS: Final[dict[PowerOp, pb.PowerOp]] = {
    "On": pb.POWER_OP_ON,
    "Off": pb.POWER_OP_OFF,
    "Reboot": pb.POWER_OP_REBOOT,
    "ShutdownGraceful": pb.POWER_OP_SHUTDOWN_GRACEFUL,
}

_ON: Final = {"on", "poweredon", "running", "up"}
_OFF: Final = {"off", "poweredoff", "shutoff", "shut off", "stopped", "down"}


def power_word(text: str) -> str:
    """The power state in the contract's words; a word that is not known stays as it is."""
    small = text.lower().replace("_", "")
    return "On" if small in _ON else "Off" if small in _OFF else text


def task_ref(task: Task | None) -> pb.TaskRef | None:
    return pb.TaskRef(id=task.id) if task else None


def read_task(message: pb.TaskRef) -> Task | None:
    return Task(id=message.id) if message.id else None


def read_code(text: str) -> Code | None:
    return Code(text) if text in set(Code) else None


# --- machines --------------------------------------------------------------------------


def create_request(machine: Machine) -> pb.CreateRequest:
    image = machine.image
    if machine.imported_disk and image is None:
        # Who does not know `imported_disk` finds the disk as the path of an image.
        image = Image(path=machine.imported_disk)
    return pb.CreateRequest(
        name=machine.name,
        user_data=machine.user_data,
        meta_data=machine.meta_data,
        class_json=documents.write_class(machine),
        image_json=documents.write_image(image) if image else "",
        networks_json=documents.write_nics(machine.nics),
        disks_json=documents.write_disks(machine.disks),
        placement_json=documents.write_placement(machine.placement),
        tags=machine.tags,
        imported_disk=machine.imported_disk,
    )


def read_create(request: pb.CreateRequest) -> Machine:
    return documents.read_machine(
        name=request.name,
        class_json=request.class_json,
        image_json=request.image_json,
        networks_json=request.networks_json,
        disks_json=request.disks_json,
        placement_json=request.placement_json,
        user_data=request.user_data,
        meta_data=request.meta_data,
        tags=tuple(request.tags),
        imported_disk=request.imported_disk,
    )


def clone_request(id: str, target: Machine, *, linked: bool, snapshot: str, instant: bool) -> pb.CloneRequest:
    return pb.CloneRequest(
        source_vm_id=id,
        target_name=target.name,
        linked=linked,
        class_json=documents.write_class(target),
        placement_json=documents.write_placement(target.placement),
        customize_json=documents.write_customization(target),
        snapshot_id=snapshot,
        instant=instant,
        user_data=target.user_data,
        meta_data=target.meta_data,
        networks_json=documents.write_nics(target.nics),
        disks_json=documents.write_disks(target.disks),
        tags=target.tags,
    )


def read_clone(request: pb.CloneRequest) -> Machine:
    return documents.read_machine(
        name=request.target_name,
        class_json=request.class_json,
        networks_json=request.networks_json,
        disks_json=request.disks_json,
        placement_json=request.placement_json,
        customize_json=request.customize_json,
        user_data=request.user_data,
        meta_data=request.meta_data,
        tags=tuple(request.tags),
    )


def reconfigure_request(id: str, change: Change) -> pb.ReconfigureRequest:
    return pb.ReconfigureRequest(id=id, desired_json=documents.write_change(change), offline=change.offline)


def read_reconfigure(request: pb.ReconfigureRequest) -> Change:
    return documents.read_change(request.desired_json, offline=request.offline)


def describe_response(found: Description) -> pb.DescribeResponse:
    return pb.DescribeResponse(
        exists=found.exists,
        power_state=found.power,
        ips=found.ips,
        console_url=found.console_url,
        provider_raw_json=documents.write_raw(found.raw) if found.raw else "",
        cpu=found.cpus,
        memory_mib=found.memory_mib,
        disks=[disk_response(disk) for disk in found.disks],
        host=found.host,
        guest_ready=found.guest_ready,
        again_after_seconds=found.again_after,
    )


def read_describe(message: pb.DescribeResponse) -> Description:
    return Description(
        exists=message.exists,
        power=power_word(message.power_state),
        ips=tuple(message.ips),
        console_url=message.console_url,
        cpus=message.cpu if message.HasField("cpu") else None,
        memory_mib=message.memory_mib if message.HasField("memory_mib") else None,
        disks=tuple(read_disk(disk) for disk in message.disks),
        host=message.host,
        guest_ready=message.guest_ready if message.HasField("guest_ready") else None,
        again_after=message.again_after_seconds if message.HasField("again_after_seconds") else None,
        raw=documents.read_raw(message.provider_raw_json),
    )


def list_response(found: tuple[Listed, ...]) -> pb.ListVMsResponse:
    return pb.ListVMsResponse(
        vms=[
            pb.VMInfo(
                id=one.id,
                name=one.name,
                power_state=one.power,
                ips=one.ips,
                cpu=one.cpus,
                memory_mib=one.memory_mib,
                disks=[
                    pb.DiskInfo(
                        id=disk.id,
                        path=disk.path,
                        size_gib=whole_gib(disk.virtual_bytes),
                        format=disk.format,
                        virtual_size_bytes=disk.virtual_bytes,
                        actual_size_bytes=disk.actual_bytes,
                        is_bootable=disk.bootable,
                        backing_file=disk.backing_file,
                    )
                    for disk in one.disks
                ],
                host=one.host,
            )
            for one in found
        ]
    )


def read_list(message: pb.ListVMsResponse) -> tuple[Listed, ...]:
    return tuple(
        Listed(
            id=one.id,
            name=one.name,
            power=power_word(one.power_state),
            ips=tuple(one.ips),
            cpus=one.cpu,
            memory_mib=one.memory_mib,
            disks=tuple(
                DiskInfo(
                    id=disk.id,
                    path=disk.path,
                    format=disk.format,
                    virtual_bytes=disk.virtual_size_bytes or disk.size_gib * GIB,
                    actual_bytes=disk.actual_size_bytes,
                    bootable=disk.is_bootable,
                    backing_file=disk.backing_file,
                )
                for disk in one.disks
            ),
            host=one.host,
        )
        for one in message.vms
    )


# --- tasks -----------------------------------------------------------------------------


def task_response(state: TaskState) -> pb.TaskStatusResponse:
    return pb.TaskStatusResponse(
        done=state.done,
        error=state.error,
        code=state.code or "",
        percentage=state.percentage,
        done_bytes=state.done_bytes,
        total_bytes=state.total_bytes,
        again_after_seconds=state.again_after,
        stage=None if state.stage is None else pb.TaskStage(**msgspec.structs.asdict(state.stage)),
        result=state.result,
    )


def read_task_status(message: pb.TaskStatusResponse) -> TaskState:
    code = read_code(message.code)
    return TaskState(
        done=message.done,
        error=message.error,
        code=code or (Code.INTERNAL if message.error else None),
        percentage=message.percentage if message.HasField("percentage") else None,
        done_bytes=message.done_bytes if message.HasField("done_bytes") else None,
        total_bytes=message.total_bytes if message.HasField("total_bytes") else None,
        again_after=message.again_after_seconds if message.HasField("again_after_seconds") else None,
        stage=_read_stage(message.stage) if message.HasField("stage") else None,
        result=dict(message.result),
    )


def _read_stage(message: pb.TaskStage) -> Stage:
    return Stage(
        name=message.name,
        number=message.number,
        count=message.count,
        done_bytes=message.done_bytes if message.HasField("done_bytes") else None,
        total_bytes=message.total_bytes if message.HasField("total_bytes") else None,
    )


# --- disks -----------------------------------------------------------------------------


def disk_response(disk: DiskInfo) -> pb.GetDiskInfoResponse:
    return pb.GetDiskInfoResponse(
        disk_id=disk.id,
        format=disk.format,
        virtual_size_bytes=disk.virtual_bytes,
        actual_size_bytes=disk.actual_bytes,
        path=disk.path,
        is_bootable=disk.bootable,
        snapshots=disk.snapshots,
        backing_file=disk.backing_file,
    )


def read_disk(message: pb.GetDiskInfoResponse) -> DiskInfo:
    return DiskInfo(
        id=message.disk_id,
        format=message.format,
        virtual_bytes=message.virtual_size_bytes,
        actual_bytes=message.actual_size_bytes,
        path=message.path,
        bootable=message.is_bootable,
        snapshots=tuple(message.snapshots),
        backing_file=message.backing_file,
    )


def export_request(transfer: Transfer) -> pb.ExportDiskRequest:
    return pb.ExportDiskRequest(
        vm_id=transfer.machine,
        disk_id=transfer.disk,
        snapshot_id=transfer.snapshot,
        destination_url=transfer.url,
        format=transfer.format,
        compress=transfer.compress,
        credentials=transfer.credentials,
        backend_type=transfer.backend,
        transfer_mode=transfer.mode,
        storage_options_json=transfer.options_json,
    )


def read_export(request: pb.ExportDiskRequest) -> Transfer:
    return Transfer(
        url=request.destination_url,
        machine=request.vm_id,
        disk=request.disk_id,
        snapshot=request.snapshot_id,
        format=request.format,
        compress=request.compress,
        credentials=dict(request.credentials),
        backend=request.backend_type,
        mode=request.transfer_mode,
        options_json=request.storage_options_json,
    )


def import_request(transfer: Transfer) -> pb.ImportDiskRequest:
    return pb.ImportDiskRequest(
        source_url=transfer.url,
        storage_hint=transfer.storage_hint,
        format=transfer.format,
        target_name=transfer.target_name,
        verify_checksum=transfer.verify_checksum,
        expected_checksum=transfer.expected_checksum,
        credentials=transfer.credentials,
        backend_type=transfer.backend,
        transfer_mode=transfer.mode,
        storage_options_json=transfer.options_json,
    )


def read_import(request: pb.ImportDiskRequest) -> Transfer:
    return Transfer(
        url=request.source_url,
        storage_hint=request.storage_hint,
        format=request.format,
        target_name=request.target_name,
        verify_checksum=request.verify_checksum,
        expected_checksum=request.expected_checksum,
        credentials=dict(request.credentials),
        backend=request.backend_type,
        mode=request.transfer_mode,
        options_json=request.storage_options_json,
    )


# --- the provider ----------------------------------------------------------------------


def capabilities_response(can: Capabilities) -> pb.GetCapabilitiesResponse:
    return pb.GetCapabilitiesResponse(
        supports_reconfigure_online=can.reconfigure_online,
        supports_disk_expansion_online=can.disk_expansion_online,
        supports_snapshots=can.snapshots,
        supports_memory_snapshots=can.memory_snapshots,
        supports_linked_clones=can.linked_clones,
        supports_image_import=can.image_import,
        supported_disk_types=can.disk_types,
        supported_network_types=can.network_types,
        supports_disk_export=can.disk_export,
        supports_disk_import=can.disk_import,
        supported_export_formats=can.export_formats,
        supported_import_formats=can.import_formats,
        supports_export_compression=can.export_compression,
        supported_export_backends=can.export_backends,
        supported_import_backends=can.import_backends,
        supported_transfer_modes=can.transfer_modes,
        version=can.version,
        supports_quiesce=can.quiesce,
        supports_instant_clones=can.instant_clones,
        supports_inventory=can.inventory,
        supports_guest_commands=can.guest_commands,
    )


def read_capabilities(message: pb.GetCapabilitiesResponse) -> Capabilities:
    return Capabilities(
        version=message.version,
        reconfigure_online=message.supports_reconfigure_online,
        disk_expansion_online=message.supports_disk_expansion_online,
        snapshots=message.supports_snapshots,
        memory_snapshots=message.supports_memory_snapshots,
        quiesce=message.supports_quiesce,
        linked_clones=message.supports_linked_clones,
        instant_clones=message.supports_instant_clones,
        image_import=message.supports_image_import,
        disk_types=tuple(message.supported_disk_types),
        network_types=tuple(message.supported_network_types),
        disk_export=message.supports_disk_export,
        disk_import=message.supports_disk_import,
        export_formats=tuple(message.supported_export_formats),
        import_formats=tuple(message.supported_import_formats),
        export_compression=message.supports_export_compression,
        export_backends=tuple(message.supported_export_backends),
        import_backends=tuple(message.supported_import_backends),
        transfer_modes=tuple(message.supported_transfer_modes),
        inventory=message.supports_inventory,
        guest_commands=message.supports_guest_commands,
    )


def inventory_response(found: Inventory) -> pb.InventoryResponse:
    return pb.InventoryResponse(
        hosts=[
            pb.Host(
                name=host.name,
                cluster=host.cluster,
                zone=host.zone,
                region=host.region,
                labels=host.labels,
                cpus=host.cpus,
                cpus_used=host.cpus_used,
                memory_mib=host.memory_mib,
                memory_mib_used=host.memory_mib_used,
                datastores=host.datastores,
                networks=host.networks,
                machines=host.machines,
                maintenance=host.maintenance,
                features=host.features,
                taints=[pb.Taint(key=one.key, value=one.value, effect=one.effect) for one in host.taints],
                gpus=[pb.Gpu(type=one.type, count=one.count, memory_mib=one.memory_mib) for one in host.gpus],
                cpu_overcommit=host.cpu_overcommit,
                security_groups=host.security_groups,
                isolation=host.isolation,
                trust=host.trust,
            )
            for host in found.hosts
        ],
        datastores=[
            pb.Datastore(
                name=one.name,
                total_bytes=one.total_bytes,
                free_bytes=one.free_bytes,
                hosts=one.hosts,
                encrypted=one.encrypted,
            )
            for one in found.datastores
        ],
        folders=found.folders,
        resource_pools=[pb.ResourcePool(name=one.name, cluster=one.cluster) for one in found.resource_pools],
    )


def read_inventory(message: pb.InventoryResponse) -> Inventory:
    return Inventory(
        hosts=tuple(
            Host(
                name=host.name,
                cluster=host.cluster,
                zone=host.zone,
                region=host.region,
                labels=dict(host.labels),
                cpus=host.cpus,
                cpus_used=host.cpus_used,
                memory_mib=host.memory_mib,
                memory_mib_used=host.memory_mib_used,
                datastores=tuple(host.datastores),
                networks=tuple(host.networks),
                machines=tuple(host.machines),
                maintenance=host.maintenance,
                features=tuple(host.features),
                taints=tuple(Taint(key=one.key, value=one.value, effect=one.effect) for one in host.taints),
                gpus=tuple(Gpu(type=one.type, count=one.count, memory_mib=one.memory_mib) for one in host.gpus),
                cpu_overcommit=host.cpu_overcommit,
                security_groups=tuple(host.security_groups),
                isolation=host.isolation,
                trust=host.trust,
            )
            for host in message.hosts
        ),
        datastores=tuple(
            Datastore(
                name=one.name,
                total_bytes=one.total_bytes,
                free_bytes=one.free_bytes,
                hosts=tuple(one.hosts),
                encrypted=one.encrypted,
            )
            for one in message.datastores
        ),
        folders=tuple(message.folders),
        resource_pools=tuple(ResourcePool(name=one.name, cluster=one.cluster) for one in message.resource_pools),
    )
