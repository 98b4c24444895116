# Everything a newcomer or CI needs; `make` lists it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo up test test-go kubernetes kubernetes-stop test-kubernetes check bench torture golden proto clean

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Holdfast needs Python 3.11 or newer; say which with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(STAMP) ## Show rollouts on a cluster of their own that never fall below their floors
	@$(BIN)/holdfast demo examples/demo

up: $(STAMP) ## Start a cluster in one process; it prints its kubeconfig
	@$(BIN)/holdfast up

test: $(STAMP) ## Run every test
	@$(BIN)/python -m pytest -n auto --dist worksteal

KUBERNETES := build/kubernetes

kubernetes: $(STAMP) ## Start a Kubernetes control plane, built from Go modules; prints its kubeconfig
	@$(BIN)/python -m tests.kubernetes.control_plane start $(KUBERNETES)

kubernetes-stop: $(STAMP) ## Stop it
	@$(BIN)/python -m tests.kubernetes.control_plane stop $(KUBERNETES)

test-kubernetes: $(STAMP) ## Test runtime and operators on a real cluster: make test-kubernetes KUBECONFIG=...
	@HOLDFAST_KUBECONFIG=$(or $(KUBECONFIG),$(wildcard $(KUBERNETES)/kubeconfig)) $(BIN)/python -m pytest -q tests/kubernetes

test-go: $(STAMP) ## Use the cluster from Go, with client-go and controller-runtime; gets and compiles their modules
	@HOLDFAST_GO_TESTS=1 $(BIN)/python -m pytest -q tests/golang

check: $(STAMP) ## Check style, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/architecture

bench: $(STAMP) ## Measure what docs/benchmarks.md promises; beside make kubernetes, or KUBECONFIG=...
	@HOLDFAST_BENCH_KUBECONFIG=$(or $(KUBECONFIG),$(wildcard $(KUBERNETES)/kubeconfig)) $(BIN)/python -m benchmarks

torture: $(STAMP) ## Kill, flood, fuzz and mislead for half an hour; prints figures: make torture TORTURE='--scale 0.1'
	@$(BIN)/python -m tests.torture $(TORTURE)

golden: $(STAMP) ## Write the golden simulation logs anew, to be read before they are committed
	@HOLDFAST_UPDATE_GOLDEN=1 $(BIN)/python -m pytest -q tests/simulator/test_golden.py

PROTO := holdfast/providers/wire/generated/provider.proto

proto: $(STAMP) ## Generate the code of the providers' contract from its .proto
	@$(BIN)/python -m grpc_tools.protoc -I src --python_out=src --pyi_out=src src/$(PROTO)

clean: ## Remove what the other targets made
	@rm -rf $(VENV) build dist src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
