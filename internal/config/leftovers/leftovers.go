// Package leftovers finds and removes the folders that dowel has made for one server: the bundle
// that it runs in, and the secrets that the user has typed. They are of no use without the entry of
// the server.
package leftovers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/userdir"
)

// Folder is a folder of a server.
type Folder struct {
	// What names it for people: "bundle" or "secrets".
	What, Path string
}

// BundlesFolder returns the folder below which bundles are unpacked.
func BundlesFolder() (string, error) { return dataFolder("bundles") }

// SecretsFolder returns the folder below which each server has a folder of its secrets.
func SecretsFolder() (string, error) { return dataFolder("secrets") }

func dataFolder(name string) (string, error) {
	folder, err := userdir.Data()
	if err != nil {
		return "", fmt.Errorf("the folder for %s is unknown: %w; set XDG_DATA_HOME", name, err)
	}
	return filepath.Join(folder, "dowel", name), nil
}

// Of returns the folders of a server: its bundle, and the secrets that dowel stored for it.
func Of(s *config.Server) (all []Folder) {
	if root, err := BundlesFolder(); err == nil {
		if folder := bundleOf(root, s); folder != "" {
			all = append(all, Folder{"bundle", folder})
		}
	}
	if root, err := SecretsFolder(); err == nil {
		for _, folder := range secretFoldersOf(root, s) {
			all = append(all, Folder{"secrets", folder})
		}
	}
	return all
}

// Announce says that the folder would be removed with its server.
func (f Folder) Announce() string {
	return fmt.Sprintf("The %s would be removed too, unless another server needs it: %s", f.What, f.Path)
}

// Removal is the outcome for one folder.
type Removal struct {
	Folder
	// IsKept: the folder stays, because other files may refer to it.
	IsKept bool
	// Err is why the folder could not be removed, or nil.
	Err error
}

// Remove removes the folders of a removed entry, unless another entry may need them: they stay if a
// file cannot be read, and if the entry was in a file of --config or of a project, since dowel does
// not know all such files. Folders that another entry does need are not in the result. o has the
// files without the removed entry.
func Remove(removed *config.Server, o config.Options) (done []Removal) {
	all := Of(removed)
	if len(all) == 0 {
		return nil
	}
	set := config.Load(o)
	isUnsure := len(o.Files) > 0 || removed.Scope != config.User || slices.ContainsFunc(set.Files, func(file config.File) bool { return file.Broken })
	for _, f := range all {
		isUsed := slices.ContainsFunc(set.Servers, func(s *config.Server) bool { return slices.Contains(Of(s), f) }) ||
			slices.ContainsFunc(set.Shadowed, func(s config.Shadow) bool { return slices.Contains(Of(s.Server), f) })
		if isUsed {
			continue
		}
		r := Removal{Folder: f, IsKept: isUnsure}
		if !isUnsure {
			r.Err = os.RemoveAll(f.Path)
		}
		done = append(done, r)
	}
	return done
}

// String describes the outcome in a sentence.
func (r Removal) String() string {
	switch {
	case r.Err != nil:
		return fmt.Sprintf("The folder of the %s was not removed: %v", r.What, r.Err)
	case !r.IsKept:
		return fmt.Sprintf("Removed the %s: %s", r.What, r.Path)
	case r.What == "bundle":
		return fmt.Sprintf("The bundle stays in %s, since other files may run it.", r.Path)
	}
	return fmt.Sprintf("The %s stay in %s, since other files may need them.", r.What, r.Path)
}

// bundleOf returns the folder of the bundle that a server runs in, or "".
func bundleOf(root string, s *config.Server) string {
	rest, ok := strings.CutPrefix(s.Dir, root+string(filepath.Separator))
	if !ok || rest == "" || strings.ContainsAny(rest, `/\`) || rest == "." || rest == ".." {
		return ""
	}
	return s.Dir
}

var fileVariable = lazyregexp.New(`\$\{file:([^}]*)\}`)

// secretFoldersOf returns the folders with secrets that dowel stored for a server.
func secretFoldersOf(root string, s *config.Server) (folders []string) {
	texts := append([]string{s.Command, s.URL}, s.Args...)
	for _, table := range []map[string]string{s.Env, s.Headers} {
		for _, value := range table {
			texts = append(texts, value)
		}
	}
	home, _ := os.UserHomeDir()
	for _, m := range fileVariable().FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
		path := m[1]
		if below, ok := strings.CutPrefix(path, "~/"); ok {
			path = filepath.Join(home, below)
		}
		folder := filepath.Dir(path)
		if filepath.Dir(folder) == root && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders
}
