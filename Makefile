# Needs Python 3.11+ and make, nothing else: every target makes the environment it runs in.
#   make demo    the main job, on a scratch folder of real files
#   make test    everything that CI runs
#   make check   format, lint, types and fast tests, under two minutes
PYTEST = .venv/bin/python -m pytest -q
SIDE_BY_SIDE = -n auto --dist worksteal
FAST = -m "not proof and not slow"

.PHONY: help venv demo test check static proof bench format lock clean
help:
	@echo "make demo | test | check | proof | bench | format | lock | clean"

.venv/.ready: pyproject.toml requirements-dev.lock scripts/make-venv
	@scripts/make-venv .venv

.venv-%/.ready: pyproject.toml requirements-dev.lock scripts/make-venv
	@scripts/make-venv .venv-$* $*

venv: .venv/.ready

demo: venv
	@.venv/bin/python examples/cleanup.py $(ARGS)

static: venv
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy

check: static
	$(PYTEST) $(SIDE_BY_SIDE) $(FAST)

# While the first Python's tests run, the environments of the others are made: that mostly waits for the network.
test: static
	@scripts/test-other-pythons --prepare >/dev/null 2>&1 & prepared=$$!; \
	$(PYTEST) $(SIDE_BY_SIDE); result=$$?; wait $$prepared || true; exit $$result
	@scripts/test-other-pythons

# Chaos, mass kills, millions: minutes to hours, never part of CI.
proof: venv
	$(PYTEST) -m proof --hypothesis-profile=proof --timeout=0

bench: venv
	.venv/bin/python -m benchmarks $(ARGS)

format: venv
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

# Newest versions that pyproject.toml allows. Commit the result only when `make test` passes on every Python.
lock:
	@scripts/write-lock

clean:
	rm -rf .venv .venv-* .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
