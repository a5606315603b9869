# Everything starts here: make run, make test, make test-long, make test-browser, make test-faults, make test-adapters, make test-typescript, make check, make release, make soak, make bench, make bench-scale.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# What `make run` needs: no development tools.
READY  := $(VENV)/.ready
# The agent frameworks that muniment.adapters is for. CrewAI needs an older mcp than the others, so it has a folder of its own.
ADAPTERS := .venv-adapters
CREWAI   := .venv-crewai
ADAPTED  := langgraph,openai-agents,pydantic-ai,google-adk,agent-framework,llama-index
INSTALL  := -m pip install --disable-pip-version-check --no-input --quiet
# What builds the packages and lints deploy/, in addition.
TOOLS  := $(VENV)/.tools
# Two at a time; a test that hangs fails after ten minutes, with where it was, instead of holding up the run.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist worksteal -p pytest_timeout --timeout 600
# What starts whole programs and waits for them: servers, workers, the command line, MCP, the docs' examples.
PROGRAMS := tests/deploy tests/typescript $(addprefix tests/interfaces/test_,log_forms.py cli_server.py cli_serve.py cli_eval_memory.py \
	cli_endings.py mcp_stdio.py mcp_lean.py extras.py demo.py demo_tenant.py) tests/worker/test_stopping.py \
	$(addprefix tests/docs/test_,tutorial.py interfaces.py site.py readme.py) tests/assistants/test_hook.py
# What `make test-long` runs; of the random histories, those with whole purges are run by `make test-faults`.
LONG     := tests/scenarios tests/benchmarks tests/security/test_row_audit.py tests/transfer/test_home_backup.py tests/database/test_backup.py \
	$(PROGRAMS)
ERASURES := tests/scenarios/test_erasure_stories.py
PIP    := $(BIN)/python $(INSTALL) -c constraints.txt

.PHONY: run test test-long test-browser test-faults test-adapters test-typescript adapters-tested test-package lint-deploy release soak check format docs generate reference rule screenshots operator bench bench-scale clean

run: $(READY)            ## the server with a demo tenant: shows its address, and a key for each role
	@$(BIN)/muniment serve --demo --home .muniment-demo

test: $(STAMP)           ## the suite without the slow kinds below; compiled first, which many of its processes could not do for themselves
	@$(BIN)/python -m compileall -q src
	@$(PYTEST) $(LONG:%=--ignore=%) --ignore=tests/faults --ignore=tests/adapters --ignore=tests/package --ignore-glob='*/test_browser_*'

test-long: $(STAMP)      ## random histories, rows tampered with one by one, the benchmarks at a tiny size, backups, whole programs: servers, workers, MCP, the docs' examples
	@$(BIN)/python -m compileall -q src
	@$(PYTEST) $(filter-out $(ERASURES),$(wildcard tests/scenarios/test_*.py)) $(filter-out tests/scenarios,$(LONG))

test-browser: $(STAMP)   ## the console in a browser; takes Chromium
	@$(PYTEST) tests/console/test_browser_*.py

test-faults: $(STAMP)    ## processes killed, servers stopped, disks full, races, load; whole purges of random histories
	@$(BIN)/python -m compileall -q src
	@$(PYTEST) tests/faults $(ERASURES)

test-adapters: $(STAMP)  ## the adapters with the real frameworks, and their types; the first time takes two minutes for the packages
	@if $(MAKE) --no-print-directory -j 2 $(ADAPTERS)/.installed $(CREWAI)/.installed; then $(MAKE) --no-print-directory adapters-tested; \
	else echo "not run: an agent framework could not be installed, so the adapters were not tried"; fi

adapters-tested:
	@$(ADAPTERS)/bin/python -m pytest -q -n 2 --dist loadfile -o filterwarnings=ignore tests/adapters --ignore=tests/adapters/test_crewai.py
	@$(CREWAI)/bin/python -m pytest -q -o filterwarnings=ignore tests/adapters/test_crewai.py
	@$(BIN)/basedpyright --pythonpath $(ADAPTERS)/bin/python $(filter-out %/crewai.py,$(wildcard src/muniment/adapters/*.py))
	@$(BIN)/basedpyright --pythonpath $(CREWAI)/bin/python src/muniment/adapters/crewai.py

test-typescript: $(STAMP) ## the TypeScript client: generated files, types, lint, its tests against a server, its package; takes Node.js and npm's packages
	@$(BIN)/python -m clients.check

test-package: $(TOOLS)   ## the packages: built, checked, installed into a clean environment, the first example run there
	@$(BIN)/python -m pytest -q tests/package

lint-deploy: $(TOOLS)    ## what is in deploy/, by the linters of its formats; those that are not installed are reported as not run
	@$(BIN)/python deploy/lint.py

release: $(TOOLS)        ## dist/: the packages, checked and tried, with notes, SBOM and checksums; uploads nothing
	@$(BIN)/python -m release

soak: $(STAMP)           ## the random tests with new and many examples, workers and the postmaster killed for five minutes, stories through every interface; load over HTTP
	@MUNIMENT_LOAD_SECONDS=60 $(BIN)/python -m pytest -q -s tests/faults/test_http_load.py
	@MUNIMENT_SOAK=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal -m hypothesis tests
	@MUNIMENT_SOAK=1 MUNIMENT_KILL_SECONDS=300 $(BIN)/python -m pytest -q -n 2 \
		tests/scenarios tests/console/test_browser_looks.py tests/faults/test_workers_killed.py
	@MUNIMENT_KILL_SECONDS=300 $(BIN)/python -m pytest -q -s tests/faults/test_postmaster_killed.py

check: $(STAMP)          ## format, lint, types, layers
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports

format: $(STAMP)
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(STAMP)           ## the docs as a site, in build/docs; nothing in it comes from elsewhere
	@$(BIN)/mkdocs build --strict
	@echo "open build/docs/index.html, or: $(BIN)/mkdocs serve"

generate: $(STAMP)       ## the Python APIs and the TypeScript client, from the declarations of the verbs
	@$(BIN)/python -m muniment.verbs.generate
	@$(BIN)/python -m clients.generate

reference: $(STAMP)      ## the pages of the reference that are drawn from the code
	@$(BIN)/python docs/site/reference.py
	@$(BIN)/python docs/site/rules.py

rule: $(STAMP)           ## one rule of the specification, its code and its tests: make rule ID=REV-4; RUN=1 runs the tests
	@$(BIN)/python docs/site/rules.py $(or $(ID),$(error give a rule, such as: make rule ID=REV-4)) $(if $(RUN),--run)

screenshots: $(STAMP)    ## every page of the console over the demo, in build/screenshots; takes Chromium
	@$(BIN)/python -m tests.console.screenshots

operator: $(STAMP)       ## somebody decides 300 mixed proposals by keyboard in the browser, timed; takes Chromium
	@$(BIN)/python -m tests.console.operator_300

bench: $(STAMP)          ## the figures of bench/, as ratios in one run
	@$(BIN)/python -m bench

bench-scale: $(STAMP)    ## millions of memories in thousands of tenants, resumable: MEMORIES=1000000 TENANTS=10000 FOLDER=... REPORT=file KEEP_FREE=bytes
	@$(BIN)/python -m bench.scale $(if $(MEMORIES),--memories $(MEMORIES)) $(if $(TENANTS),--tenants $(TENANTS)) \
		$(if $(FOLDER),--folder $(FOLDER)) $(if $(REPORT),--report $(REPORT)) $(if $(KEEP_FREE),--keep-free $(KEEP_FREE)) $(SCALE)

clean:
	rm -rf $(VENV) $(ADAPTERS) $(CREWAI) .muniment .muniment-demo .muniment-scale build dist clients/typescript/node_modules clients/typescript/dist clients/typescript/build

$(BIN)/python:
	@echo "creating $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml models/pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing Muniment and the packages it needs (once; less than a minute) ..."
	@$(PIP) -e ./models -e '.[all]'
	@touch $@

$(STAMP): pyproject.toml models/pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing with the development tools (once; about a minute) ..."
	@$(PIP) -e ./models -e '.[dev]'
	@touch $@ $(READY)

$(ADAPTERS)/.installed: pyproject.toml tests/adapters/constraints.txt
	@echo "installing the agent frameworks (once; about a minute) ..."
	@$(PYTHON) -m venv $(ADAPTERS)
	@$(ADAPTERS)/bin/python $(INSTALL) -c tests/adapters/constraints.txt -e '.[$(ADAPTED),server]' langchain langgraph-checkpoint-postgres mem0ai hypothesis pytest pytest-xdist
	@touch $@

$(CREWAI)/.installed: pyproject.toml tests/adapters/constraints-crewai.txt
	@echo "installing CrewAI (once; about a minute) ..."
	@$(PYTHON) -m venv $(CREWAI)
	@$(CREWAI)/bin/python $(INSTALL) -c tests/adapters/constraints-crewai.txt -e '.[crewai]' hypothesis pytest pytest-xdist
	@touch $@

$(TOOLS): $(STAMP)
	@echo "installing the tools that build and lint (once) ..."
	@$(PIP) -e '.[dev,release]'
	@touch $@
