"""The operators: one folder for each system, each of which exports one value, `OPERATOR`.

The command line, the demo, the dashboard and the embedded cluster read the list below
and know no operator by name.  A new operator is a folder of its own, its kinds, and a
line in `OPERATORS`.
"""

from __future__ import annotations

from typing import Final

OPERATORS: Final = (
    "holdfast.operators.workload",
    "holdfast.operators.podcliqueset",
    "holdfast.operators.tenant",
    "holdfast.operators.virtualmachine",
    "holdfast.operators.deploymentrequest",
)
"""The modules that export an `OPERATOR`, in the order in which they are listed.

They are imported by `operator.load`, so that a command that needs no operator loads none.
"""

COMMANDS: Final = {
    "vm": (
        "holdfast.operators.virtualmachine.verbs:GROUP",
        "Open consoles of virtual machines, start and stop them, and see their addresses.",
    ),
}
"""The command groups that operators add to the command line, by name: ``module:attribute`` of the `CommandGroup`, and
what it is for."""
