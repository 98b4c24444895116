"""JSON Patch (RFC 6902) and JSON Pointer (RFC 6901): apply a list of operations.

A document is never changed: `apply` returns a new one that shares every untouched part with the old, so a patch that
fails half way has done nothing. A container is copied when an operation first changes it and from then on changed in
place, so the time is linear in the sizes of document and patch. Where the RFC leaves room, or the Kubernetes API server
differs from it, we answer as the server does: a `test` against null passes for an object member that is absent. The
number of operations, the bytes that `copy` may multiply and the array items that operations shift are bounded.

This module knows JSON values. It must not know objects, kinds or media types.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import msgspec

__all__ = [
    "MAX_COPIED_BYTES",
    "MAX_OPERATIONS",
    "MAX_SHIFTED_ITEMS",
    "InvalidOperation",
    "JSONPatchError",
    "PatchTooLarge",
    "TargetMissing",
    "TestFailed",
    "apply",
    "format_pointer",
    "hashable",
    "json_equal",
    "parse_pointer",
]

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
MAX_SHIFTED_ITEMS: Final = 500_000_000

_BOOLEANS: Final[tuple[Hashable, Hashable]] = (object(), object())
"""What stands for false and true among hashable values, since Python takes them for 0 and 1."""

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
    """The patch exceeds `MAX_OPERATIONS`, `MAX_COPIED_BYTES` or `MAX_SHIFTED_ITEMS`."""


def apply(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """Return `document` after all operations, in order; raise, with nothing done, if one of them fails.

    >>> apply({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}])
    {'a': [1, 2, 3]}
    """
    if not isinstance(operations, Sequence) or isinstance(operations, str):
        raise InvalidOperation(f"a JSON patch is an array of operations, not {_describe(operations)}")
    if len(operations) > MAX_OPERATIONS:
        raise PatchTooLarge(f"{len(operations)} operations, at most {MAX_OPERATIONS} are allowed: split the patch")
    edited = _Document(document)
    for index, operation in enumerate(operations):
        try:
            _apply_one(edited, operation)
        except JSONPatchError as error:
            raise type(error)(error.problem, index=index, pointer=error.pointer) from None
    return edited.root


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


def hashable(value: Any) -> Hashable:
    """A hashable value for a JSON value; two are equal where `json_equal` says so of their values.

    Finds duplicates among values of any kind in linear time.
    """
    if isinstance(value, dict):
        return frozenset((key, hashable(member)) for key, member in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(hashable, value))
    return _BOOLEANS[value] if isinstance(value, bool) else value


# --- Applying ---


class _Document:
    """A document that is being patched, and the containers in it that were copied and may be changed in place."""

    __slots__ = ("_copied_bytes", "_owned", "_shifted_items", "root")

    def __init__(self, root: Any) -> None:
        self.root = root
        self._owned: dict[int, Any] = {}
        """By id.  They are kept here, so that no id is used again."""
        self._copied_bytes = 0
        self._shifted_items = 0

    def add(self, tokens: Sequence[str], value: Any) -> None:
        if not tokens:
            self.root = value
            return
        _check_container(self._parent(tokens), tokens)
        token, container = tokens[-1], self._own_parent(tokens)
        if isinstance(container, dict):
            container[token] = value
            return
        at = len(container) if token == "-" else _index(token, len(container) + 1, tokens)
        self._count_shifted(len(container) - at)
        container.insert(at, value)

    def replace(self, tokens: Sequence[str], value: Any) -> None:
        if not tokens:
            self.root = value
            return
        _child(self._parent(tokens), tokens, len(tokens) - 1)
        container = self._own_parent(tokens)
        container[tokens[-1] if isinstance(container, dict) else int(tokens[-1])] = value

    def remove(self, tokens: Sequence[str]) -> None:
        if not tokens:
            self.root = None
            return
        _child(self._parent(tokens), tokens, len(tokens) - 1)
        container = self._own_parent(tokens)
        if isinstance(container, list):
            self._count_shifted(len(container) - int(tokens[-1]))
        del container[tokens[-1] if isinstance(container, dict) else int(tokens[-1])]

    def copy(self, source: Sequence[str], tokens: Sequence[str]) -> None:
        value = _get(self.root, source)
        self._copied_bytes += len(msgspec.json.encode(value))
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise PatchTooLarge(f"copies add more than {MAX_COPIED_BYTES} bytes")
        self.add(tokens, _deep_copy(value))

    def _parent(self, tokens: Sequence[str]) -> Any:
        container = self.root
        for depth in range(len(tokens) - 1):
            container = _child(container, tokens, depth)
        return container

    def _own_parent(self, tokens: Sequence[str]) -> Any:
        """The container of the last token; it and the containers on the way, which exist, are made ours."""
        container = self.root = self._own(self.root)
        for token in tokens[:-1]:
            key: Any = token if isinstance(container, dict) else int(token)
            container[key] = inner = self._own(container[key])
            container = inner
        return container

    def _own(self, container: Any) -> Any:
        if id(container) in self._owned:
            return container
        mine = dict(container) if isinstance(container, dict) else list(container)
        self._owned[id(mine)] = mine
        return mine

    def _count_shifted(self, items: int) -> None:
        """Operations at the front of a long array move all that follows."""
        self._shifted_items += items
        if self._shifted_items > MAX_SHIFTED_ITEMS:
            raise PatchTooLarge(f"operations shift more than {MAX_SHIFTED_ITEMS} array items: split the patch")


def _deep_copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _deep_copy(member) for key, member in value.items()}
    return [_deep_copy(item) for item in value] if isinstance(value, list) else value


def _apply_one(document: _Document, operation: Mapping[str, Any]) -> None:
    if not isinstance(operation, Mapping):
        raise InvalidOperation(f"an operation is an object, not {_describe(operation)}")
    path = _pointer_member(operation, "path")
    match operation.get("op"):
        case "add":
            document.add(path, _value_member(operation))
        case "remove":
            document.remove(path)
        case "replace":
            document.replace(path, _value_member(operation))
        case "test":
            _test(document.root, path, _value_member(operation))
        case "move":
            source = _pointer_member(operation, "from")
            if path[: len(source)] == source and len(path) > len(source):
                raise InvalidOperation("a value cannot be moved into itself", pointer=format_pointer(source))
            value = _get(document.root, source)
            document.remove(source)
            document.add(path, value)
        case "copy":
            document.copy(_pointer_member(operation, "from"), path)
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


def _check_container(value: Any, tokens: Sequence[str]) -> None:
    if not isinstance(value, (dict, list)):
        raise _no_container(value, tokens, len(tokens) - 1)


def _no_container(value: Any, tokens: Sequence[str], depth: int) -> TargetMissing:
    problem = f"holds {_describe(value)}, which has no member {tokens[depth]!r}"
    return TargetMissing(problem, pointer=format_pointer(tokens[:depth]))


def _describe(value: Any) -> str:
    return "null" if value is None else _TYPE_NAMES.get(type(value), "a number")


def _excerpt(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."
