// Package version tells which dowel runs: the version of the module, the commit and the Go release
// that it was built from.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Build is what is known of how this dowel was built.
type Build struct {
	Version string `json:"version"`
	// Commit is the revision it was built from, and Time that commit's; empty where there was no repository.
	Commit string `json:"commit,omitzero"`
	Time   string `json:"time,omitzero"`
	// Modified: there were changes that no commit has.
	Modified bool   `json:"modified,omitzero"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func Current() Build {
	b := Build{Version: Number(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the build in a line: the version, and in parentheses the commit and Go's version.
func (b Build) String() string {
	var about []string
	if b.Commit != "" {
		commit := "commit " + b.Commit[:min(12, len(b.Commit))]
		if b.Modified {
			commit += " with changes"
		}
		about = append(about, strings.TrimSpace(commit+" "+b.Time))
	}
	return fmt.Sprintf("%s (%s)", b.Version, strings.Join(append(about, b.Go), ", "))
}

// Number is the version of the module, or of the commit that it was built from.
func Number() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
