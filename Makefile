# Two commands: `make reproduce` and `make test`. Both set up .venv first; a fresh machine needs Python 3.11+,
# make and a package index. The tests also need Chromium and promtool; apt-get installs them where they are missing.
PYTHON ?= python3
BIN := .venv/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
MAKEFLAGS += --jobs=3  # checks, kernels and downloads beside each other

.PHONY: help reproduce test quick check kernels bench docs companion browse litellm release-check clean .venv/selection

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

reproduce: .venv/installed  ## run the paper's experiments; figures and tables go to out/
	$(BIN)/driftsack reproduce --out out

test: export DRIFTSACK_COMPILE := first
test: check kernels .venv/selection  ## check the code and run every test
	$(BIN)/python -m pytest -n auto --dist worksteal -m "$$(cat .venv/selection)"

quick: export DRIFTSACK_COMPILE := first
quick: .venv/tools  ## run the tests that take seconds and need no PostgreSQL, browser or promtool
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not browser and not promtool and not postgres"

kernels: .venv/tools  ## compile the kernels of every policy, so that the processes of the tests do not each compile them
	$(BIN)/driftsack compile --all

check: .venv/tools  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/installed  ## measure speed side by side; refreshes docs/benchmarks.md
	$(BIN)/python -m lab speed --markdown docs/benchmarks.md

docs: .venv/tools  ## build the documentation site; open out/site/index.html, no server needed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

companion:  ## build the LaTeX companion, out/companion/main.pdf; needs pdflatex. `python -m lab companion` writes its numbers
	mkdir -p out/companion
	cd docs/companion && pdflatex -halt-on-error -output-directory=../../out/companion main.tex >/dev/null
	cd docs/companion && pdflatex -halt-on-error -output-directory=../../out/companion main.tex >/dev/null

browse: .venv/tools .venv/system  ## look at every page of the dashboard; screenshots go to out/browse
	$(BIN)/python tools/browse.py out/browse

litellm:  ## try the plugin and the proxy with the oldest and the newest LiteLLM, in environments of their own
	for version in '==1.106.0' '>=1.106'; do \
	  $(PYTHON) -m venv --clear out/litellm && \
	  PIP_CONSTRAINT= out/litellm/bin/python -m pip install --quiet --editable '.[litellm,service]' "litellm$$version" && \
	  out/litellm/bin/python -m lab litellm || exit 1; \
	done

release-check: .venv/tools  ## go through the checklist of a release; make test comes first
	$(BIN)/python tools/release.py

clean:  ## forget the environment, the results and every cache
	rm -rf .venv out .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests lab -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "driftsack needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[research]'
	touch $@

.venv/tools: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch .venv/installed $@

.venv/system: tools/system_packages.sh | .venv/bin/python
	tools/system_packages.sh $(BIN)
	touch $@

.venv/selection: tools/system_packages.sh | .venv/bin/python  # of tests, by what the machine has
	@tools/system_packages.sh $(BIN) && : > $@ || { echo "not browser and not promtool" > $@; \
	  echo "CHROMIUM OR PROMTOOL IS MISSING: the tests marked browser and promtool are left out" >&2; }
