# The end-to-end tests that need more than Go. The Makefile includes this.

# `make e2e-NAME` sets E2E_NAME=1 and runs the tests with these names. With E2E_NAME=if-possible they are skipped, and say so, if what
# they need cannot be installed or does not run here.
E2E_NPM_TESTS := splunk pyroscope datadog sql clickhouse mcp page
e2e-splunk: TESTS = SplunkAgent ## run an application with Splunk's agent for Node.js, from npm, against the collector
e2e-pyroscope: TESTS = PyroscopeNodeJS ## run an application with Pyroscope's SDK for Node.js, from npm, against the collector
e2e-datadog: TESTS = DatadogNodeJS|ProcessContext ## run an application with Datadog's library for Node.js, from npm, against the collector
e2e-sql: TESTS = SQL ## run the SQL of docs/sql.md over blocks of the store, by DuckDB (70 MB) from npm
e2e-clickhouse: TESTS = ClickHouse|ClickHouseSource|ClickHouseBlocks|AnswersFromClickHouse ## compare what ClickHouse's engine (546 MB, from npm) has and answers with config/backends/clickhouse.yaml
e2e-mcp: TESTS = Assistant ## ask the collector and profiletool by the Model Context Protocol, by its client from npm
e2e-page: TESTS = Page ## drive the page of flame graphs in Chromium (CHROMIUM), by playwright-core from npm; screenshots in bin/page
e2e-npm: TESTS = SplunkAgent|PyroscopeNodeJS|DatadogNodeJS|ProcessContext|SQL|ClickHouse|ClickHouseSource|ClickHouseBlocks|AnswersFromClickHouse|Assistant|Page ## run all tests with packages from npm, the page's included
e2e-prometheus: TESTS = Rules|Prometheus ## have a real Prometheus 3 (built, or in the folder PROMETHEUS) evaluate config/monitoring with metrics of config/agent.yaml
e2e-ebpf: TESTS = EBPF ## sample known programs by eBPF with config/host.yaml; needs root
e2e-recordings: TESTS = ScriptsOfPerf|RecordingsOfThisMachine|NodeOfThisMachine|$(JVM_TESTS) ## read what perf, Node and the JDKs of this machine record, and compare it with what they count
JVM_TESTS := Recording|Namespaces|ProcessesThatSIGQUITWouldEnd|OthersRecordingsStay|AHangingJVM
e2e-kubernetes: TESTS = Kubernetes ## apply config/kubernetes and config/helm to a real API server, and run its agents and gateways (Linux)
e2e-image: TESTS = Image ## build the container image from local images, and run it hardened; needs root and podman
e2e-packages: TESTS = Packages ## install, upgrade, remove and purge the packages in a fresh Debian; needs root, debootstrap and rpm
e2e-clickhouse e2e-npm: E2E_PACKAGES += ./internal/store ./internal/store/querier ./internal/store/mcp
e2e-clickhouse: E2E_FLAGS = -p 1
e2e-npm: E2E_FLAGS = -parallel 3
e2e-npm: E2E_NAMES = $(E2E_NPM_TESTS)
e2e-prometheus: E2E_PACKAGES += ./connector/profilemetricsconnector
e2e-recordings: E2E_PACKAGES = ./internal/formats/perfscript ./internal/formats/cpuprofile ./internal/formats/jfr \
	./receiver/processesreceiver/internal/hotspot
e2e-recordings: E2E_NAMES = processes
E2E_PACKAGES = ./internal/testing/e2e
E2E_NAMES    = $*
E2E         := $(addprefix e2e-,$(E2E_NPM_TESTS) npm prometheus ebpf recordings kubernetes image packages)
.PHONY: e2e-processes $(E2E)
$(E2E): e2e-%: build
	@wanted=e2e_$*; wanted=$${wanted^^}; wanted=$${!wanted:-1}; for name in $(E2E_NAMES); do export "E2E_$${name^^}=$$wanted"; done; set -x; \
	$(AGAIN) $(TEST) -count=1 -v -timeout 60m $(E2E_FLAGS) -run '^Test($(strip $(TESTS)))$$' $(E2E_PACKAGES)

# Starts JVMs, programs of each version of Go, and the collector. It needs JDKs below /usr/lib/jvm, and root for other users' JVMs and
# for namespaces. The toolchains are modules, of 70 MB each. JAVA_ROOTS are more JDKs: receiver/processesreceiver/internal/hotspot/testdata/jdks.sh.
GO_VERSIONS ?= go1.18.10 go1.19.13 go1.20.14 go1.21.13 go1.22.12 go1.23.12 go1.24.9 go1.25.5
e2e-processes: build ## read Go programs of each version (GO_VERSIONS) and JVMs from outside, with config/host.yaml too; needs root
	E2E_PROCESSES=1 GO_VERSIONS="$(GO_VERSIONS)" $(TEST) -count=1 -timeout 30m ./receiver/processesreceiver/...
	E2E_PROCESSES=1 $(TEST) -count=1 -v -timeout 20m -run '^TestProcesses$$' ./internal/testing/e2e
