package chat

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
)

// SessionLine is a saved conversation in the JSON output of dowel chat --sessions.
type SessionLine struct {
	ID      string    `json:"id"`
	Changed time.Time `json:"changed"`
	Began   time.Time `json:"began"`
	Folder  string    `json:"folder,omitzero"`
	Model   string    `json:"model,omitzero"`
	Words   string    `json:"words"`
	Path    string    `json:"path"`
	// Program is "dowel run" if that has begun the conversation; Scripted: without a terminal.
	Program  string `json:"program,omitzero"`
	Scripted bool   `json:"scripted,omitzero"`
}

// listSessions lists the saved conversations.
func listSessions(f *factory.Factory) error {
	all, err := session.List(factory.SessionsDir())
	if err != nil {
		return err
	}
	if f.JSON {
		lines := []SessionLine{}
		for _, s := range all {
			lines = append(lines, SessionLine{s.ID, s.Changed, s.Began, s.Folder, s.Model, s.Words, s.Path, s.Program, s.Scripted})
		}
		return f.WriteValue(map[string]any{"sessions": lines})
	}
	if len(all) == 0 {
		f.Warn("no conversation is saved")
		return nil
	}
	showSessions(f, all)
	return nil
}

// showSessions writes a table of saved conversations.
func showSessions(f *factory.Factory, all []session.Summary) {
	rows := [][]string{{"ID", "CHANGED", "MODEL", "FOLDER", "FIRST WORDS"}}
	for _, s := range all {
		rows = append(rows, []string{s.ID, s.Changed.Local().Format("2006-01-02 15:04"), term.Line(s.Model), truncateStart(term.Line(s.Folder), 30), term.FirstLine(firstWords(&s))})
	}
	for _, text := range f.Stdout.Table(rows) {
		fmt.Fprintln(f.Stdout, text)
	}
}

// firstWords returns the user's first words for a list, behind the name of the program if that is
// not dowel chat.
func firstWords(s *session.Summary) string {
	if s.Program != "" {
		return s.Program + ": " + s.Words
	}
	return s.Words
}

// truncateStart returns the end of a text that fits into width columns, with … in place of its
// start if it is longer.
func truncateStart(text string, width int) string {
	if term.TextWidth(text) <= width {
		return text
	}
	for term.TextWidth(text) > width-1 && text != "" {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	return "…" + text
}
