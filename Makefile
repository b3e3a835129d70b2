# `make` checks and runs the fast tests, `make test` runs all of them, `make demo` plays the story.
# Everything is installed below this folder, from locked versions, and nothing needs root.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := all
MAKEFLAGS += --no-builtin-rules

# Found before .venv leads the PATH: set-up needs the machine's own Python.
ifndef PYTHON
PYTHON := $(shell command -v python3)
endif
CACHE := $(CURDIR)/.cache
STAMPS := .cache/stamps

export PATH := $(CACHE)/bin:$(CURDIR)/.venv/bin:$(CURDIR)/node_modules/.bin:$(PATH)
export VIRTUAL_ENV := $(CURDIR)/.venv
# Ape and py-solc-x keep their files in the project, not in the home folder.
export APE_DATA_FOLDER := $(CACHE)/ape
export SOLCX_BINARY_PATH := $(CACHE)/solcx
# So do uv, pip, npm and matplotlib, unless you share their caches between clones.
export UV_CACHE_DIR ?= $(CACHE)/downloads/uv
export PIP_CACHE_DIR ?= $(CACHE)/downloads/pip
export npm_config_cache ?= $(CACHE)/downloads/npm
export MPLCONFIGDIR ?= $(CACHE)/matplotlib
export UV_PYTHON_DOWNLOADS := never
# The tests start Python hundreds of times: it must not compile its packages each time.
export PYTHONDONTWRITEBYTECODE :=
# Spark must not look for the machine's name on a network.
export SPARK_LOCAL_IP := 127.0.0.1

CONTRACTS := $(shell find contracts -name '*.sol')
# Contracts that no release deploys, of the tests, the gas study and the node, which keep the same rules.
OTHER_CONTRACTS := tests/solidity tools/gas_study/solidity node/solidity
FORGE_FORMAT := forge fmt contracts tests/forge $(OTHER_CONTRACTS)
PYTEST := python -m pytest
# A file's tests share chains and servers, so they stay together; files begin in the given order.
WORKERS := 2
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder --keep-durations build/durations/$@.txt

.PHONY: all help setup mls-engine check check-python check-contracts format test test-tools test-all test-changed test-chains \
  unit unit-and-ape forge forge-suites coverage contracts integration \
  gas-check fuzz soak bench-index bench-node bench-network bench-client bench-audit mutation planted-bugs conformance gas demo localnet chat lock generate clean

all: check unit  ## check and run the fast tests

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

## ---------------------------------------------------------------- set-up

setup: $(STAMPS)/contracts  ## install everything below this folder and compile the contracts
	@# Afterwards: with --jobs, npm's packages would be installed twice at once.
	@$(MAKE) --no-print-directory --silent $(STAMPS)/mls-engine

mls-engine: $(STAMPS)/mls-engine  ## build the engine and the page that each wheel contains; needs no other set-up

$(STAMPS)/uv: requirements/uv.txt tools/install_uv.sh
	@tools/install_uv.sh "$(PYTHON)" $(CACHE)
	@mkdir -p $(@D) && touch $@

$(STAMPS)/python: $(STAMPS)/uv requirements/dev.txt pyproject.toml
	@echo "set-up: Python packages (.venv)"
	@uv venv --quiet --allow-existing --python "$(PYTHON)" .venv
	@# Compiled once, not by each process that cannot write beside them.
	@uv pip sync --quiet --require-hashes --compile-bytecode requirements/dev.txt
	@uv pip install --quiet --no-deps --no-build-isolation --editable .
	@# Nodes and gateways start in no demo and no test without it.
	@chainkit doctor --role node | grep '^missing.*libpython' || true
	@touch $@

$(STAMPS)/node: requirements/node.txt tools/install_node.sh | $(STAMPS)/uv
	@tools/install_node.sh "$(PYTHON)" $(CACHE)
	@touch $@

$(STAMPS)/npm: $(STAMPS)/node package.json package-lock.json .npmrc
	@echo "set-up: npm packages (node_modules)"
	@npm ci --loglevel=error
	@touch $@

# Each takes half a minute, and neither needs the other one.
$(STAMPS)/packages: $(STAMPS)/uv requirements/dev.txt pyproject.toml requirements/node.txt tools/install_node.sh \
  package.json package-lock.json .npmrc
	@$(MAKE) --no-print-directory --jobs=2 $(STAMPS)/python $(STAMPS)/npm
	@touch $@

$(STAMPS)/programs: $(STAMPS)/packages tools/install_programs.sh tools/solc.js
	@tools/install_programs.sh $(CACHE)
	@touch $@

$(STAMPS)/contracts: $(STAMPS)/programs ape-config.yaml $(CONTRACTS)
	@echo "set-up: contracts (Solidity 0.8.28)"
	@# --force: Ape keeps stale bytecode where only an imported file changed.
	@ape compile --force --verbosity ERROR
	@touch $@

$(STAMPS)/mls-engine: $(STAMPS)/npm $(wildcard client/*.mjs client/mls_engine/*.mjs client/account_page/*) \
  client/chainkit_client/mls/bundle.sha256 client/chainkit_client/accounts/bundle.sha256
	@echo "set-up: the program of the MLS engine, and the page for backup account files"
	@node client/mls_engine/build.mjs
	@node client/account_page/build.mjs
	@touch $@

# For the tests alone, which start Java some twenty times: what is measured starts as it is shipped.
$(STAMPS)/spark: $(STAMPS)/python tools/write_spark_archive.py
	@echo "set-up: an archive of the Java classes that Spark loads"
	@# Not with the options of the tests, which name the archive that is written here.
	@SPARK_SUBMIT_OPTS= python -m tools.write_spark_archive .cache/spark.jsa
	@touch $@

test-changed test-tools integration soak: export SPARK_SUBMIT_OPTS := -XX:SharedArchiveFile=$(CACHE)/spark.jsa \
  -Xlog:cds=off -Xlog:cds+dynamic=off

## ---------------------------------------------------------------- checks

check: setup  ## format, lint, types, import layers, generated files
	@# Python's checks and the contracts' do not meet: a core for each.
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-python check-contracts

check-python:
	ruff format --check .
	ruff check .
	mypy
	lint-imports --no-cache | tail -n 8
	python tools/generate_protobuf.py --check
	python tools/write_command_reference.py --check
	python -m tools.conformance --check
	python -m tools.write_safe_releases --check
	python -m tools.scale --check

check-contracts:
	$(FORGE_FORMAT) --check
	solhint --max-warnings 0 --noPoster $(patsubst %,'%/**/*.sol',contracts $(OTHER_CONTRACTS))
	solhint --max-warnings 0 --noPoster -c tests/forge/.solhint.json 'tests/forge/**/*.sol'
	FOUNDRY_OUT=.cache/slither/out FOUNDRY_CACHE_PATH=.cache/slither/cache slither .
	node tools/upgrades/main.mjs check
	python tools/write_abis.py --check
	python -m tools.write_signature_validator --check
	node tools/vectors/generate.mjs tests/vectors --check

format: setup  ## rewrite the sources in the one format
	ruff format .
	ruff check --fix .
	$(FORGE_FORMAT)

## ---------------------------------------------------------------- tests

test: check  ## what must hold (CI runs it), with a third of the longest tests each day
	@# The compiler keeps one core busy; two workers fill what it and forge leave.
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target unit-and-ape forge-suites $(STAMPS)/spark
	@$(MAKE) --no-print-directory integration

# Recipes and no prerequisites: those would run at the same time.
unit-and-ape:
	@$(MAKE) --no-print-directory unit
	@$(MAKE) --no-print-directory contracts

forge-suites:
	@$(MAKE) --no-print-directory forge
	@$(MAKE) --no-print-directory coverage
	@$(MAKE) --no-print-directory gas-check

test-tools: setup $(STAMPS)/spark  ## the tools' own tests, the planted bugs, a quick run of each benchmark
	$(PYTEST) tests/tools -q -rs $(PARALLEL)

test-all: export TURNS :=
test-all: test test-tools fuzz soak  ## everything, for a night

test-changed: setup $(STAMPS)/spark  ## the tests that the change since BASE (HEAD) can break
	@tests=$$(python -m tools.tests_of_change --base "$${BASE:-HEAD}"); \
	  own=$$(grep '^tests/contracts/' <<<"$$tests" || true); \
	  others=$$(grep -v '^tests/contracts/' <<<"$$tests" || true); \
	  if [ -n "$$others" ]; then $(PYTEST) -q $(PARALLEL) $$others; fi; \
	  if [ -n "$$own" ]; then $(PYTEST) -p ape.pytest.plugin -q $(PARALLEL) $$own; fi

unit: setup  ## tests without sockets, in seconds
	$(PYTEST) tests/unit -q $(PARALLEL)

forge: setup  ## fuzz and invariant suites of the contracts
	forge test

coverage: setup  ## fail unless these suites reach every branch of the contracts
	python tools/check_coverage.py

contracts: setup  ## the contracts, through Ape on anvil
	$(PYTEST) -p ape.pytest.plugin tests/contracts -q $(PARALLEL)

# Servers and heartbeats are waited for most of the time: a worker keeps 0.4 of a core busy, so four
# fit on two. A third of the longest files is played, another one each day (ADR 41):
# `make integration TURNS=` plays all.
integration: WORKERS := 4
TURNS ?= --of-the-day
integration: setup $(STAMPS)/spark  ## real anvil, databases, Spark, nodes and clients
	@# The demo takes longest: begun first, it ends long before the rest does. Each worker keeps a
	@# network of nodes from its first test that asks for one: begun last, it idles for nobody.
	$(PYTEST) tests/e2e tests/jobs tests/indexer tests/council tests/client tests/verification tests/network -q -rs \
	  $(TURNS) $(PARALLEL)

test-chains: setup  ## the indexer on geth, built where Go is, and on hardhat from npm; says what is left out
	@if command -v go > /dev/null || [ -x .cache/bin/geth ]; then tools/install_geth.sh $(CACHE); \
	  else echo "test-chains: geth is left out, since there is no Go on this machine"; fi
	@tools/install_hardhat.sh $(CACHE)
	$(PYTEST) tests/geth tests/hardhat -q -rs --timeout 900

gas-check: setup  ## measure what messages and the registry cost; fail unless it is as in docs/gas.json
	python -m tools.gas_study --check

fuzz: setup  ## the fuzz, invariant and stateful suites for long; prints its seed
	export FUZZ_SEED="$${FUZZ_SEED:-0x$$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')}"; \
	  echo "fuzz: again with make fuzz FUZZ_SEED=$$FUZZ_SEED"; \
	  FOUNDRY_PROFILE=fuzz forge test --fuzz-seed "$$FUZZ_SEED"; \
	  $(PYTEST) -p ape.pytest.plugin -s tests/contracts/test_stateful_*.py

soak: setup $(STAMPS)/spark  ## all cases and thousands of seeds of what `make test` plays a part of
	CHAINKIT_SOAK=1 $(PYTEST) tests/indexer tests/jobs tests/network/test_node_kills.py tests/network/test_simulated_*.py \
	  tests/network/test_long_*.py tests/tools/test_planted_bugs.py tests/client/test_mls_histories.py \
	  tests/client/test_group_kills.py tests/e2e/test_demo.py tests/e2e/test_wheel.py -q -rs --timeout 7200
	CHAINKIT_SOAK=1 $(PYTEST) tests/unit tests/client/test_group_simulation.py tests/client/test_client_stories.py \
	  -q -rs -n $(WORKERS) --timeout 36000

bench-index: setup  ## how fast the indexer is; writes build/bench/index.json
	@python -m benchmarks.index

bench-node: setup  ## how fast a node serves beside the build before Envoy, accounts, deletes; needs h2load; writes build/bench/node.json and retention.json
	@python -m benchmarks.node
	@python -m benchmarks.retention

bench-network: setup  ## how fast nodes replicate and repair; writes build/bench/network.json
	@python -m benchmarks.network

bench-client: setup  ## how fast a client and a history are; writes build/bench/client.json and history.json
	@python -m benchmarks.client
	@python -m benchmarks.history

bench-audit: setup  ## how fast the audit is, and what it finds; writes build/bench/audit.json
	@python -m benchmarks.audit measure

mutation: setup  ## break the contracts on purpose, see which tests notice; writes docs/mutation.md
	python -m tools.mutation run

planted-bugs: setup  ## break rules of nodes and clients on purpose: do the simulators notice? writes docs/simulation.md
	python -m tools.planted_bugs

conformance: setup  ## break rules of demands that are not proved: do their tests notice? writes docs/conformance.md
	python -m tools.conformance prove --unproved

gas: setup  ## measure what messages and the registry cost; writes docs/gas.*
	python -m tools.gas_study

## ---------------------------------------------------------------- the story

demo: setup  ## play the whole story on a private chain; writes build/demo
	@python -m demo

localnet: setup  ## run a private chain with the contracts and a Safe, to try the commands on
	@python -m localnet

chat: setup  ## talk as Alice and Bob in two panes, and let the chain and a node lie to them
	@python -m localnet.chat

## ---------------------------------------------------------------- upkeep

lock: $(STAMPS)/uv  ## resolve the locked versions again
	for name in uv node; do \
	  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    requirements/$$name.in --output-file requirements/$$name.txt; done
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --overrides requirements/overrides.txt \
	  --all-extras --group dev pyproject.toml --output-file requirements/dev.txt
	for extra in audit backups client council gateway indexer node s3; do \
	  uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header \
	    --constraint requirements/dev.txt --extra $$extra pyproject.toml \
	    --output-file requirements/constraints/$$extra.txt; done
	npm install --package-lock-only
	npm install --package-lock-only --omit-lockfile-registry-resolved --prefix tools/hardhat

generate: setup  ## write the generated files again: protobuf, ABIs and code, vectors
	python tools/generate_protobuf.py
	python tools/write_abis.py
	python -m tools.write_signature_validator
	python -m tools.write_safe_releases
	python tools/write_command_reference.py
	python -m tools.conformance
	node tools/vectors/generate.mjs tests/vectors

clean:  ## remove everything that set-up, tests and demo made
	rm -rf .venv .cache node_modules build .build .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  client/chainkit_client/mls/bundle client/chainkit_client/accounts/bundle
