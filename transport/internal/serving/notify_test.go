package serving_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/transport"
)

// A handler cannot send a client what the protocol does not allow: the edge drops or refuses it.
func TestNotificationsOfRawHandlers(t *testing.T) {
	progress := func(n string) string {
		return `{"method":"notifications/progress","params":{"progressToken":"p","progress":` + n + `}}`
	}
	reported := func(n string) string {
		return `< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":` + n + "}}\n"
	}
	const (
		logged    = `{"method":"notifications/message","params":{"level":"error","data":"x"}}`
		cancelled = `{"method":"notifications/cancelled","params":{"requestId":1}}`
		refused   = `a server must not send notifications/cancelled: return an error from the handler instead`
	)
	for _, tt := range []struct{ name, meta, send, answers, errs string }{
		{"progress that falls, stays or is no number", `"progressToken":"p"`,
			strings.Join([]string{progress("1"), progress("3"), progress("2"), progress("3"), progress(`"4"`), progress("3.5")}, ","),
			reported("1") + reported("3") + reported("3.5"), "<nil>, <nil>, <nil>, <nil>, <nil>, <nil>"},
		{"a log message that the client has not asked for", ``, logged, ``, "<nil>"},
		{"a log message that the client has asked for", `"io.modelcontextprotocol/logLevel":"debug"`, logged,
			`< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}` + "\n", "<nil>"},
		{"a cancellation", ``, cancelled, ``, refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			meta := modernMeta
			if tt.meta != "" {
				meta = strings.Replace(meta, "{", "{"+tt.meta+",", 1)
			}
			play(t, newTestServer(), transport.ServerOptions{}, `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notify","arguments":{"Send":[`+tt.send+`]},`+meta+`}}
				`+tt.answers+`$OK 1 "`+tt.errs+`"`)
		})
	}
	t.Run("a cancellation in a session", func(t *testing.T) {
		play(t, newTestServer(), transport.ServerOptions{}, `$INIT 2025-11-25
			> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notify","arguments":{"Send":[`+cancelled+`]}}}
			$OK 1 "`+refused+`"`)
	})
}

// The reason of a cancellation is in the log, where a missing answer is looked for.
func TestReasonOfACancellationIsLogged(t *testing.T) {
	var log bytes.Buffer
	play(t, newTestServer(), transport.ServerOptions{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, `
		> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hang",$META}}
		> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the user pressed Ctrl-C"}}
		> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo",$META}}
		$OK 2 ""`)
	if want := `method=tools/call reason="the user pressed Ctrl-C"`; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %s: %s", want, log.String())
	}
}
