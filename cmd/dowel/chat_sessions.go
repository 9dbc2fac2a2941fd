package main

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/session"
)

// sessionLine is a conversation as a program reads it.
type sessionLine struct {
	ID      string    `json:"id"`
	Changed time.Time `json:"changed"`
	Began   time.Time `json:"began"`
	Folder  string    `json:"folder,omitzero"`
	Model   string    `json:"model,omitzero"`
	Words   string    `json:"words"`
	Path    string    `json:"path"`
}

// listSessions shows the conversations that were kept.
func (a *app) listSessions() error {
	all, err := session.List(sessionsDir())
	if err != nil {
		return err
	}
	if a.json {
		lines := []sessionLine{}
		for _, s := range all {
			lines = append(lines, sessionLine{s.ID, s.Changed, s.Began, s.Folder, s.Model, s.Words, s.Path})
		}
		return a.value(map[string]any{"sessions": lines})
	}
	if len(all) == 0 {
		a.warn("no conversation was kept")
		return nil
	}
	rows := [][]string{{"ID", "CHANGED", "MODEL", "FOLDER", "FIRST WORDS"}}
	for _, s := range all {
		rows = append(rows, []string{s.ID, s.Changed.Local().Format("2006-01-02 15:04"), line(s.Model), ending(line(s.Folder), 30), firstLine(s.Words)})
	}
	for _, text := range a.stdout.tabulate(rows) {
		fmt.Fprintln(a.stdout, text)
	}
	return nil
}

// ending is the end of a text in so many characters.
func ending(text string, width int) string {
	if n := utf8.RuneCountInString(text); n > width {
		return "…" + string([]rune(text)[n-width+1:])
	}
	return text
}
