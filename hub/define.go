package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// Define returns the definition of a server of a configuration, which is started.
func Define(d *config.Definition) Definition {
	def := Definition{
		Name: d.Server.Name, Origin: origin(d), Source: string(d.Server.Scope), Fingerprint: d.Fingerprint(), Mask: d.Mask,
		Idle: d.Idle, Total: d.Total, Lazy: d.Lazy, IdleStop: d.IdleStop, WatchPaths: d.WatchPaths,
		Rules: Rules{Only: d.Tools.Only, Hide: d.Tools.Hide, Rename: d.Tools.Rename, Describe: d.Tools.Describe},
	}
	def.Options.Limits.Start, def.Options.Limits.Connect = d.Start, d.Start
	def.Options.Wire.SerializeAsks = d.Serialize
	def.Options.Wire.Revision = pinned(d.Revision)
	switch d.Sharing {
	case config.PerClient:
		def.Sharing = SharePerClient
	case config.PerSession:
		def.Sharing = SharePerSession
	}
	def.Options.HTTP.Header = headers(d)
	def.Target = target(d, def.Options.HTTP.Header)
	return def
}

// Held returns the definition of a server that is not started, and says why.
func Held(s *config.Server, hold Hold) Definition {
	return Definition{Name: s.Name, Hold: hold, Source: string(s.Scope), Origin: s.Mask(written(s.Spec)), Mask: s.Mask}
}

// target is how the server is reached.
func target(d *config.Definition, header func(context.Context) (http.Header, error)) any {
	switch d.Kind {
	case config.Stdio:
		return stdio.Command{Path: d.Command, Args: d.Args, Env: d.Env, Dir: d.Dir}
	case config.SSE:
		return sse.URL{URL: d.URL, Header: header}
	case config.HTTP:
		return streamable.URL{URL: d.URL, Header: header}
	}
	return d.URL
}

// headers returns the fields of each request: those that are written, and those of the helper.
func headers(d *config.Definition) func(context.Context) (http.Header, error) {
	if len(d.Headers) == 0 && d.HeadersHelper == "" {
		return nil
	}
	fixed := http.Header{}
	for name, value := range d.Headers {
		fixed.Set(name, value)
	}
	if d.HeadersHelper == "" {
		return func(context.Context) (http.Header, error) { return fixed, nil }
	}
	helper := &headersHelper{command: d.HeadersHelper, dir: d.Dir, name: d.Server.Name, url: d.URL}
	return func(ctx context.Context) (http.Header, error) {
		more, err := helper.run(ctx)
		if err != nil {
			return nil, err
		}
		all := fixed.Clone()
		maps.Copy(all, more)
		return all, nil
	}
}

// pinned returns the revision that a configuration pins; empty where it is found out.
func pinned(revision string) mcp.Revision {
	switch revision {
	case "legacy":
		return mcp.LatestLegacyRevision
	case "modern":
		return mcp.LatestRevision
	case "auto":
		return ""
	}
	return mcp.Revision(revision)
}

// origin describes a server for people: its command line or URL, with secrets masked.
func origin(d *config.Definition) string { return d.Mask(written(d.Spec)) }

func written(s config.Spec) string {
	if s.Kind == config.Stdio || s.Command != "" {
		return strings.Join(append([]string{s.Command}, s.Args...), " ")
	}
	return s.URL
}

// headersHelper prints header fields as a JSON object (Claude Code: headersHelper).
type headersHelper struct{ command, dir, name, url string }

// helperLimit is how long it may take.
const helperLimit = 10 * time.Second

func (h *headersHelper) run(ctx context.Context) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, helperLimit)
	defer cancel()
	shell := []string{"/bin/sh", "-c", h.command}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd.exe", "/c", h.command}
	}
	cmd := exec.CommandContext(ctx, shell[0], shell[1:]...)
	cmd.Dir = filepath.Clean(h.dir)
	cmd.WaitDelay = time.Second // for what it has started and does not end
	ownGroup(cmd)
	cmd.Env = append(cmd.Environ(), "CLAUDE_CODE_MCP_SERVER_NAME="+h.name, "CLAUDE_CODE_MCP_SERVER_URL="+h.url)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	var fields map[string]string
	if err == nil {
		err = json.Unmarshal(out, &fields)
	}
	if err != nil {
		return nil, fmt.Errorf("the headersHelper of %s: %w: %.200s", h.name, err, bytes.TrimSpace(errors.Bytes()))
	}
	header := http.Header{}
	for name, value := range fields {
		header.Set(name, value)
	}
	return header, nil
}
