package openai

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
	sdk "github.com/openai/openai-go/v3"
)

// call is a tool call that comes in fragments.
type call struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

// calls puts calls together from their fragments, which may be mixed.
type calls struct{ all []*call }

// add takes a fragment. It belongs to the last call of its index, unless it is the beginning of another one: servers exist that
// number all of them 0, or none.
func (c *calls) add(f sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	at := c.of(f)
	if at == nil {
		at = &call{index: f.Index}
		c.all = append(c.all, at)
	}
	if f.ID != "" {
		at.id = f.ID
	}
	if f.Function.Name != at.name { // some repeat it with each fragment
		at.name += f.Function.Name
	}
	at.arguments.WriteString(f.Function.Arguments)
}

func (c *calls) of(f sdk.ChatCompletionChunkChoiceDeltaToolCall) *call {
	for _, at := range slices.Backward(c.all) {
		if f.JSON.Index.Valid() && at.index != f.Index {
			continue
		}
		if f.Function.Name == "" {
			return at
		}
		another := f.ID != "" && at.id != "" && f.ID != at.id
		whole := f.ID == "" && isObject([]byte(at.arguments.String()))
		if another || whole {
			return nil
		}
		return at
	}
	return nil
}

// uses returns the calls, each with an id of its own.
func (c *calls) uses() (uses []mcp.ToolUse) {
	slices.SortStableFunc(c.all, func(a, b *call) int { return int(a.index - b.index) })
	seen := map[string]bool{}
	for _, at := range c.all {
		if at.id == "" || seen[at.id] {
			at.id = mint()
		}
		seen[at.id] = true
		uses = append(uses, mcp.ToolUse{ID: at.id, Name: at.name, Input: input(at.arguments.String())})
	}
	return uses
}

// mint makes an id for a call that has none.
func mint() string { return "call_" + rand.Text()[:20] }
