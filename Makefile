# `make` lists what there is. Python 3.11 with pip is all it needs.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV_PYTHON := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help install install-dev run test check lint types migrations documents audit differential test-clients test-wallet-clients lock bench clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | \
		while IFS='	' read -r name text; do printf '  %-20s %s\n' "$$name" "$$text"; done

install: ## Make .venv with the pinned dependencies
	@$(PYTHON) config/install.py requirements.txt

install-dev: ## The same with what tests and checks need
	@$(PYTHON) config/install.py requirements-dev.txt

run: install ## Serve the sample chain on 127.0.0.1:8000 (PORT, VAR_DIR, …)
	@$(VENV_PYTHON) manage.py serve --leave-with-parent

test: install-dev ## Run all tests (ARGS='-k name' for some)
	@$(VENV_PYTHON) -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(ARGS)

check: lint types migrations documents audit ## Everything but the tests: the next five

lint: install-dev ## Format check and linter
	@$(VENV_PYTHON) -m ruff format --check .
	@$(VENV_PYTHON) -m ruff check .

types: install-dev ## mypy --strict
	@$(VENV_PYTHON) -m mypy .

migrations: install-dev ## No migration is missing
	@$(VENV_PYTHON) -W ignore::RuntimeWarning:django.core.management.commands.makemigrations \
		manage.py makemigrations --check --dry-run

documents: install-dev ## Import floors and documentation are as they say
	@$(VENV_PYTHON) -m pytest tests/test_walls.py tests/test_docs.py

audit: install-dev ## Known vulnerabilities of the pins, where the index answers
	@$(VENV_PYTHON) -m config.audit

differential: install-dev ## Compare every instruction with another EVM's (ARGS=sample for a part)
	@test -x .venv-eels/bin/python || $(PYTHON) -m venv --without-pip .venv-eels
	@$(PYTHON) -m pip --python .venv-eels/bin/python --disable-pip-version-check \
		install --quiet --only-binary :all: --requirement tests/differential/requirements.txt
	@$(VENV_PYTHON) -m tests.differential $(ARGS)

define with_npm
	@if command -v npm >/dev/null; then \
		npm ci --prefix $(1) --ignore-scripts --no-audit --no-fund && \
		$(VENV_PYTHON) -m pytest $(1) $(ARGS); \
	else echo 'Skipped: there is no Node.js with npm here.'; fi
endef

test-clients: test-wallet-clients ## viem, ethers, cast, curl and web3.py against the node; the next one too
	$(call with_npm,tests/clients)

test-wallet-clients: install-dev ## Other people's clients and dapps against the wallet, with Node and Chromium
	$(call with_npm,tests/wallet_clients)

lock: ## Write the pins anew from the ranges in pyproject.toml
	@$(PYTHON) config/lock.py

bench: install-dev ## Measure and write bench/results.json (ONLY=endpoint for a part)
	@$(VENV_PYTHON) -m bench $(ONLY)

clean: ## Remove .venv and caches; var/ with its data stays
	rm -rf .venv .venv-eels .venv.lock .mypy_cache .ruff_cache .pytest_cache .hypothesis tests/*/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
