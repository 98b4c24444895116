"""The loader of ``builtins/data``: all built-in types, with the numbers of their fields in protocol buffers.

The files of ``data/types`` hold the types of the kinds and of request bodies, those of ``data/numbers`` the numbers;
``data/protobuf.txt`` has the types that differ in protocol buffers.  The merge keys of strategic merge patches are
part of the types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from holdfast.apiserver.builtins.types.decoding import Decoder
from holdfast.apiserver.builtins.types.notation import Struct, Types
from holdfast.apiserver.builtins.types.numbers import Numbers, read

_DATA: Final = files("holdfast.apiserver.builtins") / "data"


def _texts(folder: str) -> Iterator[str]:
    return (file.read_text("utf-8") for file in sorted((_DATA / folder).iterdir(), key=lambda file: file.name))


TYPES: Final = Types(*_texts("types"))
DECODER: Final = Decoder(TYPES)


@cache
def protobuf_types() -> Types:
    """The types that differ in protocol buffers, or exist only there."""
    return Types((_DATA / "protobuf.txt").read_text("utf-8"))


@cache
def numbers() -> Mapping[str, Numbers]:
    """The numbers of the fields of every type."""
    return read(*_texts("numbers"))


def message_struct(name: str) -> Struct:
    """The fields of a type as they are in protocol buffers."""
    return next(types for types in (protobuf_types(), TYPES) if name in types).struct(name)
