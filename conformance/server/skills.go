package main

import (
	"embed"
	"io/fs"
	"os"

	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/skills"
)

//go:embed skills
var skillFiles embed.FS

// addSkills serves the skills of the folder skills from a temporary copy, which the returned
// function removes.
func addSkills(s *server.Server) (func(), error) {
	dir, err := os.MkdirTemp("", "conformance-skills-")
	if err != nil {
		return nil, err
	}
	stop, err := serveSkills(s, dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return func() {
		stop()
		os.RemoveAll(dir)
	}, nil
}

func serveSkills(s *server.Server, dir string) (stop func(), err error) {
	files, err := fs.Sub(skillFiles, "skills")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return nil, err
	}
	return skills.Serve(s, dir)
}
