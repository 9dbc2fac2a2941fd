package files

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
	"github.com/dowel-mcp/dowel/server"
)

// both is a result of text for reading and the same as structured content for programs.
func both(text string, structured any) (*mcp.CallToolResult, error) {
	return answer(structured, mcp.Text(text))
}

func answer(structured any, content ...mcp.Content) (*mcp.CallToolResult, error) {
	raw, err := schema.Encode(structured)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: content, StructuredContent: raw}, nil
}

// described are the options of a tool whose result is made by both, of a T.
func described[T any](title string, hints *mcp.ToolAnnotations) server.ToolOptions {
	s, err := schema.For[T](schema.Options{Output: true})
	if err != nil {
		panic(err) // a mistake in the type
	}
	var out json.RawMessage = s.JSON()
	return server.ToolOptions{Title: title, Annotations: hints, OutputSchema: out}
}

func hints(readOnly, destructive, idempotent bool) *mcp.ToolAnnotations {
	h := &mcp.ToolAnnotations{ReadOnlyHint: new(readOnly), OpenWorldHint: new(false)}
	if !readOnly {
		h.DestructiveHint, h.IdempotentHint = new(destructive), new(idempotent)
	}
	return h
}

func (s *Server) addReaders() {
	reads := hints(true, false, false)
	server.Tool(s.Server, "read", "Returns a file: lines of a text, or a whole image or sound. What was left out is stated, with how to go on.",
		s.read, described[Read]("Read a file", reads))
	server.Tool(s.Server, "list", "Lists what is in a folder and, by depth, in the folders in it.", s.list, described[Listing]("List a folder", reads))
	server.Tool(s.Server, "search", "Finds files by a glob, and lines in files by text or a regular expression. What .gitignore files exclude is passed over.",
		s.search, described[Findings]("Search files", reads))
	server.Tool(s.Server, "info", "Says what is at a path: kind, size, time, permissions, type of content.", s.info, described[Info]("Describe a file", reads))
}

func (s *Server) addWriters() {
	server.Tool(s.Server, "write", "Writes a whole file, in place of the one that is there, if any. Folders are made as needed. To change a part of a file use edit.",
		s.write, described[Written]("Write a file", hints(false, true, true)))
	server.Tool(s.Server, "edit", "Changes parts of a text file: by exact replacements, or by a unified diff. All of it is done or none. Returns what changed as a unified diff.",
		s.edit, described[Edited]("Edit a file", hints(false, true, false)))
	server.Tool(s.Server, "move", "Moves or renames a file or folder. Folders on the way are made as needed.", s.move, described[Moved]("Move", hints(false, true, false)))
	server.Tool(s.Server, "delete", "Deletes a file, a link or an empty folder; with recursive, a folder with all that is in it. There is no way back.",
		s.delete, described[Deleted]("Delete", hints(false, true, true)))
}
