# `make help` lists the targets. You need Go, make and git: everything else is a Go module, which is fetched when it is
# first used. If there is a C compiler, the tests also run under the race detector.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO   ?= go
comma := ,
# The developer's tools have a go.mod of their own, so that their versions never touch the product's.
TOOL := $(GO) tool -modfile=internal/build/tools/go.mod

# SLIM=1 builds, runs and packages the slim collector, for a node outside of Kubernetes (builder-config.slim.yaml).
# QUICKSTART=1 builds what config/quickstart.yaml needs alone (builder-config.quickstart.yaml): `make run` sets it.
SLIM       ?=
QUICKSTART ?=
DIST        = otelcol-profiles$(if $(QUICKSTART),-quickstart,$(if $(SLIM),-slim))
MAIN := cmd/otelcol-profiles

BINARY = bin/$(DIST)

# -race needs cgo, thus a C compiler.
RACE ?= $(if $(shell command -v $$($(GO) env CC)),-race)
# Every package but the end-to-end tests, which run the binary.
UNIT  = $$($(GO) list ./... | grep -v /internal/testing/e2e$$)
# Packages that have goroutines or locks of their own, which the translators do not. `make test` leaves out those that need
# the Kubernetes client or the eBPF profiler: compiling these for the race detector takes longer than the tests; `make race` runs them.
CONCURRENT = $$(grep -rlE --include='*.go' --exclude='*_test.go' \
	'^\s*go (func|[a-zA-Z])|\.Go\(func|sync\.(Mutex|RWMutex|WaitGroup|Once|Map|Cond)|"sync/atomic"' \
	receiver processor exporter connector internal | xargs -n 1 dirname | sort -u | grep -vE '^internal/(testing/|formats/|build/)|test$$|/testdata/|/metadata$$' | sed 's|^|./|')
LIGHT = $(GO) list -test -f '{{.ImportPath}} {{.Deps}}' $(CONCURRENT) | sed -n '/k8s\.io\/client-go\|ebpf-profiler/d; s/\.test \[.*//p'

# The number of random inputs of a property test.
DRAWS ?= 30
# One set of flags for everything that is compiled here, including programs that tests build and the linter's view, so that a
# dependency is compiled once. Nothing reads debugging information: binaries are stripped, and so are those of tests. For a
# debugger, build without the Makefile. The compiler is a Go program, whose garbage collector took up to a third of its time.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -tags=grpcnotrace -gcflags=all=-dwarf=false '-toolexec=env GOGC=400 GOMEMLIMIT=2GiB' $(GOFLAGS)
# Flags of the collector only: profiletool and the tests have no slim build. 16 bytes align functions well; Go's 32 on amd64 add 1 %.
COLLECTOR_TAGS   = grpcnotrace$(if $(QUICKSTART)$(SLIM),$(comma)slim)$(if $(QUICKSTART),$(comma)quickstart)
COLLECTOR_FLAGS  = -tags=$(COLLECTOR_TAGS) -buildvcs=false -ldflags='-s -w -funcalign=16'
TOOL_FLAGS = -buildvcs=false -ldflags='-s -w -X main.toolVersion=$(VERSION)'
# stage runs the command $(2), and says what it is and how long it took.
stage = echo '== $(1)'; $(2); echo "== $(1): $$SECONDS s"
# `make lint` vets everything.
TEST = RAPID_CHECKS=$(DRAWS) $(GO) test -vet=off
RACE_TEST = CGO_ENABLED=1 $(TEST) $(RACE)
AGAIN = internal/build/again.sh

CONFIG      ?= config/quickstart.yaml
FUZZ        ?= Fuzz
FUZZTIME    ?= 30s
BENCH       ?= .
BENCH_COUNT ?= 6
BENCH_PKGS  ?= ./...

.PHONY: bench bench-fleet bench-report build chaos check check-generated clean collector fmt fuzz generate help \
	image limits lint notice notices packages race release run soak test validate vulnerabilities
help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

collector:
	@GO='$(GO)' internal/build/compile.sh $(MAIN) $(CURDIR)/$(BINARY) $(COLLECTOR_FLAGS) .

build: collector ## build the collector and the tool: bin/otelcol-profiles (SLIM=1: bin/otelcol-profiles-slim), bin/profiletool
	@GO='$(GO)' internal/build/compile.sh . bin/profiletool $(TOOL_FLAGS) ./cmd/profiletool

# With SLIM or QUICKSTART set, as SLIM= for the full build, nothing is chosen.
ifeq (file file,$(origin SLIM) $(origin QUICKSTART))
run: ## build the smallest collector that CONFIG needs (or SLIM=1, SLIM=), and run it: config/quickstart.yaml
	@binary=$$(internal/build/choose.sh $(CONFIG)); echo "$(CONFIG) runs with $$binary"; exec $$binary --config $(CONFIG)
else
run: collector
	exec $(BINARY) --config $(CONFIG)
endif

# Some packages run twice, because limits on allocations hold only without the race detector. The second run leaves out tests of
# large inputs, and the inputs of fuzz targets: neither has more than one goroutine.
test: build ## run all tests, the end-to-end ones included (DRAWS)
	@$(call stage,unit tests,$(TEST) $(UNIT))
	@$(if $(RACE),$(call stage,race detector,$(RACE_TEST) -short -skip '^Fuzz' $$($(LIGHT))),echo '== race detector: left out, without a C compiler or with RACE=')
	@$(call stage,end-to-end tests,$(AGAIN) $(TEST) -count=1 -parallel 4 -timeout 15m ./internal/testing/e2e)
	@$(call stage,worst inputs,LIMITS=short $(TEST) -count=1 -parallel 3 -timeout 10m -run '^Test(Limits|Browsers|HostileEngine)$$' ./internal/testing/chaos)

race: RACE = -race
race: ## run all tests of concurrent packages under the race detector, those that `make test` leaves out included
	$(RACE_TEST) $(CONCURRENT)

include internal/build/e2e.mk

# Most scenarios wait most of the time, so several run in parallel. CHAOS_SEED=... repeats the choices of an earlier run.
CHAOS     ?= full
CHAOS_RUN ?= .
SOAK      ?= 1h
SCENARIOS  = $(TEST) -count=1 -v -parallel 4 ./internal/testing/chaos

chaos: build ## break the collector and its surroundings (CHAOS=short for a part of two minutes, CHAOS_RUN, CHAOS_SEED)
	CHAOS=$(CHAOS) $(SCENARIOS) -timeout 20m -run '$(CHAOS_RUN)'

soak: build ## run agents and a gateway under load and random faults for SOAK, an hour by default
	CHAOS=soak SOAK=$(SOAK) $(SCENARIOS) -timeout 0 -run '^TestSoak$$'

# Everything takes hours, LIMITS=quick half an hour. LIMITS_RUN names tests: TestLimits/<configuration>/<attack>.
LIMITS     ?= full
LIMITS_RUN ?= ^Test(Limits|HostileEngine)$$
limits: build ## send the worst inputs to each shipped configuration, and measure its memory (LIMITS=quick, or short for the agent alone; LIMITS_RUN)
	LIMITS=$(LIMITS) $(TEST) -count=1 -v -timeout 4h -run '$(LIMITS_RUN)' ./internal/testing/chaos

check: lint check-generated validate vulnerabilities ## what a change must pass: lint, generated files, configs, vulnerabilities, tests with -race
	$(MAKE) test RACE=
	$(MAKE) race

bench: ## run the benchmarks (BENCH, BENCH_COUNT, BENCH_PKGS) and their peers, and compare them
	mkdir -p bin
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCH_COUNT) -timeout 4h $(BENCH_PKGS) | tee bin/bench.txt
	$(TOOL) benchstat -col /impl bin/bench.txt

# For a steadier table: BENCH_COUNT=9 BENCHTIME=1s.
BENCHTIME ?= 200ms
bench-report: ## measure the table of docs/benchmarks.md again (BENCH_COUNT, BENCHTIME)
	$(GO) run ./internal/build/benchreport docs/benchmarks.md "-run '^$$' -count $(BENCH_COUNT) -benchtime $(BENCHTIME) -timeout 1h"

bench-fleet: build ## measure agents and gateways as processes, and plain otlp → otlp, in half an hour
	$(GO) test -run '^$$' -bench '^Benchmark(Gateway|Fleet)$$' -benchtime 8x -timeout 2h ./internal/testing/e2e

fuzz: ## run every fuzz target for FUZZTIME, report each, and fail at the end if one failed (FUZZ: a pattern of names)
	GO='$(GO)' internal/build/fuzz.sh '$(FUZZ)' $(FUZZTIME)

METADATA ?= $(patsubst %/internal/metadata,%/metadata.yaml,$(wildcard */*/internal/metadata))

generate: ## write the generated files: cmd/otelcol-profiles from builder-config.yaml, components' code from METADATA, the Helm chart's manifests, NOTICE
	internal/build/metadata.sh $(METADATA)
	internal/build/assemble.sh $(MAIN)
	mkdir -p bin && $(GO) run ./internal/build/chart > bin/manifests.tpl && mv bin/manifests.tpl config/helm/templates/_manifests.tpl
	$(MAKE) --no-print-directory notice

# NOTICE covers the binaries of all platforms. It is written to another file first, so that a failure keeps the old one.
NOTICES := $(GO) run ./internal/build/notice -C $(MAIN),cmd/profiletool -tags=grpcnotrace
notice: ## write NOTICE: the licences of everything that is compiled or embedded into the binaries
	mkdir -p bin && $(NOTICES) > bin/NOTICE && mv bin/NOTICE NOTICE
notices: ## write bin/NOTICE, for releases: the same with the texts of the licences
	mkdir -p bin && $(NOTICES) -texts > bin/NOTICE

fmt: ## format the code
	$(TOOL) golangci-lint fmt ./...

lint: ## check formatting, imports, licence headers and the usual mistakes
	@bare=$$(git grep -LE '^// (SPDX-License-Identifier: Apache-2.0|Code generated)' -- '*.go' ':!*/testdata/*' || true); \
		test -z "$$bare" || { echo "no licence header: $$bare"; exit 1; }
	GOGC=300 GOMEMLIMIT=3GiB $(TOOL) golangci-lint run ./...

vulnerabilities: ## look for known vulnerabilities that the code can reach; skipped if the database (GOVULNDB) is out of reach
	GO='$(GO)' internal/build/vulnerabilities.sh

check-generated: ## fail if cmd/otelcol-profiles, the output of mdatagen, the chart's manifests, NOTICE or a go.mod is stale
	internal/build/check_generated.sh $(METADATA)

validate: build ## let the binary validate every file in config/
	for f in config/*.yaml config/backends/*.yaml; do echo "validate $$f"; $(BINARY) validate --config "$$f"; done

# The builder is docker if its daemon answers, otherwise podman or buildah. It gets IMAGE_FLAGS unchanged. Older versions of
# podman and buildah do not set BUILDPLATFORM.
IMAGE       ?= otelcol-profiles:$(VERSION)$(if $(SLIM),-slim)
VERSION     ?= $(shell sed -n 's/^  version: //p' builder-config.yaml)
REVISION    ?= $(shell git describe --always --abbrev=40 --dirty --match '' 2>/dev/null || echo unknown)
PLATFORM    ?=
IMAGE_FLAGS ?=
IMAGE_COMMAND ?= build
IMAGE_TOOL  ?= $(shell for tool in docker podman buildah; do command -v $$tool >/dev/null || continue; \
	if [ $$tool != docker ] || docker info >/dev/null 2>&1; then echo $$tool; break; fi; done)
export DOCKER_BUILDKIT = 1

image: ## build the container image (IMAGE, VERSION, REVISION, PLATFORM, SLIM, IMAGE_FLAGS) with docker, podman or buildah
	@[ -n '$(IMAGE_TOOL)' ] || { echo 'make image needs docker (with a running daemon), podman or buildah' >&2; exit 1; }
	$(IMAGE_TOOL) $(IMAGE_COMMAND) $(if $(PLATFORM),--platform=$(PLATFORM) \
		$(if $(filter docker,$(IMAGE_TOOL)),,--build-arg BUILDPLATFORM=linux/$(shell $(GO) env GOHOSTARCH))) \
		--build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) --build-arg SLIM=$(SLIM) $(IMAGE_FLAGS) --tag $(IMAGE) .

# What packages and releases are made of. Each platform takes minutes, as a build of everything does. Cgo is off, so any machine can
# build for all platforms.
PACKAGE_ARCHS     ?= $(shell $(GO) env GOARCH)
RELEASE_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
DISTRIBUTE = GO='$(GO)' DIST=$(DIST) VERSION=$(VERSION) COLLECTOR_TAGS=$(COLLECTOR_TAGS) COLLECTOR_FLAGS="$(COLLECTOR_FLAGS)" TOOL_FLAGS="$(TOOL_FLAGS)"
packages: notices ## build deb, rpm and apk packages of both programs: bin/packages (PACKAGE_ARCHS, VERSION, SLIM)
	rm -rf bin/packages
	$(DISTRIBUTE) PACKAGE_ARCHS="$(PACKAGE_ARCHS)" internal/build/packages.sh bin/packages

release: notices ## build all files of a release: bin/release (VERSION, RELEASE_PLATFORMS, SLIM)
	$(DISTRIBUTE) RELEASE_PLATFORMS="$(RELEASE_PLATFORMS)" \
		PACKAGE_ARCHS="$(patsubst linux/%,%,$(filter linux/%,$(RELEASE_PLATFORMS)))" internal/build/release.sh bin/release

clean: ## remove the files that other targets wrote
	rm -rf bin profiles-out host-queue
