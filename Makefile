# The commands themselves are in .ci/step, which needs no make.
.DEFAULT_GOAL := help
STEPS := test race short386 standalone adapters examples quickstart perfcheck attack bench figures known-bugs lint fuzz fmt

STEPS += cluster-sim kills known-bugs-share bench-scale bench-windows microbench
STEPS += cluster-exact cluster-compare cluster-schedules
STEPS += screenshots pictures pgo
.PHONY: help ci $(STEPS)

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

test: ## every test of every module in go.work
race: ## the same, with the race detector (needs a C compiler)
short386: ## a build for 32 bits, and short tests there
standalone: ## each module without the workspace
adapters: ## the adapters that are modules of their own, cluster/redis, the exporters, and the console in a browser
cluster-exact: ## processes that share limits on a real Redis while all sorts of things happen: EXACTFOR=60s
cluster-schedules: ## a million schedules of members that share a window, on a virtual clock: SCHEDULES=1000000
cluster-compare: ## ways to hold a limit in a Redis, measured on one server: one table, kept in docs
examples: ## the examples' tests in a copy outside of the repository
screenshots: ## the pictures of the dashboard in docs, made by Chromium of the quickstart
pictures: ## the pictures of the pages on rules, drawn from what an engine does
quickstart: ## run examples/quickstart
perfcheck: ## does a call cost more than it may? Noise can't trip it
pgo: ## the profile for other people's builds in docs, and perfcheck with it
attack: ## hurt engines from outside for a minute: ATTACKFLAGS='-for 8h -only storms'
bench: ## ours beside other libraries: one table, kept in docs; BENCHFLAGS=-short tries it
bench-scale: ## the same calls on 1 to 16 processors: one table, kept in docs
bench-windows: ## kinds of windows on the same traffic: tables and picture, kept in docs
cluster-sim: ## clusters on a virtual clock: tables and picture, kept in docs; SIMFLAGS=-short tries it
microbench: ## the root module's Go benchmarks: BENCH=regexp BENCHTIME=200ms
figures: ## the checks that tell a number, and one table: FIGURES=long for a night
kills: ## 1,000 kill -9 of a process that writes the metric log
known-bugs-share: ## a few of the next, others at each commit
known-bugs: ## put known mistakes into a copy of the tree: do the tests notice?
lint: ## gofmt, go fix -diff, go vet, staticcheck and golangci-lint: .golangci.yml
fuzz: ## every fuzz target: FUZZTIME=10s each
fmt: ## gofmt every Go file
ci: ## everything that CI runs
	@bash .ci/run

$(STEPS):
	@bash .ci/step $@
