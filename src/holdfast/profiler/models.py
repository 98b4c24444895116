"""Architectures of models: what a model is made of, and how much memory it needs.

`find` knows models by their hub names, from a catalogue, and by the path of a ``config.json``.  Only facts are
kept: layers, widths, heads, experts.  This module must not know any GPU.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.profiler.request import Unanswerable
from holdfast.profiler.results import Precision

BYTES: Final[Mapping[Precision, int]] = {"bf16": 2, "fp8": 1}
"""Bytes of one weight."""

KV_BYTES: Final = 2
"""Bytes of one value of the KV cache, which stays in bf16 whatever the weights are."""


class Architecture(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a decoder is made of.

    intermediate         width of the gated MLP of dense layers
    experts              routed experts of a mixture-of-experts layer; 0 where all layers are dense
    shared_intermediate  width of the experts that every token passes, all together
    dense_layers         layers that are dense although the others have experts
    kv_lora_rank         rank of the compressed KV cache (multi-head latent attention); 0 where there is none
    window               tokens that `windowed_layers` of the layers attend to
    precision            of the published weights
    expert_bits          bits of a weight of an expert where they are packed more tightly than `precision`
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied: bool = False
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    shared_intermediate: int = 0
    dense_layers: int = 0
    kv_lora_rank: int = 0
    q_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0
    window: int = 0
    windowed_layers: int = 0
    precision: Precision = "bf16"
    expert_bits: float = 0.0

    @property
    def expert_layers(self) -> int:
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def plain_layers(self) -> int:
        """Layers with a dense MLP."""
        return self.layers - self.expert_layers

    @property
    def attention_parameters(self) -> int:
        """Weights of the attention of one layer."""
        if not self.kv_lora_rank:
            return self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        query_dim = self.qk_nope_head_dim + self.qk_rope_head_dim
        queries = self.heads * query_dim
        down = self.hidden * (self.kv_lora_rank + self.qk_rope_head_dim)
        up = self.kv_lora_rank * self.heads * (self.qk_nope_head_dim + self.v_head_dim)
        query = self.q_lora_rank * (self.hidden + queries) if self.q_lora_rank else self.hidden * queries
        return down + up + query + self.heads * self.v_head_dim * self.hidden

    @property
    def dense_parameters(self) -> int:
        """Weights outside of routed experts and embeddings."""
        mlp = 3 * self.hidden * (self.plain_layers * self.intermediate + self.expert_layers * self.shared_intermediate)
        router = self.expert_layers * self.hidden * self.experts
        return self.layers * self.attention_parameters + mlp + router

    @property
    def expert_parameters(self) -> int:
        """Weights of all routed experts."""
        return self.expert_layers * self.experts * 3 * self.hidden * self.expert_intermediate

    @property
    def embedding_parameters(self) -> int:
        return self.vocab * self.hidden * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        return self.dense_parameters + self.expert_parameters + self.embedding_parameters

    def expert_bytes(self, precision: Precision) -> float:
        """Bytes of one weight of an expert."""
        return min(BYTES[precision], self.expert_bits / 8) if self.expert_bits else BYTES[precision]

    def weight_bytes(self, precision: Precision) -> float:
        """Bytes of all weights; embeddings stay in bf16."""
        return (
            self.dense_parameters * BYTES[precision]
            + self.expert_parameters * self.expert_bytes(precision)
            + self.embedding_parameters * BYTES["bf16"]
        )

    def kv_bytes(self, tensor_parallel: int = 1) -> float:
        """Bytes that one token of context takes on one of `tensor_parallel` GPUs, in all layers without a window.

        Heads that cannot be split are kept on several GPUs; a compressed cache is kept on each of them.
        """
        return self.kv_layer_bytes(tensor_parallel) * self.layers

    def kv_layer_bytes(self, tensor_parallel: int = 1) -> float:
        if self.kv_lora_rank:
            return (self.kv_lora_rank + self.qk_rope_head_dim) * KV_BYTES
        return 2 * self.head_dim * KV_BYTES * max(1, -(-self.kv_heads // tensor_parallel))

    def sequence_bytes(self, tokens: float, tensor_parallel: int = 1) -> float:
        """Bytes of the KV cache of one sequence of `tokens`, on one GPU."""
        full = self.layers - self.windowed_layers
        return self.kv_layer_bytes(tensor_parallel) * (
            full * tokens + self.windowed_layers * min(tokens, self.window or tokens)
        )

    def activation_bytes(self, tokens: int, tensor_parallel: int = 1) -> float:
        """Bytes that `tokens` take at once in a forward pass: the residual stream twice and the widest product."""
        widest = max(
            2 * (self.intermediate if self.plain_layers else 0),
            2 * (self.expert_intermediate * self.experts_per_token + self.shared_intermediate),
            (self.heads + 2 * self.kv_heads) * self.head_dim,
        )
        return 2.0 * tokens * (2 * self.hidden + 1.5 * widest / tensor_parallel)

    def splits(self, tensor_parallel: int) -> bool:
        """Whether the heads and the MLP can be divided by `tensor_parallel`."""
        widths = [width for width in (self.intermediate, self.expert_intermediate) if width]
        return self.heads % tensor_parallel == 0 and all(width % tensor_parallel == 0 for width in widths)


# --- where they come from ----------------------------------------------------


class _Listed(msgspec.Struct, frozen=True):
    names: tuple[str, ...]


@cache
def catalogue() -> Mapping[str, Architecture]:
    """The built-in models, by their hub names in lower case."""
    text = resources.files("holdfast.profiler").joinpath("data/models.json").read_bytes()
    entries: list[dict[str, Any]] = msgspec.json.decode(text)
    found: dict[str, Architecture] = {}
    for entry in entries:
        for name in entry.pop("names"):
            facts = {**entry, "name": name}
            if "fp8" in name.lower():
                facts["precision"] = "fp8"
            found[name.lower()] = msgspec.convert(facts, Architecture)
    return found


def find(model: str, *, files: bool = True) -> Architecture:
    """The architecture of `model`: a hub name, or (unless `files` is false) a path.  Otherwise `Unanswerable`."""
    known = catalogue()
    if (listed := known.get(model.strip().lower())) is not None:
        return listed
    if files and (model.startswith(("/", "./", "../", "~")) or model.endswith(".json") or Path(model).is_dir()):
        return read(Path(model).expanduser())
    raise Unanswerable("spec.model", _unknown(model, known))


def _unknown(model: str, known: Mapping[str, Architecture]) -> str:
    names = list(known)
    near = difflib.get_close_matches(model.lower(), names, n=3, cutoff=0.5)
    if not near:
        last = model.rpartition("/")[2].lower()
        shorts = {name.rpartition("/")[2]: name for name in reversed(names)}
        near = [shorts[short] for short in difflib.get_close_matches(last, shorts, n=3, cutoff=0.5)]
    ways = "give the path of its config.json"
    if near:
        ways = f"write {' or '.join(known[name].name for name in near)}, or {ways}"
    return f"the model {model!r} is not in the catalogue of {len(names)} names; {ways}"


def read(path: Path) -> Architecture:
    """The architecture that a ``config.json``, or the one in a directory, describes."""
    file = path / "config.json" if path.is_dir() else path
    try:
        config = msgspec.json.decode(file.read_bytes())
    except OSError as error:
        raise Unanswerable("spec.model", f"{file} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise Unanswerable("spec.model", f"{file} is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise Unanswerable("spec.model", f"{file} is not a model's configuration, which is a JSON object")
    return of_config(config, str(path))


def of_config(config: Mapping[str, Any], name: str) -> Architecture:
    """The architecture in a Hugging Face configuration."""
    nested = config.get("text_config")
    quantization = config.get("quantization_config")
    if isinstance(nested, Mapping):
        config = nested

    def number(*keys: str, default: int | None = None) -> int:
        for key in keys:
            value = config.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                return value
        if default is None:
            raise Unanswerable("spec.model", f"the config.json of {name} has no {keys[0]}, a positive number")
        return default

    def positive(*keys: str, default: int | None = None) -> int:
        if not (value := number(*keys, default=default)):
            raise Unanswerable("spec.model", f"the config.json of {name} has {keys[0]}: 0, and it must be positive")
        return value

    layers, hidden = positive("num_hidden_layers", "n_layer"), positive("hidden_size", "n_embd")
    heads = positive("num_attention_heads", "n_head")
    experts = number("num_experts", "n_routed_experts", "num_local_experts", default=0)
    width = number("moe_intermediate_size", "intermediate_size", default=0) if experts else 0
    intermediate = number("intermediate_size", "ffn_hidden_size", default=0)
    shared = number("shared_expert_intermediate_size", default=number("n_shared_experts", default=0) * width)
    dense_layers = number("first_k_dense_replace", default=0) if experts else 0
    step = number("decoder_sparse_step", "interleave_moe_layer_step", default=1) if experts else 1
    if step > 1 and not dense_layers:
        dense_layers = layers - layers // step
    latent = number("kv_lora_rank", default=0)
    kinds = config.get("layer_types")
    window = number("sliding_window", default=0)
    windowed = kinds.count("sliding_attention") if isinstance(kinds, list) and window else 0
    method = str(quantization.get("quant_method", "")) if isinstance(quantization, Mapping) else ""
    return Architecture(
        name=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=positive("num_key_value_heads", default=heads),
        head_dim=positive("head_dim", default=max(1, hidden // heads)),
        intermediate=intermediate if dense_layers or not experts else 0,
        vocab=positive("vocab_size"),
        tied=config.get("tie_word_embeddings") is True,
        experts=experts,
        experts_per_token=positive("num_experts_per_tok", "num_experts_per_token", default=1) if experts else 0,
        expert_intermediate=width,
        shared_intermediate=shared if experts else 0,
        dense_layers=min(dense_layers, layers),
        kv_lora_rank=latent,
        q_lora_rank=number("q_lora_rank", default=0) if latent else 0,
        qk_nope_head_dim=positive("qk_nope_head_dim") if latent else 0,
        qk_rope_head_dim=positive("qk_rope_head_dim") if latent else 0,
        v_head_dim=positive("v_head_dim") if latent else 0,
        window=window if windowed else 0,
        windowed_layers=windowed,
        precision="fp8" if "fp8" in method.lower() else "bf16",
        expert_bits=4.25 if method.lower() == "mxfp4" else 0.0,
    )
