"""Bad input: exit code 2, one message with its place and what to write instead, never a traceback."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from holdfast.cli import main

HEAD = "apiVersion: cloudless.io/v1\nkind: Workload\nmetadata: {name: web}\n"
GOOD = f"{HEAD}spec: {{image: a, replicas: 3}}\n"

FILES: dict[str, tuple[bytes, str, str]] = {
    "YAML error": (
        HEAD.encode() + b"spec: {image: a\n",
        "web.yaml:5:1: not valid YAML: ",
        "indentation, quotes, colons and brackets",
    ),
    "tab": (HEAD.encode() + b"spec:\n\timage: a\n", "web.yaml:5:1: not valid YAML: a tab", "indent with spaces"),
    "duplicate key": (
        HEAD.encode() + b"spec:\n  image: a\n  image: b\n",
        "web.yaml:6:3: the key 'image' stands here again; it is already in line 5",
        "remove one of the two",
    ),
    "unknown field": (
        HEAD.encode() + b"spec:\n  image: a\n  rollout:\n    maxSurg: 1\n",
        "web.yaml:7:5: spec.rollout.maxSurg: unknown field",
        "did you mean maxSurge?",
    ),
    "field of another case": (
        HEAD.encode() + b"spec:\n  image: a\n  rollout: {MaxSurge: 1}\n",
        "web.yaml:6:13: spec.rollout.MaxSurge: unknown field",
        "did you mean maxSurge?",
    ),
    "wrong type": (
        HEAD.encode() + b"spec:\n  image: a\n  replicas: '3'\n",
        "web.yaml:6:3: spec.replicas: must be an integer, not a string",
        "write 3, without quotes",
    ),
    "negative": (
        HEAD.encode() + b"spec:\n  image: a\n  replicas: -1\n",
        "web.yaml:6:3: spec.replicas: must be at least 0, is -1",
        "",
    ),
    "absurd": (
        HEAD.encode() + b"spec:\n  image: a\n  replicas: 1000000000000\n",
        "web.yaml:6:3: spec.replicas: must be at most 1000000, is 1000000000000",
        "",
    ),
    "percent nonsense": (
        HEAD.encode() + b"spec:\n  image: a\n  rollout:\n    maxSurge: a lot\n",
        "web.yaml:7:5: spec.rollout.maxSurge: 'a lot' is not in the expected form",
        "write a count such as 2 or a percentage such as 25%",
    ),
    "more than all": (
        HEAD.encode() + b"spec:\n  image: a\n  rollout:\n    minAvailable: 150%\n",
        "web.yaml:7:5: spec.rollout.minAvailable: 150% is more than all replicas",
        "write 100% or less",
    ),
    "impossible": (
        HEAD.encode() + b"spec:\n  image: a\n  rollout:\n    maxSurge: 0\n    maxUnavailable: 0\n",
        "web.yaml:7:5: spec.rollout.maxSurge: maxSurge and maxUnavailable cannot both be 0",
        "write 1 or more for one of them",
    ),
    "strategy": (
        HEAD.encode() + b"spec:\n  image: a\n  rollout: {strategy: RollingUpdates}\n",
        "web.yaml:6:13: spec.rollout.strategy: must be one of RollingUpdate, ",
        "did you mean RollingUpdate?",
    ),
    "canary without steps": (
        HEAD.encode() + b"spec:\n  image: a\n  rollout: {strategy: Canary}\n",
        "web.yaml:6:3: spec.rollout.canary: the strategy Canary needs steps",
        "write canary: {steps: [{weight: 25}]}",
    ),
    "duration": (
        HEAD.encode() + b"spec:\n  image: a\n  rollout: {pauseDuration: 2 days}\n",
        "web.yaml:6:13: spec.rollout.pauseDuration: '2 days' is not in the expected form",
        "write a duration such as 30s, 5m or 1h30m",
    ),
    "missing field": (HEAD.encode() + b"spec: {}\n", "web.yaml:4:1: spec.image: is required", "The container image"),
    "missing name": (
        b"apiVersion: cloudless.io/v1\nkind: Workload\nmetadata: {}\nspec: {image: a}\n",
        "web.yaml:3:1: metadata.name: is required",
        "give the object a name",
    ),
    "mistyped kind": (
        b"apiVersion: cloudless.io/v1\nkind: Worklaod\nmetadata: {name: a}\n",
        "web.yaml:2:1: kind: 'Worklaod' is not a known kind",
        "write Workload",
    ),
    "wrong group": (
        b"apiVersion: cloudles/v1\nkind: Workload\nmetadata: {name: a}\n",
        "web.yaml:1:1: apiVersion: 'cloudles/v1': a Kubernetes API group needs a dot",
        "write cloudless.io/v1",
    ),
    "no kind": (b"apiVersion: cloudless.io/v1\nspec: {}\n", "web.yaml:1:1: kind: is required", "write one of "),
    "no object": (b"just a text\n", "web.yaml:1:1: $: a document must be a mapping, not str", "begin with apiVersion:"),
    "other kinds alone": (
        b"apiVersion: v1\nkind: Secret\n---\napiVersion: v1\nkind: Service\n",
        "web.yaml: it has no Workload or VMSet, only Secret, Service",
        "Workload or VMSet can be planned from a manifest; or give numbers",
    ),
    "kind without a plan": (
        b"apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\n",
        "web.yaml: it has no Workload or VMSet, only PodCliqueSet",
        "or give numbers, such as --replicas 3 --max-unavailable 1",
    ),
    "several": (
        (GOOD + "---\n" + GOOD.replace("web", "other")).encode(),
        "web.yaml: it must have exactly one Workload or VMSet, and it has web, other",
        "choose one with --name",
    ),
    "empty": (b"", "web.yaml: there is no object in it", "write an object that begins with apiVersion:"),
    "comments alone": (b"# nothing\n", "web.yaml: there is no object in it", "begins with apiVersion:"),
    "binary": (b"\x7fELF\x00\x00\xff", "web.yaml: is not a text file", "name a YAML or JSON file"),
    "not UTF-8": (b"kind: A\nname: caf\xe9\n", "web.yaml:2: the byte 0xe9 is not UTF-8", "save the file as UTF-8"),
    "deep": (b"a: " + b"[" * 50_000, "more than 100 levels are nested", "see whether brackets are closed"),
    "deep mappings": (b"{a: " * 50_000, "more than 100 levels are nested", "see whether brackets are closed"),
    "broken JSON": (b'{"kind": "Workload",\n "a" 1}', "web.yaml:2:6: not valid YAML: ", "brackets"),
    "pauses without end": (
        HEAD.encode() + b"spec:\n  image: a\n  replicas: 1000\n  rollout: {pauseDuration: 2000000h}\n",
        "spec.rollout.pauseDuration: the pauses add up to thousands of years",
        "write a shorter pauseDuration",
    ),
}

OPTIONS: dict[str, tuple[list[str], str, str]] = {
    "nothing": ([], "no rollout is described", "'holdfast plan --help'"),
    "percent nonsense": (
        ["--replicas", "3", "--max-surge", "abc"],
        "--max-surge: 'abc' is not in the expected form",
        "write a count such as 2 or a percentage such as 25%",
    ),
    "more than all": (
        ["--replicas", "3", "--max-unavailable", "150%"],
        "--max-unavailable: 150% is more than all replicas",
        "write 100% or less",
    ),
    "fraction": (["--replicas", "3", "--max-surge", "1.5"], "--max-surge: '1.5' is not in the expected form", "25%"),
    "negative": (["--replicas", "-1"], "--replicas: must be at least 0, is -1", "--replicas N"),
    "negative surge": (["--replicas", "3", "--max-surge", "-1"], "--max-surge: must be at least 0, is -1", "N|N%"),
    "absurd": (["--replicas", str(10**12)], "--replicas: must be at most 1000000, is 1000000000000", "--replicas N"),
    "more than a number": (["--replicas", "9" * 5000], "--replicas: a value of 5,000 characters", "--replicas N"),
    "no number": (["--replicas", "many"], "--replicas: must be an integer, not a string", "--replicas N"),
    "absurd current": (["--replicas", "3", "--current", str(10**12)], "invalid value for '--current'", "--help"),
    "both say what runs": (
        ["-f", "web.yaml", "--from", "web.yaml", "--current", "3"],
        "--from and --current both say what runs now; give one of them",
        "--help",
    ),
    "compared with nothing": (
        ["--from", "web.yaml"],
        "--from is the manifest that runs now; give the one to roll out with -f",
        "--help",
    ),
    "standard input twice": (["-f", "-", "--from", "-"], "standard input can be read once", "--help"),
    "impossible": (
        ["--replicas", "3", "--max-surge", "0", "--max-unavailable", "0%"],
        "--max-surge: maxSurge and maxUnavailable cannot both be 0",
        "write 1 or more for one of them",
    ),
    "strategy": (
        ["--replicas", "3", "--strategy", "Rollin"],
        "--strategy: must be one of RollingUpdate, Recreate, BlueGreen, Canary, OnDelete, not 'Rollin'",
        "",
    ),
    "strategy without its steps": (
        ["--replicas", "3", "--strategy", "Canary"],
        "spec.rollout.canary: the strategy Canary needs steps",
        "write canary: {steps: [{weight: 25}]}",
    ),
    "duration": (["--replicas", "3", "--pause", "soon"], "--pause: 'soon' is not in the expected form", "30s, 5m"),
    "bare seconds": (["--replicas", "3", "--pause", "30"], "--pause: '30' is not in the expected form", "30s, 5m"),
    "option": (["--replica", "3"], "no such option", "--help"),
    "output": (["--replicas", "3", "-o", "xml"], "invalid value for '-o' / '--output'", "--help"),
    "missing file": (["-f", "wed.yaml"], "wed.yaml: there is no such file", "did you mean web.yaml?"),
    "missing old file": (["-f", "web.yaml", "--from", "x/y.yaml"], "x/y.yaml: there is no such file", "no directory x"),
    "directory": (["-f", "."], ".: is a directory", "name a file in it"),
    "unknown name": (
        ["-f", "web.yaml", "--name", "x"],
        "it must have exactly one Workload or VMSet called 'x', and it has web",
        "--name",
    ),
}


def check(result: Result, said: str, hint: str) -> None:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    message = " ".join(result.stderr.split())
    assert message.startswith("error: ")
    assert " ".join(said.split()) in message
    assert hint in message
    assert message.count("error: ") == 1
    assert "Traceback" not in message


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_refused_with_its_place_and_a_remedy(case: str) -> None:
    content, said, hint = FILES[case]
    Path("web.yaml").write_bytes(content)
    check(CliRunner().invoke(main, ["plan", "-f", "web.yaml"]), said, hint)


@pytest.mark.parametrize("case", FILES)
def test_bad_standard_input_is_refused_alike(case: str) -> None:
    content, said, hint = FILES[case]
    result = CliRunner().invoke(main, ["plan", "-f", "-"], input=content)
    check(result, said.replace("web.yaml", "<stdin>"), hint)


@pytest.mark.parametrize("case", OPTIONS)
def test_a_bad_option_is_refused_by_its_name_with_a_remedy(case: str) -> None:
    options, said, hint = OPTIONS[case]
    Path("web.yaml").write_text(GOOD)
    check(CliRunner().invoke(main, ["plan", *options], prog_name="holdfast"), said, hint)


def test_an_error_in_the_old_manifest_names_that_file() -> None:
    Path("new.yaml").write_text(GOOD)
    Path("old.yaml").write_text(GOOD.replace("image", "img"))
    result = CliRunner().invoke(main, ["plan", "-f", "new.yaml", "--from", "old.yaml"])
    assert result.exit_code == 2
    assert "error: old.yaml:4:8: spec.img: unknown field" in result.stderr


def test_all_problems_of_a_file_are_told_at_once_but_not_without_end() -> None:
    fields = "".join(f"  bad{number}: 1\n" for number in range(30))
    Path("web.yaml").write_text(f"{HEAD}spec:\n  image: a\n{fields}")
    result = CliRunner().invoke(main, ["plan", "-f", "web.yaml"])
    assert result.stderr.count("unknown field") == 10
    assert result.stderr.endswith("error: and 20 more\n")


NOWHERE = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: here, context: {cluster: here}}]
"""

EMPTY = "is empty; is a variable of the shell not set?"

COMMANDS: dict[str, tuple[str, str]] = {
    "apply -f ''": (EMPTY, "write the path of a YAML or JSON file"),
    "delete -f ''": (EMPTY, "write the path of a YAML or JSON file"),
    "diff --filename=": (EMPTY, "write the path of a YAML or JSON file"),
    "plan -f ''": (EMPTY, "write the path of a YAML or JSON file"),
    "get pods --kubeconfig=": (EMPTY, "--help"),
    "down --data-dir ''": (EMPTY, "--help"),
    "check ''": (EMPTY, "--help"),
    "demo ''": (EMPTY, "--help"),
    "vm ip ''": (EMPTY, "--help"),
    "get ''": (f"a type or a name {EMPTY}", "write such as deployment/web"),
    "get ,": (f"a type or a name {EMPTY}", "write such as deployment/web"),
    "delete pods ''": (f"a type or a name {EMPTY}", "write such as deployment/web"),
    "delete '' --all": (f"a type or a name {EMPTY}", "write such as deployment/web"),
    "get pods -n a/b": ("'a/b' is not the name of a namespace", "lower-case letters, digits and -"),
    "rollout stauts": ("there is no command 'stauts'; did you mean status?", "'holdfast rollout --help'"),
    "vm explode web": ("there is no command 'explode'; the commands are console, ip, power, release", "--help"),
    "completion": ("missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish", "--help"),
    "load '[::1'": ("'[::1' is not a URL", "write such as http://127.0.0.1:8000"),
    "load x --rate nan": ("'nan' is not a number", "--help"),
    "chaos crash --share nan": ("'nan' is not a number", "--help"),
    "chaos crash --share half": ("'half' is not a number", "--help"),
    "scale workload/web --replicas x": ("'x' is not an integer", "--help"),
    "load http://a:b": ("'http://a:b' is not a URL", "write such as http://127.0.0.1:8000"),
    "up --bind http://": ("--bind: 'http://' is not an address", "write such as 127.0.0.1"),
    "backup . none/at/all": ("none/at/all: No such file or directory", "choose a place that you can write to"),
    "restore web.yaml data": ("web.yaml: this is not a backup", "nothing was restored"),
}
"""Command lines, what is said about them, and what to do; the server that they name does not run."""


@pytest.mark.parametrize("line", COMMANDS)
def test_a_bad_command_line_is_refused_before_anything_is_done(line: str) -> None:
    Path("web.yaml").write_text(GOOD)
    Path("kubeconfig").write_text(NOWHERE)
    result = CliRunner().invoke(main, shlex.split(line), prog_name="holdfast", env={"KUBECONFIG": "kubeconfig"})
    check(result, *COMMANDS[line])


def test_the_lists_of_commands_are_not_cut() -> None:
    result = CliRunner().invoke(main, ["rollout", "--help"], prog_name="holdfast")
    assert "..." not in result.stdout.partition("Commands:")[2]
