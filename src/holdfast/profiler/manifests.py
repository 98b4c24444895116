"""Manifests of what was found: a DynamoGraphDeployment, and the ConfigMaps of its planner.

Pure.  ``deployment`` writes a frontend and the workers of a point, for the engine that was asked, or mock workers that
need no GPU; then it merges ``overrides.dgd`` and checks the whole against the schema of the kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from holdfast.kinds import checks
from holdfast.kinds.nvidia import conversion
from holdfast.kinds.nvidia.deployments import KIND
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequestSpec, ModelCache
from holdfast.meta.hashing import short_hash
from holdfast.profiler import curves, hardware, models
from holdfast.profiler.performance import Worker
from holdfast.profiler.request import Request, Unanswerable
from holdfast.profiler.results import Engine, Point, Result
from holdfast.profiler.timing import Timing

LONGEST_NAMES: Final = 45
"""Letters that the name of a deployment and of its longest component may have together."""

DEFAULT_REGISTRY: Final = "nvcr.io/nvidia/ai-dynamo"
DEFAULT_VERSION: Final = "1.0.0"
MOCKER_IMAGE: Final = "holdfast"
MODEL_CACHE: Final = "/opt/model-cache"
TOKEN_SECRET: Final = "hf-token-secret"

_SEMVER: Final = re.compile(r"\d{1,4}\.\d{1,4}\.\d{1,4}")
_ROUND: Final = 256
_REACHABLE: Final = ["--allow-non-loopback"]
"""Lets other pods reach a mock worker."""

Manifest = dict[str, Any]


def name_of(request_name: str, spec: DynamoGraphDeploymentRequestSpec) -> str:
    """The name of the deployment: that of ``overrides.dgd``, or one after the request."""
    metadata = _overridden(spec).get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return str(name) if name else f"{request_name}-dgd"


def deployment(
    request: Request,
    result: Result,
    *,
    name: str,
    spec: DynamoGraphDeploymentRequestSpec | None = None,
    point: Point | None = None,
    namespace: str | None = None,
    labels: Mapping[str, str] | None = None,
    mocker: Sequence[str] = ("holdfast",),
) -> list[Manifest]:
    """ConfigMaps, where there is a planner, and then the deployment of `point`, or of the point that was chosen.

    `spec` is that of the DynamoGraphDeploymentRequest, where there is one.
    `mocker` is the command of Holdfast where mock workers run.
    """
    spec = spec or DynamoGraphDeploymentRequestSpec(model=request.model)
    point = point or result.chosen
    if point is None:
        raise Unanswerable("spec.sla", result.remedy or "no configuration meets the targets")
    mocked = spec.features is not None and spec.features.mocker is not None and bool(spec.features.mocker.enabled)
    graph = _Graph(request, result, point, name, spec, mocker if mocked else None)
    made: Manifest = {
        "apiVersion": KIND.api_version,
        "kind": KIND.name,
        "metadata": {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            **({"labels": dict(labels)} if labels else {}),
        },
        "spec": {"backendFramework": result.backend, "components": graph.components()},
    }
    made = _with_overrides(made, spec)
    _check(made)
    maps = graph.config_maps()
    for each in maps:
        each["metadata"] |= {key: made["metadata"][key] for key in ("namespace", "labels") if key in made["metadata"]}
    return [*maps, made]


class _Graph:
    """The components of one deployment."""

    def __init__(
        self,
        request: Request,
        result: Result,
        point: Point,
        name: str,
        spec: DynamoGraphDeploymentRequestSpec,
        mocker: Sequence[str] | None,
    ) -> None:
        self.request, self.result, self.point, self.name, self.spec = request, result, point, name, spec
        self.mocker = mocker
        self.planned = spec.features is not None and spec.features.planner is not None
        suffix = short_hash(name)[-4:]
        self.config_name, self.data_name = f"planner-config-{suffix}", f"planner-profile-data-{suffix}"

    def components(self) -> list[Manifest]:
        parts = [self._frontend(), *(self._engine(engine) for engine in self.point.engines)]
        return [*parts, self._planner()] if self.planned else parts

    # --- parts ---------------------------------------------------------------

    def _frontend(self) -> Manifest:
        command = [*self.mocker, "mocker", "frontend"] if self.mocker else ["python3", "-m", "dynamo.frontend"]
        return {
            "name": "frontend",
            "type": "frontend",
            "replicas": 1,
            "podTemplate": self._pod({"command": command, "args": _REACHABLE if self.mocker else []}, cached=False),
        }

    def _engine(self, engine: Engine) -> Manifest:
        container: Manifest = {
            "command": ["python3", "-m", f"dynamo.{self.result.backend}"],
            "args": self._args(engine),
        }
        if self.mocker:
            container = {"command": [*self.mocker, "mocker", "serve"], "args": self._mocked_args(engine)}
        else:
            limits = {"nvidia.com/gpu": str(engine.tensor_parallel // engine.nodes)}
            container["resources"] = {"limits": limits, "requests": dict(limits)}
        part: Manifest = {
            "name": engine.role,
            "type": engine.role,
            "replicas": engine.replicas,
            "podTemplate": self._pod(container, cached=not self.mocker),
        }
        if engine.nodes > 1 and not self.mocker:
            part["multinode"] = {"nodeCount": engine.nodes}
        if self.planned:
            part["scalingAdapter"] = {}
        return part

    def _planner(self) -> Manifest:
        container: Manifest = {
            "command": ["python3", "-m", "dynamo.planner"],
            "args": ["--config", "/workspace/planner-config/planner_config.json"],
            "volumeMounts": [
                {"name": "planner-config", "mountPath": "/workspace/planner-config", "readOnly": True},
                {"name": "planner-profile-data", "mountPath": "/workspace/profile-data", "readOnly": True},
            ],
        }
        pod = self._pod(container, cached=False)
        pod["spec"]["volumes"] = [
            {"name": "planner-config", "configMap": {"name": self.config_name}},
            {"name": "planner-profile-data", "configMap": {"name": self.data_name}},
        ]
        return {"name": "planner", "type": "planner", "replicas": 1, "podTemplate": pod}

    def _pod(self, container: Manifest, *, cached: bool) -> Manifest:
        main: Manifest = {"name": "main", "image": self._image(), **container}
        if self.mocker is None:
            main["envFrom"] = [{"secretRef": {"name": TOKEN_SECRET, "optional": True}}]
        pod: Manifest = {"containers": [main]}
        cache = self.spec.model_cache
        if cached and cache is not None and cache.pvc_name:
            pod["volumes"] = [{"name": "model-cache", "persistentVolumeClaim": {"claimName": cache.pvc_name}}]
            main["volumeMounts"] = [{"name": "model-cache", "mountPath": cache.pvc_mount_path or MODEL_CACHE}]
        return {"spec": pod}

    def _image(self) -> str:
        """The runtime's image: beside the profiler's, and of its version."""
        if self.mocker:
            return self.spec.image or MOCKER_IMAGE
        given = self.spec.image or ""
        path, _, tag = given.rpartition(":") if ":" in given.rpartition("/")[2] else (given, "", "")
        registry = path.rpartition("/")[0] or DEFAULT_REGISTRY
        version = self.spec.runtime_version_override or (tag if _SEMVER.match(tag) else "") or DEFAULT_VERSION
        return f"{registry}/{_runtime(self.result.backend)}:{version}"

    # --- arguments -----------------------------------------------------------

    def _context(self) -> int:
        """Tokens of the longest sequence, rounded up."""
        traffic = self.request.traffic
        return -(-(traffic.isl + traffic.osl) // _ROUND) * _ROUND

    def _args(self, engine: Engine) -> list[str]:
        model, split, batch = _model_path(self.spec), str(engine.tensor_parallel), str(engine.batch)
        fp8 = engine.precision == "fp8" and models.find(self.request.model).precision == "bf16"
        disaggregated = engine.role != "worker"
        limited = engine.role != "prefill"  # a prefill worker also holds prompts until their caches are transferred
        match self.result.backend:
            case "vllm":
                args = ["--model", model, "--served-model-name", self.spec.model, "--tensor-parallel-size", split]
                args += ["--max-model-len", str(self._context())]
                args += ["--max-num-seqs", batch] if limited else []
                args += ["--quantization", "fp8"] if fp8 else []
                args += ["--disaggregation-mode", engine.role] if disaggregated else []
            case "sglang":
                args = ["--model-path", model, "--served-model-name", self.spec.model, "--tp", split]
                args += ["--context-length", str(self._context())]
                args += ["--max-running-requests", batch] if limited else []
                args += ["--quantization", "fp8"] if fp8 else []
                args += ["--disaggregation-mode", engine.role] if disaggregated else []
                args += ["--disaggregation-transfer-backend", "nixl"] if disaggregated else []
            case "trtllm":
                args = ["--model-path", model, "--served-model-name", self.spec.model, "--tensor-parallel-size", split]
                args += ["--max-seq-len", str(self._context())]
                args += ["--max-batch-size", batch] if limited else []
                args += ["--disaggregation-mode", engine.role] if disaggregated else []
        return args

    def _mocked_args(self, engine: Engine) -> list[str]:
        return [
            *("--model", self.spec.model),
            *("--role", engine.role),
            *("--gpu", self.request.machines.sku),
            *("--tp", str(engine.tensor_parallel)),
            *("--precision", engine.precision),
            *("--batch", str(engine.batch)),
            *_REACHABLE,
        ]

    # --- the planner ---------------------------------------------------------

    def config_maps(self) -> list[Manifest]:
        if not self.planned:
            return []
        config = _encoded(self._planner_config())
        data = {name: _encoded(curve) for name, curve in self._curves().items()}
        return [
            _config_map(self.config_name, {"planner_config.json": config}),
            _config_map(self.data_name, data),
        ]

    def _planner_config(self) -> Manifest:
        features, sla = self.spec.features, self.spec.sla
        config: Manifest = dict((features.planner if features is not None else None) or {})
        for engine in self.point.engines:
            config.setdefault(f"{engine.role}_engine_num_gpu", engine.tensor_parallel)
        if sla is not None and sla.ttft is not None:
            config.setdefault("ttft", sla.ttft)
        if sla is not None and sla.itl is not None:
            config.setdefault("itl", sla.itl)
        config.setdefault("backend", self.result.backend)
        config.setdefault("profile_results_dir", "/workspace/profile-data")
        return config

    def _curves(self) -> dict[str, Any]:
        request = self.request
        gpu = hardware.find(request.machines.sku)
        timing, model = Timing(gpu), models.find(request.model)
        memory = request.machines.memory_mib or gpu.peaks.memory_mib
        longest = request.traffic.isl + request.traffic.osl
        found: dict[str, Any] = {}
        for engine in self.point.engines:
            worker = Worker(model, timing, engine.tensor_parallel, engine.precision)
            if engine.role != "decode":
                found["prefill_raw_data.json"] = curves.prefill(worker, request.traffic.isl)
            if engine.role != "prefill":
                found["decode_raw_data.json"] = curves.decode(worker, longest, memory)
        return found


def _runtime(backend: Literal["sglang", "trtllm", "vllm"]) -> str:
    return "tensorrtllm-runtime" if backend == "trtllm" else f"{backend}-runtime"


def _model_path(spec: DynamoGraphDeploymentRequestSpec) -> str:
    """Where the engine finds the model: on the volume that holds it, or by its name."""
    cache: ModelCache | None = spec.model_cache
    if cache is None or not cache.pvc_name or not cache.pvc_model_path:
        return spec.model
    return f"{(cache.pvc_mount_path or MODEL_CACHE).rstrip('/')}/{cache.pvc_model_path.strip('/')}"


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _config_map(name: str, data: Mapping[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict(data)}


# --- overrides and checks ----------------------------------------------------


def _overridden(spec: DynamoGraphDeploymentRequestSpec) -> Mapping[str, Any]:
    return (spec.overrides.dgd if spec.overrides is not None else None) or {}


def _with_overrides(made: Manifest, spec: DynamoGraphDeploymentRequestSpec) -> Manifest:
    given = _overridden(spec)
    if not given:
        return made
    field = "spec.overrides.dgd"
    kind, version = given.get("kind", KIND.name), given.get("apiVersion", KIND.api_version)
    older = f"{KIND.group}/{conversion.OLDER}"
    if kind != KIND.name or version not in (KIND.api_version, older):
        raise Unanswerable(field, f"it is a {kind} of {version}; write a {KIND.name} of {KIND.api_version}")
    metadata = given.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise Unanswerable(f"{field}.metadata", "it must be an object")
    content = {"spec": given.get("spec") or {}}
    if version == older:
        content = conversion.GRAPHS.up(content)
    content = {"spec": _with_our_names(content.get("spec"), made["spec"]["components"])}
    merged: Manifest = merge(made, {"metadata": metadata, **content})
    merged["metadata"]["name"] = made["metadata"]["name"]
    return merged


def _with_our_names(spec: Any, components: Sequence[Manifest]) -> Any:
    """The overrides with components named as they are here.

    Others name them after the engine, such as VllmPrefillWorker; what a name says of the role is enough.
    """
    parts = spec.get("components") if isinstance(spec, Mapping) else None
    if not isinstance(parts, list):
        return spec
    ours = [str(part["name"]) for part in components]

    def named(part: Any) -> Any:
        if not isinstance(part, Mapping) or not isinstance(part.get("name"), str):
            return part
        says = str(part["name"]).lower()
        for name in (says, part.get("type")):
            if name in ours:
                return {**part, "name": name}
        roles = [name for name in ours if name in says]
        return {**part, "name": roles[0]} if roles else part

    return {**spec, "components": [named(part) for part in parts]}


def merge(base: Any, patch: Any) -> Any:
    """`patch` over `base`: objects by key, lists of named items by name, all else replaced; null removes a key."""
    if isinstance(base, Mapping) and isinstance(patch, Mapping):
        merged = {key: value for key, value in base.items() if patch.get(key, value) is not None}
        for key, value in patch.items():
            if value is not None:
                merged[key] = merge(base.get(key), value)
        return merged
    if _named(base) and _named(patch):
        names = {item["name"]: item for item in base}
        patched = {item["name"]: merge(names.get(item["name"]), item) for item in patch}
        return [*(patched.pop(name, item) for name, item in names.items()), *patched.values()]
    if isinstance(patch, Mapping):
        return {key: merge(None, value) for key, value in patch.items() if value is not None}
    return patch


def _named(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, Mapping) and isinstance(item.get("name"), str) for item in value
    )


def _check(made: Manifest) -> None:
    name = made["metadata"]["name"]
    if found := checks.problems(KIND, made):
        raise Unanswerable("spec.overrides.dgd", "; ".join(str(problem) for problem in found))
    longest = max((str(part["name"]) for part in made["spec"]["components"]), key=len)
    if len(name) + len(longest) > LONGEST_NAMES:
        raise Unanswerable(
            "metadata.name",
            f"the names of the deployment {name} and of its component {longest} have {len(name) + len(longest)} "
            f"letters together and may have {LONGEST_NAMES}; set spec.overrides.dgd.metadata.name to a shorter name",
        )
