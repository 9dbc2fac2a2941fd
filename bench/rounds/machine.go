package rounds

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/dowel-mcp/dowel/bench/peers"
)

// Machine describes the machine: its system, Go version, cores and processor.
func Machine() string {
	words := fmt.Sprintf("%s/%s, %s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU())
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return words
	}
	for line := range strings.Lines(string(info)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return words + ", " + strings.TrimSpace(model)
		}
	}
	return words
}

// load returns the load averages of the machine, or "" if the system does not report them.
func load() string {
	averages, err := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(averages))
	if err != nil || len(fields) < 3 {
		return ""
	}
	return strings.Join(fields[:3], ", ")
}

// versions returns the versions of the measured modules in this binary, by module path.
func versions() map[string]string {
	all := map[string]string{}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return all
	}
	for _, p := range peers.All {
		for _, dep := range info.Deps {
			switch {
			case dep.Path != p.Module():
			case dep.Replace != nil:
				all[dep.Path] = "this tree"
			default:
				all[dep.Path] = dep.Version
			}
		}
	}
	return all
}
