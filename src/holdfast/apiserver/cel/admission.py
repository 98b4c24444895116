"""Expressions of admission policies: CEL over a request, its objects, parameters and variables.

Compiled on first use and cached by their text.  Importing this module loads the CEL engine, so it is imported only
where there are policies.
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

VARIABLES: Final = ("object", "oldObject", "request", "params", "namespaceObject", "variables")


class ExpressionError(Exception):
    """An expression that does not compile, or that failed."""


def evaluate(expression: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression, given those of `VARIABLES`; raises `ExpressionError`."""
    try:
        result = _compiled(expression).eval(_environment().Activation(dict(values)))
    except RuntimeError as error:  # the engine raises no other type
        raise _error(expression, error) from None
    if result.type() == cel.Type.ERROR:
        raise _error(expression, result.value())
    return result.plain_value()


def problem(expression: str, *, returns: str = "") -> str:
    """Why an expression does not compile, or returns another type (``bool``, ``string``); empty if it is right."""
    try:
        made = str(_compiled(expression).return_type()).lower()
    except RuntimeError as error:
        return f"compilation failed: {_said(error)}"
    return f"must evaluate to {returns} but got {made}" if returns and made not in (returns, "dyn") else ""


def _error(expression: str, reason: object) -> ExpressionError:
    return ExpressionError(f"expression '{expression}' resulted in error: {_said(reason)}")


def _said(reason: object) -> str:
    return re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", str(reason))


@cache
def _environment() -> Any:
    extensions = [ExtStrings(), ExtMath(), ExtOptional(), ExtBindings(), ExtEncoders(), library.for_running()]
    return cel.NewEnv(variables=dict.fromkeys(VARIABLES, cel.Type.DYN), extensions=extensions)


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> Any:
    return _environment().compile(expression)
