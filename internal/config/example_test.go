package config_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/dowel-mcp/dowel/internal/config"
)

func Example() {
	project, err := os.MkdirTemp("", "project")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(project)
	text := `{
  // the team's servers
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "files-server", "${workspaceFolderBasename:-.}"]},
    "docs": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}},
    "typo": {"comand": "npx"},
  },
}`
	if err := os.WriteFile(filepath.Join(project, "dowel.json"), []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	set := config.Load(config.Options{
		Project: project,
		Home:    filepath.Join(project, "home"),
		Env:     func(string) (string, bool) { return "", false },
	})
	for _, s := range set.Servers {
		d, problems := s.Resolve(set.Variables)
		if d != nil {
			fmt.Println(s.Name, d.Kind, d.Command, d.Args[:2])
		}
		for _, p := range problems {
			fmt.Printf("%s %d:%d %v: %s: %s\n", s.Name, p.Line, p.Column, p.Severity, p.Message, p.Hint)
		}
	}
	// Output:
	// files stdio npx [-y files-server]
	// docs 5:77 error: headers.Authorization: environment variable DOCS_TOKEN is not set: set it where dowel is started, or write a default: ${DOCS_TOKEN:-…}
	// typo 6:14 warning: unknown key "comand": dowel does not know this key: did you mean "command"?
	// typo 6:5 error: the entry has neither a command nor a url: add the program that starts the server, or the URL of one that runs
}
