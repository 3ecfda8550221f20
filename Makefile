# `make run` and `make test` work on a fresh machine. What they make stays in this folder, but for the weights of models:
# they lie in the user's cache (on Linux ~/.cache/parlour/weights), or in the folder that PARLOUR_WEIGHTS_DIR names.

SHELL := /bin/sh
.DEFAULT_GOAL := help
VENV := .venv/bin
# Further options for the command: make run ARGS="--port 8000"
ARGS ?=
# Where a machine forbids bytecode, each of hundreds of processes would compile the same packages anew.
unexport PYTHONDONTWRITEBYTECODE

# A Python that is new enough, else one that an installed uv brings along; empty where there is neither.
FIND_PYTHON = for p in "$$PYTHON" python3.11 python3.12 python3.13 python3.14 python3 python; do \
	if [ -n "$$p" ] && "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo "$$p"; exit; fi; done; \
	if command -v uv >/dev/null 2>&1; then echo "== Fetching Python 3.11 with uv (once)" >&2; UV_CACHE_DIR=.cache/uv UV_PYTHON_INSTALL_DIR=.cache/python uv python install -q 3.11 && \
	UV_PYTHON_INSTALL_DIR=.cache/python uv python find --managed-python 3.11; fi

define SET_UP
	@python=$$($(FIND_PYTHON)); \
	if [ -z "$$python" ]; then echo "parlour: Python 3.11 or newer was not found; install it, then run the same command again." >&2; exit 1; fi; \
	"$$python" set_up.py $(1)
endef

.PHONY: help run test test-fast test-all mutants bench docs reference format lock image clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-10s %s\n", $$1, $$2}'

run: ## Set up if need be, then open Parlour at http://127.0.0.1:7860
	$(call SET_UP,run)
	@HF_HOME="$${HF_HOME:-$(CURDIR)/.cache/huggingface}" MPLCONFIGDIR="$${MPLCONFIGDIR:-$(CURDIR)/.cache/matplotlib}" \
		exec $(VENV)/python -m webui $(ARGS)

test: ## Everything that must hold before a change lands
	$(call SET_UP,test)
	@$(VENV)/python .ci/gate.py

test-fast: ## In about a minute: lint, and types and unit tests of what changed
	$(call SET_UP,test)
	@$(VENV)/python .ci/gate.py --fast

test-all: ## The same, and the slow tests: larger weights, torch, a real MCP server
	$(call SET_UP,test-all)
	@$(VENV)/python .ci/gate.py --all

mutants: ## Break the code in more than 90 places, one at a time, and see that tests notice
	$(call SET_UP,test)
	@$(VENV)/python .ci/mutants.py $(ARGS)

bench: ## Measure against named peers in the same run
	$(call SET_UP,test)
	@$(VENV)/python -m bench $(ARGS)

docs: ## Write the documentation as a site into build/docs
	$(call SET_UP,test)
	@NO_MKDOCS_2_WARNING=1 $(VENV)/mkdocs build --strict --quiet
	@echo "build/docs/index.html; with search: $(VENV)/python -m http.server -d build/docs --bind 127.0.0.1 8000"

reference: ## Write docs/reference, the reference as plain Markdown
	$(call SET_UP,test)
	@$(VENV)/python .ci/reference.py
	@$(VENV)/python .ci/recipes.py

format: ## Format, and mend what can be mended by itself
	$(call SET_UP,test)
	@$(VENV)/ruff format core webui tests bench docs/site_pages.py examples parlour .ci app.py build_wheel.py set_up.py
	@$(VENV)/ruff check --fix core webui tests bench docs/site_pages.py examples parlour .ci app.py build_wheel.py set_up.py

lock: ## Write the lock files anew (needs uv)
	@python3 .ci/lock.py

image: ## Build the container image `parlour`; ARGS="--service" for the small one
	@python3 .ci/image.py $(ARGS)

clean: ## Remove the environment and caches; your data stay
	@rm -rf .venv .cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage
