# Two commands do everything on a fresh machine with Python >= 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow test-portable test-oldest test-faults bench lint clean

$(VENV)/.test: pyproject.toml
	$(PYTHON) -c "import sys; assert sys.version_info >= (3, 11), 'Partita needs Python 3.11 or later; try make PYTHON=python3.11'"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	touch $@

# numba's cache does not see changes in kernels that another file's kernel calls: drop it when any of them changes.
$(VENV)/.kernels: $(shell find src/partita -path "*/kernels/*.py" -o -path "*/numerics/*.py") $(VENV)/.test
	find src/partita -name "*.nb[ic]" -delete
	touch $@

demo: $(VENV)/.kernels
	$(BIN)/python examples/demo.py

test: lint $(VENV)/.kernels
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

# Long statistical studies, and the faults below.
test-slow: $(VENV)/.kernels
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow
	$(MAKE) test-faults

# Crashes, hangs and silent acceptances on changed files, bombs, kills, full disks, threads, children: minutes, with a table.
test-faults: $(VENV)/.kernels
	$(BIN)/python -W ignore tests/faults/run.py

# The numerical tests under four families of BLAS kernels, for any processor, and with one thread.
test-portable: $(VENV)/.kernels
	$(BIN)/python tests/portable.py

# All tests with the oldest versions that pyproject.toml declares. These need Python 3.11 or 3.12.
OLDEST := .venv-oldest

$(OLDEST)/.test: pyproject.toml tests/oldest.py
	$(PYTHON) -c "import sys; assert (3, 11) <= sys.version_info < (3, 13), 'the oldest versions need Python 3.11 or 3.12; try make test-oldest PYTHON=python3.11'"
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(PYTHON) tests/oldest.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(OLDEST)/constraints.txt -e '.[test]'
	touch $@

test-oldest: $(OLDEST)/.test
	NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST)/numba $(OLDEST)/bin/python -m pytest -n 2 --dist worksteal

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/reference_se.py
	$(BIN)/python benchmarks/agreement.py
	$(BIN)/python benchmarks/bound_search.py
	$(BIN)/python benchmarks/table3.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/qp.py
	$(BIN)/python benchmarks/constraints.py
	$(BIN)/python benchmarks/l1.py
	$(BIN)/python benchmarks/table1.py
	$(BIN)/python benchmarks/figure1.py
	$(BIN)/python benchmarks/stability.py
	$(BIN)/python benchmarks/stochastic_race.py
	$(BIN)/python benchmarks/out_of_core.py
	$(BIN)/python benchmarks/chain_race.py
	$(BIN)/python benchmarks/chain_curves.py
	$(BIN)/python benchmarks/chain_table1.py
	$(BIN)/python benchmarks/matching.py
	$(BIN)/python benchmarks/matching_paper.py
	$(BIN)/python benchmarks/oracles.py
	$(BIN)/python benchmarks/dependency.py --sentences 20000 --longest 40
	$(BIN)/python benchmarks/grids.py
	$(BIN)/python benchmarks/horses.py
	$(BIN)/python benchmarks/standard_errors.py
	$(BIN)/python benchmarks/composite_grids.py
	$(BIN)/python benchmarks/composite_figures.py
	$(BIN)/python benchmarks/composite_monte_carlo.py
	$(BIN)/python benchmarks/composite_chunking.py
	$(BIN)/python benchmarks/latent.py
	$(BIN)/python benchmarks/hidden_chains.py
	$(BIN)/python benchmarks/bayesian_networks.py
	$(BIN)/python benchmarks/convex_em.py
	$(BIN)/python benchmarks/race.py --threads 1
	$(BIN)/python benchmarks/race.py --threads 2

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src tests/conformance/typed_contracts.py

clean:
	rm -rf $(VENV) $(OLDEST) .numba-generic build dist *.egg-info src/*.egg-info
