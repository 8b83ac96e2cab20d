# The commands themselves are in .ci/step, which needs no make.
.DEFAULT_GOAL := help
STEPS := test schedules race nested staticcheck perfcheck lint lend build386 mutants figures fuzz attack night
STEPS += standalone examples quickstart cluster-exact cluster-schedules bench release
STEPS += cluster-sim cluster-compare kills bench-scale bench-windows microbench screenshots pictures fmt ci
.PHONY: help $(STEPS)

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

ci: ## every check of a commit: the same for each, with fixed seeds
test: ## every test of every module in go.work
schedules: ## interleavings of shared state, under a scheduler that decides which goroutine runs next
race: ## short tests of the concurrent packages, with the race detector (needs a C compiler)
nested: ## the modules that go.work leaves out, with a real Redis, PostgreSQL and Chromium if installed
staticcheck: ## staticcheck of every module in go.work; a part of lint
perfcheck: ## the instructions of a call; PERFCHECKFLAGS=-ratios compares times, too
fmt: ## gofmt every Go file

night: ## fresh seeds, larger sizes, other builds, mutants, fuzzing, attacks: FOR=1h
lint: ## gofmt, go fix -diff, go vet, staticcheck and golangci-lint in every module: .golangci.yml
lend: ## tests with counters that lend to lanes from the start
build386: ## a build for 32 bits
mutants: ## break each invariant in turn: does its test fail?
figures: ## the checks that report a number, and one table: FIGURES=20m, FIGURES=long
fuzz: ## every fuzz target: FUZZTIME=10s each
attack: ## random rules and calls from outside: ATTACKFLAGS='-for 8h -only storms'
kills: ## 1,000 kill -9 of a process that writes the metric log

release: ## all checks before a release
standalone: ## each module without the workspace
examples: ## the examples' tests in a copy outside of the repository
quickstart: ## run examples/quickstart
cluster-exact: ## processes that share limits on a real Redis during failures: EXACTFOR=60s
cluster-schedules: ## a million schedules of members that share a window, on a virtual clock: SCHEDULES=1000000
cluster-sim: ## clusters on a virtual clock: tables and picture, kept in docs; SIMFLAGS=-short tries it
cluster-compare: ## ways to hold a limit in Redis, compared on one server: one table, kept in docs
bench: ## Penstock beside other libraries: one table, kept in docs; BENCHFLAGS=-short tries it
bench-scale: ## the same calls on 1 to 16 processors: one table, kept in docs
bench-windows: ## kinds of windows on the same traffic: tables and picture, some kept in docs
microbench: ## the root module's Go benchmarks: BENCH=regexp BENCHTIME=200ms
screenshots: ## the pictures of the dashboard in docs, made by Chromium of the quickstart
pictures: ## the pictures of the pages on rules, drawn from an engine

$(STEPS):
	@bash .ci/step $@
