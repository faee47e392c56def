# Everything here needs Go alone; tests need PostgreSQL too, and find or install it (see internal/pgtest).
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

ARGS ?=
FUZZTIME ?= 30s
# Packages tested at a time: more than the cores make the timing of tests unsteady.
P ?= 2

# Built first, not `go run`, so that a signal to make reaches it and the server goes away.
WITH := bin/with -install --

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show what REA does, on an embedded database (ARGS=--no-serve)
	go run ./cmd/rea demo $(ARGS)

.PHONY: build
build: ## Build bin/rea
	CGO_ENABLED=0 go build -trimpath -o bin/rea ./cmd/rea

.PHONY: test
test: bin/with ## All tests, on SQLite and on a throw-away PostgreSQL
	$(WITH) go test ./... -count=1 -p $(P) -timeout 20m $(ARGS)

.PHONY: test-quick
test-quick: ## Tests that need no PostgreSQL server, short ones only
	go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... \
		| { grep -v /internal/pgtest || true; } | cut -d ' ' -f 1 | xargs go test -short -timeout 5m $(ARGS)

.PHONY: check
check: bin/staticcheck ## Format, vet, staticcheck and the layers of packages
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "run gofmt -w on:" $$unformatted >&2; exit 1; }
	go vet ./...
	bin/staticcheck ./...
	go test . -count=1 -run '^TestArchitecture'

.PHONY: race
race: bin/with ## All tests under the race detector (takes a C compiler)
	$(WITH) go test ./... -race -count=1 -p $(P) -timeout 40m $(ARGS)

.PHONY: fuzz
fuzz: bin/with ## Each fuzz test for FUZZTIME=30s
	$(WITH) tools/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: bin/with ## Measure (ARGS go to ./bench), with the data on a disk, not in memory
	TMPDIR=$${TMPDIR:-/tmp} $(WITH) go run ./bench $(ARGS)

.PHONY: chaos
chaos: bin/with ## The long tests that crash servers and writers
	REA_CHAOS=long $(WITH) go test -p 1 ./postgres ./adopt -run 'Chaos|Flat|WhileTheTableChanges' -timeout 30m -count=1 -v $(ARGS)

# Go's own cache knows better than make when these two are out of date.
.PHONY: bin/with bin/staticcheck
bin/with:
	@go build -buildvcs=false -o $@ ./internal/pgtest/with

bin/staticcheck: # A module of its own, so that the tool is no dependency of whoever uses REA.
	@go -C tools build -buildvcs=false -o ../$@ honnef.co/go/tools/cmd/staticcheck
