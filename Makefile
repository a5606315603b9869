# Everything starts here: make run, make test, make check, make soak, make bench.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: run test soak check format bench clean

run: $(STAMP)            ## the worked correction, step by step, on an embedded database
	@$(BIN)/muniment demo

test: $(STAMP)           ## the whole suite
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal

soak: $(STAMP)           ## what is random, for long: many examples, workers killed for five minutes, stories through every door; load over HTTP
	@MUNIMENT_LOAD_SECONDS=60 $(BIN)/python -m pytest -q -s tests/faults/test_http_load.py
	@MUNIMENT_SOAK=1 MUNIMENT_KILL_SECONDS=300 $(BIN)/python -m pytest -q -n 2 \
		tests/scenarios/test_state_machine.py tests/scenarios/test_stories.py \
		tests/faults/test_workers_killed.py tests/policy/test_redaction_properties.py

check: $(STAMP)          ## format, lint, types, layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports

format: $(STAMP)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP)          ## the figures of bench/, as ratios in one run
	@$(BIN)/python -m bench

clean:
	rm -rf $(VENV) .muniment

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing (once; about a minute) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
