"""A hypervisor behind a real gRPC server: every call, errors, deadlines, certificates."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.certificates import client_certificate
from tests.waiting import eventually

from holdfast.apiserver.auth.certificates import Pair, new_authority, new_serving
from holdfast.providers.contract import (
    Change,
    Code,
    Datastore,
    Disk,
    Gpu,
    GuestCommands,
    Host,
    Hypervisor,
    Image,
    Inventory,
    Machine,
    ProviderError,
    ResourcePool,
    Stage,
    Taint,
    Task,
    TaskState,
    Transfer,
)
from holdfast.providers.simulated import CAPABILITIES, INSTANT, Fault, Latencies, Simulated, World
from holdfast.providers.wire import breaker, messages
from holdfast.providers.wire.client import Remote, Settings
from holdfast.providers.wire.errors import CODES, STATUS, redacted
from holdfast.providers.wire.metrics import CallMetrics
from holdfast.providers.wire.server import Server
from holdfast.providers.wire.tls import Tls

QUICK = Settings(calls_per_second=10_000, burst=10_000, first_pause=0.001, deadline=5)
WEB = Machine(name="web", cpus=2, memory_mib=1024, image=Image(template="debian"), user_data=b"#cloud-config")


@contextlib.asynccontextmanager
async def served(
    hypervisor: Hypervisor, *, settings: Settings = QUICK, metrics: CallMetrics | None = None
) -> AsyncIterator[Remote]:
    server = Server(hypervisor, "127.0.0.1:0", plaintext=True)
    port = await server.start()
    remote = Remote(f"127.0.0.1:{port}", plaintext=True, name="lab", settings=settings, metrics=metrics)
    try:
        yield remote
    finally:
        await remote.close()
        await server.stop(0)


async def ended(hypervisor: Hypervisor, task: Task | None) -> TaskState:
    while task is not None:
        state = await hypervisor.task(task)
        if state.done:
            return state
        await asyncio.sleep(state.again_after or 0)
    return TaskState(done=True)


def test_every_call_answers_over_the_wire_as_it_does_without() -> None:
    async def story(hypervisor: Hypervisor, behind: Simulated) -> list[Any]:
        seen: list[Any] = []
        await hypervisor.validate()
        seen.append(await hypervisor.capabilities())
        made = await hypervisor.create(WEB)
        seen += [made, await ended(hypervisor, made.task)]
        seen.append(await ended(hypervisor, await hypervisor.power(made.id, "On")))
        behind.write_file(made.id, "/data", "kept")
        seen.append(await hypervisor.describe(made.id))
        assert isinstance(hypervisor, GuestCommands)
        await hypervisor.execute(made.id, ("touch", "/file"), 5)
        assert behind.commands == [("web", ("touch", "/file"))]
        change = Change(cpus=4, disks=(Disk(name="data", size_gib=1),), offline=True)
        seen.append(await ended(hypervisor, await hypervisor.reconfigure(made.id, change)))
        taken = await hypervisor.snapshot(made.id, "one", memory=True, quiesce=True, description="words")
        seen += [taken, await ended(hypervisor, taken.task)]
        seen.append(await ended(hypervisor, await hypervisor.revert(made.id, taken.id)))
        clone = await hypervisor.clone(made.id, Machine(name="copy"), linked=True, snapshot=taken.id)
        seen += [clone, await ended(hypervisor, clone.task), await hypervisor.machines(), await hypervisor.inventory()]
        prepared = await hypervisor.prepare_image(Image(url="https://example.com/i", checksum="c"), "image")
        seen += [prepared, await ended(hypervisor, prepared.task)]
        transfer = Transfer(url="pvc://claim/disk", machine=made.id, credentials={"key": "secret"}, format="raw")
        exported = await hypervisor.export_disk(transfer)
        seen.append(await ended(hypervisor, exported.task))
        imported = await hypervisor.import_disk(Transfer(url=transfer.url, target_name="moved"))
        seen += [imported, await ended(hypervisor, imported.task)]
        seen.append(await hypervisor.disk(made.id, "", taken.id))
        await hypervisor.delete_disk(imported.id)
        await hypervisor.delete_export(transfer)
        seen.append(await ended(hypervisor, await hypervisor.delete_snapshot(made.id, taken.id)))
        slow = await hypervisor.power(made.id, "Reboot")
        if slow is not None:
            await hypervisor.cancel(slow)
        seen.append(await ended(hypervisor, await hypervisor.delete(made.id)))
        seen.append(await hypervisor.describe(made.id))
        seen.append(await hypervisor.task(Task(id="task-9999")))
        return seen

    async def both() -> None:
        now = [1000.0]

        def clock() -> float:
            now[0] += 0.05
            return now[0]

        latencies = msgspec.structs.replace(INSTANT, create=0.3, snapshot=0.1, power_off=0.1)
        alone = Simulated(clock=clock, latencies=latencies)
        expected = await story(alone, alone)
        now[0] = 1000.0
        behind = Simulated(clock=clock, latencies=latencies)
        async with served(behind) as remote:
            answered = await story(remote, behind)
        assert answered == expected
        assert CAPABILITIES in answered

    asyncio.run(both())


def test_the_stage_of_a_task_arrives_as_it_was_sent() -> None:
    for stage in (None, Stage(name="converting"), Stage(name="root", number=1, count=2, done_bytes=0, total_bytes=9)):
        state = TaskState(percentage=3, stage=stage)
        assert messages.read_task_status(messages.task_response(state)) == state


def test_an_inventory_arrives_with_every_field() -> None:
    there = World(
        hosts=(
            Host(
                name="a",
                cluster="c",
                zone="z",
                region="r",
                labels={"disk": "ssd"},
                cpus=8,
                cpus_used=1,
                memory_mib=4096,
                memory_mib_used=512,
                datastores=("d",),
                networks=("n",),
                maintenance=True,
                features=("tpm",),
                taints=(Taint(key="k", value="v", effect="NoExecute"),),
                gpus=(Gpu(type="t4", count=2, memory_mib=16384),),
                cpu_overcommit=2.5,
                security_groups=("web",),
                isolation="strict",
                trust="trusted",
            ),
        ),
        datastores=(Datastore(name="d", total_bytes=2, free_bytes=1, hosts=("a",), encrypted=True),),
        folders=("prod",),
        resource_pools=(ResourcePool(name="gold", cluster="c"),),
    )
    host, store = there.hosts[0], there.datastores[0]
    for value in (host, host.taints[0], host.gpus[0], store, there.resource_pools[0]):
        unset = [name for name in value.__struct_fields__ if not getattr(value, name)]
        assert unset in ([], ["machines"])

    async def story() -> None:
        async with served(Simulated(there)) as remote:
            found = await remote.inventory()
        assert (found.hosts, found.datastores) == (there.hosts, there.datastores)
        assert (found.folders, found.resource_pools) == (there.folders, there.resource_pools)

    asyncio.run(story())


@pytest.mark.parametrize("code", list(Code))
def test_every_code_arrives_as_itself_with_its_words(code: Code) -> None:
    async def story() -> None:
        simulated = Simulated(faults=[Fault(call="machines", code=code, message="what is wrong")])
        async with served(simulated, settings=msgspec.structs.replace(QUICK, attempts=1)) as remote:
            with pytest.raises(ProviderError, match="what is wrong") as raised:
                await remote.machines()
            assert raised.value.code is code
            assert remote.breaker.state(0) is breaker.State.CLOSED

    asyncio.run(story())


def test_every_code_has_a_status_of_its_own_and_comes_back() -> None:
    assert set(STATUS) == set(Code)
    assert {CODES[status] for status in STATUS.values()} == set(Code)


def test_only_errors_that_pass_are_retried() -> None:
    async def story() -> None:
        registry = CollectorRegistry()
        simulated = Simulated(faults=[Fault(call="machines", times=2), Fault(call="validate", code=Code.UNAUTHORIZED)])
        async with served(simulated, metrics=CallMetrics(registry)) as remote:
            assert await remote.machines() == ()
            with pytest.raises(ProviderError) as raised:
                await remote.validate()
            assert raised.value.code is Code.UNAUTHORIZED
            simulated.faults = [Fault(call="describe", code=Code.QUOTA)]
            with pytest.raises(ProviderError):
                await remote.describe("vm-1")
            assert [call for call, _ in simulated.calls] == ["machines"] * 3 + ["validate", "describe"]
            numbers = generate_latest(registry).decode()
        assert 'holdfast_provider_calls_total{call="ListVMs",code="OK",provider="lab"} 1.0' in numbers
        assert 'holdfast_provider_calls_total{call="Describe",code="QuotaExceeded",provider="lab"} 1.0' in numbers
        assert 'holdfast_provider_call_retries_total{call="ListVMs",provider="lab"} 2.0' in numbers
        assert 'holdfast_provider_circuit_breaker_state{provider="lab"} 0.0' in numbers
        assert 'holdfast_provider_calls_in_flight{provider="lab"} 0.0' in numbers

    asyncio.run(story())


def test_a_provider_that_is_gone_opens_the_breaker_and_one_that_is_back_closes_it() -> None:
    async def story() -> None:
        simulated = Simulated()
        server = Server(simulated, "127.0.0.1:0", plaintext=True)
        port = await server.start()
        settings = msgspec.structs.replace(
            QUICK, attempts=2, breaker=breaker.Settings(failures=3, open_seconds=0.2, longest_seconds=0.2)
        )
        remote = Remote(f"127.0.0.1:{port}", plaintext=True, settings=settings)
        await remote.validate()
        await server.stop(0)
        for _ in range(3):
            with pytest.raises(ProviderError) as raised:
                await remote.validate()
            assert raised.value.transient
        assert "does not answer; the next call is made in" in raised.value.message
        again = Server(simulated, f"127.0.0.1:{port}", plaintext=True)
        await again.start()

        async def valid() -> bool:
            with contextlib.suppress(ProviderError):
                await remote.validate()
                return True
            return False

        await eventually(valid)
        await remote.close()
        await again.stop(0)

    asyncio.run(story())


def test_a_call_ends_at_its_deadline() -> None:
    async def story() -> None:
        simulated = Simulated(latencies=Latencies(call=60))
        settings = msgspec.structs.replace(QUICK, deadline=0.1, attempts=1)
        async with served(simulated, settings=settings) as remote:
            with pytest.raises(ProviderError) as raised:
                await remote.machines()
            assert raised.value.transient

    asyncio.run(story())


def test_calls_under_way_are_limited() -> None:
    class Slow(Simulated):
        most = now = 0

        async def machines(self) -> tuple[Any, ...]:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.01)
            self.now -= 1
            return ()

    async def story() -> None:
        slow = Slow()
        async with served(slow, settings=msgspec.structs.replace(QUICK, in_flight=3)) as remote:
            await asyncio.gather(*(remote.machines() for _ in range(20)))
        assert slow.most == 3

    asyncio.run(story())


def test_a_provider_that_knows_only_upstreams_calls_is_unsupported_where_it_matters() -> None:
    async def story() -> None:
        server = grpc.aio.server()

        async def deleted(request: bytes, context: Any) -> bytes:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such vm")
            raise AssertionError

        handlers = {"Delete": grpc.unary_unary_rpc_method_handler(deleted)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("provider.v1.Provider", handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        remote = Remote(f"127.0.0.1:{port}", plaintext=True, settings=QUICK)
        assert await remote.inventory() == Inventory()
        await remote.cancel(Task(id="t"))
        assert await remote.delete("vm") is None
        with pytest.raises(ProviderError, match="does not know the call DeleteDisk") as raised:
            await remote.delete_disk("d")
        assert raised.value.code is Code.UNSUPPORTED
        await remote.close()
        await server.stop(0)

    asyncio.run(story())


def test_no_message_shows_a_secret_and_a_defect_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Leaky(Simulated):
        async def export_disk(self, transfer: Transfer) -> Any:
            raise ProviderError(Code.INTERNAL, f"login with {transfer.credentials['secretAccessKey']} failed")

        async def import_disk(self, transfer: Transfer) -> Any:
            raise RuntimeError(transfer.credentials["secretAccessKey"])

    async def story() -> None:
        async with served(Leaky()) as remote:
            transfer = Transfer(url="s3://b/k", credentials={"secretAccessKey": "hunter22"})
            with pytest.raises(ProviderError, match=r"login with \*\*\* failed"):
                await remote.export_disk(transfer)
            with pytest.raises(ProviderError, match="a defect of the provider; its log has the details") as raised:
                await remote.import_disk(transfer)
            assert "hunter22" not in str(raised.value)

    asyncio.run(story())
    assert redacted("https://user:pass@host/x") == "https://***@host/x"


def test_plaintext_is_said_loudly_and_never_the_default(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ProviderError, match="needs TLS files"):
        Server(Simulated(), "127.0.0.1:0")
    with pytest.raises(ProviderError, match="needs TLS files"):
        Remote("127.0.0.1:1")
    with caplog.at_level(logging.WARNING):
        Remote("127.0.0.1:1", plaintext=True)
    assert "PLAINTEXT" in caplog.text


# --- certificates ----------------------------------------------------------------------


class Authority:
    """Writes certificates of one authority as files."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)
        self.pair = new_authority(self.now)

    def write(self, folder: Path, pair: Pair) -> Tls:
        folder.mkdir(exist_ok=True)
        tls = Tls.in_folder(folder)
        for path, data in zip(tls.files, (pair.certificate_pem, pair.key_pem, self.pair.certificate_pem), strict=True):
            fresh = path.with_suffix(".new")
            fresh.write_bytes(data)
            fresh.rename(path)
        return tls

    def server(self, folder: Path) -> Tls:
        return self.write(folder, new_serving(self.pair, ["localhost", "127.0.0.1"], now=self.now))

    def client(self, folder: Path, name: str = "manager") -> Tls:
        return self.write(folder, client_certificate(self.pair, name, now=self.now))


def secured(
    tmp_path: Path,
    story: Callable[[Server, Callable[[Tls], Remote]], Awaitable[None]],
    tls: Tls,
    clients: tuple[str, ...] = (),
) -> None:
    async def whole() -> None:
        server = Server(Simulated(), "127.0.0.1:0", tls=tls, clients=clients)
        port = await server.start()
        remotes: list[Remote] = []

        def connect(tls: Tls) -> Remote:
            remotes.append(
                Remote(f"127.0.0.1:{port}", tls=tls, settings=msgspec.structs.replace(QUICK, attempts=1, deadline=2))
            )
            return remotes[-1]

        try:
            await story(server, connect)
        finally:
            for remote in remotes:
                await remote.close()
            await server.stop(0)

    asyncio.run(whole())


def test_both_sides_show_certificates_and_a_client_of_another_authority_is_refused(tmp_path: Path) -> None:
    ours, theirs = Authority(), Authority()

    async def story(server: Server, connect: Callable[[Tls], Remote]) -> None:
        await connect(ours.client(tmp_path / "client")).validate()
        stranger = msgspec.structs.replace(theirs.client(tmp_path / "stranger"), ca=tmp_path / "client" / "ca.crt")
        for remote in (connect(stranger), connect(theirs.client(tmp_path / "other"))):
            with pytest.raises(ProviderError) as raised:
                await remote.validate()
            assert raised.value.transient

    secured(tmp_path, story, ours.server(tmp_path / "server"))


def test_only_clients_of_the_named_kind_may_call(tmp_path: Path) -> None:
    authority = Authority()

    async def story(server: Server, connect: Callable[[Tls], Remote]) -> None:
        await connect(authority.client(tmp_path / "client")).capabilities()
        with pytest.raises(ProviderError, match="the client other may not call") as raised:
            await connect(authority.client(tmp_path / "other", "other")).capabilities()
        assert raised.value.code is Code.UNAUTHORIZED

    secured(tmp_path, story, authority.server(tmp_path / "server"), clients=("manager",))


def test_certificates_that_change_on_either_side_are_used_without_a_restart(tmp_path: Path) -> None:
    first, second = Authority(), Authority()

    async def story(server: Server, connect: Callable[[Tls], Remote]) -> None:
        client = connect(first.client(tmp_path / "client"))
        await client.validate()
        second.server(tmp_path / "server")
        second.client(tmp_path / "client")
        client._looked = float("-inf")
        await client.validate()
        await connect(second.client(tmp_path / "new")).validate()
        with pytest.raises(ProviderError):
            await connect(first.client(tmp_path / "old")).validate()

    secured(tmp_path, story, first.server(tmp_path / "server"))
