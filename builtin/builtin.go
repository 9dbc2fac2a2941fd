// Package builtin holds the servers that ship in the binary, by name. Each is a package that can be used by itself:
//
//	everything   every feature of the protocol, to try a client with
//	weather      alerts and forecasts of the US National Weather Service
//	kv           keys and values, on disk or in a Redis
package builtin

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/builtin/everything"
	"github.com/dowel-mcp/dowel/builtin/kv"
	"github.com/dowel-mcp/dowel/builtin/weather"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Server is one that was made by [New]. Close releases what it holds; nothing may be called during or after it.
type Server interface {
	mcp.Handler
	io.Closer
}

// Description says what a server is and how it is configured.
type Description struct {
	Name        string
	Description string
	Options     []Option
}

// Option is one that [New] takes.
type Option struct {
	Name        string
	Description string
}

type entry struct {
	Description
	open func(opts map[string]string) (Server, error)
}

// table lists the servers in the order in which people see them.
var table = []entry{
	{Description{"everything", "Every feature of the protocol, to try a client with", []Option{
		{"page-size", "how many items a page of a list holds, default " + strconv.Itoa(server.DefaultPageSize)},
	}}, openEverything},
	{Description{"weather", "Alerts and forecasts of the US National Weather Service", []Option{
		{"base-url", "where the API is, default " + weather.DefaultBaseURL},
		{"user-agent", "who asks: a name and a way to get in touch"},
		{"timeout", "of each request to the API, default " + weather.DefaultTimeout.String()},
	}}, openWeather},
	{Description{"kv", "Keys and values, on disk or in a Redis that several share", []Option{
		{"path", "the data file, default dowel/kv.db in the user's data folder"},
		{"redis", "the URL of a Redis to use in place of a file, such as redis://localhost:6379/0"},
		{"prefix", "what names in the Redis begin with, default " + kv.DefaultPrefix},
		{"memory", "true keeps everything in memory, until the process ends"},
	}}, openKV},
}

// Names returns the names of the servers.
func Names() []string {
	var names []string
	for _, e := range table {
		names = append(names, e.Name)
	}
	return names
}

// Describe returns what the servers are.
func Describe() []Description {
	var all []Description
	for _, e := range table {
		d := e.Description
		d.Options = slices.Clone(d.Options)
		all = append(all, d)
	}
	return all
}

// OptionError is the error for a server that there is not, and for options that it cannot use: what who names them can put
// right. Any other error of New is that of the server.
type OptionError struct{ reason string }

func (e *OptionError) Error() string { return e.reason }

func optionf(format string, args ...any) error { return &OptionError{fmt.Sprintf(format, args...)} }

// New opens the server of that name. An option that the server does not have is an error, and so is a value that it cannot
// use; one with an empty value counts as absent. An unknown name's error names the nearest one.
func New(name string, opts ...map[string]string) (Server, error) {
	given := map[string]string{}
	for _, o := range opts {
		maps.Copy(given, o)
	}
	e, err := lookup(name, given)
	if err != nil {
		return nil, err
	}
	s, err := e.open(given)
	if err != nil {
		return nil, fmt.Errorf("the built-in server %s: %w", name, err)
	}
	return s, nil
}

// Check reports whether there is a server of that name with options of these names.
func Check(name string, opts map[string]string) error {
	_, err := lookup(name, opts)
	return err
}

func lookup(name string, opts map[string]string) (e entry, err error) {
	i := slices.IndexFunc(table, func(e entry) bool { return e.Name == name })
	if i < 0 {
		return e, optionf("there is no built-in server %q: %s", name, suggest(name, Names()))
	}
	var known []string
	for _, o := range table[i].Options {
		known = append(known, o.Name)
	}
	for _, option := range slices.Sorted(maps.Keys(opts)) {
		if !slices.Contains(known, option) {
			return e, optionf("the built-in server %s has no option %q: %s", name, option, suggest(option, known))
		}
	}
	return table[i], nil
}

// ParseOptions reads options written as name=value, such as the words of a command line.
func ParseOptions(words []string) (map[string]string, error) {
	opts := map[string]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || name == "" {
			return nil, optionf("%q is no option: write it as name=value", word)
		}
		if _, twice := opts[name]; twice {
			return nil, optionf("the option %s is given twice", name)
		}
		opts[name] = value
	}
	return opts, nil
}

func openEverything(opts map[string]string) (Server, error) {
	var o server.Options
	if text := opts["page-size"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, optionf("page-size=%s: write a number from 1", text)
		}
		o.PageSize = n
	}
	e := everything.New(o)
	return ticking{e, everything.Tick(e, 3*time.Second)}, nil
}

func openWeather(opts map[string]string) (Server, error) {
	o := weather.Options{BaseURL: opts["base-url"], UserAgent: opts["user-agent"]}
	if text := opts["timeout"]; text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return nil, optionf("timeout=%s: write a duration such as 30s", text)
		}
		o.Timeout = d
	}
	return closer(weather.New(o))
}

func openKV(opts map[string]string) (Server, error) {
	store, err := openStore(opts)
	if err != nil {
		return nil, err
	}
	return closer(kv.New(store))
}

func openStore(opts map[string]string) (kv.Store, error) {
	inMemory, err := strconv.ParseBool(orDefault(opts["memory"], "false"))
	if err != nil {
		return nil, optionf("memory=%s: write true or false", opts["memory"])
	}
	path, redis := opts["path"], opts["redis"]
	switch {
	case path != "" && redis != "" || inMemory && (path != "" || redis != ""):
		return nil, optionf("give one of the options path, redis and memory: they are different places for the data")
	case opts["prefix"] != "" && redis == "":
		return nil, optionf("the option prefix is about names in a Redis: give redis as well")
	case inMemory:
		return kv.Memory(), nil
	case redis != "":
		return kv.Redis(context.Background(), redis, opts["prefix"]) // which takes seconds at most
	case path == "":
		if path, err = kv.DefaultPath(); err != nil {
			return nil, err
		}
	}
	return kv.Bolt(path)
}

func orDefault(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// closer keeps a nil pointer from becoming a Server that is not nil.
func closer[S Server](s S, err error) (Server, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ticking is a server that something happens at.
type ticking struct {
	*server.Server
	stop func()
}

func (t ticking) Close() error {
	t.stop()
	return t.Server.Close()
}
