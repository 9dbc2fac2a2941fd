package agenttest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// awaitingToolbox is a toolbox whose calls wait until the change that they cause was reported.
type awaitingToolbox struct {
	*agent.Toolbox
	changed chan struct{}
}

func (p awaitingToolbox) Resources() agent.Resources {
	return awaitingResources{p.Toolbox.Resources(), p.changed}
}

type awaitingResources struct {
	agent.Resources
	reported chan<- struct{}
}

func (p awaitingResources) WatchResource(ctx context.Context, uri string, changed func()) {
	p.Resources.WatchResource(ctx, uri, func() {
		changed()
		select {
		case p.reported <- struct{}{}:
		default: // nothing waits for more than one
		}
	})
}

func (p awaitingToolbox) Call(ctx context.Context, use mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	res, err := p.Toolbox.Call(ctx, use, progress)
	<-p.changed
	return res, err
}

var dot, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")

// library is a server with resources of each kind, and a tool that changes one of them.
func library() *server.Server {
	s, plain := server.New("library", "1", nil), server.ResourceOptions{MIMEType: "text/plain"}
	type none struct{}
	server.Resource(s, "lib://rules", "The rules.", func(context.Context, none) (string, error) { return "No running.", nil }, plain)
	server.Resource(s, "lib://long", "Much.", func(context.Context, none) (string, error) { return strings.Repeat("much ", 200) + "end", nil }, plain)
	server.Resource(s, "lib://logo", "A picture.", func(context.Context, none) ([]byte, error) { return dot, nil }, server.ResourceOptions{MIMEType: "image/png"})
	server.Resource(s, "lib://books/{id}", "A book.", func(_ context.Context, in struct {
		ID string `uri:"id"`
	}) (string, error) {
		return `{"book":"` + in.ID + `"}`, nil
	}, server.ResourceOptions{MIMEType: "application/json"})
	server.Tool(s, "change", "Changes the rules.", func(context.Context, none) (string, error) {
		s.Updated("lib://rules")
		return "changed", nil
	}, server.ToolOptions{Annotations: mcp.ReadOnly})
	return s
}

// Resources checks that servers accept conversations with resources of each kind, in the user's
// input and read by the model, and that the model is told of a change. model returns a model and
// its server, which plays turns.
func Resources(t *testing.T, model func(t *testing.T, turns ...modelserver.Turn) (agent.Model, *modelserver.Server)) {
	call := func(name, arguments string) modelserver.Turn {
		return modelserver.Turn{Calls: []modelserver.Call{{Name: name, Arguments: json.RawMessage(arguments)}}}
	}
	expecting := func(turn modelserver.Turn, parts ...string) modelserver.Turn {
		turn.Expect = parts
		return turn
	}
	picture := base64.StdEncoding.EncodeToString(dot)
	for _, revision := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		t.Run(string(revision), func(t *testing.T) {
			m, played := model(t,
				expecting(call("list_resources", `{}`), "No running.", "lib://rules", `{"book":"7"}`, `kept as "result-1"`),
				expecting(call("read_result", `{"result":"result-1","search":"end"}`), "lib://rules (text/plain", "lib://books/{id} (a template, application/json)"),
				expecting(call("read_resource", `{"uri":"lib://logo"}`), "much end"),
				modelserver.Turn{ExpectBody: []string{picture[:40]}, Calls: call("read_resource", `{"uri":"lib://ruled"}`).Calls},
				expecting(call("change", `{}`), "lib://ruled", "perhaps one of these was meant: lib://rules"),
				expecting(call("read_resource", `{"uri":"lib://rules"}`), "changed", "These resources may have changed since you have read them: lib://rules.", "again with read_resource"),
				expecting(modelserver.Turn{Text: "Done."}, "No running."),
			)
			s := library()
			defer s.Close()
			box, err := agent.Dial(t.Context(), s, client.Options{Wire: client.Wire{Revision: revision}})
			if err != nil {
				t.Fatal(err)
			}
			defer box.Close()
			a := agent.New(m, awaitingToolbox{box, make(chan struct{}, 1)}, &agent.Options{
				Limits: agent.Limits{MaxResult: 500}, TrustAnnotations: func(string) bool { return true }})
			var input []mcp.Content
			for _, uri := range []string{"lib://rules", "lib://logo", "lib://books/7", "lib://long"} {
				content, err := a.ReadResource(t.Context(), uri)
				if err != nil {
					t.Fatal(err)
				}
				input = append(input, content...)
			}
			told := 0
			for e, err := range a.Run(t.Context(), input...) {
				if err != nil {
					t.Fatal(err)
				}
				if c, ok := e.(agent.ResourcesChanged); ok {
					if told++; len(c.Resources) != 1 || c.Resources[0].URI != "lib://rules" {
						t.Errorf("%+v", c)
					}
				}
			}
			if told != 1 || played.Left() != 0 {
				t.Errorf("told of %d changes, %d turns are left", told, played.Left())
			}
		})
	}
}
