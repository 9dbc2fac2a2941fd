package builtin

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/builtin/files"
	"github.com/dowel-mcp/dowel/internal/builtin/kv"
	"github.com/dowel-mcp/dowel/internal/builtin/shell"
	"github.com/dowel-mcp/dowel/internal/builtin/weather"
	"github.com/dowel-mcp/dowel/internal/skills"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

func openEverything(opts values) (Server, error) {
	size, err := opts.parseNumber("page-size")
	if err != nil {
		return nil, err
	}
	e := everything.New(server.Options{PageSize: size})
	return ticking{e, everything.Tick(e, 3*time.Second)}, nil
}

func openWeather(opts values) (Server, error) {
	timeout, err := opts.parseDuration("timeout")
	if err != nil {
		return nil, err
	}
	return asServer(weather.New(weather.Options{BaseURL: opts["base-url"], UserAgent: opts["user-agent"], Timeout: timeout}))
}

func openKV(opts values) (Server, error) {
	store, err := openStore(opts)
	if err != nil {
		return nil, err
	}
	return asServer(kv.New(store))
}

func openStore(opts values) (kv.Store, error) {
	inMemory, err := opts.parseFlag("memory")
	if err != nil {
		return nil, err
	}
	path, redis := opts["path"], opts["redis"]
	switch {
	case path != "" && redis != "" || inMemory && (path != "" || redis != ""):
		return nil, newOptionError("the options path, redis and memory exclude each other: give only one of them")
	case opts["prefix"] != "" && redis == "":
		return nil, newOptionError("the option prefix applies only to a Redis: give redis as well")
	case inMemory:
		return kv.Memory(), nil
	case redis != "":
		return kv.Redis(context.Background(), redis, opts["prefix"]) // Redis has a time limit of its own
	case path == "":
		if path, err = kv.DefaultPath(); err != nil {
			return nil, err
		}
	}
	return kv.Bolt(path)
}

func openFiles(opts values) (Server, error) {
	readOnly, err := opts.parseFlag("read-only")
	if err != nil {
		return nil, err
	}
	s, err := files.New(files.Options{Roots: filepath.SplitList(opts["roots"]), ReadOnly: readOnly})
	if err != nil {
		return nil, newOptionError("roots=%s: %s", cmp.Or(opts["roots"], "."), strings.TrimPrefix(err.Error(), "files: "))
	}
	return s, nil
}

func openShell(opts values) (Server, error) {
	o := shell.Options{Dir: opts["dir"], Shell: opts["shell"]}
	if opts["keys"] != "" {
		o.Keys = strings.Split(opts["keys"], ",")
	}
	var errs [8]error
	o.Sandbox, errs[0] = opts.parseFlag("sandbox")
	o.Network, errs[1] = opts.parseFlag("network")
	o.CleanEnv, errs[2] = opts.parseFlag("clean-env")
	o.Timeout, errs[3] = opts.parseDuration("timeout")
	o.Idle, errs[4] = opts.parseDuration("idle")
	o.MaxShells, errs[5] = opts.parseNumber("max-shells")
	o.MaxOutput, errs[6] = opts.parseNumber("max-output")
	o.KeepDetached, errs[7] = opts.parseFlag("keep-detached")
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	switch {
	case opts["network"] != "" && !o.Sandbox:
		return nil, newOptionError("the option network applies only to a sandbox: give sandbox=true as well")
	case o.Timeout > shell.MaxTimeout:
		return nil, newOptionError("timeout=%s: want at most %s", opts["timeout"], formatDuration(shell.MaxTimeout))
	}
	s, err := shell.New(o)
	switch {
	case errors.Is(err, shell.ErrSandbox) || errors.Is(err, errors.ErrUnsupported):
		return nil, err
	case err != nil:
		return nil, newOptionError("%s", strings.TrimPrefix(err.Error(), "shell: "))
	}
	return s, nil
}

func openSkills(opts values) (Server, error) {
	dir := cmp.Or(opts["dir"], ".")
	folder, err := skills.Open(dir, nil)
	if err != nil {
		return nil, newOptionError("dir=%s: %s", dir, strings.TrimPrefix(err.Error(), "skills: "))
	}
	s := server.New("skills", skillsVersion, &server.Options{
		Info: mcp.Implementation{Title: "Skills", Description: "Instructions for tasks, from a folder"},
	})
	if err := folder.AddTo(s); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return skillServer{s, folder}, nil
}

// skillsVersion is the version that the server of skills reports.
const skillsVersion = "1.0.0"

// skillServer is the server of a folder with skills.
type skillServer struct {
	*server.Server
	folder *skills.Folder
}

func (s skillServer) Close() error { return errors.Join(s.Server.Close(), s.folder.Close()) }

// values holds the texts of options. An absent or empty option has the zero value, which is its
// default.
type values map[string]string

func (v values) parseFlag(name string) (bool, error) {
	if v[name] == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(v[name])
	if err != nil {
		return false, newOptionError("%s=%s: want true or false", name, v[name])
	}
	return on, nil
}

func (v values) parseNumber(name string) (int, error) {
	if v[name] == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v[name])
	if err != nil || n < 1 {
		return 0, newOptionError("%s=%s: want a whole number, at least 1", name, v[name])
	}
	return n, nil
}

func (v values) parseDuration(name string) (time.Duration, error) {
	if v[name] == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(v[name])
	if err != nil || d <= 0 {
		return 0, newOptionError("%s=%s: want a duration such as 30s or 5m", name, v[name])
	}
	return d, nil
}

// formatDuration formats a duration without the trailing zero units of [time.Duration.String]: 30m,
// not 30m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}

// asServer returns a nil Server if err is not nil; a nil pointer would become a Server that is not
// nil.
func asServer[S Server](s S, err error) (Server, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ticking is the server everything with its periodic changes; stop ends them.
type ticking struct {
	*server.Server
	stop func()
}

func (t ticking) Close() error {
	t.stop()
	return t.Server.Close()
}
