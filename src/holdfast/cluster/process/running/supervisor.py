"""A program that runs one command, keeps its log, and takes everything with it when it ends.

It is started for every container, in a session of its own, and reads what to run from
its standard input, which is a socket: nothing is in its arguments or its environment.
It ends when the command has ended, or when the socket is closed, which happens also
when the process that started it is killed.  Then it kills the processes that the
command has left behind.  On Linux it adopts orphans, so that not even a daemon
escapes; elsewhere it kills the command's process group.

A command with `spares` may leave daemons that outlive it when it crashes, or when the process that started the
supervisor is killed.  They end like everything else when the command is signalled or stopped.

The commands cannot reach the paths in `hidden` but for those in `shown`, by one of these `means`:

    namespaces  They run in a mount namespace of their own, in which the directories in `hidden` are empty but for
                the paths in `shown`, and the files in `hidden` are empty.  It belongs to a user namespace of their
                own.
    landlock    They may open everything but the paths in `hidden` and the directories above these.  What is created
                in those directories later is out of their reach, too.

In both cases they have no capabilities, and can neither undo that nor look into other processes.

The conversation is lines of JSON.  To the supervisor:

    {"argv": [...], "env": {...}, "directory": "...", "log": "...", "log_bytes": n,
     "means": "...", "hidden": [...], "shown": [...], "spares": false}                 first, and once
    {"signal": 15}                                                                     send it to the command
    {"execute": id, "argv": [...], "timeout": seconds}                                 run another beside it
    {"attach": id, "argv": [...], "tty": false, "env": {...}}                          run another beside it, with the
                                                                                       three descriptors that come along
    {"detach": id}                                                                     kill it
    {"stop": true}                                                                     end everything

From it:

    {"pid": n}    or    {"failed": "why"}                 the command runs, or could not be started
    {"executed": id, "code": n, "output": "..."}          or "failed": "why", or "timeout": true
    {"code": n, "signal": n}                              the command has ended, and its log is complete

It is run by its path with an isolated interpreter, so it imports the standard
library alone, and must stay quick to start.  With means and a path as its arguments it runs nothing, and
only exits with 0 if this machine can hide the path by these means.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

LONGEST_LINE = 16 * 1024
"""A longer line is logged in pieces."""

LONGEST_OUTPUT = 10 * 1024
"""What is kept of the output of a command that is run beside."""

_CHUNK = 64 * 1024
_MOST_DESCRIPTORS = 16
_SET_DEATH_SIGNAL, _DROP_CAPABILITY, _SET_SUBREAPER, _SET_NO_NEW_PRIVILEGES = 1, 24, 36, 38
_NEW_MOUNTS, _NEW_USERS = 0x20000, 0x10000000
_READ_ONLY, _NO_SETUID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_CAPABILITIES = 64


_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_FOR_PATH = 1
_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
"""The rights to files and directories that Landlock knows, by the first version that does."""

_RIGHTS_TO_FILES = 0b111 | 1 << 14 | 1 << 15
"""Those of them that concern a file: execute, write, read, truncate, control a device."""


class Confinement(ABC):
    """Hides paths from this process and its children, for good; on Linux alone."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.syscall.restype = ctypes.c_long

    @abstractmethod
    def enter(self, hidden: list[str], shown: list[str]) -> None:
        """Raises `OSError` where the kernel does not offer it or forbids it."""

    def _drop_capabilities(self) -> None:
        for number in range(_CAPABILITIES):
            # Those that this kernel does not know are refused, and so is everything to one who has none.
            self._libc.prctl(_DROP_CAPABILITY, number, 0, 0, 0)

    def _check(self, done: int, what: str) -> int:
        if done < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), what)
        return done


class Namespaces(Confinement):
    """A user namespace and a mount namespace."""

    def enter(self, hidden: list[str], shown: list[str]) -> None:
        user, group = os.geteuid(), os.getegid()
        self._check(self._libc.unshare(_NEW_USERS | _NEW_MOUNTS), "unshare")
        for name, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(line)
        self._mount("none", "/", _RECURSIVE | _PRIVATE)
        # Opened before they are hidden: a descriptor is the way to what lies beneath a mount.
        kept = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in shown]
        hidden = [path for path in hidden if not any(path.startswith(f"{other}/") for other in hidden)]
        directories = [path for path in hidden if os.path.isdir(path)]
        for path in hidden:
            if path in directories:
                self._mount("tmpfs", path, _NO_SETUID | _NO_DEVICES, "tmpfs", b"mode=755,size=1m")
            elif os.path.exists(path):
                self._mount("/dev/null", path, _BIND)
        for path, descriptor in kept:
            os.makedirs(path, exist_ok=True)
            self._mount(f"/proc/self/fd/{descriptor}", path, _BIND | _RECURSIVE)
            os.close(descriptor)
        for path in directories:
            self._mount("none", path, _REMOUNT | _BIND | _READ_ONLY | _NO_SETUID | _NO_DEVICES)
        self._drop_capabilities()

    def _mount(self, source: str, target: str, flags: int, kind: str = "none", data: bytes | None = None) -> None:
        done = self._libc.mount(source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data)
        self._check(done, target)


class Landlock(Confinement):
    """Landlock rules, which any process can give itself; they permit paths and cannot forbid one."""

    def enter(self, hidden: list[str], shown: list[str]) -> None:
        version = self._check(self._libc.syscall(_CREATE_RULESET, None, 0, 1), "landlock")
        rights = sum(right for first, right in _RIGHTS.items() if first <= version)
        rules = self._check(self._libc.syscall(_CREATE_RULESET, struct.pack("=Q", rights), 8, 0), "landlock")
        for path in (*_around(hidden), *shown):
            # What is gone by now needs no rule.
            with contextlib.suppress(FileNotFoundError):
                self._permit(rules, path, rights)
        self._check(self._libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "landlock")
        self._drop_capabilities()
        self._check(self._libc.syscall(_RESTRICT_SELF, rules, 0), "landlock")
        os.close(rules)

    def _permit(self, rules: int, path: str, rights: int) -> None:
        """Permit everything with a file, or beneath a directory."""
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            allowed = rights if os.path.isdir(path) else rights & _RIGHTS_TO_FILES
            rule = struct.pack("=Qi", allowed, descriptor)
            self._check(self._libc.syscall(_ADD_RULE, rules, _RULE_FOR_PATH, rule, 0), path)
        finally:
            os.close(descriptor)


def _around(hidden: list[str], at: str = "/") -> Iterator[str]:
    """The paths beneath a directory that have nothing hidden in them; of a directory that has, those in it.

    Symbolic links are left out: what they lead to is permitted where it is, or hidden.
    """
    try:
        entries = list(os.scandir(at))
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink() or entry.path in hidden:
            continue
        if any(path.startswith(f"{entry.path}/") for path in hidden):
            yield from _around(hidden, entry.path)
        else:
            yield entry.path


MEANS: dict[str, type[Confinement]] = {"namespaces": Namespaces, "landlock": Landlock}
"""How paths are hidden, the better first."""


class Log:
    """The log of one run: a line for each that was written, with its time and where it came from.

    The file is set aside when it is full, and the one that was set aside before is dropped, so that a log is never
    larger than twice `limit`.
    """

    def __init__(self, path: str, limit: int) -> None:
        self._path, self._limit = path, limit
        self._file = self._open()
        self._size = 0

    def write(self, stream: str, pieces: list[tuple[bytes, bool]]) -> None:
        """Lines, each with whether it is whole."""
        stamp = _stamp(time.time_ns())
        data = b"".join(
            b"%s %s %s %s\n" % (stamp, stream.encode(), b"F" if whole else b"P", line) for line, whole in pieces
        )
        # A full disk must not end the command.
        with contextlib.suppress(OSError):
            if self._size and self._size + len(data) > self._limit:
                self._rotate()
            os.write(self._file, data)
            self._size += len(data)

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _rotate(self) -> None:
        os.replace(self._path, f"{self._path}.1")
        os.close(self._file)
        self._file, self._size = self._open(), 0


def _stamp(nanoseconds: int) -> bytes:
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z".encode()


class Lines:
    """Bytes as they come, to whole lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[bytes, bool]]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = [piece for line in lines for piece in _pieces(line)]
        while len(self._rest) >= LONGEST_LINE:
            found.append((self._rest[:LONGEST_LINE], False))
            self._rest = self._rest[LONGEST_LINE:]
        return found

    def end(self) -> list[tuple[bytes, bool]]:
        """The last line, if nothing ended it."""
        rest, self._rest = self._rest, b""
        return [(rest, True)] if rest else []


def _pieces(line: bytes) -> list[tuple[bytes, bool]]:
    starts = range(0, max(len(line), 1), LONGEST_LINE)
    return [(line[start : start + LONGEST_LINE], start + LONGEST_LINE >= len(line)) for start in starts]


class Beside:
    """A command that is run beside the container's own: a probe, or a hook."""

    def __init__(self, id: int, process: subprocess.Popen[bytes], deadline: float) -> None:
        self.id, self.process, self.deadline = id, process, deadline
        self.output = b""

    def keep(self, data: bytes) -> None:
        self.output = (self.output + data)[:LONGEST_OUTPUT]


class Attached:
    """A command that a client runs beside the container's own."""

    def __init__(self, id: int, process: subprocess.Popen[bytes]) -> None:
        self.id, self.process = id, process


class Supervisor:
    """One command, and everything that comes of it."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._received = b""
        self._selector = selectors.DefaultSelector()
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None
        self._main: subprocess.Popen[bytes] | None = None
        self._spec: dict[str, Any] = {}
        self._spares = False
        self._beside: dict[int, Beside] = {}
        self._attached: dict[int, Attached] = {}
        self._descriptors: list[int] = []
        self._open_outputs = 0
        self._over = False
        self._waking, waking = os.pipe()
        for fd in (self._waking, waking):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)

    def run(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        # A handler, and not SIG_IGN, which the command would inherit.
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        if self._libc is not None:
            self._libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
        self._selector.register(self._channel, selectors.EVENT_READ, self._hear)
        self._selector.register(self._waking, selectors.EVENT_READ, self._reap)
        try:
            while not self._over:
                self._turn()
        finally:
            self._kill_all()

    def _turn(self) -> None:
        soonest = min((each.deadline for each in self._beside.values()), default=None)
        timeout = None if soonest is None else max(0.0, soonest - time.monotonic())
        for key, _ in self._selector.select(timeout):
            # One that came before may have had the last word on it.
            if not self._over and key.fd in self._selector.get_map():
                key.data()
        for each in [each for each in self._beside.values() if each.deadline <= time.monotonic()]:
            self._forget(each, {"timeout": True})

    def _end(self) -> None:
        self._over = True

    # --- the conversation

    def _hear(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self._channel, _CHUNK, _MOST_DESCRIPTORS)
        self._descriptors += descriptors
        if not data:
            self._end()
            return
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            self._receive(json.loads(line))

    def _receive(self, said: dict[str, Any]) -> None:
        if "signal" in said:
            self._spares = False
            if self._main is not None:
                _send(os.kill, self._pid, said["signal"])
        elif "stop" in said:
            self._spares = False
            self._end()
        elif "execute" in said:
            self._execute(said["execute"], said["argv"], timeout=said["timeout"])
        elif "attach" in said:
            self._attach(said["attach"], said["argv"], tty=said["tty"], env=said["env"])
        elif "detach" in said:
            for each in self._attached.values():
                if each.id == said["detach"]:
                    _send(os.killpg, each.process.pid)
        else:
            self._start(said)

    def _say(self, said: dict[str, Any]) -> None:
        try:
            self._channel.sendall(json.dumps(said).encode() + b"\n")
        except OSError:
            self._end()

    # --- the command

    @property
    def _pid(self) -> int:
        assert self._main is not None
        return self._main.pid

    def _start(self, spec: dict[str, Any]) -> None:
        self._spec, self._spares = spec, spec.get("spares", False)
        log = Log(spec["log"], spec["log_bytes"])
        try:
            self._main = self._spawn(spec["argv"], stderr=subprocess.PIPE)
        except _START_ERRORS as error:
            self._say({"failed": _why(error, spec)})
            self._end()
            return
        for stream, pipe in (("stdout", self._main.stdout), ("stderr", self._main.stderr)):
            assert pipe is not None
            self._log(stream, pipe.fileno(), log)
        self._say({"pid": self._pid})

    def _spawn(self, argv: list[str], *, stderr: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=self._spec["env"],
            cwd=self._spec["directory"],
            start_new_session=True,
            preexec_fn=self._begin_child if self._libc is not None else None,
        )

    def _begin_child(self) -> None:
        """In the child: hide what is to be hidden; even if this program is killed, the command does not outlive it."""
        assert self._libc is not None
        if self._spec["hidden"]:
            MEANS[self._spec["means"]]().enter(self._spec["hidden"], self._spec["shown"])
            # The working directory was entered before: from there, its hidden parents could be reached.
            os.chdir(self._spec["directory"])
        # Last, because new credentials clear it.
        self._libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)

    def _log(self, stream: str, fd: int, log: Log) -> None:
        lines = Lines()
        self._open_outputs += 1

        def read() -> None:
            data = os.read(fd, _CHUNK)
            if data:
                log.write(stream, lines.feed(data))
                return
            log.write(stream, lines.end())
            self._selector.unregister(fd)
            self._open_outputs -= 1

        self._selector.register(fd, selectors.EVENT_READ, read)

    # --- commands beside it

    def _execute(self, id: int, argv: list[str], *, timeout: float) -> None:
        try:
            process = self._spawn(argv, stderr=subprocess.STDOUT)
        except _START_ERRORS as error:
            self._say({"executed": id, "failed": _why(error, {**self._spec, "argv": argv})})
            return
        assert process.stdout is not None
        each = Beside(id, process, time.monotonic() + timeout)
        self._beside[process.pid] = each
        fd = process.stdout.fileno()
        os.set_blocking(fd, False)
        self._selector.register(fd, selectors.EVENT_READ, lambda: self._overhear(each))

    def _overhear(self, each: Beside) -> bool:
        """Take what a command beside has written; whether there was anything."""
        stdout = each.process.stdout
        assert stdout is not None
        try:
            data = os.read(stdout.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        if not data and stdout.fileno() in self._selector.get_map():
            self._selector.unregister(stdout)
        each.keep(data)
        return bool(data)

    def _forget(self, each: Beside, said: dict[str, Any]) -> None:
        del self._beside[each.process.pid]
        _send(os.killpg, each.process.pid)
        stdout = each.process.stdout
        assert stdout is not None
        if stdout.fileno() in self._selector.get_map():
            self._selector.unregister(stdout)
        stdout.close()
        self._say({"executed": each.id, "output": each.output.decode(errors="replace"), **said})

    # --- commands of clients

    def _attach(self, id: int, argv: list[str], *, tty: bool, env: dict[str, str]) -> None:
        descriptors, self._descriptors = self._descriptors[:3], self._descriptors[3:]

        def begin() -> None:
            if tty:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if self._libc is not None:
                self._begin_child()

        try:
            process = subprocess.Popen(
                argv,
                stdin=descriptors[0],
                stdout=descriptors[1],
                stderr=descriptors[2],
                env={**self._spec["env"], **env},
                cwd=self._spec["directory"],
                start_new_session=True,
                preexec_fn=begin,
            )
        except (*_START_ERRORS, IndexError) as error:
            self._say({"executed": id, "failed": _why(error, {**self._spec, "argv": argv})})
        else:
            self._attached[process.pid] = Attached(id, process)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    # --- ends

    def _reap(self) -> None:
        """Children that have ended: the command, one beside it, or an orphan that was adopted."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._waking, _CHUNK)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self._reaped(pid, os.waitstatus_to_exitcode(status))

    def _reaped(self, pid: int, code: int) -> None:
        if self._main is not None and pid == self._main.pid:
            self._main.returncode = code
            self._finish(code)
        elif pid in self._beside:
            each = self._beside[pid]
            each.process.returncode = code
            while self._overhear(each):
                pass
            self._forget(each, {"code": code if code >= 0 else 128 - code})
        elif pid in self._attached:
            attached = self._attached.pop(pid)
            attached.process.returncode = code
            self._say({"executed": attached.id, "code": code if code >= 0 else 128 - code})

    def _finish(self, code: int) -> None:
        """The command has ended, and with it ends all that it started; then its log is complete."""
        self._kill_all()
        patience = time.monotonic() + 1
        while self._open_outputs and (left := patience - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                if key.data not in (self._hear, self._reap):
                    key.data()
        self._say({"code": code if code >= 0 else 128 - code, "signal": -code if code < 0 else 0})
        self._end()

    def _kill_all(self) -> None:
        """Kill what is left.  Orphans are adopted as their parents go, so nothing is left when no child is."""
        groups = [each.process.pid for each in self._beside.values()]
        groups += [each.process.pid for each in self._attached.values()]
        if self._main is not None:
            groups.append(self._main.pid)
        for group in groups:
            _send(os.killpg, group)
        if sys.platform != "linux" or self._spares:
            return
        while children := _children():
            for child in children:
                _send(os.kill, child)
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            if self._main is not None and pid == self._main.pid:
                self._main.returncode = os.waitstatus_to_exitcode(status)


def _children() -> list[int]:
    """The children of this process, those that have ended and were not waited for among them."""
    found, me = [], os.getpid()
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The name of the program stands in brackets, and may hold anything.
                if int(file.read().rpartition(b")")[2].split()[1]) == me:
                    found.append(int(name))
    return found


def _send(kill: Callable[[int, int], None], target: int, number: int = signal.SIGKILL) -> None:
    """Signal a process or a group that may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        kill(target, number)


_START_ERRORS = (OSError, ValueError, subprocess.SubprocessError)


def _why(error: Exception, spec: dict[str, Any]) -> str:
    if isinstance(error, subprocess.SubprocessError):
        return f"{spec['argv'][0]}: the data directory could not be hidden from it"
    if isinstance(error, FileNotFoundError) and not os.path.isdir(spec["directory"]):
        return f"the working directory {spec['directory']} does not exist"
    if isinstance(error, FileNotFoundError):
        return f"{spec['argv'][0]}: no such executable on this machine; give its full path, or install it"
    if isinstance(error, OSError):
        return f"{spec['argv'][0]}: {error.strerror}"
    return f"{spec['argv'][0]}: {error}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        try:
            MEANS[sys.argv[1]]().enter(sys.argv[2:], [])
        except OSError as error:
            sys.exit(f"{error.filename}: {error.strerror}")
        sys.exit()
    Supervisor(socket.socket(fileno=0)).run()
