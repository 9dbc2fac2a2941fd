package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/npxcache"
	"github.com/dowel-mcp/dowel/internal/process"
)

// npxFault matches the output of Node.js and npm if files of an install are missing or cut.
var npxFault = lazyregexp.New(`MODULE_NOT_FOUND|Cannot find (?:module|package)|ENOTEMPTY|EJSONPARSE`)

// brokenNpxFolder returns the name of the npx folder in which an interrupted install is the cause
// of a failure, or "".
func (e *evidence) brokenNpxFolder(words string) string {
	if e.command == nil || !npxFault().MatchString(words) {
		return ""
	}
	switch process.Command(*e.command).Runner() {
	case "npx", "npm":
		return npxcache.FindHash(words)
	}
	return ""
}

// findBrokenNpx explains a failure by a broken folder of npx.
func (e *evidence) findBrokenNpx(words string) (finding, bool) {
	hash := e.brokenNpxFolder(words)
	if hash == "" {
		return finding{}, false
	}
	fix := "dowel doctor --fix with its command after --"
	if e.server.Name != "" {
		fix = "dowel doctor " + e.server.Name + " --fix"
	}
	return finding{stepHandshake, "npx's folder " + hash + " is broken, most likely because its install was interrupted",
		fmt.Sprintf("Run %s, which removes the folder, so that npx installs the server again. If that does not help, the package lacks files: tell its author.", fix)}, true
}

// Mend removes what keeps a server from starting and comes back by itself: a folder of npx that an
// interrupted install has left broken. done says what was removed, or is "" if there was nothing to
// remove. err is the error of the start.
func Mend(p Server, err error) (done string, mendErr error) {
	e := newEvidence(err, p)
	hash := e.brokenNpxFolder(strings.Join(e.lastStderr(), "\n"))
	if hash == "" {
		return "", nil
	}
	lookup := func(name string) string {
		if value, ok := e.command.Env[name]; ok {
			return value
		}
		return os.Getenv(name)
	}
	home := lookup("HOME")
	if home == "" {
		if home, mendErr = os.UserHomeDir(); mendErr != nil {
			return "", mendErr
		}
	}
	dir := npxcache.Dir(lookup, home)
	folder := filepath.Join(dir, hash)
	if _, mendErr := os.Lstat(folder); mendErr != nil {
		return "", fmt.Errorf("the broken folder is not %s, where npm's cache is: remove the folder that the server's error names", folder)
	}
	return folder, npxcache.Remove(dir, hash)
}
