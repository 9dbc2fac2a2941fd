package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/mcp"
)

// promptReader finds the calls in a reply's text while it streams. It reads the blocks that the
// prompt asks for, and other forms that models use: <tool_call> tags, JSON blocks that name a
// tool, several calls in a block, and a last block without an end. Text behind the calls is
// dropped: it is a result that the model has made up.
type promptReader struct {
	tools       map[string]bool
	held        []byte // undecided text: the beginning of a block, or a part of an opening
	block       *block // with which held begins; nil for none
	searchFrom  int    // offset in held before which the block does not end
	calls       []mcp.ToolUse
	textFollows bool // text followed the calls
}

func newPromptReader(tools []mcp.Tool) *promptReader {
	p := &promptReader{tools: map[string]bool{}}
	for i := range tools {
		p.tools[tools[i].Name] = true
	}
	return p
}

// block is a form in which models write calls. If it is not certain to be a call, only JSON that
// names a known tool counts.
type block struct {
	opening, closing string
	certain          bool
}

// blocks are tried in this order.
var blocks = []block{
	{callFence + "s", "```", true},
	{callFence, "```", true},
	{"<tool_call>", "</tool_call>", true},
	{"```json", "```", false},
}

// readPiece reads a piece of the reply, and returns the part that is text.
func (p *promptReader) readPiece(piece string) (text string) {
	p.held = append(p.held, piece...)
	for len(p.held) > 0 {
		at, b := p.findBlock()
		if b == nil {
			at = len(p.held) - openingSuffix(p.held)
		}
		text += p.visibleText(string(p.held[:at]))
		p.held, p.searchFrom, p.block = p.held[at:], max(0, p.searchFrom-at), b
		if b == nil {
			break
		}
		body, whole, ended := p.blockBody()
		if !ended {
			break
		}
		text += p.visibleText(p.closeBlock(b, whole, body))
		p.held, p.searchFrom, p.block = p.held[len(whole):], 0, nil
	}
	return text
}

// readRest returns the text that is left at the end of the reply.
func (p *promptReader) readRest() string {
	held := string(p.held)
	p.held, p.block = nil, nil
	for i := range blocks {
		if b := &blocks[i]; strings.HasPrefix(held, b.opening) {
			return p.visibleText(p.closeBlock(b, held, strings.TrimPrefix(held, b.opening)))
		}
	}
	return p.visibleText(held)
}

// visibleText drops text behind a call.
func (p *promptReader) visibleText(text string) string {
	if len(p.calls) == 0 {
		return text
	}
	if strings.TrimSpace(text) != "" {
		p.textFollows = true
	}
	return ""
}

// longestOpen is at least the length of the longest opening of a block.
const longestOpen = 32

// findBlock returns the offset of the first block. If held begins with a block, a longer opening
// may have appeared since.
func (p *promptReader) findBlock() (at int, first *block) {
	held := p.held
	if p.block != nil {
		held = held[:min(len(held), longestOpen)]
	}
	for i := range blocks {
		if n := bytes.Index(held, []byte(blocks[i].opening)); n >= 0 && (first == nil || n < at) {
			at, first = n, &blocks[i]
		}
	}
	return at, first
}

// blockBody returns the body of the block, and the whole block, if it has ended. A fence inside a
// JSON string does not end it.
func (p *promptReader) blockBody() (body, whole string, ended bool) {
	open, end := len(p.block.opening), []byte(p.block.closing)
	fence := bytes.HasSuffix(end, []byte("`"))
	p.searchFrom = max(p.searchFrom, open)
	for p.searchFrom < len(p.held) {
		n := bytes.Index(p.held[p.searchFrom:], end)
		if n < 0 {
			p.searchFrom = max(p.searchFrom, len(p.held)-len(end)+1)
			break
		}
		at := p.searchFrom + n
		text, behind := p.held[open:at], p.held[at+len(end):]
		switch {
		case !isUnfinished(text),
			// Not inside a string: the JSON is broken, and the block ends here.
			fence && bytes.HasPrefix(behind, []byte("\n")) && bytes.Count(text, []byte(`"`))%2 == 0:
			return string(text), string(p.held[:at+len(end)]), true
		case fence && len(behind) == 0: // the next byte decides whether the block ends
			p.searchFrom = at
			return "", "", false
		}
		p.searchFrom = at + len(end)
	}
	return "", "", false
}

// isUnfinished reports whether JSON stops in the middle.
func isUnfinished(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return err.Error() == "unexpected EOF"
		}
	}
}

// openingSuffix returns how many bytes at the end of text may be the beginning of an opening.
func openingSuffix(text []byte) int {
	longest := 0
	for i := range blocks {
		for n := min(len(text), len(blocks[i].opening)-1); n > longest; n-- {
			if bytes.HasSuffix(text, []byte(blocks[i].opening[:n])) {
				longest = n
			}
		}
	}
	return longest
}

// closeBlock reads a complete block, and returns it as text if it holds no call.
func (p *promptReader) closeBlock(b *block, whole, body string) string {
	found := p.readCalls(body, b.certain)
	if found == nil {
		return whole
	}
	if !p.textFollows {
		p.calls = append(p.calls, found...)
	}
	return ""
}

// writtenCall is a call in the words that models use for its members.
type writtenCall struct {
	Name       string          `json:"name"`
	Tool       string          `json:"tool"`
	Arguments  json.RawMessage `json:"arguments"`
	Parameters json.RawMessage `json:"parameters"`
	Input      json.RawMessage `json:"input"`
	Args       json.RawMessage `json:"args"`
}

// readCalls returns the calls in the body of a block: objects, one after the other or in a list.
// If the block is certain to be a call but is broken, its text becomes the arguments, so that the
// tool's error tells the model.
func (p *promptReader) readCalls(body string, sure bool) (found []mcp.ToolUse) {
	d := json.NewDecoder(strings.NewReader(body))
	for {
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			break
		}
		list := []json.RawMessage{raw}
		if bytes.HasPrefix(raw, []byte("[")) && json.Unmarshal(raw, &list) != nil {
			break
		}
		for _, one := range list {
			if use, ok := p.parseCall(one, sure); ok {
				found = append(found, use)
			}
		}
	}
	if len(found) == 0 && sure && strings.TrimSpace(body) != "" {
		return []mcp.ToolUse{{Name: nameIn(body), Input: quoteJSON(strings.TrimSpace(body))}}
	}
	return found
}

func (p *promptReader) parseCall(raw json.RawMessage, sure bool) (use mcp.ToolUse, ok bool) {
	var w writtenCall
	if json.Unmarshal(raw, &w) != nil {
		return use, false
	}
	use.Name = w.Name
	if use.Name == "" {
		use.Name = w.Tool
	}
	given := json.RawMessage(nil)
	for _, arguments := range []json.RawMessage{w.Arguments, w.Parameters, w.Input, w.Args} {
		if given == nil {
			given = arguments
		}
	}
	use.Input = parseArguments(string(given))
	if sure {
		return use, use.Name != ""
	}
	return use, p.tools[use.Name] && given != nil
}

var nameMember = lazyregexp.New(`"(?:name|tool)"\s*:\s*"([^"]+)"`)

// nameIn finds the tool's name in broken JSON.
func nameIn(body string) string {
	if found := nameMember().FindStringSubmatch(body); found != nil {
		return found[1]
	}
	return unknownName
}

// toolUses returns the calls, each with an id. If the reply was cut off, incomplete calls are
// left out.
func (p *promptReader) toolUses(cut bool) (uses []mcp.ToolUse) {
	for _, use := range p.calls {
		if cut && !isObject(use.Input) {
			continue
		}
		use.ID = newCallID()
		uses = append(uses, use)
	}
	return uses
}
