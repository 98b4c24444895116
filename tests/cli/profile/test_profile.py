"""``holdfast profile``: the answer in a pipe, on a terminal and for programs, and one prediction."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from holdfast.cli import main
from holdfast.profiler import plots
from holdfast.profiler.request import Machines, Request
from holdfast.profiler.search import search

QWEN = ("profile", "Qwen/Qwen3-32B", "--gpu", "h200_sxm", "--gpus", "8")
ESTIMATE = ("profile", "estimate", "--model", "Qwen/Qwen3-32B", "--gpu", "h200_sxm")


def run(*args: str) -> Result:
    return CliRunner().invoke(main, args, prog_name="holdfast", env={"NO_COLOR": "1"})


def answer(*args: str) -> dict[str, Any]:
    result = run(*args, "-o", "json")
    assert result.exit_code in (0, 1), result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_model_is_answered_with_the_choice_and_the_runners_up() -> None:
    result = run(*QWEN, "--isl", "4000", "--osl", "1000", "--ttft", "2000", "--itl", "30")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "Qwen/Qwen3-32B on 8 h200_sxm, bf16, vllm"
    assert lines[1] == "4000 tokens in, 1000 out; within ttft 2000 ms, itl 30 ms"
    assert any(line.startswith("chosen: ") for line in lines)
    assert [line[0] for line in lines if line[:1].isdigit() and "tp" in line] == ["1", "2", "3", "4", "5", "6"]
    assert all(len(line) <= 80 for line in lines if not line.startswith("chosen"))


def test_options_may_stand_before_the_model() -> None:
    assert run("profile", "--gpus", "4", "Qwen/Qwen3-32B").exit_code == 0


def test_where_nothing_meets_the_targets_the_remedy_is_shown_and_the_exit_code_is_1() -> None:
    result = run("profile", "Qwen/Qwen3-32B", "--gpus", "4", "--itl", "7")
    assert result.exit_code == 1
    assert "blocked: itl 7 ms needs fp8 or 8 GPUs (tp 8); the best within 4 GPUs is" in result.stdout


def test_json_and_yaml_say_the_same() -> None:
    found = answer(*QWEN)
    assert found["chosen"]["slaMet"] is True
    assert found["request"]["machines"] == {"sku": "h200_sxm", "gpus": 8}
    assert len(found["runnersUp"]) == 5
    assert found["why"]
    assert yaml.safe_load(run(*QWEN, "-o", "yaml").stdout) == found


def test_svg_is_a_picture_with_every_point_of_the_front() -> None:
    root = ET.fromstring(run(*QWEN, "-o", "svg").stdout)
    circles = root.findall("{http://www.w3.org/2000/svg}circle")
    assert len(circles) >= len(answer(*QWEN)["pareto"])


def test_the_manifest_is_the_deployment_of_the_choice() -> None:
    (graph,) = yaml.safe_load_all(run(*QWEN, "-o", "manifest").stdout)
    assert graph["metadata"]["name"] == "qwen3-32b"
    assert graph["spec"]["components"][0]["name"] == "frontend"


def test_a_load_is_served_with_the_fewest_gpus() -> None:
    few, many = answer(*QWEN, "--rate", "1"), answer(*QWEN, "--rate", "5")
    gpus = [
        sum(engine["tensorParallel"] * engine["replicas"] for engine in found["chosen"]["engines"])
        for found in (few, many)
    ]
    assert gpus[0] < gpus[1]


def test_estimates_of_gpus_that_were_not_measured_say_so() -> None:
    assert "estimated: a100_sxm was not measured" in run("profile", "Qwen/Qwen3-8B", "--gpu", "a100_sxm").stdout
    assert answer(*ESTIMATE[:4], "--gpu", "a100_sxm", "--isl", "100")["estimated"] is True


def test_a_prefill_is_estimated_with_its_parts() -> None:
    found = answer(*ESTIMATE, "--tp", "4", "--isl", "4000", "--no-communication")
    assert found["ttftMs"] == pytest.approx(sum(found["breakdown"].values()), rel=1e-3)
    assert "itlMs" not in found
    assert "communicationMs" not in found["breakdown"]
    assert answer(*ESTIMATE, "--tp", "4", "--isl", "4000")["ttftMs"] > found["ttftMs"]


def test_a_decode_step_is_estimated_with_its_parts() -> None:
    found = answer(*ESTIMATE, "--tp", "2", "--batch", "16", "--context", "4096")
    assert found["itlMs"] == pytest.approx(sum(found["breakdown"].values()), rel=1e-3)
    text = run(*ESTIMATE, "--tp", "2", "--batch", "16", "--context", "4096").stdout
    assert text.startswith(f"itl {found['itlMs']:.2f} ms: Qwen/Qwen3-32B, bf16, tp 2 on h200_sxm\n")


def test_a_config_json_is_a_model(tmp_path: Path) -> None:
    config = {
        "num_hidden_layers": 64,
        "hidden_size": 5120,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 25600,
        "vocab_size": 151936,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    local = answer("profile", "estimate", "--model", str(tmp_path), "--isl", "1000")
    assert local["ttftMs"] == answer(*ESTIMATE, "--isl", "1000")["ttftMs"]


def test_a_table_of_another_machine_is_used(tmp_path: Path) -> None:
    table = {"device": "slow", "unit": "microseconds", "gemm_bf16": [[1, 5120, 5120, 5000.0], [16384, 5120, 5120, 9e6]]}
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table))
    slow = answer(*ESTIMATE, "--isl", "1000", "--table", str(path))
    assert slow["ttftMs"] > 10 * answer(*ESTIMATE, "--isl", "1000")["ttftMs"]


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("profile", "Qwen/Qwen3-33B"), "error: MODEL: the model 'Qwen/Qwen3-33B' is not in the catalogue"),
        (("profile", "Qwen/Qwen3-32B", "--gpu", "h200"), "error: --gpu: the GPU 'h200' is not known; write"),
        (("profile", "Qwen/Qwen3-32B", "--ttft", "-1"), "error: --ttft: -1 must be more than 0"),
        (("profile", "Qwen/Qwen3-32B", "--e2e", "9", "--itl", "1"), "error: give --e2e, or --ttft and --itl, not both"),
        (("profile", "Qwen/Qwen3-32B", "--rate", "9", "--concurrency", "1"), "error: give the load as --rate or"),
        (
            ("profile", "Qwen/Qwen3-32B", "--gpu", "a100_sxm", "--precision", "fp8"),
            "error: --precision: a100_sxm has no",
        ),
        (("profile", "Qwen/Qwen3-32B", "--table", "none.json"), "error: --table: none.json cannot be read"),
        (("profile", "./none.json"), "error: MODEL: none.json cannot be read"),
        ((*ESTIMATE, "--tp", "3", "--isl", "1"), "error: --tp: Qwen/Qwen3-32B has 64 heads"),
        (ESTIMATE, "error: give --isl for a prefill, or --batch and --context for a decode step"),
        ((*ESTIMATE, "--batch", "1"), "error: give --isl for a prefill, or --batch and --context for a decode step"),
        ((*ESTIMATE, "--isl", "0"), "error: invalid value for '--isl'"),
        (("profile", "measure"), "error: torch"),
    ],
)
def test_bad_input_is_one_message(args: tuple[str, ...], complaint: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stderr.startswith(complaint)
    assert "Traceback" not in result.stderr


def test_nothing_heavy_is_imported() -> None:
    program = (
        "import sys\n"
        "from holdfast.cli import main\n"
        "main(['profile', 'Qwen/Qwen3-32B', '-o', 'json'], standalone_mode=False)\n"
        "heavy = ('rich', 'yaml', 'numpy', 'torch', 'aiohttp', 'holdfast.kinds', 'holdfast.client')\n"
        "sys.exit(' '.join(name for name in heavy if name in sys.modules) or None)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_plot_fits_its_width_and_shows_the_choice_and_the_target() -> None:
    result = search(Request(model="Qwen/Qwen3-32B", machines=Machines(sku="h200_sxm", gpus=8)))
    for width in (40, 80, 120):
        lines = ["".join(run.text for run in line) for line in plots.text(result, width=width, itl_ms=30)]
        assert max(map(len, lines)) <= width
        assert sum(line.count("@") for line in lines) == 1
        assert any(":" in line for line in lines)
    assert plots.text(type(result)(backend="vllm", chosen=None)) == []
