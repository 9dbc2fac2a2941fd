// Command release builds everything that a release of dowel consists of, into one folder:
//
//   - a stripped binary for each platform, in an archive with the README, the license, shell
//     completions and man pages
//   - a software bill of materials (CycloneDX) for each binary
//   - the programs of the module servers, in the same archives
//   - npm packages: dowel and @dowel-mcp/servers, and for each of both one package with the
//     binaries of each platform
//   - checksums.txt with the SHA-256 of each file above
//
// It publishes nothing. Two builds of the same commit with the same Go produce the same archives.
//
// Usage, from the root of the repository: see "make archives" and "make release".
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	version := flag.String("version", "0.0.0-dev", "semantic `version` of the release, without a leading v")
	platforms := flag.String("platforms", "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64", "`list` of GOOS/GOARCH")
	servers := flag.String("servers", "all", "`list` of the platforms that get the programs of the module servers too; their database engine is slow to compile")
	firstRun := flag.Bool("first-run", false, "also time go run ./cmd/dowel up with empty module and build caches")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "release: want one argument, the folder to write")
		os.Exit(2)
	}
	r := &release{root: "..", version: *version, out: flag.Arg(0), log: os.Stdout, servers: strings.Fields(*servers)}
	if *servers == "all" {
		r.servers = strings.Fields(*platforms)
	}
	err := r.build(ctx, strings.Fields(*platforms))
	if err == nil && *firstRun {
		err = timeFirstRun(ctx, r.root, r.log)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
