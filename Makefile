# Everything happens inside .venv; nothing else on the machine is touched.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# mkdocs-material's notice about its own future says nothing about our pages.
export NO_MKDOCS_2_WARNING := 1

.PHONY: help setup test demo docs format clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv and install codevae with everything its development needs

# Redone only when the dependencies change. The constraints keep pip to one known torch.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt -e ".[dev]"
	touch $(STAMP)

# Two workers with one thread each: torch would otherwise start a thread per core in both.
test: setup ## lint, types, all tests (the slow ones too), documentation
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	OMP_NUM_THREADS=1 MPLBACKEND=Agg $(BIN)/pytest -n 2
	$(BIN)/mkdocs build --strict --quiet

demo: setup ## train on the bundled data with 40 % of it missing, and write a report
	$(BIN)/codevae train multiple_features --missing 0.4 --test 0.3 --out runs/demo --overwrite
	$(BIN)/codevae report runs/demo

docs: setup ## serve the documentation on this machine, rebuilt at every change
	$(BIN)/mkdocs serve

format: setup ## format the code and apply the safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove what is built and cached; .venv and runs stay
	rm -rf build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
