"""A hypervisor behind an address: the contract as gRPC calls, with deadlines, retries, limits and a circuit breaker."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any, Final

import grpc
import grpc.aio
import msgspec
from google.protobuf.message_factory import GetMessageClass

from holdfast.providers.contract import (
    Capabilities,
    Change,
    Code,
    Description,
    DiskInfo,
    Image,
    Inventory,
    Listed,
    Machine,
    Made,
    PowerOp,
    Prepared,
    ProviderError,
    Task,
    TaskState,
    Transfer,
    Transferred,
)
from holdfast.providers.wire import breaker, documents, messages
from holdfast.providers.wire.errors import from_status, of_connection
from holdfast.providers.wire.generated import provider_pb2 as pb
from holdfast.providers.wire.metrics import CallMetrics
from holdfast.providers.wire.server import LARGEST_MESSAGE, METHODS, SERVICE
from holdfast.providers.wire.tls import Tls, channel_credentials

log: Final = logging.getLogger(__name__)

STAMP_SECONDS: Final = 5.0
"""How often the TLS files are looked at."""

SLOW_CALLS: Final = frozenset(
    {"Create", "Delete", "Clone", "Reconfigure", "SnapshotCreate", "SnapshotDelete", "SnapshotRevert"}
)
"""Calls that some providers answer only when everything is done."""
COPYING_CALLS: Final = frozenset({"ExportDisk", "ImportDisk", "ImagePrepare"})


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a provider is called."""

    deadline: float = 15.0
    slow_deadline: float = 120.0
    copying_deadline: float = 1800.0
    attempts: int = 4
    """How often a call is made at most; only errors that pass are retried."""
    first_pause: float = 0.2
    longest_pause: float = 5.0
    calls_per_second: float = 10.0
    burst: int = 20
    in_flight: int = 10
    breaker: breaker.Settings = breaker.Settings()

    def deadline_of(self, call: str) -> float:
        if call in COPYING_CALLS:
            return self.copying_deadline
        return self.slow_deadline if call in SLOW_CALLS else self.deadline


class Bucket:
    """Allows so many calls per second, after a burst; time is an argument."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = max(rate, 1e-6), max(burst, 1)
        self._tokens, self._at = float(self._burst), 0.0

    def wait(self, now: float) -> float:
        """Take a place; the answer is after how many seconds it is due."""
        self._tokens = min(float(self._burst), self._tokens + (now - self._at) * self._rate)
        self._at = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)


class Remote:
    """A `Hypervisor` at an address."""

    def __init__(
        self,
        address: str,
        *,
        tls: Tls | None = None,
        plaintext: bool = False,
        name: str = "",
        settings: Settings | None = None,
        metrics: CallMetrics | None = None,
    ) -> None:
        if tls is None and not plaintext:
            raise ProviderError(
                Code.INVALID, f"provider {name or address} needs TLS files, or to be asked for plaintext"
            )
        if tls is None:
            log.warning("PLAINTEXT: calls to provider %s at %s are not encrypted", name or address, address)
        self._address = address
        self._tls = tls
        self.name = name or address
        self.settings = settings or Settings()
        self.breaker = breaker.Breaker(self.settings.breaker)
        self._metrics = metrics
        self._bucket = Bucket(self.settings.calls_per_second, self.settings.burst)
        self._places = asyncio.Semaphore(self.settings.in_flight)
        self._channel: Any = None
        self._calls: dict[str, Any] = {}
        self._stamp: object = None
        self._looked = float("-inf")
        self._last = ""
        self._gauged = False

    # --- calling -----------------------------------------------------------------------

    async def _connected(self, now: float) -> None:
        """Make the channel, and make it again when the TLS files have changed."""
        if self._channel is not None and (self._tls is None or now < self._looked + STAMP_SECONDS):
            return
        self._looked = now
        old = None
        if self._tls is not None:
            try:
                stamp = self._tls.stamp()
            except OSError as error:
                if self._channel is not None:
                    return
                raise ProviderError(
                    Code.INVALID, f"the TLS file {error.filename} cannot be read: {error.strerror}"
                ) from None
            if self._channel is not None and stamp == self._stamp:
                return
            self._stamp, old = stamp, self._channel
        options: list[tuple[str, object]] = [
            ("grpc.max_receive_message_length", LARGEST_MESSAGE),
            ("grpc.max_send_message_length", LARGEST_MESSAGE),
            ("grpc.initial_reconnect_backoff_ms", 200),
            ("grpc.max_reconnect_backoff_ms", 5000),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        if self._tls is not None:
            if self._tls.server_name:
                options.append(("grpc.ssl_target_name_override", self._tls.server_name))
            self._channel = grpc.aio.secure_channel(self._address, channel_credentials(self._tls), options)
        else:
            self._channel = grpc.aio.insecure_channel(self._address, options)
        self._calls = {
            name: self._channel.unary_unary(
                f"/{SERVICE}/{name}",
                request_serializer=GetMessageClass(method.input_type).SerializeToString,
                response_deserializer=GetMessageClass(method.output_type).FromString,
            )
            for name, method in METHODS.items()
        }
        if old is not None:
            log.info("TLS files of provider %s read again", self.name)
            await old.close(grace=60.0)

    async def _call(
        self,
        call: str,
        request: Any,
        secrets: tuple[str, ...] = (),
        *,
        deadline: float | None = None,
        attempts: int | None = None,
    ) -> Any:
        loop = asyncio.get_running_loop()
        began = loop.time()
        if self._metrics is not None and not self._gauged:
            self._metrics.breaker(self.name, lambda: self.breaker.state(loop.time()))
            self._gauged = True
        code = "OK"
        try:
            async with self._places:
                if self._metrics is not None:
                    self._metrics.in_flight(self.name, 1)
                try:
                    return await self._attempts(
                        call,
                        request,
                        secrets,
                        deadline=deadline or self.settings.deadline_of(call),
                        most=attempts or self.settings.attempts,
                    )
                finally:
                    if self._metrics is not None:
                        self._metrics.in_flight(self.name, -1)
        except ProviderError as error:
            code = error.code.value
            raise
        except asyncio.CancelledError:
            code = "Cancelled"
            raise
        finally:
            if self._metrics is not None:
                self._metrics.ended(self.name, call, code, loop.time() - began)

    async def _attempts(self, call: str, request: Any, secrets: tuple[str, ...], *, deadline: float, most: int) -> Any:
        loop = asyncio.get_running_loop()
        for attempt in range(1, most + 1):
            wait = self._bucket.wait(loop.time())
            if wait:
                await asyncio.sleep(wait)
            try:
                return await self._attempt(call, request, secrets, deadline)
            except ProviderError as error:
                open_now = self.breaker.state(loop.time()) is breaker.State.OPEN
                if not error.transient or attempt == most or open_now:
                    raise
            if self._metrics is not None:
                self._metrics.retried(self.name, call)
            pause = min(self.settings.longest_pause, self.settings.first_pause * 2 ** (attempt - 1))
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        raise AssertionError("unreachable")

    async def _attempt(self, call: str, request: Any, secrets: tuple[str, ...], deadline: float) -> Any:
        loop = asyncio.get_running_loop()
        await self._connected(loop.time())
        if not self.breaker.allows(loop.time()):
            left = self.breaker.remaining(loop.time())
            raise ProviderError(
                Code.RETRYABLE,
                f"provider {self.name} at {self._address} does not answer; the next call is made in {left:.0f} s"
                f" (the last one: {self._last})",
            )
        try:
            answer = await self._calls[call](request, timeout=deadline)
        except grpc.aio.AioRpcError as error:
            found = from_status(error, call, secrets)
            if of_connection(error):
                self._last = found.message
                self.breaker.failed(loop.time())
            else:
                self.breaker.succeeded()
            raise found from None
        except BaseException:
            self.breaker.abandoned()
            raise
        self.breaker.succeeded()
        return answer

    # --- the provider ------------------------------------------------------------------

    async def validate(self) -> None:
        answer = await self._call("Validate", pb.ValidateRequest())
        if not answer.ok:
            code = messages.read_code(answer.code) or Code.RETRYABLE
            raise ProviderError(code, answer.message or "the provider says that it is not valid, and not why")

    async def capabilities(self) -> Capabilities:
        return messages.read_capabilities(await self._call("GetCapabilities", pb.GetCapabilitiesRequest()))

    async def inventory(self) -> Inventory:
        """The hosts and datastores; none of a provider that does not know the call."""
        try:
            return messages.read_inventory(await self._call("Inventory", pb.InventoryRequest()))
        except ProviderError as error:
            if error.code is Code.UNSUPPORTED:
                return Inventory()
            raise

    async def machines(self) -> tuple[Listed, ...]:
        return messages.read_list(await self._call("ListVMs", pb.ListVMsRequest()))

    # --- machines ----------------------------------------------------------------------

    async def create(self, machine: Machine) -> Made:
        secrets = (machine.user_data.decode(errors="replace"),) if machine.user_data else ()
        answer = await self._call("Create", messages.create_request(machine), secrets)
        return Made(id=answer.id, task=messages.read_task(answer.task))

    async def delete(self, id: str) -> Task | None:
        try:
            return self._task_of(await self._call("Delete", pb.DeleteRequest(id=id)))
        except ProviderError as error:
            if error.code is Code.NOT_FOUND:
                return None
            raise

    async def power(self, id: str, op: PowerOp, graceful_seconds: int = 60) -> Task | None:
        request = pb.PowerRequest(id=id, op=messages.POWER_OPS[op], graceful_timeout_seconds=graceful_seconds)
        return self._task_of(await self._call("Power", request))

    async def reconfigure(self, id: str, change: Change) -> Task | None:
        return self._task_of(await self._call("Reconfigure", messages.reconfigure_request(id, change)))

    async def describe(self, id: str) -> Description:
        try:
            return messages.read_describe(await self._call("Describe", pb.DescribeRequest(id=id)))
        except ProviderError as error:
            if error.code is Code.NOT_FOUND:
                return Description(exists=False)
            raise

    async def task(self, task: Task) -> TaskState:
        try:
            answer = await self._call("TaskStatus", pb.TaskStatusRequest(task=pb.TaskRef(id=task.id)))
        except ProviderError as error:
            if error.code is Code.NOT_FOUND:
                return TaskState.unknown(error.message)
            raise
        return messages.read_task_status(answer)

    async def cancel(self, task: Task) -> None:
        """Cancel a task; a provider that does not know the call lets it go on."""
        try:
            await self._call("TaskCancel", pb.TaskCancelRequest(task=pb.TaskRef(id=task.id)))
        except ProviderError as error:
            if error.code not in (Code.UNSUPPORTED, Code.NOT_FOUND):
                raise

    # --- snapshots and clones ----------------------------------------------------------

    async def snapshot(
        self, id: str, name: str, *, memory: bool = False, quiesce: bool = False, description: str = ""
    ) -> Made:
        request = pb.SnapshotCreateRequest(
            vm_id=id, name_hint=name, include_memory=memory, quiesce=quiesce, description=description
        )
        answer = await self._call("SnapshotCreate", request)
        return Made(id=answer.snapshot_id, task=messages.read_task(answer.task))

    async def delete_snapshot(self, id: str, snapshot: str) -> Task | None:
        try:
            request = pb.SnapshotDeleteRequest(vm_id=id, snapshot_id=snapshot)
            return self._task_of(await self._call("SnapshotDelete", request))
        except ProviderError as error:
            if error.code is Code.NOT_FOUND:
                return None
            raise

    async def revert(self, id: str, snapshot: str) -> Task | None:
        request = pb.SnapshotRevertRequest(vm_id=id, snapshot_id=snapshot)
        return self._task_of(await self._call("SnapshotRevert", request))

    async def clone(
        self, id: str, target: Machine, *, linked: bool = False, snapshot: str = "", instant: bool = False
    ) -> Made:
        request = messages.clone_request(id, target, linked=linked, snapshot=snapshot, instant=instant)
        secrets = (target.user_data.decode(errors="replace"),) if target.user_data else ()
        answer = await self._call("Clone", request, secrets)
        return Made(id=answer.target_vm_id, task=messages.read_task(answer.task))

    # --- images and disks --------------------------------------------------------------

    async def prepare_image(self, image: Image, name: str, storage_hint: str = "") -> Prepared:
        request = pb.ImagePrepareRequest(
            image_json=documents.write_image(image), target_name=name, storage_hint=storage_hint
        )
        answer = await self._call("ImagePrepare", request)
        return Prepared(
            id=answer.prepared_image_id, path=answer.prepared_image_path, task=messages.read_task(answer.task)
        )

    async def export_disk(self, transfer: Transfer) -> Transferred:
        secrets = tuple(transfer.credentials.values())
        answer = await self._call("ExportDisk", messages.export_request(transfer), secrets)
        return Transferred(
            id=answer.export_id,
            path=transfer.url,
            task=messages.read_task(answer.task),
            size_bytes=answer.estimated_size_bytes,
            checksum=answer.checksum,
        )

    async def delete_export(self, transfer: Transfer) -> None:
        request = pb.DeleteExportRequest(
            url=transfer.url,
            credentials=transfer.credentials,
            backend_type=transfer.backend,
            transfer_mode=transfer.mode,
            storage_options_json=transfer.options_json,
            vm_id=transfer.machine,
        )
        await self._call("DeleteExport", request, tuple(transfer.credentials.values()))

    async def import_disk(self, transfer: Transfer) -> Transferred:
        secrets = tuple(transfer.credentials.values())
        answer = await self._call("ImportDisk", messages.import_request(transfer), secrets)
        return Transferred(
            id=answer.disk_id,
            path=answer.path,
            task=messages.read_task(answer.task),
            size_bytes=answer.actual_size_bytes,
            checksum=answer.checksum,
        )

    async def disk(self, id: str, disk: str = "", snapshot: str = "") -> DiskInfo:
        request = pb.GetDiskInfoRequest(vm_id=id, disk_id=disk, snapshot_id=snapshot)
        return messages.read_disk(await self._call("GetDiskInfo", request))

    async def delete_disk(self, id: str) -> None:
        await self._call("DeleteDisk", pb.DeleteDiskRequest(disk_id=id))

    async def execute(self, id: str, command: tuple[str, ...], timeout_seconds: int = 60) -> None:
        """Run a command in a guest, once: it may not be safe to run it again."""
        request = pb.GuestExecuteRequest(vm_id=id, command=command, timeout_seconds=timeout_seconds)
        await self._call("GuestExecute", request, deadline=timeout_seconds + 10.0, attempts=1)

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if self._metrics is not None:
            self._metrics.forget(self.name)
        if channel is not None:
            await channel.close(grace=None)

    @staticmethod
    def _task_of(answer: Any) -> Task | None:
        return messages.read_task(answer.task)
