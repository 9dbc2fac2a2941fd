package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// serverPrograms are the programs of the module servers. dowel serve starts the one beside it.
var serverPrograms = []string{"dowel-data", "dowel-github", "dowel-screen", "dowel-sql"}

// compileServers builds the programs of the module servers into folder, and returns their files for
// the archive. Without r.servers naming the platform it builds nothing.
func (r *release) compileServers(ctx context.Context, t target, folder string) ([]archiveFile, error) {
	if !slices.Contains(r.servers, t.String()) {
		return nil, nil
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	env := []string{"GOOS=" + t.goos, "GOARCH=" + t.goarch, "CGO_ENABLED=0"}
	if _, err := r.output(ctx, env, "go", "-C", "servers", "build", "-trimpath", "-ldflags", "-s -w", "-o", folder+string(filepath.Separator), "./cmd/..."); err != nil {
		return nil, err
	}
	var files []archiveFile
	for _, program := range serverPrograms {
		name := t.fileName(program)
		files = append(files, archiveFile{name: name, path: filepath.Join(folder, name), executable: true})
	}
	return files, nil
}

// writeServerSBOMs writes a bill of materials for each server program of the archive name.
func (r *release) writeServerSBOMs(t target, files []archiveFile) error {
	for i, file := range files {
		out := filepath.Join(r.out, fmt.Sprintf("%s_%s_%s_%s.cdx.json", serverPrograms[i], r.version, t.goos, t.goarch))
		if err := r.writeSBOM(serverPrograms[i], file.path, out); err != nil {
			return err
		}
	}
	return nil
}
