package everything

import (
	"context"
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Forms for the user.
type (
	named struct {
		Name string `json:"name"`
	}
	coloured struct {
		Color string `json:"color"`
	}
	confirmed struct {
		OK bool `json:"ok"`
	}
)

// addInputRequired adds the tools with which the conformance suite tests results that require
// input. Their handlers ask like all others.
func addInputRequired(s *server.Server) {
	server.Tool(s, "test_streaming_elicitation", "Asks the user for a name, on the stream of the call.", func(ctx context.Context, _ none) (string, error) {
		return formatGreeting(server.Ask[named](ctx, "user_name", "What is your name?"))
	}, hints)
	server.Tool(s, "test_input_required_result_elicitation", "Asks the user for a name.", func(ctx context.Context, _ none) (string, error) {
		return formatGreeting(server.Ask[named](ctx, "user_name", "What is your name?"))
	}, hints)
	server.Tool(s, "test_input_required_result_sampling", "Asks the client's model about France.", askCapital, hints)
	server.Tool(s, "test_input_required_result_list_roots", "Asks for the client's roots.", func(ctx context.Context, _ none) (string, error) {
		roots, err := server.Roots(ctx, "client_roots")
		if err != nil {
			return "", err
		}
		return "Roots: " + listRoots(roots), nil
	}, hints)
	server.Tool(s, "test_input_required_result_request_state", "Asks the user for a confirmation; the request state must come back unchanged.", askConfirmation, hints)
	server.Tool(s, "test_input_required_result_multiple_inputs", "Asks the user, the client's model, and for roots, in one round.", multipleInputs, hints)
	server.Tool(s, "test_input_required_result_multi_round", "Asks the user two questions, one after the other.", multiRound, hints)
	server.Tool(s, "test_input_required_result_tampered_state", "Asks the user for a confirmation; a changed request state is an error.", askConfirmation, hints)
	server.Tool(s, "test_input_required_result_capabilities", "Asks only the questions that the client can answer.", askSupported, hints)
}

func formatGreeting(n named, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return "Hello, " + n.Name + "!", nil
}

func askCapital(ctx context.Context, _ none) (string, error) {
	answer, err := server.Sample(ctx, "capital_question", newQuestion("What is the capital of France?", 100))
	if err != nil {
		return "", err
	}
	return answer.Text(), nil
}

func listRoots(roots []mcp.Root) string {
	var uris []string
	for _, r := range roots {
		uris = append(uris, r.URI)
	}
	return strings.Join(uris, ", ")
}

// askConfirmation does not check the request state, because the server rejects a changed state
// before it calls a handler.
func askConfirmation(ctx context.Context, _ none) (string, error) {
	answer, err := server.Ask[confirmed](ctx, "confirm", "Please confirm")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("state-ok, confirmed: %v", answer.OK), nil
}

func multipleInputs(ctx context.Context, _ none) (string, error) {
	var name named
	var words *mcp.CreateMessageResult
	var roots []mcp.Root
	err := server.AskAll(ctx,
		server.FormQuestion("user_name", "What is your name?", &name),
		server.SampleQuestion("greeting", newQuestion("Generate a greeting", 50), &words),
		server.RootsQuestion("client_roots", &roots))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s says: %s. Roots: %s", name.Name, words.Text(), listRoots(roots)), nil
}

func multiRound(ctx context.Context, _ none) (string, error) {
	name, err := server.Ask[named](ctx, "step1", "Step 1: What is your name?")
	if err != nil {
		return "", err
	}
	color, err := server.Ask[coloured](ctx, "step2", "Step 2: What is your favorite color?")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s likes %s.", name.Name, color.Color), nil
}

func askSupported(ctx context.Context, _ none) (string, error) {
	supported := server.RequestFrom(ctx).Capabilities()
	var questions []server.Question
	var name named
	var words *mcp.CreateMessageResult
	if _, missing := mcpwire.MissingCapabilities(supported, mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}}); !missing {
		questions = append(questions, server.FormQuestion("user_name", "What is your name?", &name))
	}
	if supported.Sampling != nil {
		questions = append(questions, server.SampleQuestion("greeting", newQuestion("Generate a greeting", 50), &words))
	}
	if err := server.AskAll(ctx, questions...); err != nil {
		return "", err
	}
	if len(questions) == 0 {
		return "The client can answer no questions.", nil
	}
	return fmt.Sprintf("The client has answered %d questions.", len(questions)), nil
}
