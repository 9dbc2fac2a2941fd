package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/modelkeys"
)

// Scope says whether a file belongs to the user or to a project.
type Scope string

const (
	// User means that the file lies in the user's own folders or was named by the user.
	User Scope = "user"
	// Project means that the file is part of a project, which others may have written.
	Project Scope = "project"
)

// Place is a path at which a tool keeps a file.
type Place struct {
	Path  string
	Scope Scope
	// Nested means that the file keeps servers under another key than [Dialect.Key].
	Nested bool
}

// Options say where configuration is looked for. The zero value means this machine and this user,
// without a project.
type Options struct {
	// Project is the absolute path of the project's folder, or "" without a project.
	Project string
	// Files replace all other files. Earlier files win over later ones, and all count as the
	// user's. The dialect of a file is determined by the end of its path, such as .cursor/mcp.json,
	// otherwise by its keys.
	Files []string
	// Home is the user's home folder. The default is os.UserHomeDir.
	Home string
	// GOOS is the operating system that determines the paths. The default is the current one.
	GOOS string
	// Env looks up environment variables. The default is os.LookupEnv.
	Env func(string) (string, bool)
}

func (o Options) withDefaults() Options {
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir() // without a home folder, no files are looked for in it
	}
	if o.GOOS == "" {
		o.GOOS = runtime.GOOS
	}
	if o.Env == nil {
		o.Env = modelkeys.LookupEnv
	}
	return o
}

// Dir returns the folder of the user's own dowel files: dowel in the user's configuration folder
// ($XDG_CONFIG_HOME or ~/.config, ~/Library/Application Support, %APPDATA%).
func (o Options) Dir() string {
	o = o.withDefaults()
	return o.nativePath(o.configDir() + "/dowel")
}

// Variables returns the variables for expanding strings, with the environment and folders of o.
func (o Options) Variables() Variables {
	o = o.withDefaults()
	return Variables{Env: o.Env, Home: o.Home, Workspace: o.Project, GOOS: o.GOOS}
}

// Places returns the paths at which the tool may keep files, the user's first. The files need not
// exist.
func (d Dialect) Places(o Options) []Place {
	o = o.withDefaults()
	var all []Place
	for _, template := range d.user {
		if path := o.expandTemplate(template); path != "" {
			all = append(all, Place{path, User, d.nested[baseName(path)] != nil})
		}
	}
	if o.Project == "" {
		return all
	}
	for _, template := range d.project {
		for _, path := range expandGlob(o.nativePath(o.Project + "/" + template)) {
			all = append(all, Place{path, Project, d.nested[baseName(path)] != nil})
		}
	}
	return all
}

// expandGlob returns the files that match a pattern, or path itself if it is not a pattern.
func expandGlob(path string) []string {
	if !strings.Contains(filepath.Base(path), "*") {
		return []string{path}
	}
	// Only the last element may be a pattern: folder names may hold any characters.
	entries, _ := os.ReadDir(filepath.Dir(path)) // an unreadable folder has no files
	var found []string
	for _, e := range entries {
		if ok, _ := filepath.Match(filepath.Base(path), e.Name()); ok {
			found = append(found, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return found
}

var templateVariable = lazyregexp.New(`\{([A-Za-z_]+)(?:\|([^}]*))?\}`)

// expandTemplate turns a template into a path. "darwin: …" applies to that system only, {config} is
// the user's configuration folder, {NAME} an environment variable, {NAME|default} one with a
// default, and ~ the home folder. If a part has no value, the result is "".
func (o Options) expandTemplate(template string) string {
	if system, rest, ok := strings.Cut(template, ": "); ok {
		if system != o.GOOS {
			return ""
		}
		template = rest
	}
	missing := false
	path := templateVariable().ReplaceAllStringFunc(template, func(m string) string {
		parts := templateVariable().FindStringSubmatch(m)
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
	return o.nativePath(path)
}

// configDir returns the user's configuration folder for o.GOOS.
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
	// The XDG base directory specification requires that relative paths are ignored.
	if dir, ok := o.Env("XDG_CONFIG_HOME"); ok && strings.HasPrefix(dir, "/") {
		return dir
	}
	return o.Home + "/.config"
}

// nativePath converts a path to the separators of o.GOOS.
func (o Options) nativePath(path string) string {
	if o.GOOS == "windows" {
		return strings.ReplaceAll(path, "/", `\`)
	}
	return filepath.Clean(path)
}

// baseName returns the last element of a path of any system.
func baseName(path string) string {
	return path[strings.LastIndexAny(path, `/\`)+1:]
}
