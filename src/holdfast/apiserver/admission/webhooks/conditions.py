"""Match conditions of webhooks: CEL over the request, its object and the old object.

Compiled on first use and cached by their text.  Importing this module loads the CEL engine, so it is imported only
where a webhook has conditions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext.ext_bindings import ExtBindings
from cel_expr_python.ext.ext_encoders import ExtEncoders
from cel_expr_python.ext.ext_math import ExtMath
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

from holdfast.apiserver.cel import library

VARIABLES: Final = ("object", "oldObject", "request")


class ConditionError(Exception):
    """A condition that does not compile, fails, or does not return a boolean."""


def holds(expression: str, values: Mapping[str, Any]) -> bool:
    """Evaluate a condition with the values of `VARIABLES`; raises `ConditionError`."""
    try:
        result = _compiled(expression).eval(_environment().Activation(dict(values)))
    except RuntimeError as error:  # the engine raises no other type
        raise _error(expression, error) from None
    if result.type() == cel.Type.ERROR:
        raise _error(expression, result.value())
    value = result.value()
    if not isinstance(value, bool):
        raise _error(expression, "must evaluate to bool")
    return value


def _error(expression: str, problem: object) -> ConditionError:
    said = re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", str(problem))
    return ConditionError(f"expression '{expression}' resulted in error: {said}")


@cache
def _environment() -> Any:
    extensions = [ExtStrings(), ExtMath(), ExtOptional(), ExtBindings(), ExtEncoders(), library.for_running()]
    return cel.NewEnv(variables=dict.fromkeys(VARIABLES, cel.Type.DYN), extensions=extensions)


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:
    return _environment().compile(expression)
