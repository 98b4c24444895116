# Everything a newcomer or CI needs; `make` lists it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
STAMP  := $(VENV)/.installed
SITE   := $(VENV)/.site
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo up docs test test-go kubernetes kubernetes-stop cert-manager test-kubernetes check bench torture golden proto clean

help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Install with pip, and show on one line what it is at; when it fails, show all that it said.
define install
{ $(BIN)/python -m pip install --constraint constraints.txt --editable $(1) 2>&1 || echo pip-failed; } \
	| tee $(VENV)/pip.log | while IFS= read -r line; do \
		case "$$line" in \
			pip-failed) cat $(VENV)/pip.log; exit 1;; \
			*Collecting*|*Building*|*Installing*) if [ -t 1 ]; then line=$${line%%:*}; printf '\r\033[K  %s' "$${line% (from*}"; fi;; \
		esac; \
	done && if [ -t 1 ]; then printf '\r\033[K'; fi
endef

# What Holdfast itself needs, and no more: the demo starts as soon as this is here.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Holdfast needs Python 3.11 or newer; say which with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || { echo "making $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@echo "installing Holdfast and its dependencies into $(VENV), once ..."
	@$(call install,.)
	@touch $@

# The tools of development, for the other targets.
$(STAMP): $(READY)
	@echo "installing the tools that tests and checks need into $(VENV), once ..."
	@$(call install,'.[dev]')
	@touch $@

demo: $(READY) ## Show rollouts of several systems that keep their floors
	@$(BIN)/holdfast demo

up: $(READY) ## Start a cluster in one process; it prints its kubeconfig
	@$(BIN)/holdfast up

# What builds the site of the documentation.
$(SITE): $(READY)
	@echo "installing what builds the documentation into $(VENV), once ..."
	@$(call install,'.[docs]')
	@touch $@

docs: $(SITE) ## Build the site of the documentation in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "read it: build/site/index.html; with search: $(BIN)/python -m http.server --directory build/site"

# Many tests wait for processes that they started, so there are three workers for two cores.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 2) * 3 // 2)')

test: $(STAMP) ## Run every test
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

KUBERNETES := build/kubernetes

# It prints its kubeconfig.
kubernetes: $(STAMP) ## Start a Kubernetes control plane, built from Go modules
	@$(BIN)/python -m tests.kubernetes.control_plane start $(KUBERNETES)

kubernetes-stop: $(STAMP) ## Stop it
	@$(BIN)/python -m tests.kubernetes.control_plane stop $(KUBERNETES)

cert-manager: $(STAMP) ## Build cert-manager for test-kubernetes; prints where it is
	@$(BIN)/python -m tests.kubernetes.cert_manager.programs

test-kubernetes: $(STAMP) ## Test on a real cluster: that one, or KUBECONFIG=...
	@HOLDFAST_KUBECONFIG=$(or $(KUBECONFIG),$(wildcard $(KUBERNETES)/kubeconfig)) $(BIN)/python -m pytest -q tests/kubernetes

# Gets and compiles the modules of client-go and controller-runtime.
test-go: $(STAMP) ## Use the cluster from Go, with controller-runtime
	@HOLDFAST_GO_TESTS=1 $(BIN)/python -m pytest -q tests/golang

check: $(STAMP) ## Check style, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/architecture

# Beside the cluster of make kubernetes, or KUBECONFIG=..., where there is one.
bench: $(STAMP) ## Measure what docs/benchmarks.md promises
	@HOLDFAST_BENCH_KUBECONFIG=$(or $(KUBECONFIG),$(wildcard $(KUBERNETES)/kubeconfig)) $(BIN)/python -m benchmarks

# Prints figures; for less: make torture TORTURE='--scale 0.1'
torture: $(STAMP) ## Kill, flood, fuzz and mislead for half an hour
	@$(BIN)/python -m tests.torture $(TORTURE)

# They are to be read before they are committed.
golden: $(STAMP) ## Write the golden simulation logs anew
	@HOLDFAST_UPDATE_GOLDEN=1 $(BIN)/python -m pytest -q tests/simulator/test_golden.py

PROTO := holdfast/providers/wire/generated/provider.proto

proto: $(STAMP) ## Generate the code of the providers' contract
	@$(BIN)/python -m grpc_tools.protoc -I src --python_out=src --pyi_out=src src/$(PROTO)

clean: ## Remove what the other targets made
	@rm -rf $(VENV) build dist src/*.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
