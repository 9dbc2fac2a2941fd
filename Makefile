# make test runs everything: it installs what it needs and says what it skipped. Plain `go test ./...` needs only Go.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
MAKEFLAGS += --no-print-directory

# A count, not a time: the fuzzer's own deadline is now and then reported as a failure of the target.
FUZZTIME ?= 40000x
# One processor of each system is vetted whole. On the other the packages that the models' SDKs are in are left out, which take the
# compiler minutes and have nothing in them of a processor.
PLATFORMS := linux/amd64 darwin/arm64 windows/amd64
OTHERS := linux/arm64 darwin/amd64 windows/arm64

.PHONY: test check vet unit allocations fuzz interop interop-deps conformance conformance-deps redis nginx bubblewrap bench floor build clean

test: check vet interop-deps conformance-deps unit allocations fuzz interop conformance ## everything
	@echo "make test: all of it passed"

build: ## the program, in bin/
	@CGO_ENABLED=0 go build -trimpath -o bin/dowel ./cmd/dowel

check: ## formatting
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l)
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi

vet: ## go vet and build for every platform: what is not Linux is not run
	@for p in $(PLATFORMS); do
		echo "vet $$p"
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go vet ./...
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go build -o /dev/null ./cmd/dowel
	done
	for p in $(OTHERS); do
		echo "vet $$p without the models"
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 go vet $$(go list ./... | grep -vE '/agent/|/cmd/dowel$$|/internal/cli(/agentcmd|/chat|/models|/modelregistry|/run)?$$')
	done
	cd interop && go vet ./...
	cd ../bench && go vet ./...

# Tests that need a Redis get one of their own, on a socket in a temporary folder.
unit: redis nginx bubblewrap ## the module's own tests, with the race detector
	@dir=$$(mktemp -d); trap 'kill $$(cat $$dir/pid) 2>/dev/null || true; sleep 0.2; rm -rf $$dir' EXIT
	redis-server --port 0 --unixsocket $$dir/redis.sock --pidfile $$dir/pid --daemonize yes --save "" --dir $$dir >/dev/null
	DOWEL_TEST_REDIS=unix://$$dir/redis.sock DOWEL_TEST_NGINX=$$(command -v nginx || echo /usr/sbin/nginx) DOWEL_TEST_BWRAP=$$(command -v bwrap) go test -race -timeout 10m -v ./... > $$dir/log 2>&1 || failed=1
	awk '/^=== / {name = $$3} /_test\.go:[0-9]+: / {why[name] = $$0} /^(ok|FAIL|panic)/ {print} /--- (SKIP|FAIL)/ {print; if ($$3 in why) print why[$$3]}' $$dir/log
	if [ -n "$${failed:-}" ]; then grep -vE '^(=== |\s*--- PASS|PASS$$)' $$dir/log | tail -300; exit 1; fi

allocations: ## allocation counts do not depend on the machine, but on the race detector
	@go test -run 'Allocations' ./...  | grep -v 'no test'
	cd bench && go test ./... | grep -v 'no test'

fuzz: ## each fuzz target for $(FUZZTIME)
	@grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | grep -v '^./interop' | while read -r dir; do
		for target in $$(grep -hoE '^func Fuzz\w+' $$dir/*_test.go | cut -c6-); do
			echo "fuzz $$dir $$target for $(FUZZTIME)"
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s $$dir > .fuzz.log 2>&1 || { tail -40 .fuzz.log; exit 1; }
			grep '^ok' .fuzz.log
		done
	done

interop: interop-deps ## real peers: npm's reference servers, the SDKs' clients, the zoo
	@cd interop && go test -timeout 20m ./...

interop-deps:
	@./interop/install.sh

conformance: conformance-deps ## the official suite, both roles, every revision; docs/conformance.md is what came out
	@go run ./conformance -table docs/conformance.md

conformance-deps:
	@./conformance/install.sh

redis:
	@command -v redis-server >/dev/null || { echo "installing redis-server"; apt-get update -qq && apt-get install -y -qq redis-server >/dev/null; }

# nginx-light is the server alone; a service that the package starts is none of the tests' business, so it is not started.
nginx:
	@PATH=$$PATH:/usr/sbin command -v nginx >/dev/null || { echo "installing nginx-light"; apt-get update -qq && RUNLEVEL=1 apt-get install -y -qq nginx-light >/dev/null; }

# Without it a shell has no sandbox. In a container it may be installed and not be allowed to do its work: the tests say so.
bubblewrap:
	@command -v bwrap >/dev/null || { echo "installing bubblewrap"; apt-get update -qq && apt-get install -y -qq bubblewrap >/dev/null; }

bench: ## dowel beside its peers and a floor: docs/performance.md is what came out, of about half an hour. BENCH='-only ^call/memory' for less
	@cd bench && go run . -o ../docs/performance.md -svg ../docs/performance.svg $(BENCH)

floor: ## dowel beside its floor alone, as ratios
	@go test -run '^$$' -bench . -benchmem ./mcptest/...

clean:
	@rm -rf bin .fuzz.log interop/node/node_modules conformance/suite/node_modules
