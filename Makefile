# `make` lists the targets. Only Python 3.11, 3.12 or 3.13 with pip is required.

# The first of these that works: shims of version managers may exist and only print an error.
PYTHON ?= $(shell for each in python3.11 python3.12 python3.13 python3; do \
	$$each -c '' 2>/dev/null && command -v $$each && break; done)
VENV_PYTHON := .venv/bin/python
FAST_TESTS := $(addprefix tests/,$(addsuffix .py,$(addprefix config/test_,env setting_types variables services redis lifetime manage serve)) keys)

.DEFAULT_GOAL := help
.PHONY: help install install-dev run test test-versions check lint types migrations documents methods selectors settings audit differential differential-precompiles golden test-consensus test-clients clients-table test-wallet-clients test-live build-geth lock bench clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | \
		while IFS='	' read -r name text; do printf '  %-20s %s\n' "$$name" "$$text"; done

# config/install.py reports other versions that can read it.
define check_python
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 7))' 2>/dev/null || { \
		echo 'Python 3.11, 3.12 or 3.13 is required. Name one of them: make PYTHON=python3.13' >&2; exit 1; }
endef

install: ## Make .venv with the pinned dependencies
	$(check_python)
	@$(PYTHON) -m config.install requirements.txt

install-dev: ## Make .venv with the dependencies of tests and checks as well
	$(check_python)
	@$(PYTHON) -m config.install requirements-dev.txt

run: install ## Serve the sample chain on 127.0.0.1:8000 (PORT, VAR_DIR, …; UPSTREAM=URL GENESIS=FILE to follow a node)
	@$(VENV_PYTHON) manage.py serve --leave-with-parent \
		$(foreach url,$(UPSTREAM),--upstream '$(url)') $(if $(GENESIS),--genesis '$(GENESIS)')

# The test processes share the modules that one of them has compiled, even where the
# environment forbids to store these.
test: export PYTHONDONTWRITEBYTECODE =
test: install-dev ## Run all tests (ARGS='-k name' for some)
	@$(VENV_PYTHON) -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(ARGS)

test-versions: ## Run tests of settings, services and keys on other versions of Python (VERSIONS='3.12 3.13')
	@for version in $(or $(VERSIONS),3.12 3.13); do \
		python$$version -m config.install requirements-dev.txt .venv-$$version && \
		.venv-$$version/bin/python -m pytest $(FAST_TESTS) $(ARGS) || exit 1; \
	done

check: lint types migrations documents audit ## Run the next five targets

lint: install-dev ## Check format and run the linter
	@$(VENV_PYTHON) -m ruff format --check .
	@$(VENV_PYTHON) -m ruff check .

types: install-dev ## Check types with mypy --strict
	@$(VENV_PYTHON) -m mypy .

migrations: install-dev ## Check that no migration is missing
	@$(VENV_PYTHON) -W ignore::RuntimeWarning:django.core.management.commands.makemigrations \
		manage.py makemigrations --check --dry-run

documents: install-dev ## Check imports between packages, and the documentation
	@$(VENV_PYTHON) -m pytest tests/test_walls.py tests/test_docs.py

audit: install-dev ## Look up known vulnerabilities of the pins (AUDIT_OPTIONAL=1 to pass without the service)
	@$(VENV_PYTHON) -m config.audit $(if $(AUDIT_OPTIONAL),--optional)

methods: install-dev ## Write docs/methods.md from the registry of methods
	@$(VENV_PYTHON) manage.py document_methods

selectors: install-dev ## Write the table of well-known functions and events
	@$(VENV_PYTHON) manage.py write_selectors

settings: install-dev ## Write docs/settings.md from the declared settings
	@$(VENV_PYTHON) manage.py document_settings

differential: install-dev ## Compare every instruction with another EVM's (ARGS=sample for a part)
	@test -x .venv-eels/bin/python || $(PYTHON) -m venv --without-pip .venv-eels
	@$(PYTHON) -m pip --python .venv-eels/bin/python --disable-pip-version-check \
		install --quiet --require-hashes --only-binary :all: \
		--requirement tests/differential/requirements.txt
	@$(VENV_PYTHON) -m tests.differential $(ARGS)

golden: install-dev ## Record geth's responses for tests/golden, with the geth on the PATH
	@$(VENV_PYTHON) -m tests.golden $(ARGS)

test-consensus: install-dev ## Run published fixtures (DIR=folder, ARGS='--only text')
	@test -n '$(DIR)' || { echo 'Name a folder of fixtures: make test-consensus DIR=…'; exit 2; }
	@$(VENV_PYTHON) -m tests.consensus '$(DIR)' $(ARGS)

differential-precompiles: install-dev ## Compare precompiled contracts with py-evm's (ARGS='--inputs 500' for a part)
	@$(VENV_PYTHON) -m tests.differential.precompiles $(ARGS)

define with_npm
	@if command -v npm >/dev/null; then \
		npm ci --prefix $(1) --ignore-scripts --no-audit --no-fund && \
		$(VENV_PYTHON) -m pytest $(1) $(ARGS); \
	else echo 'Skipped: there is no Node.js with npm here.'; fi
endef

test-clients: test-wallet-clients ## Test viem, ethers, cast, anvil, curl and web3.py with the service; runs the next target too
	$(call with_npm,tests/clients)

clients-table: install-dev ## Write the table in docs/clients.md from calls of cast, web3.py, viem and ethers; needs npm
	@npm ci --prefix tests/clients --ignore-scripts --no-audit --no-fund
	@$(VENV_PYTHON) -m pytest tests/clients/test_method_table.py --write-clients-table

test-wallet-clients: install-dev ## Test published clients and dapps with the wallet, in Node and Chromium
	$(call with_npm,tests/wallet_clients)

build-geth: install-dev ## Build the geth of the next target, unless there is one; needs Go
	@$(VENV_PYTHON) -m tests.live.programs

test-live: build-geth ## Follow real nodes, geth and anvil, for LIVE_BLOCKS=300; needs Go and npm
	@if command -v npm >/dev/null; then \
		npm ci --prefix tests/live --ignore-scripts --no-audit --no-fund \
			|| echo 'Skipped: npm can not install anvil and cast.'; \
	else echo 'Skipped: anvil and cast need Node.js with npm.'; fi
	@LIVE_BLOCKS=$(or $(LIVE_BLOCKS),300) $(VENV_PYTHON) -m pytest -rsP --numprocesses 3 --dist loadfile \
		tests/live $(ARGS)

lock: install-dev ## Write pins and hashes from pyproject.toml (ARGS=--upgrade for newer versions)
	@$(VENV_PYTHON) -m config.lock $(ARGS)

bench: install-dev ## Measure and write bench/results.json (ONLY=endpoint for a part)
	@$(VENV_PYTHON) -m bench $(ONLY)

clean: ## Remove .venv and caches; var/ with its data stays
	rm -rf .venv .venv-* .venv*.lock .mypy_cache .ruff_cache .pytest_cache .hypothesis tests/*/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
