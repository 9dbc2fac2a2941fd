# make test runs everything: it installs what it needs and says what it skipped. Plain `go test ./...` needs only Go.
# `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
MAKEFLAGS += --no-print-directory

# A count, not a time: the fuzzer's own deadline is now and then reported as a failure of the target.
FUZZTIME ?= 40000x
# A release has a binary for each platform. The archives stage of make test builds one for each system, so that each
# architecture occurs once: no file of the module is for one architecture only.
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
TEST_PLATFORMS := linux/amd64 darwin/arm64 windows/amd64
# The packages of the unit stages: make unit PACKAGES=./hub
PACKAGES ?= ./...
STAGES := check vet unit allocations mutate-sample fuzz archives attack chaos-short browser interop servers conformance

.PHONY: test long check vet unit unit-busy unit-single allocations mutate mutate-sample fuzz archives release attack attack-long chaos chaos-short chat-long task-kills browser browser-deps console-shots refused interop interop-deps windows cold servers conformance conformance-deps redis nginx postgres xvfb bubblewrap keyring bench scale floor build clean help

test: ## everything: all stages run, also after a failure
	@go run ./internal/testall $(STAGES)

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 18

build: ## the program, in bin/
	@CGO_ENABLED=0 go build -trimpath -o bin/dowel ./cmd/dowel

bin/gotestsum bin/golangci-lint: tools/go.mod tools/go.sum
	@echo "building $@"
	cd tools && GOBIN=$(CURDIR)/bin go install tool
	cd .. && touch bin/gotestsum bin/golangci-lint

check: bin/golangci-lint ## formatting, tidy modules and lint
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l)
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	failed=
	for module in . interop attack chaos browser bench servers tools; do
		go -C $$module mod tidy -diff >/dev/null || { echo "go.mod or go.sum is not tidy; run: go -C $$module mod tidy"; failed=1; }
	done
	[ -z "$$failed" ]
	bin/golangci-lint run

# go vet type-checks whole packages. On other systems only the packages that have files of their own for a system differ;
# the archives stage compiles the program for each system.
vet: ## go vet: everything on Linux, and what differs on macOS and Windows
	@go vet ./...
	for system in darwin windows; do
		differ=$$({ diff <(go list -f '{{$$p := .ImportPath}}{{range .GoFiles}}{{$$p}} {{.}}{{"\n"}}{{end}}{{range .TestGoFiles}}{{$$p}} {{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$$p}} {{.}}{{"\n"}}{{end}}' ./...) \
			<(GOOS=$$system go list -f '{{$$p := .ImportPath}}{{range .GoFiles}}{{$$p}} {{.}}{{"\n"}}{{end}}{{range .TestGoFiles}}{{$$p}} {{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$$p}} {{.}}{{"\n"}}{{end}}' ./...) || true; } | awk '/^[<>] ./ {print $$2}' | sort -u)
		echo "vet for $$system: $$(wc -w <<< "$$differ") packages differ from Linux"
		GOOS=$$system CGO_ENABLED=0 go vet $$differ
	done
	cd interop && go vet ./...
	cd ../attack && go vet ./...
	cd ../chaos && go vet ./...
	cd ../browser && go vet ./...
	cd ../bench && go vet ./...
	cd ../servers && go vet ./...
	cd ../tools && go vet ./...

# set_up_unit begins the recipe of each unit stage. It starts a Redis for the tests, on a socket in a temporary folder, and
# sets the variables that the tests read. At the end of the recipe, the trap ends Redis and the processes in burners by their ids.
define set_up_unit
dir=$$(mktemp -d); burners=
trap 'kill $$burners $$(cat $$dir/pid) 2>/dev/null || true; sleep 0.2; rm -rf $$dir' EXIT
redis-server --port 0 --unixsocket $$dir/redis.sock --pidfile $$dir/pid --daemonize yes --save "" --dir $$dir >/dev/null
export DOWEL_TEST_REDIS=unix://$$dir/redis.sock DOWEL_TEST_NGINX=$$(command -v nginx || echo /usr/sbin/nginx) DOWEL_TEST_BWRAP=$$(command -v bwrap)
events=$${DOWEL_TEST_EVENTS:-$$dir}
endef

unit: bin/gotestsum redis nginx bubblewrap ## the module's own tests, with the race detector
	@$(set_up_unit)
	bin/gotestsum --format pkgname --format-hide-empty-pkg --jsonfile $$events/unit.json -- -race -timeout 30m $(PACKAGES)

long: ## hours: unit tests ten times on a busy machine and once on one processor, all changes that break a requirement, all attacks with a soak of five minutes, 30 minutes of random keys in the chat, 200 kills of a process with tasks, 30 minutes of faults of replicas, clients that are refused, 20 servers from a cold npm cache, the Windows build under Wine, and the release with its first run
	@go run ./internal/testall unit-busy unit-single mutate attack-long chat-long task-kills chaos refused cold windows release

# Each package runs ten times in one process; its time limit is for all ten.
unit-busy: bin/gotestsum redis nginx bubblewrap
	@$(set_up_unit)
	for i in 1 2; do (while :; do :; done) & burners="$$burners $$!"; done
	bin/gotestsum --format pkgname --format-hide-empty-pkg --jsonfile $$events/unit-busy.json -- -count=10 -timeout 4h $(PACKAGES)

unit-single: bin/gotestsum redis nginx bubblewrap
	@$(set_up_unit)
	GOMAXPROCS=1 bin/gotestsum --format pkgname --format-hide-empty-pkg --jsonfile $$events/unit-single.json -- -count=1 -timeout 1h $(PACKAGES)

allocations: bin/gotestsum ## allocation counts do not depend on the machine, but on the race detector
	@events=$${DOWEL_TEST_EVENTS:-$$(mktemp -d)}
	failed=
	bin/gotestsum --format pkgname --format-hide-empty-pkg --jsonfile $$events/allocations.json -- -run Allocations ./... || failed=1
	cd bench && ../bin/gotestsum --format pkgname --format-hide-empty-pkg --jsonfile $$events/bench.json -- ./... || failed=1
	[ -z "$$failed" ]

mutate: ## break each requirement of the specification on purpose; its tests must notice
	@go run ./internal/mutate -write

# A commit always tries the changes in the same order, so that a failure can be repeated.
mutate-sample: ## some of the changes of make mutate, chosen by the commit
	@go run ./internal/mutate -sample 40s -seed $$(git rev-parse HEAD)

fuzz: ## each fuzz target for $(FUZZTIME)
	@failed=
	log=$$(mktemp); trap 'rm -f $$log' EXIT
	while read -r dir target; do
		echo "fuzz $$dir $$target for $(FUZZTIME)"
		if go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$dir > $$log 2>&1; then
			grep '^ok' $$log
		else
			tail -40 $$log; failed=1
			echo "go test -run '^$$' -fuzz '^$$target$$' -fuzztime $(FUZZTIME) $$dir" >> "$${DOWEL_TEST_REPEAT:-/dev/null}"
		fi
	done < <(grep -roE '^func Fuzz\w+' --include='*_test.go' . | grep -vE '^./(attack|chaos|browser|interop|bench|servers)/' | sed -E 's#/[^/]*:func # #' | sort -u)
	[ -z "$$failed" ]

# Each platform takes minutes, most of them for the servers. make release builds everything for all platforms.
archives: bin/gotestsum ## what a release ships, in dist/: archives, checksums, SBOM, completions, man pages, npm packages; npx is tried
	@host=$$(go env GOOS)/$$(go env GOARCH)
	platforms=$$(printf '%s\n' $$host $(TEST_PLATFORMS) | awk '!seen[$$0]++' | xargs)
	cd tools && go run ./release -platforms "$$platforms" -servers $$host ../dist
	../bin/gotestsum --format testname --jsonfile "$${DOWEL_TEST_EVENTS:-$$(mktemp -d)}/archives.json" -- ./release

release: bin/gotestsum ## the same, and how long the first go run takes with empty caches
	@cd tools && go run ./release -first-run -platforms "$(PLATFORMS)" ../dist

define run_attacks
report=$$(mktemp); trap 'cat $$report; rm -f $$report' EXIT
cd attack && DOWEL_SOAK_REPORT=$$report ../bin/gotestsum --format testname --hide-summary=skipped --jsonfile "$${DOWEL_TEST_EVENTS:-$$(mktemp -d)}/attack.json" -- -count=1 -timeout 30m ./...
endef

attack: bin/gotestsum ## attacks on a real dowel, and a soak of ten seconds
	@$(run_attacks)

attack-long: bin/gotestsum
	@export DOWEL_ATTACK=whole DOWEL_SOAK=$${DOWEL_SOAK:-5m}
	$(run_attacks)

# Each run takes other random numbers, and prints how to repeat it.
chaos-short: bin/gotestsum
	@cd chaos && ../bin/gotestsum --format testname --jsonfile "$${DOWEL_TEST_EVENTS:-$$(mktemp -d)}/chaos.json" -- -count=1 -timeout 10m ./...

chaos: ## 30 minutes of faults of three replicas, with one NATS server and with three; the histories are checked. CHAOS='-seed 7 -nodes 3' for another run
	@cd chaos && go test -v -count=1 -timeout 2h -run TestReplicasUnderFaults . -for 15m -strict $(CHAOS)

task-kills: ## a process with stored tasks is killed 200 times under load
	@DOWEL_TASK_KILLS=$${DOWEL_TASK_KILLS:-200} go test -v -timeout 2h -count=1 -run TestKilledProcessLosesNothing ./internal/taskengine

# Random keys on the full screen of dowel chat. DOWEL_RANDOM_KEYS changes the time.
chat-long: bin/gotestsum ## 30 minutes of random keys in the chat; goroutines and heap are compared at the end
	@export DOWEL_RANDOM_KEYS=$${DOWEL_RANDOM_KEYS:-30m}
	bin/gotestsum --format testname --jsonfile "$${DOWEL_TEST_EVENTS:-$$(mktemp -d)}/chat-long.json" -- -v -timeout 1h -count=1 -run TestScreenRandomKeys ./internal/tui/screen

# The screens of docs/guide-chat.md are in the same conversation.
.PHONY: demo
demo: ## record dowel chat with real servers and a scripted model in docs/demo.cast, for asciinema
	@go test -count=1 -run TestChatTour ./internal/cli -demo -update
	go test -count=1 -run TestDemo ./internal/cli
	go test -count=1 -run TestScreensInGuides ./internal/docs -update

browser: browser-deps bin/gotestsum ## the console in Chromium: journeys, attacks by other pages, a hostile server, accessibility
	@cd browser && ../bin/gotestsum --format testname --jsonfile "$${DOWEL_TEST_EVENTS:-$$(mktemp -d)}/browser.json" -- -timeout 10m ./...

# axe-core and Debian's Chromium.
browser-deps:
	@command -v chromium >/dev/null || { echo "installing chromium"; apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; }
	cd browser
	if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; fi

console-shots: browser-deps ## the screenshots of docs/console.md
	@mkdir -p docs/console
	cd browser && DOWEL_SHOTS=$(CURDIR)/docs/console go test -count=1 -tags shots -run TestShots .

interop: interop-deps keyring nginx bin/gotestsum ## real peers: npm's reference servers, the SDKs' clients, badly behaved servers
	@cd interop && ../bin/gotestsum --format testname --hide-summary=skipped --jsonfile "$${DOWEL_TEST_EVENTS:-$$(mktemp -d)}/interop.json" -- -timeout 20m ./...

servers: bin/gotestsum postgres xvfb ## the servers that need more than dowel itself
	@cd servers && ../bin/gotestsum --format testname --jsonfile "$${DOWEL_TEST_EVENTS:-$$(mktemp -d)}/servers.json" -- -race -timeout 10m ./...

# Clients that are too large for make test: two gigabytes from npm.
refused: bin/gotestsum
	@./interop/install.sh long
	cd interop && ../bin/gotestsum --format testname --jsonfile "$${DOWEL_TEST_EVENTS:-$$(mktemp -d)}/refused.json" -- -tags long -run 'TestRefusedLargeClients|TestLargeHosts' .

# 20 servers of the day, from npm: half a gigabyte.
cold: bin/gotestsum
	@cd interop && ../bin/gotestsum --format testname --jsonfile "$${DOWEL_TEST_EVENTS:-$$(mktemp -d)}/cold.json" -- -tags long -timeout 30m -count=1 -run TestColdServers -v .

# It is no part of make test: Wine is 204 MB to download and 2 GB on disk, and everything is compiled a second time, for Windows.
# The tests left out need symbolic links, which a Windows program cannot create under Wine 8.0, or the notice that a folder was moved.
WINDOWS_PACKAGES := ./internal/control ./internal/process ./internal/atomicfile ./internal/config/watch ./internal/term ./internal/builtin/kv ./transport/stdio
NOT_UNDER_WINE := ^(TestLinks|TestGlobs|TestSymbolicLinksStay|TestFoldersComeAndGo)$$
windows: bin/gotestsum ## the Windows build under Debian's Wine: the program, and its tests that can run there
	@overlay=$$(./wine/install.sh)
	dir=$$(mktemp -d); trap 'rm -rf $$dir' EXIT
	export GOOS=windows GOARCH=amd64 CGO_ENABLED=0
	go build -trimpath -o $$dir/dowel.exe ./cmd/dowel
	./wine/run.sh $$dir/dowel.exe version
	failed=
	test="bin/gotestsum --format testname --jsonfile $${DOWEL_TEST_EVENTS:-$$dir}/windows"
	run="-overlay $$overlay -exec $(CURDIR)/wine/run.sh -vet=off -count=1 -timeout 10m"
	$$test.json -- $$run -skip '$(NOT_UNDER_WINE)' $(WINDOWS_PACKAGES) || failed=1
	$$test-journey.json -- $$run -run TestWindows ./internal/cli || failed=1
	[ -z "$$failed" ]

interop-deps:
	@./interop/install.sh

conformance: conformance-deps ## the official suite, both roles, every revision; compares the results with docs/conformance.md
	@go run ./conformance -table docs/conformance.md

conformance-deps:
	@./conformance/install.sh

redis:
	@command -v redis-server >/dev/null || { echo "installing redis-server"; apt-get update -qq && apt-get install -y -qq redis-server >/dev/null; }

# nginx-light is the server alone; the tests start their own, so the package's service is not started.
nginx:
	@PATH=$$PATH:/usr/sbin command -v nginx >/dev/null || { echo "installing nginx-light"; apt-get update -qq && RUNLEVEL=1 apt-get install -y -qq nginx-light >/dev/null; }

# The tests start their own, so the package's database is neither made nor started.
postgres:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || { echo "installing postgresql"; apt-get update -qq && mkdir -p /etc/postgresql-common && grep -qs create_main_cluster /etc/postgresql-common/createcluster.conf || echo "create_main_cluster = false" >> /etc/postgresql-common/createcluster.conf; RUNLEVEL=1 apt-get install -y -qq -o Dpkg::Options::=--force-confold postgresql >/dev/null; }

# An X server without a monitor.
xvfb:
	@command -v Xvfb >/dev/null || { echo "installing xvfb"; apt-get update -qq && apt-get install -y -qq --no-install-recommends xvfb >/dev/null; }

# The Secret Service of Debian's desktops, which the tests start on a session bus of their own.
keyring:
	@command -v gnome-keyring-daemon >/dev/null && command -v dbus-send >/dev/null || { echo "installing gnome-keyring"; apt-get update -qq && apt-get install -y -qq --no-install-recommends gnome-keyring gcr dbus >/dev/null; }

# Without it a shell has no sandbox. In a container it may be installed and not be allowed to do its work: the tests say so.
bubblewrap:
	@command -v bwrap >/dev/null || { echo "installing bubblewrap"; apt-get update -qq && apt-get install -y -qq bubblewrap >/dev/null; }

bench: browser-deps ## dowel compared with other implementations and a floor, and the console's budgets: writes docs/performance.md in about half an hour. BENCH='-only ^call/memory' for less
	@cd bench && go run . -o ../docs/performance.md -svg ../docs/performance.svg $(BENCH)
	[ -n "$(BENCH)" ] || (cd ../browser && go test -count=1 -tags budgets -run TestBudgets . -budgets ../docs/performance.md)

scale: ## what sessions, subscriptions, tasks and replicas cost: writes docs/scale.md in about twelve minutes, on a machine that does nothing else. SCALE='-sizes 0.1' for less
	@cd bench && go run ./scale -o ../docs/scale.md $(SCALE)

floor: ## dowel beside its floor alone, as ratios
	@go test -run '^$$' -bench . -benchmem ./mcptest/... ./auth/...

clean:
	@rm -rf bin dist interop/node/node_modules interop/refused/*/node_modules interop/hosts/*/node_modules conformance/suite/node_modules
