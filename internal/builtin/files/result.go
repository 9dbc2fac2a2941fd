package files

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
	"github.com/dowel-mcp/dowel/server"
)

// textAndStructured is a result of text for reading and the same as structured content for
// programs.
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
	s, err := schema.For[T](schema.Options{Output: true})
	if err != nil {
		panic(err) // a mistake in the type
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
	server.Tool(s.Server, "read", "Returns a file: lines of a text, or a whole image or sound. What was left out is stated, with how to go on.",
		s.readFile, toolOptions[Read]("Read a file", reads))
	server.Tool(s.Server, "list", "Lists what is in a folder and, by depth, in the folders in it.", s.listFolder, toolOptions[Listing]("List a folder", reads))
	server.Tool(s.Server, "search", "Finds files by a glob, and lines in files by text or a regular expression. What .gitignore files exclude is passed over.",
		s.searchFiles, toolOptions[Findings]("Search files", reads))
	server.Tool(s.Server, "info", "Says what is at a path: kind, size, time, permissions, type of content.", s.infoOf, toolOptions[Info]("Describe a file", reads))
}

func (s *Server) addWriters() {
	server.Tool(s.Server, "write", "Writes a whole file, in place of the one that is there, if any. Folders are made as needed. To change a part of a file use edit.",
		s.writeFile, toolOptions[Written]("Write a file", toolHints(false, true, true)))
	server.Tool(s.Server, "edit", "Changes parts of a text file: by exact replacements, or by a unified diff. All of it is done or none. Returns what changed as a unified diff.",
		s.editFile, toolOptions[Edited]("Edit a file", toolHints(false, true, false)))
	server.Tool(s.Server, "move", "Moves or renames a file or folder. Folders on the way are made as needed.", s.movePath, toolOptions[Moved]("Move", toolHints(false, true, false)))
	server.Tool(s.Server, "delete", "Deletes a file, a link or an empty folder; with recursive, a folder with all that is in it. There is no way back.",
		s.deletePath, toolOptions[Deleted]("Delete", toolHints(false, true, true)))
}
