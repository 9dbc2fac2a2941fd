package files

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
	"github.com/dowel-mcp/dowel/server"
)

// textAndStructured returns a result with text for models and the same data as structured content
// for programs.
func textAndStructured(text string, structured any) (*mcp.CallToolResult, error) {
	return structuredResult(structured, mcp.Text(text))
}

func structuredResult(structured any, content ...mcp.Content) (*mcp.CallToolResult, error) {
	raw, err := schema.Encode(structured)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: content, StructuredContent: raw}, nil
}

// toolOptions returns the options of a tool that returns a T through textAndStructured.
func toolOptions[T any](title string, hints *mcp.ToolAnnotations) server.ToolOptions {
	s, err := schema.ForOutput[T]()
	if err != nil {
		panic(err) // only a mistake in the type T can cause this
	}
	var out json.RawMessage = s.JSON()
	return server.ToolOptions{Title: title, Annotations: hints, OutputSchema: out}
}

func toolHints(readOnly, destructive, idempotent bool) *mcp.ToolAnnotations {
	h := &mcp.ToolAnnotations{ReadOnlyHint: new(readOnly), OpenWorldHint: new(false)}
	if !readOnly {
		h.DestructiveHint, h.IdempotentHint = new(destructive), new(idempotent)
	}
	return h
}

func (s *Server) addReaders() {
	reads := toolHints(true, false, false)
	server.Tool(s.Server, "read", "Returns a file: lines of a text, or a whole image or sound. The result says what was omitted and how to read it.",
		s.readFile, toolOptions[Read]("Read a file", reads))
	server.Tool(s.Server, "list", "Lists the contents of a folder and, if depth is more than 1, of its subfolders.", s.listFolder, toolOptions[Listing]("List a folder", reads))
	server.Tool(s.Server, "search", "Finds files by a glob, and lines in files by text or a regular expression. Skips files that .gitignore files exclude, unless ignored is set.",
		s.searchFiles, toolOptions[Findings]("Search files", reads))
	server.Tool(s.Server, "info", "Describes the file or folder at a path: kind, size, time of change, permissions, type of content.", s.infoOf, toolOptions[Info]("Describe a file", reads))
}

func (s *Server) addWriters() {
	server.Tool(s.Server, "write", "Writes a whole file and replaces an existing one. Creates missing folders. To change a part of a file, use edit.",
		s.writeFile, toolOptions[Written]("Write a file", toolHints(false, true, true)))
	server.Tool(s.Server, "edit", "Changes parts of a text file by exact replacements or by a unified diff. Makes all changes or none. Returns the change as a unified diff.",
		s.editFile, toolOptions[Edited]("Edit a file", toolHints(false, true, false)))
	server.Tool(s.Server, "move", "Moves or renames a file or folder. Creates missing folders.", s.movePath, toolOptions[Moved]("Move", toolHints(false, true, false)))
	server.Tool(s.Server, "delete", "Deletes a file, a link or an empty folder; with recursive, a folder with all its contents. This cannot be undone.",
		s.deletePath, toolOptions[Deleted]("Delete", toolHints(false, true, true)))
}
