package configured

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
	"time"

	"github.com/dowel-mcp/dowel/internal/config"
)

// requestHeader returns a function that returns the header fields of each request: the fields of
// the entry, and the fields that its headersHelper prints. It returns nil if the entry has neither.
func requestHeader(d *config.Definition) func(context.Context) (http.Header, error) {
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
		printed, err := helper.readHeader(ctx)
		if err != nil {
			return nil, err
		}
		header := fixed.Clone()
		maps.Copy(header, printed)
		return header, nil
	}
}

// headersHelper is a command that prints header fields as a JSON object. The key and the variables
// that the command gets are Claude Code's.
type headersHelper struct{ command, dir, name, url string }

// helperTimeout limits one run of a headersHelper.
const helperTimeout = 10 * time.Second

// readHeader runs the command and returns the fields that it prints.
func (h *headersHelper) readHeader(ctx context.Context) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	shell := []string{"/bin/sh", "-c", h.command}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd.exe", "/c", h.command}
	}
	cmd := exec.CommandContext(ctx, shell[0], shell[1:]...)
	cmd.Dir = filepath.Clean(h.dir)
	cmd.WaitDelay = time.Second // a process that the command leaves behind may keep the output open
	useProcessGroup(cmd)
	cmd.Env = append(cmd.Environ(), "CLAUDE_CODE_MCP_SERVER_NAME="+h.name, "CLAUDE_CODE_MCP_SERVER_URL="+h.url)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var fields map[string]string
	if err == nil {
		err = json.Unmarshal(out, &fields)
	}
	if err != nil {
		return nil, fmt.Errorf("the headersHelper of %s: %w: %.200s", h.name, err, bytes.TrimSpace(stderr.Bytes()))
	}
	header := http.Header{}
	for name, value := range fields {
		header.Set(name, value)
	}
	return header, nil
}
