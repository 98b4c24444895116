"""Bodies that cost little to send and much to hold are refused."""

from __future__ import annotations

import pytest

from holdfast.apiserver.http import protobuf
from holdfast.apiserver.http.bodies import read_json
from holdfast.apiserver.http.messages import messages
from holdfast.apiserver.http.protobuf import Malformed, Messages
from holdfast.apiserver.http.yaml_subset import read as read_yaml


def test_aliases_that_stand_for_too_much_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ValueError, match="aliases expand to more than"):
        read_yaml("\n".join(lines).encode())


def test_a_few_aliases_are_fine() -> None:
    assert read_yaml(b"a: &x {k: v}\nb: *x\n") == {"a": {"k": "v"}, "b": {"k": "v"}}


def test_an_alias_of_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="aliases"):
        read_yaml(b"a: &x [*x]\n")


@pytest.mark.parametrize("read", [read_json, read_yaml])
def test_endless_nesting_is_refused(read: object) -> None:
    assert callable(read)
    with pytest.raises(ValueError, match="depth"):
        read(b"[" * 100_000)


def test_a_message_of_endless_fields_is_refused() -> None:
    reader: Messages = messages()
    with pytest.raises(Malformed, match="fields"):
        reader.decode("ConfigMap", b"\x12\x00" * (protobuf.MAX_FIELDS + 1))
