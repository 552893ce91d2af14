# `make demo` and `make test` need Python 3.11+ and make, nothing else. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROTO := $(wildcard proto/headrace/v1/*.proto)
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
TRAIN_STAMP := $(VENV)/.installed-train
# What the tests that need torch are known to pass with. Without a GPU, put an index that has CPU builds first.
TORCH ?= torch==2.13.0

# Only tried by the tests. They work with openai 3, which their metadata does not allow yet.
UNRESOLVED := llama-index-llms-openai==0.8.3 llama-index-llms-openai-like==0.8.1

.PHONY: help setup setup-dev setup-train demo serve test test-train lint proto proto-check docs docs-check bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Headrace needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m pip install --quiet --no-deps $(UNRESOLVED)
	@touch $@ $(STAMP)

$(TRAIN_STAMP): $(DEV_STAMP)
	$(BIN)/python -m pip install --quiet $(TORCH) --editable '.[dev,export,train]'
	@touch $@ $(DEV_STAMP) $(STAMP)

setup: $(STAMP) ## install the service into .venv
setup-dev: $(DEV_STAMP) ## install the service and the development tools into .venv

setup-train: $(TRAIN_STAMP) ## install what exporting and training need, torch among it

demo: $(STAMP) ## index real documents and answer three questions over gRPC
	$(BIN)/headrace demo

serve: $(STAMP) ## start the server with headrace.toml, or the defaults
	$(BIN)/headrace serve

test: $(DEV_STAMP) ## run the tests
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered --cov-fail-under=85

test-train: $(TRAIN_STAMP) ## run the tests that need torch: export and training
	$(BIN)/python -m pytest -m train

lint: $(DEV_STAMP) ## check style, types, import contracts and the wire
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy encoders rerank indexers retrieval proto/headrace bench
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code proto

proto: $(DEV_STAMP) ## generate the stubs from the .proto files
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m grpc_tools.protoc -I proto --python_out=proto --grpc_python_out=proto \
		--mypy_out=quiet:proto --mypy_grpc_out=quiet:proto $(PROTO)

proto-check: proto ## fail when the checked-in stubs are not current
	git diff --exit-code -- proto

docs: $(STAMP) ## write the settings reference and the example file from the settings' docstrings
	$(BIN)/headrace config reference > docs/settings.md
	$(BIN)/headrace config example > headrace.example.toml

docs-check: docs ## fail when the written documentation is not current
	git diff --exit-code -- docs headrace.example.toml

bench: $(DEV_STAMP) ## the short form of the benchmarks, on the corpus of the demo
	$(BIN)/python -m bench.stages --demo --json bench/results/stages.json

clean: ## remove what was built, not the data
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
