package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// findAwaited returns the [Diagnosis].Awaits of a finding.
func (e *evidence) findAwaited(f finding) string {
	const entry = "a change of its entry"
	missing, notFound := errors.AsType[*stdio.NotFoundError](e.err)
	refused, isHTTP := errors.AsType[*streamable.HTTPError](e.err)
	login, isLogin := errors.AsType[*httpwire.RefusalError](e.err)
	isLogin = isLogin && login.NeedsLogin
	switch {
	case f.step == stepDefinition:
		return entry
	case e.unsetVariable != "":
		return e.unsetVariable + " in its entry"
	case isLogin:
		return "a login, or " + entry
	case isHTTP && refused.Status == http.StatusUnauthorized && !refused.SentCredentials && !e.authorized:
		return "a login, or " + entry
	case notFound && f.step == stepCommand:
		return fmt.Sprintf("the program %s, or %s", missing.Name, entry)
	case f.step == stepCommand:
		return fmt.Sprintf("the program %s, or %s", absoluteIn(e.command.Dir, e.command.Path), entry)
	case f.step == stepFolder:
		return fmt.Sprintf("the folder %s, or %s", e.command.Dir, entry)
	}
	return ""
}

// DescribeStartFiles describes the files that a start of p needs and that another program may
// create: its program, its folder, and the program that err says is missing. Another text than
// before means that an attempt may succeed now. It is cheap unless a login shell has to be asked,
// which happens at most every five minutes.
func DescribeStartFiles(ctx context.Context, err error, p Server) string {
	c := newEvidence(err, p).command
	if c == nil {
		return ""
	}
	files := []string{c.Dir, absoluteIn(c.Dir, c.Path)}
	if file, bad := findProgram(ctx, c); bad == nil {
		files = append(files, file)
	}
	if missing, ok := errors.AsType[*stdio.NotFoundError](err); ok && missing.Name != c.Path {
		other := *c
		other.Path = missing.Name
		if file, bad := findProgram(ctx, &other); bad == nil {
			files = append(files, file)
		}
	}
	var b strings.Builder
	for _, file := range files {
		fmt.Fprintf(&b, "%q ", file)
		if info, bad := os.Stat(file); bad == nil && info.IsDir() {
			b.WriteString("folder\n") // its time changes with each file in it
		} else if bad == nil {
			fmt.Fprintf(&b, "%v %d %d\n", info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}
