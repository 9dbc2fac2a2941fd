// Package builtin opens the servers that ship in the binary, by name. Each has its own package:
//
//	everything   every feature of the protocol, for testing clients
//	weather      alerts and forecasts of the US National Weather Service
//	kv           keys and values, on disk or in a Redis
//	files        the files in some folders, and nothing outside them
//	shell        commands in a shell that keeps its state between calls
//	skills       the skills in a folder
package builtin

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/builtin/kv"
	"github.com/dowel-mcp/dowel/internal/builtin/shell"
	"github.com/dowel-mcp/dowel/internal/builtin/weather"
	"github.com/dowel-mcp/dowel/internal/near"
	"github.com/dowel-mcp/dowel/mcp"
)

// Server is a server made by [New]. Close releases its resources; the server must not be used
// during or after it.
type Server interface {
	mcp.Handler
	io.Closer
}

// Description describes a server and its options.
type Description struct {
	Name        string
	Description string
	Options     []Option
	// Local reports that the server acts on this machine, on some files or on everything. Start it
	// only for a user who asked for it by name.
	Local bool
}

// Option describes an option of [New].
type Option struct {
	Name        string
	Description string
}

type entry struct {
	Description
	open func(opts values) (Server, error)
	path string // the name of the option that holds a path or, for roots, a list of paths; may be empty
}

// table lists the servers in the order in which users see them.
var table = []entry{
	{Description{"everything", "Every feature of the protocol, for testing clients", []Option{
		{"page-size", "the maximal number of items in a page of a list, default 1000"},
	}, false}, openEverything, ""},
	{Description{"weather", "Alerts and forecasts of the US National Weather Service", []Option{
		{"base-url", "the URL of the API, default " + weather.DefaultBaseURL},
		{"user-agent", "your name and contact address, as the API requires"},
		{"timeout", "of each request to the API, default " + weather.DefaultTimeout.String()},
	}, false}, openWeather, ""},
	{Description{"kv", "Keys and values, on disk or in a Redis that several servers share", []Option{
		{"path", "the data file, default dowel/kv.db in the user's data folder"},
		{"redis", "the URL of a Redis that replaces the file, such as redis://localhost:6379/0"},
		{"prefix", "the beginning of all names in the Redis, default " + kv.DefaultPrefix},
		{"memory", "true keeps everything in memory, until the process ends"},
	}, false}, openKV, "path"},
	{Description{"files", "The files in some folders: read, search, edit, watch; nothing outside them", []Option{
		{"roots", "the folders, separated by " + string(filepath.ListSeparator) + " as in PATH, default the current one"},
		{"read-only", "true removes the tools that change files"},
	}, true}, openFiles, "roots"},
	{Description{"shell", "A bash that keeps its state between calls; its commands have all of your permissions", []Option{
		{"dir", "the folder in which shells start, default the current one"},
		{"sandbox", "true runs commands in a bubblewrap sandbox (Linux): they can write only to dir and /tmp"},
		{"network", "true lets sandboxed commands use the network"},
		{"clean-env", "true hides your environment, and the secrets in it, from commands; a sandbox always does"},
		{"keys", "the API keys that commands may see, separated by commas: " + strings.Join(shell.ModelKeys, ", ") + "; default none"},
		{"timeout", "the time that a call waits for its command, default " + formatDuration(shell.DefaultTimeout)},
		{"idle", "the time without a call after which a shell ends, default " + formatDuration(shell.DefaultIdle)},
		{"keep-detached", "true keeps daemons and other processes that leave their shell's session when the shell ends"},
		{"max-shells", "the maximal number of open shells, default " + strconv.Itoa(shell.DefaultMaxShells)},
		{"max-output", "the maximal number of characters of output in one result, default " + strconv.Itoa(shell.DefaultMaxOutput)},
		{"shell", "the program: bash, or any POSIX sh, default bash"},
	}, true}, openShell, "dir"},
	{Description{"skills", "The skills in a folder: each folder in it with the file SKILL.md", []Option{
		{"dir", "the folder, default the current one"},
	}, true}, openSkills, "dir"},
}

// Names returns the names of the servers, in the order of [Describe].
func Names() []string {
	var names []string
	for _, e := range table {
		names = append(names, e.Name)
	}
	return names
}

// Describe returns the descriptions of all servers. The caller may change them.
func Describe() []Description {
	var all []Description
	for _, e := range table {
		d := e.Description
		d.Options = slices.Clone(d.Options)
		all = append(all, d)
	}
	return all
}

// OptionError is the error for an unknown server or an unusable option, which the user can correct.
// All other errors of [New] come from the server itself.
type OptionError struct{ reason string }

func (e *OptionError) Error() string { return e.reason }

func newOptionError(format string, args ...any) error {
	return &OptionError{fmt.Sprintf(format, args...)}
}

// New opens the named server. If opts has several maps, a later one wins. An option with an empty
// value counts as absent. The error for an unknown name or option, or for an unusable value, is an
// [*OptionError]. The caller must close the server.
func New(name string, opts ...map[string]string) (Server, error) {
	given := map[string]string{}
	for _, o := range opts {
		maps.Copy(given, o)
	}
	e, err := lookupEntry(name, given)
	if err != nil {
		return nil, err
	}
	s, err := e.open(given)
	if err != nil {
		return nil, fmt.Errorf("the built-in server %s: %w", name, err)
	}
	return s, nil
}

// Check returns an [*OptionError] unless there is a server of that name with options of these
// names. It does not check the values.
func Check(name string, opts map[string]string) error {
	_, err := lookupEntry(name, opts)
	return err
}

func lookupEntry(name string, opts map[string]string) (e entry, err error) {
	i := slices.IndexFunc(table, func(e entry) bool { return e.Name == name })
	if i < 0 {
		return e, newOptionError("no built-in server is named %q: %s", name, suggestName(name, Names()))
	}
	var known []string
	for _, o := range table[i].Options {
		known = append(known, o.Name)
	}
	for _, option := range slices.Sorted(maps.Keys(opts)) {
		if !slices.Contains(known, option) {
			return e, newOptionError("the built-in server %s has no option %q: %s", name, option, suggestName(option, known))
		}
	}
	return table[i], nil
}

// ParseOptions reads options written as name=value, such as the words of a command line. The error
// is an [*OptionError].
func ParseOptions(words []string) (map[string]string, error) {
	opts := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, newOptionError("%q is not an option: want name=value", word)
		}
		if _, twice := opts[name]; twice {
			return nil, newOptionError("the option %s is given twice", name)
		}
		opts[name] = value
	}
	return opts, nil
}

// Anchored makes relative paths in options absolute, because the process that opens the server may
// have another working folder. words are options written as name=value; paths in them are relative
// to folder. If a server that acts on the current folder has no option for it, Anchored adds the
// option with folder.
func Anchored(name string, words []string, folder string) []string {
	i := slices.IndexFunc(table, func(e entry) bool { return e.Name == name })
	if i < 0 || table[i].path == "" {
		return words
	}
	var all []string
	hasPath := false
	for _, word := range words {
		if option, value, _ := strings.Cut(word, "="); option == table[i].path && value != "" {
			hasPath = true
			word = option + "=" + anchorPath(value, folder, option == "roots")
		}
		all = append(all, word)
	}
	if !hasPath && table[i].Local && !strings.ContainsRune(folder, filepath.ListSeparator) {
		all = append(all, table[i].path+"="+folder)
	}
	return all
}

func anchorPath(value, folder string, several bool) string {
	paths := []string{value}
	if several {
		paths = filepath.SplitList(value)
	}
	for i, path := range paths {
		if !filepath.IsAbs(path) {
			paths[i] = filepath.Join(folder, path)
		}
	}
	return strings.Join(paths, string(filepath.ListSeparator))
}

// suggestName returns a question with the nearest known name or, if none is near, all known names.
func suggestName(name string, known []string) string {
	nearest, least := "", max(len(name)/2, 1)+1
	for _, k := range known {
		if d := near.Distance(strings.ToLower(name), k); d < least {
			nearest, least = k, d
		}
	}
	if nearest != "" {
		return fmt.Sprintf("did you mean %s?", nearest)
	}
	return "want " + strings.Join(known, ", ")
}
