package config

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// Scope says whose a file is.
type Scope string

const (
	// User: the file is in the user's own folders, or named by the user.
	User Scope = "user"
	// Project: the file is part of a project, which may come from somebody else.
	Project Scope = "project"
)

// Place is where a tool keeps a file.
type Place struct {
	Path  string
	Scope Scope
}

// Options say where configuration is looked for. The zero value is this machine and this user, and no project.
type Options struct {
	// Project is the folder of the project, absolute; empty: there is none.
	Project string
	// Files are read instead of all others, an earlier one winning over a later one. Their dialect is that of the tool whose
	// path they end like, such as .cursor/mcp.json, or else told by their keys. They count as the user's.
	Files []string
	// Home is the user's home folder; empty: os.UserHomeDir.
	Home string
	// GOOS is the operating system whose paths count; empty: this one.
	GOOS string
	// Env looks environment variables up; nil: os.LookupEnv.
	Env func(string) (string, bool)
}

func (o Options) complete() Options {
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir() // without a home there are no files in it
	}
	if o.GOOS == "" {
		o.GOOS = runtime.GOOS
	}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	return o
}

// Dir returns the folder of the user's own dowel files: dowel in the user's configuration folder ($XDG_CONFIG_HOME or ~/.config,
// ~/Library/Application Support, %APPDATA%).
func (o Options) Dir() string {
	o = o.complete()
	return o.native(o.configDir() + "/dowel")
}

// Variables returns what strings are expanded with: the environment and folders of o.
func (o Options) Variables() Variables {
	o = o.complete()
	return Variables{Env: o.Env, Home: o.Home, Workspace: o.Project, GOOS: o.GOOS}
}

// Places returns where the tool may keep files, the user's first; they need not exist.
func (d Dialect) Places(o Options) []Place {
	o = o.complete()
	var all []Place
	for _, template := range d.user {
		if path := o.expand(template); path != "" {
			all = append(all, Place{path, User})
		}
	}
	if o.Project == "" {
		return all
	}
	for _, template := range d.project {
		for _, path := range glob(o.native(o.Project + "/" + template)) {
			all = append(all, Place{path, Project})
		}
	}
	return all
}

// glob replaces a pattern by the files that it matches.
func glob(path string) []string {
	if !strings.Contains(filepath.Base(path), "*") {
		return []string{path}
	}
	// Only the last part may be a pattern: the folder's name may hold anything.
	entries, _ := os.ReadDir(filepath.Dir(path)) // a folder that cannot be read has no files
	var found []string
	for _, e := range entries {
		if ok, _ := filepath.Match(filepath.Base(path), e.Name()); ok {
			found = append(found, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return found
}

var placeholder = regexp.MustCompile(`\{([A-Za-z_]+)(?:\|([^}]*))?\}`)

// expand makes a path of a template: "darwin: …" is for that system only, {config} is the user's configuration folder, {NAME} an
// environment variable, {NAME|default} one with a default, and ~ the home folder. A path without value is empty.
func (o Options) expand(template string) string {
	if system, rest, ok := strings.Cut(template, ": "); ok {
		if system != o.GOOS {
			return ""
		}
		template = rest
	}
	missing := false
	path := placeholder.ReplaceAllStringFunc(template, func(m string) string {
		parts := placeholder.FindStringSubmatch(m)
		if parts[1] == "config" {
			return o.configDir()
		}
		if value, ok := o.Env(parts[1]); ok && value != "" {
			return value
		}
		missing = missing || parts[2] == ""
		return parts[2]
	})
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		missing = missing || o.Home == ""
		path = o.Home + rest
	}
	if missing {
		return ""
	}
	return o.native(path)
}

func (o Options) configDir() string {
	switch o.GOOS {
	case "windows":
		if dir, ok := o.Env("APPDATA"); ok && dir != "" {
			return dir
		}
		return o.Home + "/AppData/Roaming"
	case "darwin":
		return o.Home + "/Library/Application Support"
	}
	// A relative path is to be ignored, says the XDG base directory specification.
	if dir, ok := o.Env("XDG_CONFIG_HOME"); ok && strings.HasPrefix(dir, "/") {
		return dir
	}
	return o.Home + "/.config"
}

// native writes a path with the separators of its system.
func (o Options) native(path string) string {
	if o.GOOS == "windows" {
		return strings.ReplaceAll(path, "/", `\`)
	}
	return filepath.Clean(path)
}

// base is the last part of a path of any system.
func base(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
