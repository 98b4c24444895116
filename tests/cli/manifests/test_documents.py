"""Manifests are read with the place of everything, and nothing that is read can harm."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.errors import InputError
from holdfast.cli.manifests import documents
from holdfast.cli.manifests.documents import Document, Source, parse
from holdfast.meta.fieldpaths import child

MANIFEST = """\
# a comment
apiVersion: cloudless.io/v1
kind: Workload
metadata:
  name: web
  labels:
    app.kubernetes.io/name: web
spec:
  args: [a, b]
  ports:
    - containerPort: 80
      name: http
    - {containerPort: 81,
       name: other}
"""


def only(text: str) -> Document:
    (document,) = parse(Source("x.yaml", text))
    return document


def refusal(text: str) -> str:
    with pytest.raises(InputError) as refused:
        parse(Source("x.yaml", text))
    return refused.value.format_message()


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ("apiVersion", 2, 1),
        ("metadata.labels[app.kubernetes.io/name]", 7, 5),
        ("spec.args[1]", 9, 13),
        ("spec.ports[0].name", 12, 7),
        ("spec.ports[1].name", 14, 8),
        ("spec.ports[1].protocol", 13, 7),
        ("spec.replicas", 8, 1),
        ("status", 2, 1),
        ("", 2, 1),
    ],
)
def test_a_path_leads_to_its_place_or_to_the_nearest_around_it(path: str, line: int, column: int) -> None:
    place = only(MANIFEST).place_of(path)
    assert (place.line, place.column) == (line, column)
    assert only(MANIFEST).place_of(path).line == line


def test_documents_are_separated_and_empty_ones_skipped() -> None:
    found = parse(Source("x", "---\na: 1\n---\n# nothing\n---\nb: 2\n...\n"))
    assert [document.value for document in found] == [{"a": 1}, {"b": 2}]
    assert [document.place.line for document in found] == [2, 6]


def test_lists_are_taken_apart_and_their_items_know_their_lines() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- kind: A\n  x: 1\n- kind: BList\n  items: [{kind: B}]\n"
    found = parse(Source("x", text))
    assert [document.value for document in found] == [{"kind": "A", "x": 1}, {"kind": "B"}]
    assert [document.place_of("x").line for document in found] == [5, 7]


def test_json_is_read_too_with_its_two_part_escapes() -> None:
    value = {"kind": "A", "text": "\N{GRINNING FACE}/\t", "n": [1, 1.5, True, None]}
    assert only(json.dumps(value, indent="\t")).value == value


def test_anchors_aliases_and_merges_are_resolved() -> None:
    document = only("base: &b {x: 1, y: 2}\na: {<<: *b, y: 3}\nb: {<<: [*b, {z: 4}]}\nc: *b\n")
    assert document.value["a"] == {"x": 1, "y": 3}
    assert document.value["b"] == {"x": 1, "y": 2, "z": 4}
    assert document.value["c"] == {"x": 1, "y": 2}


def test_keys_are_always_texts() -> None:
    assert only("1: a\ntrue: b\n2.5: c\n").value == {"1": "a", "true": "b", "2.5": "c"}


def test_a_bare_on_is_text_and_the_missing_quotes_are_noted() -> None:
    document = only('powerState: On\nquoted: "Off"\n')
    assert document.value == {"powerState": "On", "quoted": "Off"}
    (caution,) = document.cautions
    assert str(caution).startswith("x.yaml:1:13: kubectl reads a bare On as a boolean\n")
    assert caution.hint == 'write "On", in quotes, or true or false'


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
LADDER = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 200))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "x.yaml:3:1: the key 'a' stands here again; it is already in line 1\n"),
        ("a:\n\tb: 1\n", "x.yaml:2:1: not valid YAML: a tab stands where only spaces may\n"),
        ("a: [1\nb: 2\n", "x.yaml:2:2: not valid YAML: "),
        ("a: b: c\n", "x.yaml:1:5: not valid YAML: "),
        ("a: @b\n", "x.yaml:1:4: not valid YAML: a plain text cannot begin with @\n"),
        ("a: 'b\n", "x.yaml:2:1: not valid YAML: "),
        ("a: \x07\n", "x.yaml:1:4: the character '\\x07' cannot stand in YAML\n"),
        ("a: *b\n", "x.yaml:1:4: the alias *b has no anchor before it\n"),
        ("a: &a [*a]\n", "x.yaml:1:8: the alias *a has no anchor before it\n"),
        ("a: .nan\n", "x.yaml:1:4: .nan is a number that JSON does not have\n"),
        ("a: !!python/object:os.system x\n", "x.yaml:1:4: the tag !!python/object:os.system is not known\n"),
        ("a: !Ref x\n", "x.yaml:1:4: the tag !Ref is not known\n"),
        ("a: !Ref [x]\n", "x.yaml:1:4: the tag !Ref is not known\n"),
        ("? [a]\n: b\n", "x.yaml:1:3: a key must be a text\n"),
        ("a: &k x\n*k : b\n", "x.yaml:2:1: a key must be a text\n"),
        ("?\n: b\n", "a key is missing before the colon\n"),
        ("<<: 3\n", "x.yaml:1:5: only mappings can be merged\n"),
        ("[" * 100_000, "x.yaml:1:101: more than 100 levels are nested\n"),
        ("- " * 5_000, "x.yaml:1:201: more than 100 levels are nested\n"),
        (BOMB, "aliases repeat more than 100,000 values or 100 levels\n"),
        (LADDER, "aliases repeat more than 100,000 values or 100 levels\n"),
        ("", "x.yaml: there is no object in it\n"),
        ("# nothing\n---\n", "x.yaml: there is no object in it\n"),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_what_cannot_be_read_is_refused_with_its_place_and_a_hint(text: str, said: str) -> None:
    message = refusal(text)
    assert message.startswith("error: x.yaml")
    assert said in message
    assert message.splitlines()[-1].startswith("hint: ")


def test_the_line_is_shown_with_a_mark_under_the_column() -> None:
    assert refusal("kind: A\nspec: x: y\n").splitlines()[1:3] == ["    2 | spec: x: y", "      |        ^"]


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    assert "\x1b" not in refusal("a: \x1b[2J\n")


@given(st.text(max_size=60))
def test_no_text_fails_in_any_other_way(text: str) -> None:
    with contextlib.suppress(InputError):
        parse(Source("x", text))


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["a", "b.c", "d/e", "f"]), TREES, min_size=1))
def test_json_comes_back_as_it_was_and_every_path_leads_somewhere(value: dict[str, object]) -> None:
    document = only(json.dumps({"root": value}))
    assert document.value == {"root": value}
    for key in value:
        assert document.place_of(child("root", key)).line == 1


def read_error(name: str) -> str:
    with pytest.raises(InputError) as refused:
        documents.read(name)
    return refused.value.format_message()


def test_files_that_are_no_manifests_are_refused_by_name(tmp_path: Path) -> None:
    def file(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    web = file("web.yaml", b"\xef\xbb\xbfkind: A\n")
    assert documents.read(web)[0].value == {"kind": "A"}
    assert read_error(str(tmp_path / "wev.yaml")).endswith(f"there is no such file\nhint: did you mean {web}?")
    assert "no directory" in read_error(str(tmp_path / "nowhere" / "x.yaml"))
    assert "is a directory" in read_error(str(tmp_path))
    assert "is not a text file" in read_error(file("image.png", b"\x89PNG\x00\x01"))
    assert f"{tmp_path}/latin.yaml:2: the byte 0xe9 is not UTF-8" in read_error(file("latin.yaml", b"a: b\nc: \xe9\n"))
    assert "larger than 8 MiB" in read_error(file("huge.yaml", b"#" * (8 * 1024 * 1024 + 1)))
    assert "cannot be read" in read_error("bad\0name")
