"""The command ``holdfast``, also as ``python -m holdfast``."""

from __future__ import annotations

import os
import signal


def run() -> None:
    """Run the command line; Ctrl-C ends it quietly from the start, while its modules are still imported."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # and not ignored, as in the background of a script
        signal.signal(signal.SIGINT, _interrupted)
    from holdfast.cli import main

    signal.signal(signal.SIGINT, handler)
    main(prog_name="holdfast")


def _interrupted(*_: object) -> None:
    os._exit(130)


if __name__ == "__main__":
    run()
