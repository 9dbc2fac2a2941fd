package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// elicit puts a form to a user who does so.
func elicit(action mcp.ElicitAction, want string) func(ctx context.Context, p *pair) error {
	return func(ctx context.Context, p *pair) error {
		defer p.user.does(action)()
		got, err := p.tool(ctx, p.c, "test_elicitation", map[string]string{"message": "Who?"})
		if err == nil && !strings.HasPrefix(got, "User response: action: "+want) {
			err = errors.New(got)
		}
		return err
	}
}

var askFeatures = []feature{
	{"elicit: accept", elicit(mcp.ElicitAccept, `accept, content: {"username":"ada"`)},
	{"elicit: decline", elicit(mcp.ElicitDecline, "decline")},
	{"elicit: cancel", elicit(mcp.ElicitCancel, "cancel")},
	{"elicit: url", func(ctx context.Context, p *pair) error {
		return p.says(ctx, "ask_url", "The user agreed to visit the page.")
	}},
	{"sample: text", func(ctx context.Context, p *pair) error {
		got, err := p.tool(ctx, p.c, "test_sampling", map[string]string{"prompt": "why?"})
		return is(got, "LLM response: re: why? with 0 tools", err)
	}},
	{"sample: with tools", func(ctx context.Context, p *pair) error {
		return p.says(ctx, "sample_with_tools", "re: use the tool with 1 tools")
	}},
	{"roots", func(ctx context.Context, p *pair) error {
		return p.says(ctx, "test_input_required_result_list_roots", "Roots: file:///home")
	}},
	{"ask: three times", func(ctx context.Context, p *pair) error {
		got, err := p.tool(ctx, p.c, "three_questions", nil)
		if err == nil && (strings.Count(got, "re: question") != 3+2+2 && !strings.Contains(got, "question 2 after")) {
			err = errors.New(got)
		}
		return err
	}},
	{"ask: with progress around", func(ctx context.Context, p *pair) error {
		var steps []float64
		got, err := p.tool(ctx, p.c, "progress_around", nil, client.CallOptions{OnProgress: func(s mcp.ProgressParams) { steps = append(steps, s.Progress) }})
		if err == nil && !(slices.Equal(steps, []float64{1, 2}) || slices.Equal(steps, []float64{2})) {
			err = fmt.Errorf("%v", steps) // the first step may be overtaken by the question, on which its listener leaves
		}
		return is(got, "re: well? with 0 tools", err)
	}},
	{"ask: several at once", func(ctx context.Context, p *pair) error {
		got, err := p.tool(ctx, p.c, "test_input_required_result_multiple_inputs", nil)
		return is(got, "Ada says: re: Generate a greeting with 0 tools. Roots: file:///home", err)
	}},
	{"ask: one after the other", func(ctx context.Context, p *pair) error {
		return p.says(ctx, "test_input_required_result_multi_round", "Ada likes blue.")
	}},
	{"ask: with state", func(ctx context.Context, p *pair) error {
		return p.says(ctx, "test_input_required_result_request_state", "state-ok, confirmed: true")
	}},
	{"ask: in a prompt", func(ctx context.Context, p *pair) error {
		res, err := p.c.GetPrompt(ctx, "up__test_input_required_result_prompt", nil)
		if err != nil {
			return err
		}
		return is(res.Messages[0].Content.Text, "Use this context: tea", nil)
	}},
	{"ask: who cannot answer", func(ctx context.Context, p *pair) error {
		for tool, in := range map[string]any{
			"test_elicitation": map[string]string{"message": "Who?"}, "test_sampling": map[string]string{"prompt": "why?"},
			"test_input_required_result_list_roots": nil, "ask_url": nil,
		} {
			got, err := p.tool(ctx, p.poor, tool, in)
			if err == nil || !strings.Contains(err.Error(), "support") && !strings.Contains(err.Error(), "capability") {
				return fmt.Errorf("%s: %q, %w", tool, got, errors.Join(err))
			}
			var answered *mcp.Error
			modern := p.up.revision.Modern() && p.down.revision.Modern()
			if errors.As(err, &answered) != modern || modern && answered.Code != mcp.CodeMissingCapability {
				return fmt.Errorf("%s: %w", tool, err)
			}
		}
		return nil
	}},
	{"capability: of the caller", func(ctx context.Context, p *pair) error {
		got, err := p.tool(ctx, p.poor, "test_missing_capability", nil)
		switch {
		case err == nil:
			return errors.New(got)
		case p.down.revision.Modern():
			return code(err, mcp.CodeMissingCapability)
		case !strings.Contains(err.Error(), "sampling"):
			return err
		}
		return nil
	}},
	{"visits: -32042", func(ctx context.Context, p *pair) error {
		if err := p.says(ctx, "forget_visit", "forgotten"); err != nil {
			return err
		}
		return p.says(ctx, "visit_first", "visited")
	}},
}
