# One word each; every target does its own set-up and re-uses what is already there.
PYTHON ?= python3
BIN := .venv/bin
SETUP := $(BIN)/python -m webgpu_py.host.setup

.PHONY: setup fetch demo serve test test-all soak fuzz bench lint native docs npm clean

## setup (default): .venv with the webgpu-py command
setup:
	@$(PYTHON) -I webgpu_py/host/venv.py

## fetch: a browser, Pyodide and the demo model
fetch: setup
	@$(SETUP) browser pyodide model

## demo: the main job on a real model in headless Chromium, with a screenshot
demo: fetch
	@$(BIN)/python -m webgpu_py.host.demo

## serve: the same page for a person, on loopback
serve: setup
	@$(SETUP) pyodide model
	@$(BIN)/webgpu-py serve

## lint: style and types
lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy

## test: lint, and every test that is not marked slow; at most 15 minutes on 2 cores
test: setup
	@$(MAKE) --no-print-directory --jobs=2 lint fetch
	@$(BIN)/pytest -m "not slow"

## test-all: every test; at most an hour
test-all: setup
	@$(MAKE) --no-print-directory --jobs=2 lint fetch
	@$(BIN)/pytest

## soak: 200 loads, 2,000 answers and 10,000 runs in one page; what lives before and after
soak: setup
	@$(SETUP) browser pyodide
	@$(BIN)/pytest -s tests/leaks/soak.py

## fuzz: hostile files, templates, messages and addresses, a minute of each kind
fuzz: setup
	@$(BIN)/pytest tests/hostile/test_fuzz*.py --fuzz-seconds 60

## bench: us beside other libraries on this machine's GPU, else its software adapter; the report
bench: fetch
	@$(BIN)/python -m bench.run
	@$(BIN)/python -m bench.report

## native: operators and conformance without a browser, on this machine's Vulkan, Metal or DX12
native: setup
	@$(BIN)/pip install --quiet --editable ".[native]"
	@$(BIN)/pytest tests/ops --native -m "not slow"
	@$(BIN)/webgpu-py conformance tests/conformance/cases --device native

## docs: the site in dist/docs
docs: setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

## npm: the npm package in dist/npm, ready for `npm publish`
npm: setup
	@rm -rf dist/npm
	@$(SETUP) pyodide
	@$(BIN)/python -m webgpu_py.host.npm_package dist/npm

## clean: remove the environment and every download
clean:
	rm -rf .venv .cache
