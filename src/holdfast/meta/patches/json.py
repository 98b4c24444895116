"""JSON Patch (RFC 6902) and JSON Pointer (RFC 6901): apply a list of operations.

A document is never changed: `apply` returns a new one that shares every untouched part with the old, so a patch that
fails half way has done nothing. Where the RFC leaves room, or the Kubernetes API server differs from it, we answer as
the server does: a `test` against null passes for an object member that is absent, and both the number of operations
and the bytes that `copy` may multiply are bounded.

This module knows JSON values. It must not know objects, kinds or media types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

__all__ = [
    "MAX_COPIED_BYTES",
    "MAX_OPERATIONS",
    "InvalidOperation",
    "JSONPatchError",
    "PatchTooLarge",
    "TargetMissing",
    "TestFailed",
    "apply",
    "format_pointer",
    "json_equal",
    "parse_pointer",
]

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024

_TYPE_NAMES: Final[Mapping[type, str]] = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}

# JSONPatchError            .index of the operation (None: the patch as a whole), .pointer it was working on
#  ├─ InvalidOperation      the operation is not well formed, whatever the document
#  ├─ TargetMissing         the document has nothing at that place
#  ├─ TestFailed            a `test` found another value
#  └─ PatchTooLarge         more operations or copied bytes than the limit


class JSONPatchError(ValueError):
    """A patch cannot be applied; the document is unchanged."""

    def __init__(self, problem: str, *, index: int | None = None, pointer: str | None = None) -> None:
        place = "patch" if index is None else f"operation {index}"
        if pointer is not None:
            place += f" at {pointer!r}"
        super().__init__(f"{place}: {problem}")
        self.problem = problem
        self.index = index
        self.pointer = pointer


class InvalidOperation(JSONPatchError):
    """An operation is not well formed."""


class TargetMissing(JSONPatchError):
    """A place named by an operation does not exist in the document."""


class TestFailed(JSONPatchError):
    """A `test` operation found another value than it expects."""

    __test__ = False  # the name is the RFC's; pytest need not look inside


class PatchTooLarge(JSONPatchError):
    """The patch exceeds `MAX_OPERATIONS` or `MAX_COPIED_BYTES`."""


def apply(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """Return `document` after all operations, in order; raise, with nothing done, if one of them fails.

    >>> apply({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}])
    {'a': [1, 2, 3]}
    """
    if not isinstance(operations, Sequence) or isinstance(operations, str):
        raise InvalidOperation(f"a JSON patch is an array of operations, not {_describe(operations)}")
    if len(operations) > MAX_OPERATIONS:
        raise PatchTooLarge(f"{len(operations)} operations, at most {MAX_OPERATIONS} are allowed: split the patch")
    copied = 0
    for index, operation in enumerate(operations):
        try:
            document, size = _apply_one(document, operation)
        except JSONPatchError as error:
            raise type(error)(error.problem, index=index, pointer=error.pointer) from None
        copied += size
        if copied > MAX_COPIED_BYTES:
            raise PatchTooLarge(f"copies add more than {MAX_COPIED_BYTES} bytes", index=index)
    return document


def parse_pointer(pointer: str) -> tuple[str, ...]:
    """Split a JSON pointer into its tokens: `/a~1b/0` is `("a/b", "0")`, the empty pointer is the whole document."""
    if not pointer:
        return ()
    if pointer[0] != "/":
        raise InvalidOperation(f"a pointer starts with '/': write {'/' + pointer!r}", pointer=pointer)
    bare = pointer.replace("~0", "").replace("~1", "")
    if "~" in bare:
        raise InvalidOperation("'~' must be followed by 0 or 1: write '~0' for '~' and '~1' for '/'", pointer=pointer)
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/"))


def format_pointer(tokens: Sequence[str]) -> str:
    """Join tokens to a JSON pointer; the inverse of `parse_pointer`."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def json_equal(a: Any, b: Any) -> bool:
    """Compare as JSON does: 1 equals 1.0, and unlike in Python neither equals true."""
    return a is b or (a == b and _booleans_agree(a, b))


def _booleans_agree(a: Any, b: Any) -> bool:
    """For values equal to Python, say whether true and false stand against their like everywhere."""
    if isinstance(a, dict):
        return all(_booleans_agree(member, b[key]) for key, member in a.items())
    if isinstance(a, list):
        return all(map(_booleans_agree, a, b))
    return isinstance(a, bool) == isinstance(b, bool)


# --- Applying ---


def _apply_one(document: Any, operation: Mapping[str, Any]) -> tuple[Any, int]:
    """Return the new document and the number of bytes copied."""
    if not isinstance(operation, Mapping):
        raise InvalidOperation(f"an operation is an object, not {_describe(operation)}")
    path = _pointer_member(operation, "path")
    match operation.get("op"):
        case "add":
            return _add(document, path, _value_member(operation)), 0
        case "remove":
            return _remove(document, path), 0
        case "replace":
            return _replace(document, path, _value_member(operation)), 0
        case "test":
            _test(document, path, _value_member(operation))
            return document, 0
        case "move":
            source = _pointer_member(operation, "from")
            if path[: len(source)] == source and len(path) > len(source):
                raise InvalidOperation("a value cannot be moved into itself", pointer=format_pointer(source))
            value = _get(document, source)
            return _add(_remove(document, source), path, value), 0
        case "copy":
            value = _get(document, _pointer_member(operation, "from"))
            return _add(document, path, value), len(msgspec.json.encode(value))
        case other:
            known = "add, remove, replace, move, copy or test"
            raise InvalidOperation(f"op must be {known}, not {other!r}", pointer=format_pointer(path))


def _pointer_member(operation: Mapping[str, Any], name: str) -> tuple[str, ...]:
    pointer = operation.get(name)
    if not isinstance(pointer, str):
        problem = f"needs {name!r}, a JSON pointer such as '/metadata/labels', not {_describe(pointer)}"
        raise InvalidOperation(problem)
    return parse_pointer(pointer)


def _value_member(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise InvalidOperation(f"{operation['op']!r} needs a 'value' (null is one)", pointer=str(operation["path"]))
    return operation["value"]


def _add(document: Any, tokens: Sequence[str], value: Any) -> Any:
    def added(container: Any) -> Any:
        if isinstance(container, dict):
            return {**container, tokens[-1]: value}
        if isinstance(container, list):
            at = len(container) if tokens[-1] == "-" else _index(tokens[-1], len(container) + 1, tokens)
            return [*container[:at], value, *container[at:]]
        raise _no_container(container, tokens, len(tokens) - 1)

    return _edit(document, tokens, added) if tokens else value


def _replace(document: Any, tokens: Sequence[str], value: Any) -> Any:
    def replaced(container: Any) -> Any:
        _child(container, tokens, len(tokens) - 1)
        return _with(container, tokens[-1], value)

    return _edit(document, tokens, replaced) if tokens else value


def _remove(document: Any, tokens: Sequence[str]) -> Any:
    def removed(container: Any) -> Any:
        _child(container, tokens, len(tokens) - 1)
        if isinstance(container, dict):
            return {key: member for key, member in container.items() if key != tokens[-1]}
        at = int(tokens[-1])
        return container[:at] + container[at + 1 :]

    return _edit(document, tokens, removed) if tokens else None


def _edit(document: Any, tokens: Sequence[str], edit: Callable[[Any], Any]) -> Any:
    """Return the document with the container of the last token edited; only the containers on the way are copied."""
    parents = [document]
    for depth in range(len(tokens) - 1):
        parents.append(_child(parents[-1], tokens, depth))
    changed = edit(parents.pop())
    for depth in range(len(parents) - 1, -1, -1):
        changed = _with(parents[depth], tokens[depth], changed)
    return changed


def _with(container: Any, token: str, child: Any) -> Any:
    """Return a copy of a container with one existing child exchanged."""
    if isinstance(container, dict):
        return {**container, token: child}
    copy = list(container)
    copy[int(token)] = child
    return copy


def _test(document: Any, tokens: Sequence[str], expected: Any) -> None:
    if tokens and expected is None:
        parent = _get(document, tokens[:-1])
        if isinstance(parent, dict) and tokens[-1] not in parent:
            return
    actual = _get(document, tokens)
    if not json_equal(actual, expected):
        problem = f"the test expects {_excerpt(expected)}, the document has {_excerpt(actual)}"
        raise TestFailed(problem, pointer=format_pointer(tokens))


def _get(document: Any, tokens: Sequence[str]) -> Any:
    for depth in range(len(tokens)):
        document = _child(document, tokens, depth)
    return document


def _child(container: Any, tokens: Sequence[str], depth: int) -> Any:
    """Return what the token at `depth` names in `container`, which the tokens before it have led to."""
    token = tokens[depth]
    if isinstance(container, dict):
        if token in container:
            return container[token]
        near = f"the members there are {_excerpt(sorted(container))}" if container else "the object there is empty"
        raise TargetMissing(f"no member {token!r}; {near}", pointer=format_pointer(tokens[: depth + 1]))
    if isinstance(container, list):
        return container[_index(token, len(container), tokens[: depth + 1])]
    raise _no_container(container, tokens, depth)


def _index(token: str, limit: int, tokens: Sequence[str]) -> int:
    if not (token.isascii() and token.isdecimal()) or (token[0] == "0" and token != "0"):
        hint = "; '-' names the place after the last item, and only 'add' can use it" if token == "-" else ""
        problem = f"{token!r} is not an array index: write decimal digits without leading zeros{hint}"
        error = TargetMissing if token == "-" else InvalidOperation
        raise error(problem, pointer=format_pointer(tokens))
    # Digits are counted before they are parsed: parsing a million of them would take long.
    if len(token) > 18 or int(token) >= limit:
        raise TargetMissing(f"index {token[:20]} is beyond the end of the array", pointer=format_pointer(tokens))
    return int(token)


def _no_container(value: Any, tokens: Sequence[str], depth: int) -> TargetMissing:
    problem = f"holds {_describe(value)}, which has no member {tokens[depth]!r}"
    return TargetMissing(problem, pointer=format_pointer(tokens[:depth]))


def _describe(value: Any) -> str:
    return "null" if value is None else _TYPE_NAMES.get(type(value), "a number")


def _excerpt(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."
