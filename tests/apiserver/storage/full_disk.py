"""A store on a small disk of its own, which another file fills; run by `test_full_disk` in namespaces of its own.

Prints one line of JSON for each step.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from tests.apiserver.servers import CONFIGMAPS, Api, configmap

TEXT = "x" * 4000


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name}: {record.getMessage()}")


def fill(path: Path) -> None:
    """Take all space that is left."""
    with path.open("wb", buffering=0) as file:
        for size in (65536, 512):
            while True:
                try:
                    file.write(bytes(size))
                except OSError:
                    break


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def main(disk: Path) -> None:
    data, lines = disk / "data", Lines()
    logging.getLogger("holdfast").addHandler(lines)
    api = Api(data)
    for number in range(100):
        api.post(CONFIGMAPS, configmap(f"c{number}", data={"text": TEXT}, metadata={"finalizers": ["a.b/c"]})).done()
    fill(disk / "filler")
    # A write may find room again for a while, when old states were given up; the disk is full once none does.
    asked = [api.post(CONFIGMAPS, configmap(f"d{number}", data={"text": TEXT * 50})) for number in range(200)]
    while asked[-1].status != 507 and len(asked) < 1000:
        asked.append(api.post(CONFIGMAPS, configmap(f"d{len(asked)}", data={"text": TEXT * 50})))
    last = asked[-1]
    health = api.get("/livez", token="")
    say(codes=sorted({each.status for each in asked}), status=last.body, health=[health.status, health.raw.decode()])
    say(lines=lines.lines)
    # A deletion in two steps, as finalizers need it.
    deleted = [api.delete(f"{CONFIGMAPS}/c{number}").status for number in range(50)]
    finished = [api.patch(f"{CONFIGMAPS}/c{number}", {"metadata": {"finalizers": None}}).status for number in range(50)]
    say(deleted=sorted(set(deleted)), finished=sorted(set(finished)), left=len(api.names(CONFIGMAPS)))
    api.close()
    os.unlink(disk / "filler")
    fill(disk / "filler")
    # What is left of the reserve is not known, so that only reads are sure to work.
    api = Api(data)
    say(restarted=len(api.names(CONFIGMAPS)))
    api.close()
    os.unlink(disk / "filler")
    api = Api(data)
    created = api.post(CONFIGMAPS, configmap("after", data={"text": TEXT})).status
    say(created=created, health=api.get("/livez", token="").status)
    api.close()
    # The reserve is whole again.
    fill(disk / "filler")
    api = Api(data)
    say(deleted=api.delete(f"{CONFIGMAPS}/after").status)
    api.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
