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
# Flags of the collector only: profiletool and the tests have no slim build.
COLLECTOR_TAGS   = grpcnotrace$(if $(QUICKSTART)$(SLIM),$(comma)slim)$(if $(QUICKSTART),$(comma)quickstart)
COLLECTOR_FLAGS  = -tags=$(COLLECTOR_TAGS) -buildvcs=false -ldflags='-s -w'
TOOL_FLAGS = -buildvcs=false -ldflags='-s -w -X main.toolVersion=$(VERSION)'
# stage runs the command $(2), and says what it is and how long it took.
stage = echo '== $(1)'; $(2); echo "== $(1): $$SECONDS s"
# `make lint` vets everything.
TEST = RAPID_CHECKS=$(DRAWS) $(GO) test -vet=off
RACE_TEST = CGO_ENABLED=1 $(TEST) $(RACE)

CONFIG      ?= config/quickstart.yaml
FUZZ        ?= Fuzz
FUZZTIME    ?= 30s
# For each target of fuzz-nightly: about seven hours in all.
FUZZTIME_NIGHTLY ?= 15m
BENCH       ?= .
BENCH_COUNT ?= 6
BENCH_PKGS  ?= ./...

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: collector
collector:
	@GO='$(GO)' internal/build/compile.sh $(MAIN) $(CURDIR)/$(BINARY) $(COLLECTOR_FLAGS) .

.PHONY: build
build: collector ## build the collector and the tool: bin/otelcol-profiles (SLIM=1: bin/otelcol-profiles-slim), bin/profiletool
	@GO='$(GO)' internal/build/compile.sh . bin/profiletool $(TOOL_FLAGS) ./cmd/profiletool

# With SLIM or QUICKSTART set, as SLIM= for the full build, nothing is chosen.
.PHONY: run
ifeq (file file,$(origin SLIM) $(origin QUICKSTART))
run: ## build the smallest collector that CONFIG needs (or SLIM=1, SLIM=), and run it: config/quickstart.yaml
	@binary=$$(MAKE='$(MAKE)' internal/build/choose.sh $(CONFIG)); echo "$(CONFIG) runs with $$binary"; exec $$binary --config $(CONFIG)
else
run: collector
	exec $(BINARY) --config $(CONFIG)
endif

# Some packages run twice, because limits on allocations hold only without the race detector. The second run leaves out tests of
# large inputs, and the inputs of fuzz targets: neither has more than one goroutine.
.PHONY: test
test: build ## run all tests, the end-to-end ones included (DRAWS)
	@$(call stage,unit tests,$(TEST) $(UNIT))
	@$(if $(RACE),$(call stage,race detector,$(RACE_TEST) -short -skip '^Fuzz' $$($(LIGHT))),echo 'no C compiler: the race detector is left out')
	@$(call stage,end-to-end tests,$(TEST) -count=1 -parallel 3 -timeout 15m ./internal/testing/e2e)
	@$(call stage,worst inputs,LIMITS=short $(TEST) -count=1 -parallel 3 -timeout 10m -run '^Test(Limits|Browsers|HostileEngine)$$' ./internal/testing/chaos)

.PHONY: race
race: RACE = -race
race: ## run all tests of concurrent packages under the race detector, those that `make test` leaves out included
	$(RACE_TEST) $(CONCURRENT)

# Takes about half a minute, mostly npm. With E2E_SPLUNK=if-possible the test is skipped if the agent cannot be installed.
E2E_SPLUNK ?= 1
.PHONY: e2e-splunk
e2e-splunk: ## run an application with Splunk's agent for Node.js, from npm, against the collector
	E2E_SPLUNK=$(E2E_SPLUNK) $(TEST) -count=1 -v -timeout 10m -run '^TestSplunkAgent$$' ./internal/testing/e2e

# The same with two versions of Pyroscope's SDK for Node.js.
E2E_PYROSCOPE ?= 1
.PHONY: e2e-pyroscope
e2e-pyroscope: ## run an application with Pyroscope's SDK for Node.js, from npm, against the collector
	E2E_PYROSCOPE=$(E2E_PYROSCOPE) $(TEST) -count=1 -v -timeout 10m -run '^TestPyroscopeNodeJS$$' ./internal/testing/e2e

# The same with Datadog's library for Node.js.
E2E_DATADOG ?= 1
.PHONY: e2e-datadog
e2e-datadog: ## run an application with Datadog's library for Node.js, from npm, against the collector
	E2E_DATADOG=$(E2E_DATADOG) $(TEST) -count=1 -v -timeout 10m -run '^Test(DatadogNodeJS|ProcessContext)$$' ./internal/testing/e2e

# DuckDB has 70 MB.
E2E_SQL ?= 1
.PHONY: e2e-sql
e2e-sql: ## run the SQL of docs/sql.md over blocks of the store, by DuckDB from npm
	E2E_SQL=$(E2E_SQL) $(GO) test -count=1 -v -timeout 10m -run '^TestSQL$$' ./internal/testing/e2e

# ClickHouse's engine has 546 MB.
E2E_CLICKHOUSE ?= 1
.PHONY: e2e-clickhouse
e2e-clickhouse: ## send profiles to ClickHouse's engine, from npm, with config/backends/clickhouse.yaml, and compare what it has
	E2E_CLICKHOUSE=$(E2E_CLICKHOUSE) $(TEST) -count=1 -p 1 -v -timeout 10m -run '^Test(ClickHouse|ClickHouseSource|AnswersFromClickHouse)$$' ./internal/store/querier ./internal/store/mcp ./internal/testing/e2e

# Takes two minutes. PROMETHEUS is a folder with prometheus and promtool of version 3; without it, they are built from their module, which
# takes two minutes of a processor the first time. With E2E_PROMETHEUS=if-possible those of the machine are used, and the tests are
# skipped if there are none.
PROMETHEUS     ?=
E2E_PROMETHEUS ?= 1
.PHONY: e2e-prometheus
e2e-prometheus: ## have a real Prometheus evaluate config/monitoring, with metrics that config/agent.yaml sends (PROMETHEUS)
	E2E_PROMETHEUS=$(E2E_PROMETHEUS) PROMETHEUS=$(PROMETHEUS) $(TEST) -count=1 -v -timeout 20m -run '^Test(Rules|Prometheus)$$' ./connector/profilemetricsconnector ./internal/testing/e2e

# The client is the SDK for Node.js.
E2E_MCP ?= 1
.PHONY: e2e-mcp
e2e-mcp: ## ask the collector and profiletool by the Model Context Protocol, by its client from npm
	E2E_MCP=$(E2E_MCP) $(GO) test -count=1 -v -timeout 10m -run '^TestAssistant$$' ./internal/testing/e2e

# Takes about a minute, and needs Chromium and npm (CHROMIUM names another browser). Screenshots go to bin/page. With
# E2E_PAGE=if-possible the test is skipped if one of them is missing.
E2E_PAGE ?= 1
.PHONY: e2e-page
e2e-page: ## drive the page of flame graphs in Chromium, by playwright-core from npm
	E2E_PAGE=$(E2E_PAGE) $(GO) test -count=1 -v -timeout 20m -run '^TestPage$$' ./internal/testing/e2e

# The tests of e2e-splunk, e2e-pyroscope, e2e-datadog, e2e-sql, e2e-clickhouse, e2e-mcp and e2e-page, side by side, since each waits most
# of the time. With E2E_NPM=if-possible those are skipped whose packages cannot be installed.
E2E_NPM ?= 1
.PHONY: e2e-npm
e2e-npm: build ## run all tests with packages from npm, the page's included
	$(foreach test,SPLUNK PYROSCOPE DATADOG SQL CLICKHOUSE MCP PAGE,E2E_$(test)=$(E2E_NPM)) $(TEST) -count=1 -v -parallel 3 -timeout 20m \
		-run '^Test(SplunkAgent|PyroscopeNodeJS|DatadogNodeJS|ProcessContext|SQL|ClickHouse|ClickHouseSource|AnswersFromClickHouse|Assistant|Page)$$' \
		./internal/store/querier ./internal/store/mcp ./internal/testing/e2e

# Takes about a minute and a half, and needs root and a kernel with eBPF and perf events. With E2E_EBPF=if-possible the test is
# skipped if sampling cannot start.
E2E_EBPF ?= 1
.PHONY: e2e-ebpf
e2e-ebpf: build ## sample known programs by eBPF with config/host.yaml; needs root
	E2E_EBPF=$(E2E_EBPF) $(TEST) -count=1 -v -timeout 20m -run '^TestEBPF$$' ./internal/testing/e2e

# Records programs with perf, Node and each JDK of this machine. What is missing is skipped, and says so.
.PHONY: e2e-recordings
e2e-recordings: ## read what perf, Node and the JDKs of this machine record, and compare it with what they count
	$(TEST) -count=1 -v -run '^(TestScriptsOfPerf|TestRecordingsOfThisMachine|TestNodeOfThisMachine)$$' \
		./internal/formats/perfscript ./internal/formats/cpuprofile ./internal/formats/jfr

# Starts JVMs, programs of each version of Go, and the collector. It needs JDKs below /usr/lib/jvm, and root for other users' JVMs and
# for namespaces. The toolchains are modules, of 70 MB each. JAVA_ROOTS are more JDKs: receiver/processesreceiver/internal/hotspot/testdata/jdks.sh.
GO_VERSIONS ?= go1.18.10 go1.19.13 go1.20.14 go1.21.13 go1.22.12 go1.23.12 go1.24.9 go1.25.5
.PHONY: e2e-processes
e2e-processes: build ## read Go programs of each version (GO_VERSIONS) and JVMs from outside, with config/host.yaml too; needs root
	E2E_PROCESSES=1 GO_VERSIONS="$(GO_VERSIONS)" $(TEST) -count=1 -timeout 30m ./receiver/processesreceiver/...
	E2E_PROCESSES=1 $(TEST) -count=1 -v -timeout 20m -run '^TestProcesses$$' ./internal/testing/e2e

# Takes about two minutes. The first time, it builds the API server, etcd, kubectl and helm from their modules, in six more.
.PHONY: e2e-kubernetes
e2e-kubernetes: ## apply config/kubernetes and config/helm to a real API server, and run its agents and gateways (Linux)
	E2E_KUBERNETES=1 $(TEST) -count=1 -v -timeout 60m -run '^TestKubernetes$$' ./internal/testing/e2e

# Most scenarios wait most of the time, so several run in parallel. CHAOS_SEED=... repeats the choices of an earlier run.
CHAOS     ?= full
CHAOS_RUN ?= .
SOAK      ?= 1h
SCENARIOS  = $(TEST) -count=1 -v -parallel 4 ./internal/testing/chaos

.PHONY: chaos
chaos: build ## break the collector and its surroundings (CHAOS=short for a part of two minutes, CHAOS_RUN, CHAOS_SEED)
	CHAOS=$(CHAOS) $(SCENARIOS) -timeout 20m -run '$(CHAOS_RUN)'

.PHONY: soak
soak: build ## run agents and a gateway under load and random faults for SOAK, an hour by default
	CHAOS=soak SOAK=$(SOAK) $(SCENARIOS) -timeout 0 -run '^TestSoak$$'

# Everything takes hours, LIMITS=quick half an hour. LIMITS_RUN names tests: TestLimits/<configuration>/<attack>.
LIMITS     ?= full
LIMITS_RUN ?= ^Test(Limits|HostileEngine)$$
.PHONY: limits
limits: build ## send the worst inputs to each shipped configuration, and measure its memory (LIMITS=quick, or short for the agent alone; LIMITS_RUN)
	LIMITS=$(LIMITS) $(TEST) -count=1 -v -timeout 4h -run '$(LIMITS_RUN)' ./internal/testing/chaos

.PHONY: check
check: lint vet-32bit check-generated validate vulnerabilities ## what a change must pass: lint, generated files, configs, vulnerabilities, tests with -race
	$(MAKE) test RACE=
	$(MAKE) race

.PHONY: bench
bench: ## run the benchmarks (BENCH, BENCH_COUNT, BENCH_PKGS) and their peers, and compare them
	mkdir -p bin
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCH_COUNT) -timeout 4h $(BENCH_PKGS) | tee bin/bench.txt
	$(TOOL) benchstat -col /impl bin/bench.txt

# For a steadier table: BENCH_COUNT=9 BENCHTIME=1s.
BENCHTIME ?= 200ms
.PHONY: bench-report
bench-report: ## measure the table of docs/benchmarks.md again (BENCH_COUNT, BENCHTIME)
	$(GO) run ./internal/build/benchreport docs/benchmarks.md "-run '^$$' -count $(BENCH_COUNT) -benchtime $(BENCHTIME) -timeout 1h"

.PHONY: bench-fleet
bench-fleet: build ## measure agents and gateways as processes, plain otlp → otlp, and how long profiles take, in half an hour
	$(GO) test -run '^$$' -bench '^Benchmark(Gateway|Fleet|Latency)$$' -benchtime 8x -timeout 2h ./internal/testing/e2e

# Go writes a failing input below testdata/fuzz of its package. Commit it, so that `go test` always runs it.
.PHONY: fuzz fuzz-nightly
fuzz: ## run every fuzz target for FUZZTIME, report each, and fail at the end if one failed (FUZZ: a pattern of names)
	@failed=(); count=0; \
	while IFS=: read -r file func; do \
		name="$${func#func } in $$(dirname "$$file")"; count=$$((count + 1)); \
		echo "== $$name"; \
		$(GO) test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$(dirname "$$file")" </dev/null \
			|| failed+=("$$name"); \
	done < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | grep -E ':func ($(FUZZ))' | sort); \
	echo "== $$count fuzz targets, $${#failed[@]} failed"; \
	for name in "$${failed[@]}"; do echo "failed: $$name"; done; \
	git status --short --untracked-files=all -- '**/testdata/fuzz/**' | sed 's/^?? /new seed, to be committed: /'; \
	(( $${#failed[@]} == 0 ))

fuzz-nightly: ## fuzz with FUZZTIME_NIGHTLY for each target
	$(MAKE) fuzz FUZZTIME=$(FUZZTIME_NIGHTLY)

# assemble writes the output of the builder for all configurations to the folder $(1), at the same depth as the real one. The
# builds share a module and everything except the list of components, which the build tags `slim` and `quickstart` (which implies
# `slim`) select. run.go replaces main_others.go, which the builder has no option to leave out. On Windows, run gets the
# converters, too.
#
# A module proxy may not have a module that only tests of the eBPF profiler import. Then the builder fails after it has written go.mod, and
# TIDY lets `go mod tidy` do the rest without that module.
TIDY := -e
define assemble
	mkdir -p bin
	sed 's|output_path: .*|output_path: ./$(1)|' builder-config.yaml > bin/builder-config.yaml
	rm -f $(1)/go.mod
	$(TOOL) builder --config bin/builder-config.yaml --skip-compilation || [ -f $(1)/go.mod ]
	$(GO) -C $(1) mod tidy $(TIDY)
	for part in slim quickstart; do \
		sed "s|output_path: .*|output_path: ./bin/$$part|" builder-config.$$part.yaml > bin/builder-config.part.yaml; \
		$(TOOL) builder --config bin/builder-config.part.yaml --skip-compilation --skip-get-modules; \
		tags=$$part; [ $$part = quickstart ] || tags="$$part && !quickstart"; \
		{ printf '//go:build %s\n\n' "$$tags"; cat bin/$$part/components.go; } > $(1)/components_$$part.go; \
		rm -r bin/$$part; \
	done
	{ printf '//go:build !slim\n\n'; cat $(1)/components.go; } > bin/components.go
	mv bin/components.go $(1)/components.go
	awk '{ print } /^func run\(/ { print "\taddConverters(&params)" }' $(1)/main_windows.go > bin/main_windows.go
	mv bin/main_windows.go $(1)/main_windows.go
	rm $(1)/main_others.go
endef

# mdatagen generates a component's metrics and status from its metadata.yaml. METADATA lists the components with generated code; for
# a new component, set it the first time. The tests that it also generates for each component are one loop over all components in
# internal/testing/components; that for leaked goroutines stays.
MDATAGEN := $(GO) tool -modfile=$(CURDIR)/internal/build/tools/mdatagen/go.mod mdatagen
define generate_metadata
	$(MDATAGEN) "$$metadata"; dir=$$(dirname "$$metadata"); \
	rm -rf "$$dir"/generated_component_test.go "$$dir"/internal/metadatatest "$$dir"/internal/metadata/generated_*_test.go
endef
METADATA ?= $(patsubst %/internal/metadata,%/metadata.yaml,$(wildcard */*/internal/metadata))

.PHONY: generate
generate: ## write what is generated: cmd/otelcol-profiles from builder-config.yaml, components' code from METADATA, NOTICE
	for metadata in $(METADATA); do $(generate_metadata); done
	$(call assemble,$(MAIN))
	$(MAKE) --no-print-directory notice

# NOTICE covers the binaries of all platforms. It is written to another file first, so that a failure keeps the old one.
NOTICES := $(GO) run ./internal/build/notice -C $(MAIN),cmd/profiletool -tags=grpcnotrace
.PHONY: notice
notice: ## write NOTICE: the licences of everything that is compiled or embedded into the binaries
	mkdir -p bin && $(NOTICES) > bin/NOTICE && mv bin/NOTICE NOTICE

# Each module in there requires the pdata of one old layout.
.PHONY: layout-fixtures
layout-fixtures: ## rewrite internal/otlp/layouts/testdata, each layout by the pdata of its time
	cd internal/otlp/layouts/testdata/generate && for module in */; do \
		$(GO) -C "$$module" run . "$$PWD/../$${module%/}"; \
	done

.PHONY: fmt
fmt: ## format the code
	$(TOOL) golangci-lint fmt ./...

.PHONY: lint
lint: ## check formatting, imports and the usual mistakes
	$(TOOL) golangci-lint fmt --diff ./...
	$(TOOL) golangci-lint run ./...

# The first time, this compiles all dependencies for 32 bits. No release is for 32 bits, so CI leaves it out.
.PHONY: vet-32bit
vet-32bit: ## check that everything compiles for 32 bits
	GOARCH=386 $(GO) vet ./...

# The database is vuln.go.dev, or GOVULNDB. govulncheck exits with 3 if it found something, and with 1 if it could not search.
GOVULNCHECK := $(GO) tool -modfile=$(CURDIR)/internal/build/tools/govulncheck/go.mod govulncheck $(if $(GOVULNDB),-db $(GOVULNDB))
.PHONY: vulnerabilities
vulnerabilities: ## look for known vulnerabilities that the code can reach; skipped if the database is out of reach
	@mkdir -p bin; status=0; \
	{ $(GOVULNCHECK) ./... && cd $(MAIN) && $(GOVULNCHECK) .; } 2> >(tee bin/govulncheck.txt >&2) || status=$$?; \
	if (( status != 0 )) && grep -q '^govulncheck: fetching vulnerabilities' bin/govulncheck.txt; then \
		echo 'vulnerabilities: skipped, the database cannot be reached'; exit 0; \
	fi; \
	exit $$status

# The generator runs in an empty folder at the same depth as the real one (for its replace line ../..), with a copy of the files
# that are written by hand. So neither untracked files nor the state of git can hide a difference.
.PHONY: check-generated
check-generated: ## fail if cmd/otelcol-profiles, the output of mdatagen, NOTICE or a go.mod is stale
	rm -rf bin/generated bin/_metadata && mkdir -p bin/generated bin/_metadata
	for metadata in $(METADATA); do \
		dir=$$(dirname "$$metadata"); mkdir -p "bin/_metadata/$$dir"; cp -r "$$dir/." "bin/_metadata/$$dir"; \
		$(generate_metadata); \
		diff -r "bin/_metadata/$$dir" "$$dir" || { echo "stale: commit what is now in $$dir" >&2; exit 1; }; \
	done
	cp $$(grep -L '^// Code generated' $(MAIN)/*.go) bin/generated
	$(call assemble,bin/generated)
	diff -r -x otelcol-profiles $(MAIN) bin/generated || { echo 'stale: run `make generate` and commit $(MAIN)' >&2; exit 1; }
	$(NOTICES) > bin/NOTICE
	diff NOTICE bin/NOTICE || { echo 'stale: run `make notice` and commit NOTICE' >&2; exit 1; }
	$(GO) mod tidy $(TIDY) -diff
	$(GO) -C internal/build/tools mod tidy -diff
	$(GO) -C internal/build/tools/compose mod tidy -diff
	$(GO) -C internal/build/tools/govulncheck mod tidy -diff
	$(GO) -C internal/build/tools/helm mod tidy -diff
	$(GO) -C internal/build/tools/mdatagen mod tidy -diff
	$(GO) -C internal/build/tools/nfpm mod tidy -diff
	$(GO) -C internal/build/tools/prometheus mod tidy -diff

.PHONY: validate
validate: build ## let the binary validate every file in config/
	for f in config/*.yaml config/backends/*.yaml; do echo "validate $$f"; $(BINARY) validate --config "$$f"; done

# The builder is docker if its daemon answers, otherwise podman or buildah. It gets IMAGE_FLAGS unchanged. Older versions of
# podman and buildah do not set BUILDPLATFORM.
IMAGE       ?= otelcol-profiles:$(VERSION)$(if $(SLIM),-slim)
VERSION     ?= $(shell sed -n 's/^  version: //p' builder-config.yaml)
REVISION    ?= $(shell git describe --always --abbrev=40 --dirty --match '' 2>/dev/null || echo unknown)
PLATFORM    ?=
IMAGE_FLAGS ?=
IMAGE_TOOL  ?= $(shell for tool in docker podman buildah; do command -v $$tool >/dev/null || continue; \
	if [ $$tool != docker ] || docker info >/dev/null 2>&1; then echo $$tool; break; fi; done)
export DOCKER_BUILDKIT = 1

.PHONY: image
image: ## build the container image (IMAGE, VERSION, REVISION, PLATFORM, SLIM, IMAGE_FLAGS) with docker, podman or buildah
	@[ -n '$(IMAGE_TOOL)' ] || { echo 'make image needs docker (with a running daemon), podman or buildah' >&2; exit 1; }
	$(IMAGE_TOOL) build $(if $(PLATFORM),--platform=$(PLATFORM) \
		$(if $(filter docker,$(IMAGE_TOOL)),,--build-arg BUILDPLATFORM=linux/$(shell $(GO) env GOHOSTARCH))) \
		--build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) --build-arg SLIM=$(SLIM) $(IMAGE_FLAGS) --tag $(IMAGE) .

# Takes a minute or two if the collector has been compiled before.
.PHONY: e2e-image
e2e-image: build ## build the container image from local images, and run it hardened; needs root and podman
	E2E_IMAGE=1 $(TEST) -count=1 -v -timeout 30m -run '^TestImage$$' ./internal/testing/e2e

# One package of the collector and one of the tool, for each architecture and format.
PACKAGE_ARCHS ?= $(shell $(GO) env GOARCH)
NFPM := $(GO) tool -modfile=$(CURDIR)/internal/build/tools/nfpm/go.mod nfpm
.PHONY: packages
packages: ## build deb, rpm and apk packages of both programs: bin/packages (PACKAGE_ARCHS, VERSION, SLIM)
	rm -rf bin/packages && mkdir -p bin/packages
	sed 's|/usr/local/bin|/usr/bin|; s|^DynamicUser=yes|User=otelcol-profiles|; /^# The packages replace/d' \
		config/systemd/otelcol-profiles.service > bin/packages/otelcol-profiles.service
	for arch in $(PACKAGE_ARCHS); do \
		export ARCH=$$arch BINARIES=$(CURDIR)/bin/packages/$$arch NAME=$(DIST) VERSION=$(VERSION) \
			OTHER=$(if $(SLIM),otelcol-profiles,otelcol-profiles-slim); \
		GOARCH=$$arch $(GO) -C $(MAIN) build $(COLLECTOR_FLAGS) -o $$BINARIES/$(DIST) .; \
		GOARCH=$$arch $(GO) build $(TOOL_FLAGS) -o $$BINARIES/profiletool ./cmd/profiletool; \
		for format in deb rpm apk; do for package in collector tool; do \
			$(NFPM) package --config config/packages/$$package.yaml --packager $$format --target bin/packages; done; done; \
		rm -r $$BINARIES; \
	done
	rm bin/packages/otelcol-profiles.service

# Takes about three minutes, and needs root, debootstrap, rpm and Debian's mirror.
.PHONY: e2e-packages
e2e-packages: ## install, upgrade, remove and purge the packages in a fresh Debian; needs root
	E2E_PACKAGES=1 $(TEST) -count=1 -v -timeout 30m -run '^TestPackages$$' ./internal/testing/e2e

# Each platform takes minutes, as a build of everything does. Cgo is off, so any machine can build for all platforms.
RELEASE_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
.PHONY: release
release: ## cross-compile archives of both programs, their checksums and bills of materials: bin/release (RELEASE_PLATFORMS, SLIM)
	rm -rf bin/release
	for platform in $(RELEASE_PLATFORMS); do \
		os=$${platform%/*}; arch=$${platform#*/}; exe=; [ $$os != windows ] || exe=.exe; echo "== $$platform"; \
		dir="$(CURDIR)/bin/release/$(DIST)_$(VERSION)_$${os}_$$arch"; mkdir -p "$$dir/config"; \
		export GOOS=$$os GOARCH=$$arch; \
		$(GO) -C $(MAIN) build $(COLLECTOR_FLAGS) -o "$$dir/$(DIST)$$exe" .; \
		$(GO) build $(TOOL_FLAGS) -o "$$dir/profiletool$$exe" ./cmd/profiletool; \
		cp LICENSE NOTICE CHANGELOG.md "$$dir"; cp -r config/*.yaml config/backends config/targets "$$dir/config"; \
		[ $$os != linux ] || cp -r config/systemd "$$dir/config"; \
	done
	$(GO) run ./internal/build/notice -C $(MAIN) -tags=$(COLLECTOR_TAGS) -sbom $(VERSION) > bin/release/$(DIST)_$(VERSION).cdx.json
	$(GO) run ./internal/build/notice -C cmd/profiletool -tags=grpcnotrace -sbom $(VERSION) > bin/release/profiletool_$(VERSION).cdx.json
	$(GO) run ./internal/build/release -dir bin/release -time "$$(git log -1 --format=%ct)"

.PHONY: clean
clean: ## remove the files that other targets wrote
	rm -rf bin profiles-out host-queue
