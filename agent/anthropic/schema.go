package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// rules are the API's demands on a tool: it refuses the whole request for one tool that breaks
// them. Other keywords of JSON Schema are sent as they are. The rules are applied in this order;
// an error leaves the tool out.
var rules = []func(*definition) error{
	(*definition).checkName,       // the name is of 1 to 128 letters, digits, _ and -
	(*definition).dropVersion,     // $schema is dropped: the API reads draft 2020-12 whatever it says
	(*definition).flattenTop,      // no anyOf, oneOf, allOf or $ref at the top: their properties move up, and the rest into the description
	(*definition).setObjectType,   // an object at the top
	(*definition).checkProperties, // its properties' names are of 1 to 64 letters, digits, _, . and -
	(*definition).checkSchema,     // it is valid in draft 2020-12
}

// definition is a tool to which the rules are applied.
type definition struct {
	name, description string
	schema            map[string]json.RawMessage
	changed           bool
}

// preparedTool is the result of the rules for a tool.
type preparedTool struct {
	tool *tool  // nil if the tool is left out
	why  string // it is left out
}

// maxPrepared limits the number of remembered tools, with earlier versions of changed ones.
const maxPrepared = 4096

// toolDefinitions returns the definitions of tools, the last of them marked for the prompt cache.
func (m *model) toolDefinitions(tools []mcp.Tool) (all []*tool) {
	names := map[string]bool{}
	for _, t := range tools {
		p := m.prepareTool(t)
		switch {
		case p.tool == nil:
			m.warnOnce(fmt.Sprintf("the tool %s is left out: %s", t.Name, p.why))
		case names[t.Name]:
			m.warnOnce(fmt.Sprintf("the tool %s is left out the second time: there is another of that name", t.Name))
		default:
			names[t.Name] = true
			all = append(all, p.tool)
		}
	}
	if n := len(all); n > 0 {
		last := *all[n-1]
		last.CacheControl = ephemeral
		all[n-1] = &last
	}
	return all
}

// prepareTool applies the rules, or returns the stored result for an unchanged tool.
func (m *model) prepareTool(t mcp.Tool) preparedTool {
	key := t.Name + "\x00" + t.Description + "\x00" + string(t.InputSchema)
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.prepared[key]
	if !ok {
		if len(m.prepared) >= maxPrepared {
			clear(m.prepared)
		}
		p = applyRules(t)
		m.prepared[key] = p
	}
	return p
}

func applyRules(t mcp.Tool) preparedTool {
	d := definition{name: t.Name, description: t.Description}
	raw := bytes.TrimSpace(t.InputSchema)
	if len(raw) == 0 {
		raw = []byte(`{"type":"object"}`)
	}
	if err := json.Unmarshal(raw, &d.schema); err != nil || d.schema == nil {
		return preparedTool{why: "its schema is not a JSON object"}
	}
	for _, rule := range rules {
		if err := rule(&d); err != nil {
			return preparedTool{why: err.Error()}
		}
	}
	if d.changed {
		raw = encodeJSON(d.schema)
	}
	return preparedTool{tool: &tool{Name: d.name, Description: d.description, InputSchema: raw}}
}

func (d *definition) checkName() error {
	if !namePattern().MatchString(d.name) {
		return errors.New("its name has to be of 1 to 128 letters, digits, _ and -")
	}
	return nil
}

func (d *definition) dropKeywords(keys ...string) {
	for _, key := range keys {
		if _, ok := d.schema[key]; ok {
			delete(d.schema, key)
			d.changed = true
		}
	}
}

func (d *definition) dropVersion() error {
	d.dropKeywords("$schema")
	return nil
}

func (d *definition) setObjectType() error {
	var one string
	var several []string
	switch kind := d.schema["type"]; {
	case kind == nil:
	case json.Unmarshal(kind, &one) == nil && one == "object":
		return nil
	case json.Unmarshal(kind, &several) == nil && slices.Contains(several, "object"):
	default:
		return fmt.Errorf("its arguments have to be an object, and are of type %s", kind)
	}
	d.schema["type"], d.changed = json.RawMessage(`"object"`), true
	return nil
}

var propertyPattern = lazyregexp.New(`^[a-zA-Z0-9_.-]{1,64}$`)

func (d *definition) checkProperties() error {
	for _, name := range slices.Sorted(maps.Keys(parseObject(d.schema["properties"]))) {
		if !propertyPattern().MatchString(name) {
			return fmt.Errorf("the name of its parameter %q has to be of 1 to 64 letters, digits, _, . and -", name)
		}
	}
	return nil
}

// checkSchema refuses an invalid schema. A schema that cannot be checked here may be valid.
func (d *definition) checkSchema() error {
	if _, err := schema.Compile(encodeJSON(d.schema)); err != nil && (!errors.Is(err, schema.ErrUnsupported) || errors.Is(err, schema.ErrOutside)) {
		return fmt.Errorf("its schema is not valid in JSON Schema draft 2020-12: %s", strings.TrimPrefix(err.Error(), "schema: "))
	}
	return nil
}

// parseObject parses an object; nil for anything else.
func parseObject(data json.RawMessage) (o map[string]json.RawMessage) {
	if json.Unmarshal(data, &o) != nil {
		return nil
	}
	return o
}
