from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PowerOp(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    POWER_OP_UNSPECIFIED: _ClassVar[PowerOp]
    POWER_OP_ON: _ClassVar[PowerOp]
    POWER_OP_OFF: _ClassVar[PowerOp]
    POWER_OP_REBOOT: _ClassVar[PowerOp]
    POWER_OP_SHUTDOWN_GRACEFUL: _ClassVar[PowerOp]
POWER_OP_UNSPECIFIED: PowerOp
POWER_OP_ON: PowerOp
POWER_OP_OFF: PowerOp
POWER_OP_REBOOT: PowerOp
POWER_OP_SHUTDOWN_GRACEFUL: PowerOp

class TaskRef(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class Empty(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ValidateRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ValidateResponse(_message.Message):
    __slots__ = ("ok", "message", "code")
    OK_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    ok: bool
    message: str
    code: str
    def __init__(self, ok: _Optional[bool] = ..., message: _Optional[str] = ..., code: _Optional[str] = ...) -> None: ...

class CreateRequest(_message.Message):
    __slots__ = ("name", "user_data", "class_json", "image_json", "networks_json", "disks_json", "placement_json", "tags", "meta_data", "imported_disk")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USER_DATA_FIELD_NUMBER: _ClassVar[int]
    CLASS_JSON_FIELD_NUMBER: _ClassVar[int]
    IMAGE_JSON_FIELD_NUMBER: _ClassVar[int]
    NETWORKS_JSON_FIELD_NUMBER: _ClassVar[int]
    DISKS_JSON_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_JSON_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    META_DATA_FIELD_NUMBER: _ClassVar[int]
    IMPORTED_DISK_FIELD_NUMBER: _ClassVar[int]
    name: str
    user_data: bytes
    class_json: str
    image_json: str
    networks_json: str
    disks_json: str
    placement_json: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    meta_data: bytes
    imported_disk: str
    def __init__(self, name: _Optional[str] = ..., user_data: _Optional[bytes] = ..., class_json: _Optional[str] = ..., image_json: _Optional[str] = ..., networks_json: _Optional[str] = ..., disks_json: _Optional[str] = ..., placement_json: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ..., meta_data: _Optional[bytes] = ..., imported_disk: _Optional[str] = ...) -> None: ...

class CreateResponse(_message.Message):
    __slots__ = ("id", "task")
    ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    id: str
    task: TaskRef
    def __init__(self, id: _Optional[str] = ..., task: _Optional[_Union[TaskRef, _Mapping]] = ...) -> None: ...

class DeleteRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class PowerRequest(_message.Message):
    __slots__ = ("id", "op", "graceful_timeout_seconds")
    ID_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    GRACEFUL_TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    op: PowerOp
    graceful_timeout_seconds: int
    def __init__(self, id: _Optional[str] = ..., op: _Optional[_Union[PowerOp, str]] = ..., graceful_timeout_seconds: _Optional[int] = ...) -> None: ...

class ReconfigureRequest(_message.Message):
    __slots__ = ("id", "desired_json", "offline")
    ID_FIELD_NUMBER: _ClassVar[int]
    DESIRED_JSON_FIELD_NUMBER: _ClassVar[int]
    OFFLINE_FIELD_NUMBER: _ClassVar[int]
    id: str
    desired_json: str
    offline: bool
    def __init__(self, id: _Optional[str] = ..., desired_json: _Optional[str] = ..., offline: _Optional[bool] = ...) -> None: ...

class HardwareUpgradeRequest(_message.Message):
    __slots__ = ("id", "target_version")
    ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_VERSION_FIELD_NUMBER: _ClassVar[int]
    id: str
    target_version: int
    def __init__(self, id: _Optional[str] = ..., target_version: _Optional[int] = ...) -> None: ...

class TaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: TaskRef
    def __init__(self, task: _Optional[_Union[TaskRef, _Mapping]] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("exists", "power_state", "ips", "console_url", "provider_raw_json", "cpu", "memory_mib", "disks", "host", "guest_ready", "again_after_seconds")
    EXISTS_FIELD_NUMBER: _ClassVar[int]
    POWER_STATE_FIELD_NUMBER: _ClassVar[int]
    IPS_FIELD_NUMBER: _ClassVar[int]
    CONSOLE_URL_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_RAW_JSON_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    DISKS_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    GUEST_READY_FIELD_NUMBER: _ClassVar[int]
    AGAIN_AFTER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    exists: bool
    power_state: str
    ips: _containers.RepeatedScalarFieldContainer[str]
    console_url: str
    provider_raw_json: str
    cpu: int
    memory_mib: int
    disks: _containers.RepeatedCompositeFieldContainer[GetDiskInfoResponse]
    host: str
    guest_ready: bool
    again_after_seconds: float
    def __init__(self, exists: _Optional[bool] = ..., power_state: _Optional[str] = ..., ips: _Optional[_Iterable[str]] = ..., console_url: _Optional[str] = ..., provider_raw_json: _Optional[str] = ..., cpu: _Optional[int] = ..., memory_mib: _Optional[int] = ..., disks: _Optional[_Iterable[_Union[GetDiskInfoResponse, _Mapping]]] = ..., host: _Optional[str] = ..., guest_ready: _Optional[bool] = ..., again_after_seconds: _Optional[float] = ...) -> None: ...

class TaskStatusRequest(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: TaskRef
    def __init__(self, task: _Optional[_Union[TaskRef, _Mapping]] = ...) -> None: ...

class TaskStatusResponse(_message.Message):
    __slots__ = ("done", "error", "code", "percentage", "done_bytes", "total_bytes", "again_after_seconds", "result", "stage")
    class ResultEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    DONE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    PERCENTAGE_FIELD_NUMBER: _ClassVar[int]
    DONE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    AGAIN_AFTER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    done: bool
    error: str
    code: str
    percentage: int
    done_bytes: int
    total_bytes: int
    again_after_seconds: float
    result: _containers.ScalarMap[str, str]
    stage: TaskStage
    def __init__(self, done: _Optional[bool] = ..., error: _Optional[str] = ..., code: _Optional[str] = ..., percentage: _Optional[int] = ..., done_bytes: _Optional[int] = ..., total_bytes: _Optional[int] = ..., again_after_seconds: _Optional[float] = ..., result: _Optional[_Mapping[str, str]] = ..., stage: _Optional[_Union[TaskStage, _Mapping]] = ...) -> None: ...

class TaskStage(_message.Message):
    __slots__ = ("name", "number", "count", "done_bytes", "total_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DONE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    number: int
    count: int
    done_bytes: int
    total_bytes: int
    def __init__(self, name: _Optional[str] = ..., number: _Optional[int] = ..., count: _Optional[int] = ..., done_bytes: _Optional[int] = ..., total_bytes: _Optional[int] = ...) -> None: ...

class TaskCancelRequest(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: TaskRef
    def __init__(self, task: _Optional[_Union[TaskRef, _Mapping]] = ...) -> None: ...

class SnapshotCreateRequest(_message.Message):
    __slots__ = ("vm_id", "name_hint", "include_memory", "description", "quiesce")
    VM_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_HINT_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_MEMORY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    QUIESCE_FIELD_NUMBER: _ClassVar[int]
    vm_id: str
    name_hint: str
    include_memory: bool
    description: str
    quiesce: bool
    def __init__(self, vm_id: _Optional[str] = ..., name_hint: _Optional[str] = ..., include_memory: _Optional[bool] = ..., description: _Optional[str] = ..., quiesce: _Optional[bool] = ...) -> None: ...

class SnapshotCreateResponse(_message.Message):
    __slots__ = ("snapshot_id", "task")
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    snapshot_id: str
    task: TaskRef
    def __init__(self, snapshot_id: _Optional[str] = ..., task: _Optional[_Union[TaskRef, _Mapping]] = ...) -> None: ...

class SnapshotDeleteRequest(_message.Message):
    __slots__ = ("vm_id", "snapshot_id")
    VM_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    vm_id: str
    snapshot_id: str
    def __init__(self, vm_id: _Optional[str] = ..., snapshot_id: _Optional[str] = ...) -> None: ...

class SnapshotRevertRequest(_message.Message):
    __slots__ = ("vm_id", "snapshot_id")
    VM_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    vm_id: str
    snapshot_id: str
    def __init__(self, vm_id: _Optional[str] = ..., snapshot_id: _Optional[str] = ...) -> None: ...

class CloneRequest(_message.Message):
    __slots__ = ("source_vm_id", "target_name", "linked", "class_json", "placement_json", "customize_json", "snapshot_id", "instant", "user_data", "meta_data", "networks_json", "disks_json", "tags")
    SOURCE_VM_ID_FIELD_NUMBER: _ClassVar[int]
    TARGET_NAME_FIELD_NUMBER: _ClassVar[int]
    LINKED_FIELD_NUMBER: _ClassVar[int]
    CLASS_JSON_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_JSON_FIELD_NUMBER: _ClassVar[int]
    CUSTOMIZE_JSON_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    INSTANT_FIELD_NUMBER: _ClassVar[int]
    USER_DATA_FIELD_NUMBER: _ClassVar[int]
    META_DATA_FIELD_NUMBER: _ClassVar[int]
    NETWORKS_JSON_FIELD_NUMBER: _ClassVar[int]
    DISKS_JSON_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    source_vm_id: str
    target_name: str
    linked: bool
    class_json: str
    placement_json: str
    customize_json: str
    snapshot_id: str
    instant: bool
    user_data: bytes
    meta_data: bytes
    networks_json: str
    disks_json: str
    tags: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, source_vm_id: _Optional[str] = ..., target_name: _Optional[str] = ..., linked: _Optional[bool] = ..., class_json: _Optional[str] = ..., placement_json: _Optional[str] = ..., customize_json: _Optional[str] = ..., snapshot_id: _Optional[str] = ..., instant: _Optional[bool] = ..., user_data: _Optional[bytes] = ..., meta_data: _Optional[bytes] = ..., networks_json: _Optional[str] = ..., disks_json: _Optional[str] = ..., tags: _Optional[_Iterable[str]] = ...) -> None: ...

class CloneResponse(_message.Message):
    __slots__ = ("target_vm_id", "task")
    TARGET_VM_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    target_vm_id: str
    task: TaskRef
    def __init__(self, target_vm_id: _Optional[str] = ..., task: _Optional[_Union[TaskRef, _Mapping]] = ...) -> None: ...

class ImagePrepareRequest(_message.Message):
    __slots__ = ("image_json", "target_name", "storage_hint")
    IMAGE_JSON_FIELD_NUMBER: _ClassVar[int]
    TARGET_NAME_FIELD_NUMBER: _ClassVar[int]
    STORAGE_HINT_FIELD_NUMBER: _ClassVar[int]
    image_json: str
    target_name: str
    storage_hint: str
    def __init__(self, image_json: _Optional[str] = ..., target_name: _Optional[str] = ..., storage_hint: _Optional[str] = ...) -> None: ...

class ImagePrepareResponse(_message.Message):
    __slots__ = ("task", "prepared_image_id", "prepared_image_path")
    TASK_FIELD_NUMBER: _ClassVar[int]
    PREPARED_IMAGE_ID_FIELD_NUMBER: _ClassVar[int]
    PREPARED_IMAGE_PATH_FIELD_NUMBER: _ClassVar[int]
    task: TaskRef
    prepared_image_id: str
    prepared_image_path: str
    def __init__(self, task: _Optional[_Union[TaskRef, _Mapping]] = ..., prepared_image_id: _Optional[str] = ..., prepared_image_path: _Optional[str] = ...) -> None: ...

class ExportDiskRequest(_message.Message):
    __slots__ = ("vm_id", "disk_id", "snapshot_id", "destination_url", "format", "compress", "credentials", "backend_type", "transfer_mode", "storage_options_json")
    class CredentialsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VM_ID_FIELD_NUMBER: _ClassVar[int]
    DISK_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_URL_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    COMPRESS_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    BACKEND_TYPE_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_MODE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_OPTIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    vm_id: str
    disk_id: str
    snapshot_id: str
    destination_url: str
    format: str
    compress: bool
    credentials: _containers.ScalarMap[str, str]
    backend_type: str
    transfer_mode: str
    storage_options_json: str
    def __init__(self, vm_id: _Optional[str] = ..., disk_id: _Optional[str] = ..., snapshot_id: _Optional[str] = ..., destination_url: _Optional[str] = ..., format: _Optional[str] = ..., compress: _Optional[bool] = ..., credentials: _Optional[_Mapping[str, str]] = ..., backend_type: _Optional[str] = ..., transfer_mode: _Optional[str] = ..., storage_options_json: _Optional[str] = ...) -> None: ...

class ExportDiskResponse(_message.Message):
    __slots__ = ("export_id", "task", "estimated_size_bytes", "checksum")
    EXPORT_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    export_id: str
    task: TaskRef
    estimated_size_bytes: int
    checksum: str
    def __init__(self, export_id: _Optional[str] = ..., task: _Optional[_Union[TaskRef, _Mapping]] = ..., estimated_size_bytes: _Optional[int] = ..., checksum: _Optional[str] = ...) -> None: ...

class ImportDiskRequest(_message.Message):
    __slots__ = ("source_url", "storage_hint", "format", "target_name", "verify_checksum", "expected_checksum", "credentials", "backend_type", "transfer_mode", "storage_options_json")
    class CredentialsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SOURCE_URL_FIELD_NUMBER: _ClassVar[int]
    STORAGE_HINT_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    TARGET_NAME_FIELD_NUMBER: _ClassVar[int]
    VERIFY_CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    BACKEND_TYPE_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_MODE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_OPTIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    source_url: str
    storage_hint: str
    format: str
    target_name: str
    verify_checksum: bool
    expected_checksum: str
    credentials: _containers.ScalarMap[str, str]
    backend_type: str
    transfer_mode: str
    storage_options_json: str
    def __init__(self, source_url: _Optional[str] = ..., storage_hint: _Optional[str] = ..., format: _Optional[str] = ..., target_name: _Optional[str] = ..., verify_checksum: _Optional[bool] = ..., expected_checksum: _Optional[str] = ..., credentials: _Optional[_Mapping[str, str]] = ..., backend_type: _Optional[str] = ..., transfer_mode: _Optional[str] = ..., storage_options_json: _Optional[str] = ...) -> None: ...

class ImportDiskResponse(_message.Message):
    __slots__ = ("disk_id", "path", "task", "actual_size_bytes", "checksum")
    DISK_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ACTUAL_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    disk_id: str
    path: str
    task: TaskRef
    actual_size_bytes: int
    checksum: str
    def __init__(self, disk_id: _Optional[str] = ..., path: _Optional[str] = ..., task: _Optional[_Union[TaskRef, _Mapping]] = ..., actual_size_bytes: _Optional[int] = ..., checksum: _Optional[str] = ...) -> None: ...

class DeleteDiskRequest(_message.Message):
    __slots__ = ("disk_id",)
    DISK_ID_FIELD_NUMBER: _ClassVar[int]
    disk_id: str
    def __init__(self, disk_id: _Optional[str] = ...) -> None: ...

class DeleteExportRequest(_message.Message):
    __slots__ = ("url", "credentials", "backend_type", "transfer_mode", "storage_options_json", "vm_id")
    class CredentialsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    URL_FIELD_NUMBER: _ClassVar[int]
    CREDENTIALS_FIELD_NUMBER: _ClassVar[int]
    BACKEND_TYPE_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_MODE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_OPTIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    VM_ID_FIELD_NUMBER: _ClassVar[int]
    url: str
    credentials: _containers.ScalarMap[str, str]
    backend_type: str
    transfer_mode: str
    storage_options_json: str
    vm_id: str
    def __init__(self, url: _Optional[str] = ..., credentials: _Optional[_Mapping[str, str]] = ..., backend_type: _Optional[str] = ..., transfer_mode: _Optional[str] = ..., storage_options_json: _Optional[str] = ..., vm_id: _Optional[str] = ...) -> None: ...

class GetDiskInfoRequest(_message.Message):
    __slots__ = ("vm_id", "disk_id", "snapshot_id")
    VM_ID_FIELD_NUMBER: _ClassVar[int]
    DISK_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_ID_FIELD_NUMBER: _ClassVar[int]
    vm_id: str
    disk_id: str
    snapshot_id: str
    def __init__(self, vm_id: _Optional[str] = ..., disk_id: _Optional[str] = ..., snapshot_id: _Optional[str] = ...) -> None: ...

class GetDiskInfoResponse(_message.Message):
    __slots__ = ("disk_id", "format", "virtual_size_bytes", "actual_size_bytes", "path", "is_bootable", "snapshots", "backing_file", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    DISK_ID_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    VIRTUAL_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ACTUAL_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    IS_BOOTABLE_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    BACKING_FILE_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    disk_id: str
    format: str
    virtual_size_bytes: int
    actual_size_bytes: int
    path: str
    is_bootable: bool
    snapshots: _containers.RepeatedScalarFieldContainer[str]
    backing_file: str
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, disk_id: _Optional[str] = ..., format: _Optional[str] = ..., virtual_size_bytes: _Optional[int] = ..., actual_size_bytes: _Optional[int] = ..., path: _Optional[str] = ..., is_bootable: _Optional[bool] = ..., snapshots: _Optional[_Iterable[str]] = ..., backing_file: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ListVMsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListVMsResponse(_message.Message):
    __slots__ = ("vms",)
    VMS_FIELD_NUMBER: _ClassVar[int]
    vms: _containers.RepeatedCompositeFieldContainer[VMInfo]
    def __init__(self, vms: _Optional[_Iterable[_Union[VMInfo, _Mapping]]] = ...) -> None: ...

class VMInfo(_message.Message):
    __slots__ = ("id", "name", "power_state", "ips", "cpu", "memory_mib", "disks", "networks", "provider_raw", "host")
    class ProviderRawEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    POWER_STATE_FIELD_NUMBER: _ClassVar[int]
    IPS_FIELD_NUMBER: _ClassVar[int]
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    DISKS_FIELD_NUMBER: _ClassVar[int]
    NETWORKS_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_RAW_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    power_state: str
    ips: _containers.RepeatedScalarFieldContainer[str]
    cpu: int
    memory_mib: int
    disks: _containers.RepeatedCompositeFieldContainer[DiskInfo]
    networks: _containers.RepeatedCompositeFieldContainer[NetworkInfo]
    provider_raw: _containers.ScalarMap[str, str]
    host: str
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., power_state: _Optional[str] = ..., ips: _Optional[_Iterable[str]] = ..., cpu: _Optional[int] = ..., memory_mib: _Optional[int] = ..., disks: _Optional[_Iterable[_Union[DiskInfo, _Mapping]]] = ..., networks: _Optional[_Iterable[_Union[NetworkInfo, _Mapping]]] = ..., provider_raw: _Optional[_Mapping[str, str]] = ..., host: _Optional[str] = ...) -> None: ...

class DiskInfo(_message.Message):
    __slots__ = ("id", "path", "size_gib", "format", "virtual_size_bytes", "actual_size_bytes", "is_bootable", "backing_file")
    ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_GIB_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    VIRTUAL_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    ACTUAL_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    IS_BOOTABLE_FIELD_NUMBER: _ClassVar[int]
    BACKING_FILE_FIELD_NUMBER: _ClassVar[int]
    id: str
    path: str
    size_gib: int
    format: str
    virtual_size_bytes: int
    actual_size_bytes: int
    is_bootable: bool
    backing_file: str
    def __init__(self, id: _Optional[str] = ..., path: _Optional[str] = ..., size_gib: _Optional[int] = ..., format: _Optional[str] = ..., virtual_size_bytes: _Optional[int] = ..., actual_size_bytes: _Optional[int] = ..., is_bootable: _Optional[bool] = ..., backing_file: _Optional[str] = ...) -> None: ...

class NetworkInfo(_message.Message):
    __slots__ = ("name", "mac", "ip_address")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MAC_FIELD_NUMBER: _ClassVar[int]
    IP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    name: str
    mac: str
    ip_address: str
    def __init__(self, name: _Optional[str] = ..., mac: _Optional[str] = ..., ip_address: _Optional[str] = ...) -> None: ...

class GetCapabilitiesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetCapabilitiesResponse(_message.Message):
    __slots__ = ("supports_reconfigure_online", "supports_disk_expansion_online", "supports_snapshots", "supports_memory_snapshots", "supports_linked_clones", "supports_image_import", "supported_disk_types", "supported_network_types", "supports_disk_export", "supports_disk_import", "supported_export_formats", "supported_import_formats", "supports_export_compression", "supported_export_backends", "supported_import_backends", "supported_transfer_modes", "version", "supports_quiesce", "supports_instant_clones", "supports_inventory", "supports_guest_commands")
    SUPPORTS_RECONFIGURE_ONLINE_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_DISK_EXPANSION_ONLINE_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_MEMORY_SNAPSHOTS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_LINKED_CLONES_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_IMAGE_IMPORT_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_DISK_TYPES_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_NETWORK_TYPES_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_DISK_EXPORT_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_DISK_IMPORT_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_EXPORT_FORMATS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_IMPORT_FORMATS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_EXPORT_COMPRESSION_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_EXPORT_BACKENDS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_IMPORT_BACKENDS_FIELD_NUMBER: _ClassVar[int]
    SUPPORTED_TRANSFER_MODES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_QUIESCE_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_INSTANT_CLONES_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_INVENTORY_FIELD_NUMBER: _ClassVar[int]
    SUPPORTS_GUEST_COMMANDS_FIELD_NUMBER: _ClassVar[int]
    supports_reconfigure_online: bool
    supports_disk_expansion_online: bool
    supports_snapshots: bool
    supports_memory_snapshots: bool
    supports_linked_clones: bool
    supports_image_import: bool
    supported_disk_types: _containers.RepeatedScalarFieldContainer[str]
    supported_network_types: _containers.RepeatedScalarFieldContainer[str]
    supports_disk_export: bool
    supports_disk_import: bool
    supported_export_formats: _containers.RepeatedScalarFieldContainer[str]
    supported_import_formats: _containers.RepeatedScalarFieldContainer[str]
    supports_export_compression: bool
    supported_export_backends: _containers.RepeatedScalarFieldContainer[str]
    supported_import_backends: _containers.RepeatedScalarFieldContainer[str]
    supported_transfer_modes: _containers.RepeatedScalarFieldContainer[str]
    version: str
    supports_quiesce: bool
    supports_instant_clones: bool
    supports_inventory: bool
    supports_guest_commands: bool
    def __init__(self, supports_reconfigure_online: _Optional[bool] = ..., supports_disk_expansion_online: _Optional[bool] = ..., supports_snapshots: _Optional[bool] = ..., supports_memory_snapshots: _Optional[bool] = ..., supports_linked_clones: _Optional[bool] = ..., supports_image_import: _Optional[bool] = ..., supported_disk_types: _Optional[_Iterable[str]] = ..., supported_network_types: _Optional[_Iterable[str]] = ..., supports_disk_export: _Optional[bool] = ..., supports_disk_import: _Optional[bool] = ..., supported_export_formats: _Optional[_Iterable[str]] = ..., supported_import_formats: _Optional[_Iterable[str]] = ..., supports_export_compression: _Optional[bool] = ..., supported_export_backends: _Optional[_Iterable[str]] = ..., supported_import_backends: _Optional[_Iterable[str]] = ..., supported_transfer_modes: _Optional[_Iterable[str]] = ..., version: _Optional[str] = ..., supports_quiesce: _Optional[bool] = ..., supports_instant_clones: _Optional[bool] = ..., supports_inventory: _Optional[bool] = ..., supports_guest_commands: _Optional[bool] = ...) -> None: ...

class GuestExecuteRequest(_message.Message):
    __slots__ = ("vm_id", "command", "timeout_seconds")
    VM_ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    vm_id: str
    command: _containers.RepeatedScalarFieldContainer[str]
    timeout_seconds: int
    def __init__(self, vm_id: _Optional[str] = ..., command: _Optional[_Iterable[str]] = ..., timeout_seconds: _Optional[int] = ...) -> None: ...

class InventoryRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class InventoryResponse(_message.Message):
    __slots__ = ("hosts", "datastores", "folders", "resource_pools")
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    DATASTORES_FIELD_NUMBER: _ClassVar[int]
    FOLDERS_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_POOLS_FIELD_NUMBER: _ClassVar[int]
    hosts: _containers.RepeatedCompositeFieldContainer[Host]
    datastores: _containers.RepeatedCompositeFieldContainer[Datastore]
    folders: _containers.RepeatedScalarFieldContainer[str]
    resource_pools: _containers.RepeatedCompositeFieldContainer[ResourcePool]
    def __init__(self, hosts: _Optional[_Iterable[_Union[Host, _Mapping]]] = ..., datastores: _Optional[_Iterable[_Union[Datastore, _Mapping]]] = ..., folders: _Optional[_Iterable[str]] = ..., resource_pools: _Optional[_Iterable[_Union[ResourcePool, _Mapping]]] = ...) -> None: ...

class ResourcePool(_message.Message):
    __slots__ = ("name", "cluster")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    name: str
    cluster: str
    def __init__(self, name: _Optional[str] = ..., cluster: _Optional[str] = ...) -> None: ...

class Taint(_message.Message):
    __slots__ = ("key", "value", "effect")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    effect: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ..., effect: _Optional[str] = ...) -> None: ...

class Gpu(_message.Message):
    __slots__ = ("type", "count", "memory_mib")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    type: str
    count: int
    memory_mib: int
    def __init__(self, type: _Optional[str] = ..., count: _Optional[int] = ..., memory_mib: _Optional[int] = ...) -> None: ...

class Host(_message.Message):
    __slots__ = ("name", "cluster", "zone", "region", "labels", "cpus", "cpus_used", "memory_mib", "memory_mib_used", "datastores", "networks", "machines", "maintenance", "features", "taints", "gpus", "cpu_overcommit", "security_groups", "isolation", "trust")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    ZONE_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    CPUS_USED_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MIB_USED_FIELD_NUMBER: _ClassVar[int]
    DATASTORES_FIELD_NUMBER: _ClassVar[int]
    NETWORKS_FIELD_NUMBER: _ClassVar[int]
    MACHINES_FIELD_NUMBER: _ClassVar[int]
    MAINTENANCE_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    TAINTS_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    CPU_OVERCOMMIT_FIELD_NUMBER: _ClassVar[int]
    SECURITY_GROUPS_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    TRUST_FIELD_NUMBER: _ClassVar[int]
    name: str
    cluster: str
    zone: str
    region: str
    labels: _containers.ScalarMap[str, str]
    cpus: int
    cpus_used: int
    memory_mib: int
    memory_mib_used: int
    datastores: _containers.RepeatedScalarFieldContainer[str]
    networks: _containers.RepeatedScalarFieldContainer[str]
    machines: _containers.RepeatedScalarFieldContainer[str]
    maintenance: bool
    features: _containers.RepeatedScalarFieldContainer[str]
    taints: _containers.RepeatedCompositeFieldContainer[Taint]
    gpus: _containers.RepeatedCompositeFieldContainer[Gpu]
    cpu_overcommit: float
    security_groups: _containers.RepeatedScalarFieldContainer[str]
    isolation: str
    trust: str
    def __init__(self, name: _Optional[str] = ..., cluster: _Optional[str] = ..., zone: _Optional[str] = ..., region: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., cpus: _Optional[int] = ..., cpus_used: _Optional[int] = ..., memory_mib: _Optional[int] = ..., memory_mib_used: _Optional[int] = ..., datastores: _Optional[_Iterable[str]] = ..., networks: _Optional[_Iterable[str]] = ..., machines: _Optional[_Iterable[str]] = ..., maintenance: _Optional[bool] = ..., features: _Optional[_Iterable[str]] = ..., taints: _Optional[_Iterable[_Union[Taint, _Mapping]]] = ..., gpus: _Optional[_Iterable[_Union[Gpu, _Mapping]]] = ..., cpu_overcommit: _Optional[float] = ..., security_groups: _Optional[_Iterable[str]] = ..., isolation: _Optional[str] = ..., trust: _Optional[str] = ...) -> None: ...

class Datastore(_message.Message):
    __slots__ = ("name", "total_bytes", "free_bytes", "hosts", "encrypted")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTED_FIELD_NUMBER: _ClassVar[int]
    name: str
    total_bytes: int
    free_bytes: int
    hosts: _containers.RepeatedScalarFieldContainer[str]
    encrypted: bool
    def __init__(self, name: _Optional[str] = ..., total_bytes: _Optional[int] = ..., free_bytes: _Optional[int] = ..., hosts: _Optional[_Iterable[str]] = ..., encrypted: _Optional[bool] = ...) -> None: ...
