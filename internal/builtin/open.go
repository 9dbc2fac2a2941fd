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
	"github.com/dowel-mcp/dowel/server"
)

func openEverything(opts values) (Server, error) {
	size, err := opts.number("page-size")
	if err != nil {
		return nil, err
	}
	e := everything.New(server.Options{PageSize: size})
	return ticking{e, everything.Tick(e, 3*time.Second)}, nil
}

func openWeather(opts values) (Server, error) {
	timeout, err := opts.duration("timeout")
	if err != nil {
		return nil, err
	}
	return closer(weather.New(weather.Options{BaseURL: opts["base-url"], UserAgent: opts["user-agent"], Timeout: timeout}))
}

func openKV(opts values) (Server, error) {
	store, err := openStore(opts)
	if err != nil {
		return nil, err
	}
	return closer(kv.New(store))
}

func openStore(opts values) (kv.Store, error) {
	inMemory, err := opts.flag("memory")
	if err != nil {
		return nil, err
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

func openFiles(opts values) (Server, error) {
	readOnly, err := opts.flag("read-only")
	if err != nil {
		return nil, err
	}
	s, err := files.New(files.Options{Roots: filepath.SplitList(opts["roots"]), ReadOnly: readOnly})
	if err != nil {
		return nil, optionf("roots=%s: %s", cmp.Or(opts["roots"], "."), strings.TrimPrefix(err.Error(), "files: "))
	}
	return s, nil
}

func openShell(opts values) (Server, error) {
	o := shell.Options{Dir: opts["dir"], Shell: opts["shell"]}
	if opts["keys"] != "" {
		o.Keys = strings.Split(opts["keys"], ",")
	}
	var errs [7]error
	o.Sandbox, errs[0] = opts.flag("sandbox")
	o.Network, errs[1] = opts.flag("network")
	o.CleanEnv, errs[2] = opts.flag("clean-env")
	o.Timeout, errs[3] = opts.duration("timeout")
	o.Idle, errs[4] = opts.duration("idle")
	o.MaxShells, errs[5] = opts.number("max-shells")
	o.MaxOutput, errs[6] = opts.number("max-output")
	if err := cmp.Or(errs[:]...); err != nil {
		return nil, err
	}
	switch {
	case opts["network"] != "" && !o.Sandbox:
		return nil, optionf("the option network is about the sandbox: give sandbox=true as well")
	case o.Timeout > shell.MaxTimeout:
		return nil, optionf("timeout=%s: write at most %s", opts["timeout"], brief(shell.MaxTimeout))
	}
	s, err := shell.New(o)
	switch {
	case errors.Is(err, shell.ErrSandbox) || errors.Is(err, errors.ErrUnsupported):
		return nil, err
	case err != nil:
		return nil, optionf("%s", strings.TrimPrefix(err.Error(), "shell: "))
	}
	return s, nil
}

// values are options with what was written for them. One that is absent or empty has the zero value, which is its default.
type values map[string]string

func (v values) flag(name string) (bool, error) {
	if v[name] == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(v[name])
	if err != nil {
		return false, optionf("%s=%s: write true or false", name, v[name])
	}
	return on, nil
}

func (v values) number(name string) (int, error) {
	if v[name] == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v[name])
	if err != nil || n < 1 {
		return 0, optionf("%s=%s: write a number from 1", name, v[name])
	}
	return n, nil
}

func (v values) duration(name string) (time.Duration, error) {
	if v[name] == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(v[name])
	if err != nil || d <= 0 {
		return 0, optionf("%s=%s: write a duration such as 30s or 5m", name, v[name])
	}
	return d, nil
}

// brief is a duration as a person writes it.
func brief(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
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
