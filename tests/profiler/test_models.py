"""Models: the catalogue, configurations of the hub, and what fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.profiler import models
from holdfast.profiler.request import Unanswerable

LLAMA = {
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
DEEPSEEK = {
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "intermediate_size": 18432,
    "vocab_size": 129280,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "quantization_config": {"quant_method": "fp8"},
}


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("Qwen/Qwen3-0.6B", 0.6),
        ("meta-llama/Llama-3.1-8B-Instruct", 8.0),
        ("Qwen/Qwen3-32B", 32.8),
        ("meta-llama/Llama-3.3-70B-Instruct", 70.6),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 46.7),
        ("Qwen/Qwen3-235B-A22B", 235.1),
        ("deepseek-ai/DeepSeek-R1", 671.0),
        ("deepseek-ai/DeepSeek-V2-Lite", 15.7),
        ("openai/gpt-oss-120b", 116.8),
        ("google/gemma-3-27b-it", 27.0),
        ("microsoft/phi-4", 14.7),
    ],
)
def test_a_catalogued_model_has_the_parameters_that_are_published(name: str, billions: float) -> None:
    assert models.find(name).parameters / 1e9 == pytest.approx(billions, rel=0.01)


def test_the_catalogue_has_at_least_sixty_architectures() -> None:
    shapes = {(model.layers, model.hidden, model.vocab, model.heads) for model in models.catalogue().values()}
    assert len(shapes) >= 60


def test_a_name_is_found_whatever_its_case() -> None:
    assert models.find("qwen/qwen3-32b").name == "Qwen/Qwen3-32B"


@pytest.mark.parametrize(("name", "near"), [("Qwen/Qwen3-33B", "Qwen/Qwen3-32B"), ("llama-3.1-8b", "Llama-3.1-8B")])
def test_an_unknown_model_is_refused_with_the_nearest_names(name: str, near: str) -> None:
    with pytest.raises(Unanswerable, match=near) as refused:
        models.find(name)
    assert refused.value.field == "spec.model"


@pytest.mark.parametrize("name", ["meta-llama/Llama-3.1-8B", "deepseek-ai/DeepSeek-R1"])
def test_a_config_json_says_the_same_as_the_catalogue(tmp_path: Path, name: str) -> None:
    config = LLAMA if "Llama" in name else DEEPSEEK
    (tmp_path / "config.json").write_text(json.dumps(config))
    listed, read = models.find(name), models.find(str(tmp_path))
    assert read.parameters == listed.parameters
    assert read.kv_bytes() == listed.kv_bytes()
    assert read.precision == listed.precision
    assert models.find(str(tmp_path / "config.json")) == models.read(tmp_path / "config.json")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not JSON"),
        ("[]", "JSON object"),
        ("{}", "num_hidden_layers"),
        (json.dumps({**LLAMA, "hidden_size": 0}), "hidden_size"),
        (json.dumps({**LLAMA, "vocab_size": "many"}), "vocab_size"),
    ],
)
def test_a_config_json_that_says_no_architecture_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(Unanswerable, match=complaint):
        models.find(str(tmp_path))


def test_a_path_is_not_read_where_files_are_not_allowed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    with pytest.raises(Unanswerable):
        models.find(str(tmp_path), files=False)


def test_heads_of_the_cache_that_cannot_be_split_are_kept_on_several_gpus() -> None:
    model = models.find("Qwen/Qwen2.5-7B")
    assert [model.kv_bytes(split) / model.kv_bytes() for split in (1, 2, 4, 8)] == [1, 0.5, 0.25, 0.25]


def test_a_window_bounds_the_cache_of_its_layers() -> None:
    model = models.find("google/gemma-3-27b-it")
    full = model.layers - model.windowed_layers
    grown = model.sequence_bytes(20_000) - model.sequence_bytes(10_000)
    assert grown == pytest.approx(10_000 * model.kv_layer_bytes() * full)
