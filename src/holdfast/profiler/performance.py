"""How fast a worker is: the time of a prefill, of a decode step, and what it serves under load.

A worker is a model on `tensor_parallel` GPUs.  Its step is the sum of its operators.  Continuous batching admits a
prompt, or a part of at most `CHUNK` tokens of it, to the step of the sequences that are being decoded.
This module must not know how configurations are searched.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from holdfast.profiler.models import Architecture
from holdfast.profiler.results import Precision
from holdfast.profiler.timing import Time, Timing

CHUNK: Final = 8192
"""Tokens of prompts that one step takes."""

MEMORY_SHARE: Final = 0.9
"""The share of a GPU's memory that an engine uses."""

RUNTIME_BYTES: Final = 1.5 * 2**30
"""Memory of a GPU that the runtime takes: contexts, graphs, communication buffers."""

NETWORK: Final = 50.0
"""GB/s of one GPU to a GPU of another worker."""


BUSIEST: Final = 0.75
"""The share of its time that a worker may spend on prompts that come at random; beyond it, waits vary too much."""


class Step(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The time of one forward pass, in milliseconds, and what it is made of.

    extrapolated  the parts whose shapes or sizes lie beyond what was measured
    """

    ms: float
    projections_ms: float = 0.0
    attention_ms: float = 0.0
    experts_ms: float = 0.0
    small_ms: float = 0.0
    head_ms: float = 0.0
    communication_ms: float = 0.0
    extrapolated: tuple[str, ...] = ()


Chunk = tuple[int, int]
"""A part of a prompt: its tokens, and how many tokens of the prompt were taken before."""


class _Tally:
    """Adds up the operators of a step."""

    def __init__(self) -> None:
        self.us: dict[str, float] = {}
        self.beyond: set[str] = set()

    def add(self, part: str, time: Time, times: float = 1.0) -> None:
        self.us[part] = self.us.get(part, 0.0) + time.us * times
        if time.extrapolated and times:
            self.beyond.add(part)

    def step(self) -> Step:
        parts = {f"{part}_ms": us / 1000 for part, us in self.us.items()}
        return Step(ms=sum(parts.values()), extrapolated=tuple(sorted(self.beyond)), **parts)


class Worker:
    """A model on `tensor_parallel` GPUs of one kind."""

    def __init__(
        self,
        architecture: Architecture,
        timing: Timing,
        tensor_parallel: int,
        precision: Precision = "bf16",
        *,
        communication: bool = True,
        per_node: int = 8,
    ) -> None:
        self.architecture = architecture
        self.timing = timing
        self.tensor_parallel = tensor_parallel
        self.precision: Precision = precision
        self.communication = communication
        self.per_node = per_node
        self.step = lru_cache(maxsize=65536)(self._step)

    # --- time ----------------------------------------------------------------

    def prefill(self, tokens: int) -> Step:
        """The prefill of one sequence, until its first token."""
        steps = [self.step((chunk,), 0, 0) for chunk in chunks(tokens)]
        return steps[0] if len(steps) == 1 else _sum(steps)

    def decode(self, batch: float, context: float) -> Step:
        """One step in which each of `batch` sequences with `context` tokens gets one token."""
        return self.step((), batch, context)

    def _step(self, prompts: tuple[Chunk, ...], batch: float, context: float) -> Step:
        """One forward pass: parts of prompts, and `batch` sequences with `context` tokens that are decoded.

        A worker with more GPUs is never slower than one with fewer, for it can leave GPUs idle.
        """
        splits = [
            split
            for split in range(1, self.tensor_parallel + 1)
            if split == self.tensor_parallel or (split & (split - 1) == 0 and self.architecture.splits(split))
        ]
        return min((self._forward(split, prompts, batch, context) for split in splits), key=lambda step: step.ms)

    def _forward(self, split: int, prompts: tuple[Chunk, ...], batch: float, context: float) -> Step:
        model, timing, tally = self.architecture, self.timing, _Tally()
        layers, hidden, rows = model.layers, model.hidden, batch + sum(tokens for tokens, _ in prompts)
        self._attention(tally, split, prompts, rows, batch, context)
        tally.add("small", timing.elementwise("rms_norm", 4 * rows * hidden), 2 * layers + 1)
        tally.add("small", timing.traffic(6 * rows * hidden), 2 * layers)  # the residuals
        if model.plain_layers:
            self._mlp(tally, model.intermediate // split, rows, model.plain_layers)
        if model.expert_layers:
            self._experts(tally, split, rows)
        tally.add("small", timing.elementwise("copy", 4 * rows * hidden))  # the embedding
        answers = batch + len(prompts)
        tally.add("head", timing.gemm(answers, -(-model.vocab // split), hidden))
        tally.add("head", timing.elementwise("sample", 2 * answers * model.vocab / split))
        if self.communication and split > 1:
            tally.add("communication", self._all_reduce(2 * rows * hidden, split), 2 * layers)
        return tally.step()

    def _attention(
        self, tally: _Tally, split: int, prompts: tuple[Chunk, ...], rows: float, batch: float, context: float
    ) -> None:
        model, timing = self.architecture, self.timing
        heads = -(-model.heads // split)
        kv_heads = max(1, -(-model.kv_heads // split))
        if model.kv_lora_rank:
            self._latent(tally, heads, prompts, rows, batch, context)
            return
        dim = model.head_dim
        layers = model.layers
        width = (heads + 2 * kv_heads) * dim
        tally.add("projections", timing.gemm(rows, width, model.hidden, self.precision), layers)
        tally.add("projections", timing.gemm(rows, model.hidden, heads * dim, self.precision), layers)
        tally.add("small", timing.traffic(4 * rows * (heads + kv_heads) * dim), layers)  # the rotary embedding
        windowed, full = model.windowed_layers, layers - model.windowed_layers
        for count, reach in ((full, math.inf), (windowed, model.window or math.inf)):
            if not count:
                continue
            for tokens, past in prompts:
                tally.add("attention", self._causal(heads, dim, tokens, past, reach), count)
            if batch:
                seen = min(context, reach)
                tally.add("attention", timing.attention_decode(heads, kv_heads, dim, batch, seen), count)

    def _causal(self, heads: int, dim: int, tokens: int, past: int, reach: float) -> Time:
        if tokens + past <= reach:
            return self.timing.attention_prefill(heads, dim, tokens, past)
        # Blocks of the window's size attend to themselves and to the block before them.
        block = self.timing.attention_prefill(heads, dim, reach)
        whole = self.timing.attention_prefill(heads, dim, tokens, past)
        return Time(min(whole.us, max(block.us, 3 * block.us * tokens / reach)), whole.extrapolated)

    def _latent(
        self, tally: _Tally, heads: int, prompts: tuple[Chunk, ...], rows: float, batch: float, context: float
    ) -> None:
        """Multi-head latent attention: prompts are expanded to heads, decoding reads the compressed cache."""
        model, timing, layers = self.architecture, self.timing, self.architecture.layers
        query_dim = model.qk_nope_head_dim + model.qk_rope_head_dim
        latent = model.kv_lora_rank + model.qk_rope_head_dim
        down = latent + (model.q_lora_rank or heads * query_dim)
        tally.add("projections", timing.gemm(rows, down, model.hidden, self.precision), layers)
        if model.q_lora_rank:
            tally.add("projections", timing.gemm(rows, heads * query_dim, model.q_lora_rank, self.precision), layers)
        up = heads * (model.qk_nope_head_dim + model.v_head_dim)
        tally.add("projections", timing.gemm(rows, up, model.kv_lora_rank, self.precision), layers)
        tally.add("projections", timing.gemm(rows, model.hidden, heads * model.v_head_dim, self.precision), layers)
        tally.add("small", timing.traffic(4 * rows * (heads + 1) * model.qk_rope_head_dim), layers)
        tally.add("small", timing.elementwise("rms_norm", 4 * rows * latent), layers)
        mean = (query_dim + model.v_head_dim) // 2
        for tokens, past in prompts:
            tally.add("attention", timing.attention_prefill(heads, mean, tokens, past), layers)
        if batch:
            # One head of keys, which are the values too: half the bytes of a head of that width.
            tally.add("attention", timing.attention_decode(heads, 1, latent // 2, batch, context), layers)

    def _mlp(self, tally: _Tally, width: int, rows: float, layers: int) -> None:
        timing, hidden = self.timing, self.architecture.hidden
        tally.add("projections", timing.gemm(rows, 2 * width, hidden, self.precision), layers)
        tally.add("small", timing.elementwise("silu_mul", 6 * rows * width), layers)
        tally.add("projections", timing.gemm(rows, hidden, width, self.precision), layers)

    def _experts(self, tally: _Tally, split: int, rows: float) -> None:
        model, timing, layers = self.architecture, self.timing, self.architecture.expert_layers
        hidden, width = model.hidden, -(-model.expert_intermediate // split)
        routed = rows * model.experts_per_token
        # Experts that at least one token goes to, when tokens choose evenly.
        active = model.experts * -math.expm1(routed * math.log1p(-1 / model.experts)) if model.experts > 1 else 1.0
        size = model.expert_bytes(self.precision)
        tally.add("experts", timing.gemm(rows, model.experts, hidden), layers)
        tally.add("experts", timing.grouped_gemm(routed, 2 * width, hidden, active, size, self.precision), layers)
        tally.add("experts", timing.elementwise("silu_mul", 6 * routed * width), layers)
        tally.add("experts", timing.grouped_gemm(routed, hidden, width, active, size, self.precision), layers)
        tally.add("experts", timing.elementwise("combine", 2 * (routed + rows) * hidden), 2 * layers)
        if model.shared_intermediate:
            self._mlp(tally, -(-model.shared_intermediate // split), rows, layers)

    def _all_reduce(self, size: float, split: int) -> Time:
        within = self.timing.all_reduce(size, min(split, self.per_node))
        if split <= self.per_node:
            return within
        nodes = split / self.per_node
        return Time(within.us + 15.0 + 2.0 * (nodes - 1) / nodes * size / self.per_node / (NETWORK * 1e3), True)

    # --- memory --------------------------------------------------------------

    def free_bytes(self, memory_mib: float) -> float:
        """Memory of one GPU that is left for the KV cache; negative where the weights do not fit."""
        model = self.architecture
        weights = model.weight_bytes(self.precision) / self.tensor_parallel
        activations = model.activation_bytes(CHUNK, self.tensor_parallel)
        return memory_mib * 2**20 * MEMORY_SHARE - RUNTIME_BYTES - weights - activations

    def most_sequences(self, tokens: int, memory_mib: float) -> int:
        """Sequences of `tokens` that fit at once."""
        size = self.architecture.sequence_bytes(tokens, self.tensor_parallel)
        return max(0, int(self.free_bytes(memory_mib) / size))

    def transfer_ms(self, tokens: int) -> float:
        """How long the KV cache of a prompt takes to another worker."""
        if not self.communication:
            return 0.0
        size = self.architecture.sequence_bytes(tokens, self.tensor_parallel)
        return size / (NETWORK * 1e6)


def chunks(tokens: int) -> list[Chunk]:
    """The parts in which a prompt is taken."""
    return [(min(CHUNK, tokens - past), past) for past in range(0, max(tokens, 1), CHUNK)]


def _sum(steps: list[Step]) -> Step:
    names = [name for name in Step.__struct_fields__ if name != "extrapolated"]
    beyond = tuple(sorted({part for step in steps for part in step.extrapolated}))
    return Step(extrapolated=beyond, **{name: sum(getattr(step, name) for step in steps) for name in names})


# --- under load --------------------------------------------------------------


class Served(NamedTuple):
    """What a worker, or a deployment, serves."""

    ttft_ms: float
    itl_ms: float
    requests_per_second: float
    batch: float


def waiting(service_ms: float, utilisation: float, servers: int = 1) -> float:
    """The mean wait for one of `servers`, each busy for `service_ms` a request, when requests come at random.

    A request is routed to a server when it comes and stays there, which is worse than one queue before all of them.
    """
    if utilisation >= 1:
        return math.inf
    power = math.sqrt(2 * (servers + 1)) - 1
    routed = 1.0 if servers == 1 else 1.4
    return routed * service_ms * math.pow(utilisation, power) / (2 * servers * (1 - utilisation))


class _Mixed(NamedTuple):
    """Prompts among sequences that are being decoded: how many steps take parts of them, and all their time."""

    steps: int
    ms: float


def _mixed(worker: Worker, isl: int, batch: float, context: float) -> _Mixed:
    times = [worker.step((chunk,), batch, context).ms for chunk in chunks(isl)]
    return _Mixed(len(times), sum(times))


def full(worker: Worker, isl: int, osl: int, batch: int) -> Served:
    """One worker that prefills and decodes, with `batch` requests of these lengths in flight at all times.

    Requests that are alike end in the order in which they began, so those that take their prompts in one step end
    in one step, and their successors take theirs together.
    """
    context, tokens = isl + osl / 2, max(1, osl - 1)
    decode = worker.decode(batch, context).ms
    if batch * isl <= CHUNK:
        itl, ttft = decode, worker.step(((isl, 0),) * batch, 0, 0).ms
        return Served(ttft, itl, 1000 * batch / (ttft + tokens * itl), batch)
    turns = batch / max(1.0, CHUNK / isl)
    whole, rest = divmod(CHUNK, isl) if isl < CHUNK else (0, 0)
    if whole:
        parts = ((isl, 0),) * whole + (((rest, 0),) if rest else ())
        mixed = _Mixed(1, worker.step(parts, max(0, batch - whole), context).ms)
    else:
        mixed = _mixed(worker, isl, batch - 1, context)
    if turns * mixed.steps <= tokens:
        itl = ((tokens - turns * mixed.steps) * decode + turns * mixed.ms) / tokens
    else:  # every step takes a part of a prompt
        itl = mixed.ms / mixed.steps
    # The step in progress takes the prompts of others; where all steps do, prompts wait for their turn.
    ttft = max((2 if batch > 1 else 1) * mixed.ms, turns * mixed.ms - tokens * itl)
    return Served(ttft, itl, 1000 * batch / (ttft + tokens * itl), batch)


def loaded(worker: Worker, isl: int, osl: int, rate: float, most: int) -> Served | None:
    """One worker that prefills and decodes, when `rate` requests a second come at random; None where it cannot."""
    context = isl + osl / 2
    tokens = max(1, osl - 1)
    batch = 0.0
    for _ in range(100):
        decode = worker.decode(batch + 1, context).ms
        mixed = _mixed(worker, isl, batch, context)
        # Of all steps, rate * steps * itl take a part of a prompt, and are longer than the others.
        longer = rate / 1000 * (mixed.ms - mixed.steps * decode)
        if rate / 1000 * mixed.ms > BUSIEST:
            return None
        # So do the steps of prompts that came while its own prompt waited and was taken.
        busy = rate / 1000 * mixed.ms
        taken = mixed.ms + waiting(mixed.ms, busy)
        behind = rate / 1000 * taken * max(0.0, mixed.ms - mixed.steps * decode) / tokens
        itl = (decode + behind) / (1 - max(0.0, longer))
        found = rate / 1000 * tokens * itl
        if found > most:
            return None
        if abs(found - batch) < 0.01 + batch / 200:
            return Served(taken + min(1.0, busy + batch) * itl / 2, itl, rate, found)
        batch = found
    return None


def in_flight_apart(
    prefiller: Worker, decoder: Worker, prefillers: int, decoders: int, isl: int, osl: int, concurrency: float
) -> Served:
    """Prefill workers before decode workers, with `concurrency` requests in flight at all times.

    Each request waits or is prefilled, is transferred, or is decoded.  Where the prefill workers are the slower side
    they are always busy, and the requests that are not decoded wait for them.
    """
    tokens, context = max(1, osl - 1), isl + osl / 2
    prefill_ms, transfer = prefiller.prefill(isl).ms, prefiller.transfer_ms(isl)
    batch = max(1.0, concurrency / decoders)
    rate, itl = 0.0, 0.0
    for _ in range(50):
        itl = decoder.decode(batch, context).ms
        rate = min(prefillers / prefill_ms, concurrency / (prefill_ms + transfer + tokens * itl))
        batch = (batch + max(1.0, rate * tokens * itl / decoders)) / 2
    ttft = max(prefill_ms, concurrency / rate - transfer - tokens * itl)
    return Served(ttft, itl + transfer / tokens, 1000 * rate, batch)


def decoding(worker: Worker, isl: int, osl: int, rate: float, most: int) -> Served | None:
    """One worker that decodes alone, when `rate` requests a second reach it; None where it cannot."""
    tokens, batch = max(1, osl - 1), 0.0
    for _ in range(100):
        itl = worker.decode(batch + 1, isl + osl / 2).ms
        found = rate / 1000 * tokens * itl
        if found > most:
            return None
        if abs(found - batch) < 0.01 + batch / 200:
            return Served(0.0, itl, rate, found)
        batch = found
    return None
