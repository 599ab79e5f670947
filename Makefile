# upyperf: `make help` lists the targets.

# Given as `make bench BOARD=x`. Not taken from the environment, where PORT or TIME may mean anything.
BOARD = unix
PLAN =
TIME =
PORT =
SERVER =
ARGS =

# One word for the shell, whatever is in it.
quote = '$(subst ','\'',$(1))'
option = $(if $(2),$(1) $(call quote,$(2)))

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
PROFILE ?= tuned

.PHONY: help setup bench firmware soak test lint benchmark clean

help: ## list the targets
	@echo 'make bench [BOARD=unix] [PLAN=name] [TIME=seconds] [PORT=/dev/ttyACM0] [SERVER=host] [TWIN=1] [ARGS=...]'
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: ## create .venv with pinned packages and install what the system lacks
	@tools/setup.sh bench

bench: ## measure a board: deploy, run the plan, show and store the result
	@tools/setup.sh bench $(call quote,$(BOARD))
	@.venv/bin/upyperf bench $(call quote,$(BOARD)) $(call option,--plan,$(PLAN)) $(call option,--time,$(TIME)) \
	    $(call option,--port,$(PORT)) $(call option,--server,$(SERVER)) $(if $(TWIN),--twin) $(ARGS)

firmware: ## build a board's firmware (BOARD=qemu-an386 [PROFILE=tuned]); cached afterwards
	@tools/setup.sh bench $(call quote,$(BOARD))
	@.venv/bin/python -m upyperf.firmware $(call quote,$(BOARD)) --profile $(call quote,$(PROFILE))

soak: ## the long tests of the QEMU boards: 64 MiB over loss, 200 runs in a row
	@tools/setup.sh test
	@UPYPERF_SOAK=1 .venv/bin/pytest tests/port/test_faults.py $(ARGS)

test: ## run all tests: ruff, mypy, pytest (what did not run is listed with its reason)
	@tools/setup.sh test
	@tools/test.sh $(ARGS)

lint: ## ruff and mypy alone
	@tools/setup.sh test
	@tools/test.sh --lint

benchmark: ## compare with uiperf3 and C iperf3; writes docs/benchmarks.md and .json (about 15 min)
	@tools/setup.sh benchmark
	@.venv/bin/python tools/benchmark $(ARGS)

clean: ## remove .venv, caches and builds; results/ is kept
	rm -rf .venv .cache build .pytest_cache .mypy_cache .ruff_cache .hypothesis host/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
