package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/mcp"
)

// Characters that one call of read_result returns.
const (
	defaultPart = 10_000
	maxPart     = 20_000
)

// resultReader shortens long results, and serves their texts through the tool read_result.
type resultReader struct {
	tool      string // the name of read_result
	maxResult int    // Limits.MaxResult
	resultStore
}

// maxChunk returns how many characters one call may read.
func (r *resultReader) maxChunk() int {
	if r.maxResult <= 0 {
		return maxPart
	}
	return min(r.maxResult, maxPart)
}

// defaultChunk returns how many characters a call without a limit reads.
func (r *resultReader) defaultChunk() int { return min(r.maxChunk(), defaultPart) }

func (r *resultReader) definition() mcp.Tool {
	return mcp.Tool{
		Name: r.tool,
		Description: "Reads a part of a tool's result that was too long to be shown whole. The shortened result says under which name it is kept. " +
			"Give search to find lines that hold a text instead of reading on.",
		InputSchema: fmt.Appendf(nil, `{"type":"object","properties":{`+
			`"result":{"type":"string","description":"The name under which the result is kept"},`+
			`"offset":{"type":"integer","minimum":0,"description":"The first character to read; 0 is the beginning"},`+
			`"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"How many characters to read at most; %d unless told otherwise"},`+
			`"search":{"type":"string","description":"A text: only lines that hold it are returned, with their offsets"}},`+
			`"required":["result"],"additionalProperties":false}`, r.maxChunk(), r.defaultChunk()),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(false)},
	}
}

// hasTexts reports whether read_result has anything to read.
func (r *resultReader) hasTexts() bool { return len(r.names) > 0 }

// shortenText stores a text, and returns its head and tail with a note how to read the rest.
func (r *resultReader) shortenText(text string, limit int) string {
	name, all := r.storeText(text), utf8.RuneCountInString(text)
	head := limit * 3 / 4
	tail := limit - head
	return fmt.Sprintf("%s\n\n[%d of %d characters are left out here. The whole is kept as %q: read on with the tool %s, from offset %d.]\n\n%s",
		sliceRunes(text, 0, head), all-limit, all, name, r.tool, head, sliceRunes(text, all-tail, all))
}

// sliceRunes returns the characters of text from index from to before index to.
func sliceRunes(text string, from, to int) string {
	begin, n := len(text), 0
	for i := range text {
		if n == from {
			begin = i
		}
		if n == to {
			return text[begin:i]
		}
		n++
	}
	return text[begin:]
}

// readResult answers a call of read_result.
func (r *resultReader) readResult(input json.RawMessage) (string, error) {
	in := struct {
		Result, Search string
		Offset, Limit  int
	}{Limit: r.defaultChunk()}
	if err := json.Unmarshal(input, &in); err != nil {
		return "", fmt.Errorf("the arguments are not as the schema of %s says: %w", r.tool, err)
	}
	text, err := r.loadText(in.Result)
	if err != nil {
		return "", err
	}
	if in.Search != "" {
		return findLines(text, in.Search, r.maxChunk()), nil
	}
	all := utf8.RuneCountInString(text)
	if in.Offset < 0 || in.Offset >= all {
		return "", fmt.Errorf("%s has %d characters: the offset %d is not in it", in.Result, all, in.Offset)
	}
	end := min(in.Offset+max(1, min(in.Limit, r.maxChunk())), all)
	part := sliceRunes(text, in.Offset, end)
	if end < all {
		part += fmt.Sprintf("\n\n[%d of %d characters are left: read on from offset %d.]", all-end, all, end)
	}
	return part, nil
}

// Limits of a search in a result.
const (
	maxLines     = 100
	maxLine      = 500 // bytes of a line; a longer one is cut around the match
	matchContext = 200
)

// findLines returns the lines of text that hold part, each with its offset in characters. It
// returns at most limit characters.
func findLines(text, part string, most int) string {
	var found strings.Builder
	n, at, line := 0, 0, 0 // at is the offset of the line in characters, line in bytes
	for line < len(text) {
		match := strings.Index(text[line:], part)
		if match < 0 {
			break
		}
		begin := line + strings.LastIndexByte(text[line:line+match], '\n') + 1
		end := line + match + len(part)
		if n++; n > maxLines {
			fmt.Fprintf(&found, "[There are more than %d such places.]\n", maxLines)
			break
		}
		if next := strings.IndexByte(text[end:], '\n'); next < 0 {
			end = len(text)
		} else {
			end += next + 1
		}
		if end-begin > maxLine {
			begin, end = alignToRunes(text, max(begin, line+match-matchContext), min(end, line+match+len(part)+matchContext))
		}
		at += utf8.RuneCountInString(text[line:begin])
		shown := sliceRunes(fmt.Sprintf("%d: %s\n", at, strings.TrimRight(text[begin:end], "\r\n")), 0, most)
		if most -= utf8.RuneCountInString(shown); most < 0 {
			found.WriteString("[There are more such places: search for more of the text, or read on.]\n")
			break
		}
		found.WriteString(shown)
		at += utf8.RuneCountInString(text[begin:end])
		line = end
	}
	if n == 0 {
		return fmt.Sprintf("no line holds %q", part)
	}
	return found.String()
}

// alignToRunes moves two offsets to the beginnings of characters.
func alignToRunes(text string, begin, end int) (int, int) {
	for begin > 0 && !utf8.RuneStart(text[begin]) {
		begin--
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	return begin, end
}

// omitFrom stores the texts of a message's results and replaces them by notes, the first results
// first, until save estimated tokens have been saved. It returns the saved tokens and the number
// of results.
func (r *resultReader) omitFrom(m *Message, save int) (saved, left int) {
	const worth = 200 // tokens that a result must have
	var kept []mcp.Content
	for rest := m.Content; len(rest) > 0; {
		ofTask := countTaskBlocks(rest)
		blocks := rest[:max(1, ofTask)]
		rest = rest[len(blocks):]
		before := estimateContent(blocks)
		if saved >= save || before < worth || ofTask == 0 && blocks[0].ToolResult == nil {
			kept = append(kept, blocks...)
			continue
		}
		short := r.omitBlocks(blocks, ofTask > 0)
		kept = append(kept, short)
		saved, left = saved+before-estimateBlock(&short), left+1
	}
	m.Content = kept
	return saved, left
}

// omitBlocks stores the texts of the result of a task, or of the block with the result of a call.
// It returns the block that replaces them.
func (r *resultReader) omitBlocks(blocks []mcp.Content, isTask bool) mcp.Content {
	if isTask {
		note := mcp.Text(r.storeContent(blocks))
		note.Meta = mcp.Meta{metaTaskResult: true}
		return note
	}
	short, res := blocks[0], *blocks[0].ToolResult
	res.Content, res.StructuredContent = []mcp.Content{mcp.Text(r.storeContent(res.Content))}, nil
	short.ToolResult = &res
	return short
}

// storeContent stores the text of a result, and returns the note that replaces it.
func (r *resultReader) storeContent(content []mcp.Content) string {
	var texts []string
	for i := range content {
		if text := blockText(&content[i]); text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return "[This result has been left out, since the conversation became too long.]"
	}
	text := strings.Join(texts, "\n\n")
	return fmt.Sprintf("[This result of %d characters has been left out, since the conversation became too long. It is kept as %q: the tool %s reads it.]",
		utf8.RuneCountInString(text), r.storeText(text), r.tool)
}
