"""Match conditions of webhooks: CEL over the request, its object and the object before.

Compiled on first use and kept by their text.  Nothing here knows what becomes of
a condition that fails.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext.ext_bindings import ExtBindings
from cel_expr_python.ext.ext_encoders import ExtEncoders
from cel_expr_python.ext.ext_math import ExtMath
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

from holdfast.apiserver import cel_library

VARIABLES: Final = ("object", "oldObject", "request")


class ConditionError(Exception):
    """A condition that does not compile, does not run, or says neither yes nor no."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: its name and its expression."""

    name: str
    expression: str

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it is true of the values of `VARIABLES`; raises `ConditionError`."""
        try:
            result = _compiled(self.expression).eval(_environment().Activation(dict(values)))
        except RuntimeError as error:  # the engine's only kind
            raise self._error(error) from None
        if result.type() == cel.Type.ERROR:
            raise self._error(result.value())
        value = result.value()
        if not isinstance(value, bool):
            raise self._error("must evaluate to bool")
        return value

    def _error(self, problem: object) -> ConditionError:
        said = re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", str(problem))
        return ConditionError(f"expression '{self.expression}' resulted in error: {said}")


@cache
def _environment() -> Any:
    extensions = [ExtStrings(), ExtMath(), ExtOptional(), ExtBindings(), ExtEncoders(), cel_library.for_running()]
    return cel.NewEnv(variables=dict.fromkeys(VARIABLES, cel.Type.DYN), extensions=extensions)


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:
    return _environment().compile(expression)
