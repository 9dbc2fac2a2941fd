package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// build is what is known of how this dowel was built.
type build struct {
	Version string `json:"version"`
	// Commit is the revision it was built from, and Time that commit's; empty where there was no repository.
	Commit string `json:"commit,omitzero"`
	Time   string `json:"time,omitzero"`
	// Modified: there were changes that no commit has.
	Modified bool   `json:"modified,omitzero"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func built() build {
	b := build{Version: version(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
func (b build) String() string {
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

// version is the version of the module, or of the commit that it was built from.
func version() string {
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

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show which dowel this is, and how it was built",
		Long:    "Show the version of dowel, the commit that it was built from and when that was made, as far as known, and Go's version.",
		Example: "  dowel version\n  dowel version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			a.began = true
			b := built()
			if a.json {
				return a.value(b)
			}
			fmt.Fprintf(a.stdout, "dowel     %s\n", b.Version)
			if b.Commit != "" {
				changed := map[bool]string{true: ", with changes"}[b.Modified]
				fmt.Fprintf(a.stdout, "commit    %s%s\ntime      %s\n", b.Commit, changed, b.Time)
			}
			fmt.Fprintf(a.stdout, "go        %s\nplatform  %s\n", b.Go, b.Platform)
			return nil
		},
	}
}
