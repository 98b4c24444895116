"""The command line with the toy operator in the list of operators."""

from __future__ import annotations

from unittest.mock import patch

from holdfast import kinds, operators
from holdfast.cli import main

with (
    patch.object(operators, "OPERATORS", (*operators.OPERATORS, "tests.operators.toy")),
    patch.dict(kinds._MODULES, {"toy.example.com": "tests.operators.toy.beacons"}),
):
    main(prog_name="holdfast")
