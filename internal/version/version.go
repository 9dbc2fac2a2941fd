// Package version tells which dowel runs: the version of the module, the commit and the Go release
// that it was built from.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Build describes how this dowel was built.
type Build struct {
	Version string `json:"version"`
	// Commit is the revision that it was built from, and Time the time of that commit. Both are
	// empty if the build did not see a repository.
	Commit string `json:"commit,omitzero"`
	Time   string `json:"time,omitzero"`
	// Modified means that the build included changes without a commit.
	Modified bool   `json:"modified,omitzero"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Current returns the description of the running program.
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

// Words returns the version for people.
func (b Build) Words() string {
	if b.Version == "devel" {
		return "unreleased, built from source"
	}
	return b.Version
}

// String formats the version in one line, with the commit and the version of Go in parentheses.
func (b Build) String() string {
	var about []string
	if b.Commit != "" {
		commit := "commit " + b.Commit[:min(12, len(b.Commit))]
		if b.Modified {
			commit += " with changes"
		}
		about = append(about, strings.TrimSpace(commit+" "+b.Time))
	}
	return fmt.Sprintf("%s (%s)", b.Words(), strings.Join(append(about, b.Go), ", "))
}

// release is the version of a released binary. The linker sets it; see tools/release.
var release string

// Number returns the version: of the release, else of the module, else "devel-" and the commit, or
// "devel" if the commit is unknown.
func Number() string {
	if release != "" {
		return release
	}
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

// Title names the program with its version, unless it was built without one.
func Title(number string) string {
	if number == "devel" {
		return "dowel"
	}
	return "dowel " + number
}
