"""Real processes behind their supervisors: how they end, what they write, and that nothing of them stays."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.processes import PATIENCE, utc_now
from tests.waiting import eventually

from holdfast.cluster.process.running.containers import ContainerRun, Executed, Exit, Hiding, StartFailed, hiding
from holdfast.cluster.process.running.logs import Options, last_words, read
from holdfast.cluster.process.running.supervisor import LONGEST_LINE, MEANS, Lines, Log
from holdfast.meta.errors import BadRequest
from holdfast.meta.exchange import Request


def _param(means: str) -> Any:
    problem = hiding(Path("/proc"), [means]).problem
    return pytest.param(means, marks=pytest.mark.skipif(bool(problem), reason=f"this machine hides nothing: {problem}"))


by_any_means = pytest.mark.parametrize("means", [_param(means) for means in MEANS])

ENV = {"PATH": os.environ["PATH"]}


async def started(directory: Path, /, *argv: str, **options: Any) -> ContainerRun:
    options = {"env": ENV, "directory": directory, "log": directory / "log", **options}
    return await ContainerRun.start(argv, **options)


@asynccontextmanager
async def running(directory: Path, script: str, **options: Any) -> AsyncIterator[ContainerRun]:
    run = await started(directory, "sh", "-c", script, **options)
    try:
        async with asyncio.timeout(PATIENCE):
            yield run
    finally:
        await run.kill()


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


async def written(path: Path) -> str:
    """What stands in a file as soon as something does, up to the end of its line."""
    await eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return path.read_text().strip()


async def dead(pid: int) -> None:
    """Returns when no process has that id any more."""
    await eventually(lambda: not is_alive(pid))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform != "linux":
        return True
    # Its new parent may not have waited for it yet; a zombie has ended.
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("script", "exit"),
    [
        ("exit 0", Exit(0)),
        ("exit 7", Exit(7)),
        ("kill -KILL $$", Exit(137, 9)),
        ("kill -TERM $$", Exit(143, 15)),
    ],
)
def test_how_a_process_ends_is_known(tmp_path: Path, script: str, exit: Exit) -> None:
    async def story() -> None:
        async with running(tmp_path, script) as run:
            assert await run.ended() == exit

    play(story)


def test_a_signal_reaches_the_process_and_what_it_does_about_it_is_its_own_matter(tmp_path: Path) -> None:
    async def story() -> None:
        script = f"trap 'exit 5' TERM; echo up > {tmp_path}/up; while :; do sleep 0.01; done"
        async with running(tmp_path, script) as run:
            await written(tmp_path / "up")
            run.signal(signal.SIGTERM)
            assert await run.ended() == Exit(5)

    play(story)


@pytest.mark.parametrize(
    ("argv", "directory", "message"),
    [
        (("no-such-program",), "", "no-such-program: no such executable on this machine"),
        (("true",), "missing", "missing does not exist"),
        (("/",), "", "/: Permission denied"),
        (("tr\0ue",), "", "embedded null byte"),
    ],
)
def test_what_cannot_be_started_says_why(tmp_path: Path, argv: tuple[str, ...], directory: str, message: str) -> None:
    async def story() -> None:
        with pytest.raises(StartFailed, match=message):
            await started(tmp_path, *argv, directory=tmp_path / directory)

    play(story)


def test_a_process_has_its_own_variables_and_directory_and_none_of_ours(tmp_path: Path) -> None:
    async def story() -> None:
        script = f"{{ env | grep -v '^_=' | sort; pwd; }} > {tmp_path}/out; echo >> {tmp_path}/out"
        async with running(tmp_path, script, env={**ENV, "A": "1"}) as run:
            await run.ended()
        seen = (tmp_path / "out").read_text().split()
        assert set(seen) - {"OLDPWD"} == {"A=1", f"PATH={ENV['PATH']}", f"PWD={tmp_path}", str(tmp_path)}

    play(story)


def test_secrets_do_not_stand_in_the_arguments_or_variables_of_the_supervisor(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100", env={**ENV, "PASSWORD": "s3cret"}) as run:
            supervisor = int(Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()[1])
            for file in ("cmdline", "environ"):
                assert b"s3cret" not in Path(f"/proc/{supervisor}/{file}").read_bytes()

    if sys.platform != "linux":
        pytest.skip("there is no /proc")
    play(story)


# --- commands beside


@pytest.mark.parametrize(
    ("argv", "timeout", "executed"),
    [
        (("sh", "-c", "echo $A; echo b >&2"), 10, Executed(0, "1\nb\n")),
        (("sh", "-c", "echo no; exit 3"), 10, Executed(3, "no\n")),
        (("sh", "-c", "kill -KILL $$"), 10, Executed(137)),
        (("sh", "-c", "echo a; exec sleep 100"), 0.2, Executed(0, "a\n", "command timed out")),
        (("no-such-program",), 10, Executed(failure="no-such-program: no such executable on this machine")),
    ],
)
def test_another_command_is_run_beside_it(
    tmp_path: Path, argv: tuple[str, ...], timeout: float, executed: Executed
) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100", env={**ENV, "A": "1"}) as run:
            done = await run.execute(argv, timeout=timeout)
            assert (done.code, done.output) == (executed.code, executed.output)
            assert done.failure.startswith(executed.failure)
            assert bool(done.failure) == bool(executed.failure)

    play(story)


def test_commands_beside_run_together_and_end_with_the_process(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100") as run:
            slow = asyncio.create_task(run.execute(["sleep", "100"], timeout=100))
            assert (await run.execute(["echo", "quick"], timeout=10)).output == "quick\n"
            run.signal(signal.SIGKILL)
            assert (await slow).failure == "the container has ended"

    play(story)


def test_the_output_of_a_command_beside_is_bounded(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path, "sleep 100") as run:
            done = await run.execute(["head", "-c", "1000000", "/dev/zero"], timeout=10)
            assert (done.code, len(done.output)) == (0, 10 * 1024)

    play(story)


# --- nothing survives


def test_what_a_process_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    async def story() -> None:
        script = f"sleep 1000 & echo $! > {tmp_path}/pid; exit 0"
        async with running(tmp_path, script) as run:
            assert await run.ended() == Exit(0)
            await dead(int(await written(tmp_path / "pid")))

    play(story)


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open(sys.argv[1], "w").write(f"{os.getpid()}\\n")
        time.sleep(1000)
    os._exit(0)
os.wait()
time.sleep(1000)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets orphans be adopted")
@pytest.mark.parametrize("how", ["signal", "kill"])
def test_not_even_a_daemon_escapes(tmp_path: Path, how: str) -> None:
    async def story() -> None:
        run = await started(tmp_path, sys.executable, "-c", DAEMON, f"{tmp_path}/pid")
        daemon = int(await written(tmp_path / "pid"))
        if how == "signal":
            run.signal(signal.SIGKILL)
            assert await run.ended() == Exit(137, 9)
        await run.kill()
        await dead(daemon)
        await dead(run.pid)

    play(story)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets orphans be adopted")
def test_a_daemon_that_is_spared_outlives_a_crash_and_nothing_else(tmp_path: Path) -> None:
    async def story() -> None:
        for how in ("crash", "signal", "stop"):
            pid = tmp_path / how
            run = await started(tmp_path, sys.executable, "-c", DAEMON, str(pid), spares=True)
            daemon = int(await written(pid))
            try:
                match how:
                    case "crash":
                        os.kill(run.pid, signal.SIGKILL)
                        assert await run.ended() == Exit(137, 9)
                        assert is_alive(daemon)
                    case "signal":
                        run.signal(signal.SIGTERM)
                        await run.ended()
                        await dead(daemon)
                    case _:
                        await run.kill()
                        await dead(daemon)
                await dead(run.pid)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(daemon, signal.SIGKILL)

    play(story)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of the death of its parent")
def test_a_process_whose_supervisor_is_killed_ends_too(tmp_path: Path) -> None:
    async def story() -> None:
        script = f"sleep 1000 & echo $! > {tmp_path}/pid; wait"
        async with running(tmp_path, script) as run:
            child = int(await written(tmp_path / "pid"))
            os.kill(run._process.pid, signal.SIGKILL)
            assert await run.ended() == Exit(137, 9, "its supervisor was lost")
            await dead(child)
            await dead(run.pid)

    play(story)


PARENT = """
import asyncio, json, os, sys
from pathlib import Path
from holdfast.cluster.process.running.containers import ContainerRun

async def main():
    directory = Path(sys.argv[1])
    run = await ContainerRun.start(
        ["sh", "-c", f"sleep 1000 & echo $! > {directory}/pid; trap '' TERM HUP INT; while :; do sleep 1; done"],
        env={"PATH": os.environ["PATH"]}, directory=directory, log=directory / "log",
    )
    print(run.pid, flush=True)
    await run.ended()

asyncio.run(main())
"""


def test_nothing_survives_when_the_parent_is_killed(tmp_path: Path) -> None:
    async def story() -> None:
        with subprocess.Popen([sys.executable, "-c", PARENT, tmp_path], stdout=subprocess.PIPE) as parent:
            assert parent.stdout is not None
            process = int(await asyncio.to_thread(parent.stdout.readline))
            grandchild = int(await written(tmp_path / "pid"))
            assert is_alive(process)
            assert is_alive(grandchild)
            parent.kill()
        await dead(process)
        await dead(grandchild)

    play(story)


# --- what a command can reach


ESCAPES = {
    "by its path": "cat {secret}",
    "through the parent of its working directory": "cat ../../secret",
    "through the root of its supervisor": "cat /proc/$PPID/root{secret}",
    "through the working directory of its supervisor": "cat /proc/$PPID/cwd{secret}",
    "through the mounts of its supervisor": "nsenter --mount=/proc/$PPID/ns/mnt cat {secret}",
    "by removing the mount": "umount {data}; cat {secret}",
    "by a symbolic link": "ln -s {secret} link; cat link",
    "by a hard link": "ln {secret} link && cat link",
    "by moving it": "mv {secret} . && cat secret",
    "by moving its directory": "mv {data} ../moved && cat ../moved/secret",
    "by a mount of its own": "unshare -Urm sh -c 'mkdir m; mount --bind {data} m && cat m/secret'",
    "by removing the mount in a namespace of its own": "unshare -Urm sh -c 'umount {data}; cat {secret}'",
}


@by_any_means
@pytest.mark.parametrize("script", ESCAPES.values(), ids=ESCAPES.keys())
def test_a_command_cannot_read_what_is_hidden(tmp_path: Path, script: str, means: str) -> None:
    async def story() -> None:
        data = tmp_path / "data"
        own = data / "pods" / "one"
        own.mkdir(parents=True)
        (data / "secret").write_text("a token\n")
        filled = script.format(secret=data / "secret", data=data)
        log = tmp_path / "log"
        async with running(own, filled, log=log, means=means, hidden=[data], shown=[own]) as run:
            assert (await run.ended()).code != 0
        assert "a token" not in log.read_text()

    play(story)


@by_any_means
def test_a_command_has_its_own_directories_within_what_is_hidden(tmp_path: Path, means: str) -> None:
    async def story() -> None:
        data, file = tmp_path / "data", tmp_path / "kubeconfig"
        own, other = data / "pods" / "one", data / "pods" / "two"
        for each in (own, other):
            each.mkdir(parents=True)
        file.write_text("a token\n")
        script = f"pwd; ls {data} {data}/pods; wc -c < {file}; echo written > {own}/file; echo no > {data}/file"
        log, link = tmp_path / "log", tmp_path / "link"
        link.symlink_to(data)
        # A directory within a hidden one is hidden already, and a symbolic link is what it points to.
        hidden = [data / "pods", link, file]
        async with running(own, script, log=log, means=means, hidden=hidden, shown=[own]) as run:
            await run.ended()
        lines = [line.split(" ", 3)[3] for line in log.read_text().splitlines()]
        stated = [line for line in lines if "Read-only file system" not in line and "ermission denied" not in line]
        listed = [f"{data}:", "pods", "", f"{data}/pods:", "one", "0"] if means == "namespaces" else []
        assert stated == [str(own), *listed]
        assert (own / "file").read_text() == "written\n"
        assert not (data / "file").exists()

    play(story)


@by_any_means
def test_probes_and_hooks_cannot_read_what_is_hidden_either(tmp_path: Path, means: str) -> None:
    async def story() -> None:
        data = tmp_path / "data"
        data.mkdir()
        (data / "secret").write_text("a token")
        async with running(tmp_path, "sleep 1000", means=means, hidden=[data]) as run:
            asked = await run.execute(["cat", str(data / "secret")], timeout=PATIENCE)
            assert asked.code == 1
            assert ("No such file" if means == "namespaces" else "Permission denied") in asked.output

    play(story)


@by_any_means
def test_nothing_survives_of_a_command_from_which_something_is_hidden(tmp_path: Path, means: str) -> None:
    async def story() -> None:
        data, own = tmp_path / "data", tmp_path / "own"
        data.mkdir()
        own.mkdir()
        script = "setsid sleep 1000 & echo $! > pid; sleep 1000"
        async with running(own, script, means=means, hidden=[data]) as run:
            daemon = int(await written(own / "pid"))
        await dead(daemon)
        await dead(run.pid)

    play(story)


@by_any_means
def test_a_command_cannot_look_into_other_processes_and_has_no_capabilities(tmp_path: Path, means: str) -> None:
    async def story() -> None:
        data, own = tmp_path / "data", tmp_path / "own"
        data.mkdir()
        own.mkdir()
        script = (
            f"head -c 1 /proc/{os.getpid()}/environ; head -c 1 /proc/{os.getpid()}/mem; grep CapEff /proc/self/status"
        )
        async with running(own, script, means=means, hidden=[data]) as run:
            assert (await run.ended()).code == 0
        lines = [line.split(" ", 3)[3] for line in (own / "log").read_text().splitlines()]
        assert [line for line in lines if "ermission denied" not in line] == ["CapEff:\t0000000000000000"]
        assert len(lines) == 3

    play(story)


@by_any_means
def test_a_command_works_with_all_other_files_as_before(tmp_path: Path, means: str) -> None:
    async def story() -> None:
        data, own, other = tmp_path / "data", tmp_path / "own", tmp_path / "other"
        for each in (data, own, other):
            each.mkdir()
        (tmp_path / "file").write_text("as before\n")
        script = f"cat ../file; echo more >> ../file; mkdir {other}/d; mv {other}/d {own}/d; ls; : > /dev/null"
        async with running(own, script, means=means, hidden=[data], log=tmp_path / "log") as run:
            assert (await run.ended()).code == 0
        assert [line.split(" ", 3)[3] for line in (tmp_path / "log").read_text().splitlines()] == ["as before", "d"]
        assert (tmp_path / "file").read_text() == "as before\nmore\n"

    play(story)


def test_a_machine_without_namespaces_uses_landlock_and_one_without_both_says_why(tmp_path: Path) -> None:
    assert hiding(tmp_path, []) == Hiding()
    assert hiding(tmp_path).means in ("", *MEANS)
    for means in MEANS:
        found = hiding(tmp_path, [means])
        assert found.means == means or found.problem.startswith(f"{means}: ")


def test_a_command_inherits_no_variables_and_no_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "a token")

    async def story() -> None:
        with (tmp_path / "open").open("w") as file:
            os.set_inheritable(file.fileno(), True)
            script = "import os; print(sorted(os.environ), sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
            run = await started(tmp_path, sys.executable, "-I", "-c", script)
            assert (await run.ended()).code == 0
        found = (tmp_path / "log").read_text().split(" ", 3)[3].strip()
        assert found.replace(", 'LC_CTYPE'", "").replace("'LC_CTYPE', ", "") == "['PATH'] [0, 1, 2]"

    play(story)


# --- logs


def test_lines_come_out_whole_and_long_ones_in_pieces() -> None:
    lines = Lines()
    assert lines.feed(b"a\nb") == [(b"a", True)]
    assert lines.feed(b"c\n\n") == [(b"bc", True), (b"", True)]
    long = b"x" * (LONGEST_LINE + 1)
    assert lines.feed(long) == [(b"x" * LONGEST_LINE, False)]
    assert lines.feed(b"\n") == [(b"x", True)]
    assert lines.feed(long + b"\n") == [(b"x" * LONGEST_LINE, False), (b"x", True)]
    assert lines.feed(b"end") == []
    assert lines.end() == [(b"end", True)]
    assert lines.end() == []


def said(path: Path, **options: Any) -> str:
    async def all_of_it() -> bytes:
        return b"".join([chunk async for chunk in read(path, Options(**options), growing=lambda: False)])

    return asyncio.run(all_of_it()).decode()


def test_a_log_is_never_larger_than_two_files(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "log"), 1000)
    for number in range(200):
        log.write("stdout", [(b"line %d" % number, True)])
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"log", "log.1"}
    assert max(sizes.values()) <= 1000
    lines = said(tmp_path / "log").splitlines()
    assert lines == [f"line {number}" for number in range(200 - len(lines), 200)]
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


STAMPS = [f"2030-01-01T00:00:0{second}.000000000Z" for second in range(6)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three lines in the file that was set aside, and three in the current one."""
    lines = [f"{stamp} stdout F {number}\n" for number, stamp in enumerate(STAMPS)]
    (tmp_path / "0.log.1").write_text("".join(lines[:3]))
    (tmp_path / "0.log").write_text("".join(lines[3:]))
    return tmp_path / "0.log"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "0 1 2 3 4 5"),
        ({"tail": 0}, ""),
        ({"tail": 2}, "4 5"),
        ({"tail": 3}, "3 4 5"),
        ({"tail": 5}, "1 2 3 4 5"),
        ({"tail": 99}, "0 1 2 3 4 5"),
        ({"tail": 1}, "5"),
        ({"limit": 4}, "0 1"),
        ({"limit": 0}, ""),
    ],
)
def test_a_part_of_a_log_can_be_asked_for(log: Path, options: dict[str, Any], expected: str) -> None:
    assert said(log, **options).split() == expected.split()


def test_lines_since_a_moment_are_shown_with_their_times(log: Path) -> None:
    request = Request("GET", "/log", {"sinceTime": ("2030-01-01T00:00:04Z",), "timestamps": ("true",)})
    options = Options.of(request, utc_now())
    assert said(log, since=options.since, timestamps=options.timestamps) == f"{STAMPS[4]} 4\n{STAMPS[5]} 5\n"


def test_a_line_that_came_in_pieces_is_put_together(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"{STAMPS[0]} stdout P abc\n{STAMPS[1]} stdout F def\n")
    assert said(tmp_path / "log") == "abcdef\n"


def test_the_tail_of_a_long_log_is_found_from_its_end(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("".join(f"{STAMPS[0]} stdout F {number:0100d}\n" for number in range(5000)))
    assert [int(line) for line in said(tmp_path / "log", tail=1500).split()] == list(range(3500, 5000))
    assert last_words(tmp_path / "log", lines=2).split() == [f"{4998:0100d}", f"{4999:0100d}"]


@pytest.mark.parametrize("query", [{"tailLines": "x"}, {"limitBytes": "-1"}, {"sinceTime": "noon"}])
def test_what_cannot_be_read_in_a_request_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        Options.of(Request("GET", "/log", {name: (value,) for name, value in query.items()}), utc_now())


def test_a_log_is_followed_over_its_rotation_until_its_end(tmp_path: Path) -> None:
    async def story() -> None:
        log = Log(str(tmp_path / "log"), 200)
        alive = True
        heard = bytearray()

        async def follow() -> None:
            async for chunk in read(tmp_path / "log", Options(follow=True), growing=lambda: alive):
                heard.extend(chunk)

        log.write("stdout", [(b"0", True)])
        following = asyncio.create_task(follow())
        for number in range(1, 20):
            # No faster than it is read, for what is set aside twice is lost.
            await eventually(lambda number=number: len(heard.split()) >= number)
            log.write("stdout", [(b"%d" % number, True)])
        alive = False
        await asyncio.wait_for(following, PATIENCE)
        assert [int(line) for line in heard.split()] == list(range(20))

    play(story)


def test_what_a_process_writes_is_logged_with_its_last_words(tmp_path: Path) -> None:
    async def story() -> None:
        script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done; printf end"
        async with running(tmp_path, script) as run:
            await run.ended()

    play(story)
    lines = [line.split(" ", 3) for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted((stream, whole, text) for _, stream, whole, text in lines) == sorted(
        [
            *(("stdout", "F", f"out {number}") for number in (1, 2, 3)),
            *(("stderr", "F", f"err {number}") for number in (1, 2, 3)),
            ("stdout", "F", "end"),
        ]
    )
