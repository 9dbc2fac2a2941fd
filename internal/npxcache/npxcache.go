// Package npxcache finds and mends the folders in which npx keeps the packages that it has
// installed.
//
// npx installs each set of packages once, into CACHE/_npx/HASH. It has no step that makes an
// install valid as a whole: if npm is killed meanwhile, later runs take the incomplete folder as
// complete, in every program that uses it.
package npxcache

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// folderPattern matches the path of a folder in an npx cache, as error messages of Node.js have it.
var folderPattern = lazyregexp.New(`[/\\]_npx[/\\]([0-9a-f]{8,64})\b`)

// FindHash returns the name of the npx folder that a text mentions, or "".
func FindHash(text string) string {
	if m := folderPattern().FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// Hash returns the name of the folder in which npx installs the packages of a command line, which
// begins with npx or npm. ok is false if the command line names none.
func Hash(line []string) (hash string, ok bool) {
	packages := packagesOf(line)
	if len(packages) == 0 {
		return "", false
	}
	slices.Sort(packages)
	sum := sha512.Sum512([]byte(strings.Join(packages, "\n")))
	return hex.EncodeToString(sum[:])[:16], true
}

// packagesOf returns the packages that npx installs for a command line.
func packagesOf(line []string) (packages []string) {
	if len(line) == 0 {
		return nil
	}
	needsVerb := strings.HasPrefix(filepath.Base(line[0]), "npm")
	for i := 1; i < len(line); i++ {
		w := line[i]
		name, value, hasValue := strings.Cut(w, "=")
		switch {
		case (name == "-p" || name == "--package") && hasValue:
			packages = append(packages, value)
		case w == "-p" || w == "--package":
			if i++; i < len(line) {
				packages = append(packages, line[i])
			}
		case strings.HasPrefix(w, "-"):
		case needsVerb:
			needsVerb = false
		case packages == nil:
			return []string{w}
		default:
			return packages
		}
	}
	return packages
}

// Dir returns the folder with the npx folders, for a process with the given variables and home
// folder: of npm's variable, of the user's .npmrc, or npm's default.
func Dir(lookup func(string) string, home string) string {
	cache := lookup("npm_config_cache")
	if cache == "" {
		cache = lookup("NPM_CONFIG_CACHE")
	}
	if cache == "" {
		cache = configuredCache(filepath.Join(home, ".npmrc"), home)
	}
	if cache == "" && runtime.GOOS == "windows" {
		cache = filepath.Join(lookup("LOCALAPPDATA"), "npm-cache")
	}
	if cache == "" {
		cache = filepath.Join(home, ".npm")
	}
	return filepath.Join(cache, "_npx")
}

var cacheLine = lazyregexp.New(`(?m)^\s*cache\s*=\s*"?([^"\r\n]+?)"?\s*$`)

// configuredCache returns the cache folder that a .npmrc names, or "".
func configuredCache(file, home string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	m := cacheLine().FindSubmatch(text)
	if m == nil {
		return ""
	}
	path := strings.NewReplacer("${HOME}", home, "~/", home+"/").Replace(string(m[1]))
	if !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// IsComplete reports whether an npx folder holds a finished install: npm writes the lock file
// inside node_modules last, and its files are valid JSON.
func IsComplete(folder string) bool {
	for _, name := range []string{"package.json", "package-lock.json", "node_modules/.package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) && name == "package-lock.json" {
			continue // npm can be told not to write it
		}
		if err != nil || !json.Valid(text) {
			return false
		}
	}
	return true
}

// lockTime exceeds the interval at which npm renews the time of its lock, which is a second.
const lockTime = 5 * time.Second

// isLocked reports whether an npm may be at work in an npx folder.
func isLocked(folder string) bool {
	info, err := os.Stat(filepath.Join(folder, "concurrency.lock"))
	return err == nil && time.Since(info.ModTime()) < lockTime
}

// isAtWork reports whether an npm works in an npx folder. It takes up to lockTime to tell the fresh
// lock of an npm that was killed from a lock that is renewed.
func isAtWork(folder string) bool {
	for limit := time.Now().Add(lockTime); isLocked(folder); time.Sleep(lockTime / 50) {
		if time.Now().After(limit) {
			return true
		}
	}
	return false
}

// Remove removes the folder with the given hash below dir, so that npx installs its packages again.
// It refuses links and folders that npx has not made.
func Remove(dir, hash string) error {
	if FindHash("/_npx/"+hash) != hash || filepath.Base(dir) != "_npx" {
		return fmt.Errorf("%q is not a folder of npx", filepath.Join(dir, hash))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Lstat(hash)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%q is not a folder", filepath.Join(dir, hash))
	}
	return root.RemoveAll(hash)
}

// RemoveIncomplete removes the folder of a command line if an interrupted install has left it
// incomplete and no other npm works in it. It reports whether it did. If there is a lock, it may
// take 5 s to see whether a living npm holds it.
func RemoveIncomplete(line []string, lookup func(string) string, home string) (bool, error) {
	hash, ok := Hash(line)
	if !ok {
		return false, nil
	}
	dir := Dir(lookup, home)
	folder := filepath.Join(dir, hash)
	if _, err := os.Lstat(folder); err != nil || IsComplete(folder) || isAtWork(folder) || IsComplete(folder) {
		return false, nil
	}
	return true, Remove(dir, hash)
}
