"""A hypervisor served over gRPC."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.message_factory import GetMessageClass

from holdfast.providers.contract import Code, GuestCommands, Hypervisor, PowerOp, ProviderError, Task, Transfer
from holdfast.providers.wire import documents, messages
from holdfast.providers.wire.errors import CODE_KEY, STATUS, redacted
from holdfast.providers.wire.generated import provider_pb2 as pb
from holdfast.providers.wire.metrics import ServedMetrics
from holdfast.providers.wire.tls import Tls, server_credentials

log: Final = logging.getLogger(__name__)

SERVICE: Final = "provider.v1.Provider"
METHODS: Final = pb.DESCRIPTOR.services_by_name["Provider"].methods_by_name
LARGEST_MESSAGE: Final = 64 << 20

_HEALTHY: Final = b"\x08\x01"
"""The answer of grpc.health.v1.Health: SERVING."""

_OPS: Final[dict[int, PowerOp]] = {int(number): op for op, number in messages.POWER_OPS.items()}


class Service:
    """The calls of the wire, answered by a hypervisor; they raise `ProviderError`."""

    def __init__(self, hypervisor: Hypervisor) -> None:
        self._hypervisor = hypervisor

    async def Validate(self, request: pb.ValidateRequest) -> pb.ValidateResponse:
        try:
            await self._hypervisor.validate()
        except ProviderError as error:
            return pb.ValidateResponse(ok=False, message=redacted(error.message), code=error.code)
        return pb.ValidateResponse(ok=True)

    async def Create(self, request: pb.CreateRequest) -> pb.CreateResponse:
        made = await self._hypervisor.create(messages.read_create(request))
        return pb.CreateResponse(id=made.id, task=messages.task_ref(made.task))

    async def Delete(self, request: pb.DeleteRequest) -> pb.TaskResponse:
        return _task(await self._hypervisor.delete(request.id))

    async def Power(self, request: pb.PowerRequest) -> pb.TaskResponse:
        op = _OPS.get(request.op)
        if op is None:
            raise ProviderError(Code.INVALID, f"op has the unknown value {int(request.op)}")
        return _task(await self._hypervisor.power(request.id, op, request.graceful_timeout_seconds or 60))

    async def Reconfigure(self, request: pb.ReconfigureRequest) -> pb.TaskResponse:
        return _task(await self._hypervisor.reconfigure(request.id, messages.read_reconfigure(request)))

    async def HardwareUpgrade(self, request: pb.HardwareUpgradeRequest) -> pb.TaskResponse:
        raise ProviderError(Code.UNSUPPORTED, "this provider has no versions of virtual hardware")

    async def Describe(self, request: pb.DescribeRequest) -> pb.DescribeResponse:
        return messages.describe_response(await self._hypervisor.describe(request.id))

    async def TaskStatus(self, request: pb.TaskStatusRequest) -> pb.TaskStatusResponse:
        state = await self._hypervisor.task(Task(id=request.task.id))
        if state.lost:
            raise ProviderError(Code.NOT_FOUND, state.error)
        return messages.task_response(state)

    async def TaskCancel(self, request: pb.TaskCancelRequest) -> pb.Empty:
        await self._hypervisor.cancel(Task(id=request.task.id))
        return pb.Empty()

    async def SnapshotCreate(self, request: pb.SnapshotCreateRequest) -> pb.SnapshotCreateResponse:
        made = await self._hypervisor.snapshot(
            request.vm_id,
            request.name_hint,
            memory=request.include_memory,
            quiesce=request.quiesce,
            description=request.description,
        )
        return pb.SnapshotCreateResponse(snapshot_id=made.id, task=messages.task_ref(made.task))

    async def SnapshotDelete(self, request: pb.SnapshotDeleteRequest) -> pb.TaskResponse:
        return _task(await self._hypervisor.delete_snapshot(request.vm_id, request.snapshot_id))

    async def SnapshotRevert(self, request: pb.SnapshotRevertRequest) -> pb.TaskResponse:
        return _task(await self._hypervisor.revert(request.vm_id, request.snapshot_id))

    async def Clone(self, request: pb.CloneRequest) -> pb.CloneResponse:
        made = await self._hypervisor.clone(
            request.source_vm_id,
            messages.read_clone(request),
            linked=request.linked,
            snapshot=request.snapshot_id,
            instant=request.instant,
        )
        return pb.CloneResponse(target_vm_id=made.id, task=messages.task_ref(made.task))

    async def ImagePrepare(self, request: pb.ImagePrepareRequest) -> pb.ImagePrepareResponse:
        image = documents.read_image(request.image_json)
        if image is None:
            raise ProviderError(Code.INVALID, "image_json names no template, path or URL")
        made = await self._hypervisor.prepare_image(image, request.target_name, request.storage_hint)
        return pb.ImagePrepareResponse(
            task=messages.task_ref(made.task), prepared_image_id=made.id, prepared_image_path=made.path
        )

    async def GetCapabilities(self, request: pb.GetCapabilitiesRequest) -> pb.GetCapabilitiesResponse:
        return messages.capabilities_response(await self._hypervisor.capabilities())

    async def ExportDisk(self, request: pb.ExportDiskRequest) -> pb.ExportDiskResponse:
        made = await self._hypervisor.export_disk(messages.read_export(request))
        return pb.ExportDiskResponse(
            export_id=made.id,
            task=messages.task_ref(made.task),
            estimated_size_bytes=made.size_bytes,
            checksum=made.checksum,
        )

    async def ImportDisk(self, request: pb.ImportDiskRequest) -> pb.ImportDiskResponse:
        made = await self._hypervisor.import_disk(messages.read_import(request))
        return pb.ImportDiskResponse(
            disk_id=made.id,
            path=made.path,
            task=messages.task_ref(made.task),
            actual_size_bytes=made.size_bytes,
            checksum=made.checksum,
        )

    async def GetDiskInfo(self, request: pb.GetDiskInfoRequest) -> pb.GetDiskInfoResponse:
        found = await self._hypervisor.disk(request.vm_id, request.disk_id, request.snapshot_id)
        return messages.disk_response(found)

    async def ListVMs(self, request: pb.ListVMsRequest) -> pb.ListVMsResponse:
        return messages.list_response(await self._hypervisor.machines())

    async def Inventory(self, request: pb.InventoryRequest) -> pb.InventoryResponse:
        return messages.inventory_response(await self._hypervisor.inventory())

    async def DeleteDisk(self, request: pb.DeleteDiskRequest) -> pb.Empty:
        await self._hypervisor.delete_disk(request.disk_id)
        return pb.Empty()

    async def DeleteExport(self, request: pb.DeleteExportRequest) -> pb.Empty:
        await self._hypervisor.delete_export(
            Transfer(
                url=request.url,
                machine=request.vm_id,
                credentials=dict(request.credentials),
                backend=request.backend_type,
                mode=request.transfer_mode,
                options_json=request.storage_options_json,
            )
        )
        return pb.Empty()

    async def GuestExecute(self, request: pb.GuestExecuteRequest) -> pb.Empty:
        if not isinstance(self._hypervisor, GuestCommands):
            raise ProviderError(Code.UNSUPPORTED, "this provider does not run commands in guests")
        await self._hypervisor.execute(request.vm_id, tuple(request.command), request.timeout_seconds or 60)
        return pb.Empty()


class Server:
    """Serves a hypervisor at an address.  Without `tls` it serves everyone who can connect, if that is asked for."""

    def __init__(
        self,
        hypervisor: Hypervisor,
        address: str,
        *,
        tls: Tls | None = None,
        plaintext: bool = False,
        clients: Iterable[str] = (),
        metrics: ServedMetrics | None = None,
    ) -> None:
        if tls is None and not plaintext:
            raise ProviderError(Code.INVALID, "a provider needs TLS files, or to be asked to serve plaintext")
        self._service = Service(hypervisor)
        self._address = address
        self._tls = tls
        self._clients = frozenset(clients)
        """The names (subject alternative or common) that client certificates may have; empty allows all."""
        self._metrics = metrics
        self._server: Any = None
        self.port = 0

    async def start(self) -> int:
        """Serve; the port is returned, which matters where the address leaves it open."""
        server = self._server = grpc.aio.server(
            options=(
                ("grpc.max_receive_message_length", LARGEST_MESSAGE),
                ("grpc.max_send_message_length", LARGEST_MESSAGE),
                ("grpc.so_reuseport", 0),
            )
        )
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                self._handler(name),
                request_deserializer=GetMessageClass(method.input_type).FromString,
                response_serializer=GetMessageClass(method.output_type).SerializeToString,
            )
            for name, method in METHODS.items()
        }
        health = {"Check": grpc.unary_unary_rpc_method_handler(_health)}
        server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(SERVICE, handlers),
                grpc.method_handlers_generic_handler("grpc.health.v1.Health", health),
            )
        )
        port = self._address.rpartition(":")[2]
        if not port.isdecimal() or int(port) > 65535:
            raise ProviderError(Code.INVALID, f"cannot serve at {self._address}: write HOST:PORT, a port up to 65535")
        try:
            if self._tls is not None:
                self.port = server.add_secure_port(self._address, server_credentials(self._tls))
            else:
                log.warning(
                    "PLAINTEXT: the provider at %s serves everyone who can connect, without encryption", self._address
                )
                self.port = server.add_insecure_port(self._address)
        except (RuntimeError, OSError) as error:
            raise ProviderError(Code.INVALID, f"cannot serve at {self._address}: {error}") from None
        await server.start()
        return int(self.port)

    async def stop(self, grace: float = 5.0) -> None:
        if self._server is not None:
            await self._server.stop(grace)

    def _handler(self, name: str) -> Callable[[Any, Any], Awaitable[Any]]:
        answer: Callable[[Any], Awaitable[Any]] = getattr(self._service, name)

        async def handle(request: Any, context: Any) -> Any:
            began = asyncio.get_running_loop().time()
            outcome = "Cancelled"
            try:
                try:
                    self._admit(context)
                    found = await answer(request)
                    outcome = "OK"
                    return found
                except ProviderError as error:
                    words, code = redacted(error.message, _secrets(request)), error.code
                except Exception:
                    log.exception("call %s failed by a defect of the provider", name)
                    words, code = f"{name} failed by a defect of the provider; its log has the details", Code.INTERNAL
                outcome = code.value
            finally:
                if self._metrics is not None:
                    self._metrics.ended(name, outcome, asyncio.get_running_loop().time() - began)
            return await context.abort(STATUS[code], words, ((CODE_KEY, code.value),))

        return handle

    def _admit(self, context: Any) -> None:
        if not self._clients:
            return
        found = context.auth_context()
        names = {
            name.decode(errors="replace")
            for key in ("x509_subject_alternative_name", "x509_common_name")
            for name in found.get(key, ())
        }
        if not names & self._clients:
            raise ProviderError(Code.UNAUTHORIZED, f"the client {', '.join(sorted(names)) or '(no name)'} may not call")


async def _health(request: bytes, context: Any) -> bytes:
    return _HEALTHY


def _task(task: Task | None) -> pb.TaskResponse:
    return pb.TaskResponse(task=messages.task_ref(task))


def _secrets(request: Any) -> tuple[str, ...]:
    """The values in a request that no message may show."""
    fields = request.DESCRIPTOR.fields_by_name
    found = list(request.credentials.values()) if "credentials" in fields else []
    if "user_data" in fields and request.user_data:
        found.append(request.user_data.decode(errors="replace"))
    return tuple(found)
