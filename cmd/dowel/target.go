package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/builtin/shell"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/spf13/cobra"
)

// target is a server that a command line names.
type target struct {
	// name is how the user knows the server; empty where only the server knows its name.
	name string
	// origin says where the server comes from.
	origin string
	// dial is what package client dials.
	dial any
	// header goes along with each request to a URL.
	header http.Header
	// options are those of its entry in the configuration.
	options client.Options
	// close ends what was made for the target; nil: nothing was.
	close func()
}

// label is how to call the server while it has not said its name.
func (t target) label() string {
	if t.name != "" {
		return t.name
	}
	return shorten(t.origin, 60)
}

// words is the command line that does something with a thing of the server, for advice.
func (t target) words(do, thing string) string {
	switch {
	case t.name == "":
		return strings.TrimSpace("dowel "+do+" "+thing) + " -- …"
	case thing == "":
		return "dowel " + do + " " + t.name
	}
	return "dowel " + do + " " + t.name + "." + thing
}

// whence holds the flags that say which server, and how it is started.
type whence struct {
	url     string
	headers []string
	env     []string
	dir     string
	options []string

	found *directory // which servers have names; nil before it is needed
}

func (w *whence) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&w.url, "url", "", "the server's `URL`")
	flags.StringArrayVarP(&w.headers, "header", "H", nil, "send a header field with each request to the --url (`'Name: value'`, repeatable)")
	flags.StringArrayVarP(&w.env, "env", "e", nil, "set a variable in the server's environment (`KEY=VALUE`, repeatable)")
	flags.StringArrayVarP(&w.options, "option", "O", nil, "an option of a built-in server (`NAME=VALUE`, repeatable; see dowel serve --help)")
	flags.StringVar(&w.dir, "dir", "", "the `folder` to start the server in")
}

const naming = `The server is named in one of three ways, the same in every command:

  everything.echo        by its name: one of the running dowel (dowel up), else of your configuration, else built in
  --url URL              by its URL
  … -- npx -y @acme/mcp  by the command that starts it, behind --

Without --url and --, the first word names it: SERVER.THING or SERVER THING.`

// aim finds the server that a command line names. rest are the words about what to do there.
func (w *whence) aim(cmd *cobra.Command, args []string) (t target, rest []string, err error) {
	words, command := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		words, command = args[:dash], args[dash:]
		if len(command) == 0 {
			return t, nil, usagef("there is no command behind --: write the server's command there")
		}
	}
	switch {
	case len(w.headers) > 0 && w.url == "":
		return t, nil, usagef("--header is for servers at a --url")
	case len(w.options) > 0 && (w.url != "" || command != nil):
		return t, nil, usagef("--option is for built-in servers; write what the server takes behind its command")
	case w.url != "" && command != nil:
		return t, nil, usagef("the server is named twice: by --url and by the command behind --")
	case w.url != "":
		t, err = w.byURL()
		return t, words, err
	case command != nil:
		t, err = w.started(command)
		return t, words, err
	case len(words) == 0 && cmd.Annotations[takesAll] != "":
		return w.directory().all(), nil, nil
	case len(words) == 0:
		return t, nil, usagef("no server is named: write one of %s, --url URL, or its command behind --",
			strings.Join(w.directory().known(), ", "))
	}
	name, thing, err := splitName(words[0], w.directory().known())
	if err != nil {
		return t, nil, err
	}
	if thing != "" {
		rest = []string{thing}
	}
	t, err = w.byName(name)
	return t, append(rest, words[1:]...), err
}

// splitName splits SERVER.THING, or takes SERVER alone. A server's name may hold dots, so the longest one counts.
func splitName(word string, known []string) (name, thing string, err error) {
	for _, k := range known {
		if (word == k || strings.HasPrefix(word, k+".")) && len(k) > len(name) {
			name = k
		}
	}
	if name != "" {
		return name, strings.TrimPrefix(word[len(name):], "."), nil
	}
	for _, k := range known { // as it is called on the wire
		if strings.HasPrefix(word, k+"__") && len(k) > len(name) {
			name = k
		}
	}
	if name != "" {
		return name, word[len(name)+len("__"):], nil
	}
	wanted, _, _ := strings.Cut(word, ".")
	return "", "", usagef("no server is called %s (one that has no name here is given by its command: dowel … -- COMMAND)%s",
		wanted, suggestion(wanted, known))
}

// takesAll annotates commands that take all servers where none is named.
const takesAll = "takes all"

// directory looks up once which servers have names.
func (w *whence) directory() *directory {
	if w.found == nil {
		w.found = readDirectory()
	}
	return w.found
}

// byName is the one place that knows how to reach servers that have names.
func (w *whence) byName(name string) (target, error) {
	if t, ok, err := w.directory().target(name); ok && len(w.options) == 0 {
		if err == nil && (len(w.env) > 0 || w.dir != "") {
			err = usagef("--env and --dir are for servers that are started here; %s is that of %s", name, t.origin)
		}
		return t, err
	}
	return w.builtIn(name)
}

// builtIn is a server of this binary, which is started as a child.
func (w *whence) builtIn(name string) (target, error) {
	self, err := os.Executable()
	if err != nil {
		return target{}, fmt.Errorf("dowel cannot find itself to start %s: %w", name, err)
	}
	options, err := builtin.ParseOptions(w.options)
	if err == nil {
		err = builtin.Check(name, options)
	}
	if err != nil {
		return target{}, usageError{err: err}
	}
	command := append([]string{self, "serve", name}, w.options...)
	if keys := w.modelKeys(); name == "shell" && keys != "" && options["keys"] == "" {
		command = append(command, "keys="+keys)
	}
	t, err := w.started(command)
	t.name, t.origin = name, "built into dowel"
	return t, err
}

// modelKeys are those of a model's keys that --env sets, separated by commas: a shell hands on no others.
func (w *whence) modelKeys() string {
	var set []string
	for _, setting := range w.env {
		if key, _, ok := strings.Cut(setting, "="); ok && slices.Contains(shell.ModelKeys, key) {
			set = append(set, key)
		}
	}
	return strings.Join(set, ",")
}

// byURL is the one place that knows how to reach a URL.
func (w *whence) byURL() (target, error) {
	if len(w.env) > 0 || w.dir != "" {
		return target{}, usagef("--env and --dir are for servers that are started; %s runs already", w.url)
	}
	u, err := url.Parse(w.url)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return target{}, usagef("--url %s: write a URL such as http://127.0.0.1:8080/mcp", w.url)
	}
	header, err := w.header()
	return target{origin: u.Redacted(), dial: w.url, header: header}, err
}

// header reads the fields that are sent along.
func (w *whence) header() (http.Header, error) {
	h := http.Header{}
	for _, field := range w.headers {
		name, value, ok := strings.Cut(field, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsFunc(name, unicode.IsSpace) || strings.ContainsFunc(value, unicode.IsControl) {
			return nil, usagef("--header %q: write 'Name: value'", field)
		}
		h.Add(name, value)
	}
	return h, nil
}

// started is a server that is started by its command.
func (w *whence) started(command []string) (target, error) {
	env := map[string]string{}
	for _, setting := range w.env {
		key, value, ok := strings.Cut(setting, "=")
		if !ok || key == "" {
			return target{}, usagef("--env %s: write KEY=VALUE", setting)
		}
		env[key] = value
	}
	return target{
		origin: line(strings.Join(command, " ")),
		dial:   stdio.Command{Path: command[0], Args: slices.Clone(command[1:]), Env: env, Dir: w.dir},
	}, nil
}

// folder returns the absolute path of a folder that exists.
func folder(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(absolute)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	return absolute, err
}
