// Package agentsfile finds the instructions that a user and a project give to models: files called
// AGENTS.md (https://agents.md). A project's file may come from anyone, so it counts only if the
// user agreed to its content, or to the file whatever its content becomes.
package agentsfile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
)

// Name is the name of the files.
const Name = "AGENTS.md"

// MaxSize is the largest size of a file in bytes.
const MaxSize = 64 << 10

// grantName is the name in dowel's state under which the user's agreement to a file is kept.
const grantName = "instructions"

// A File is a file with instructions.
type File struct {
	Path string // absolute
	Text string // "" if Err is set
	// Project says that the file came with a project.
	Project bool
	// Agreed says that the file may be given to a model: it is the user's own, or the user agreed
	// to it. Changed says that the user agreed to an earlier content.
	Agreed, Changed bool
	Err             error // the file cannot be used
}

// Find returns the file of the user's folder, and the files of a project: in its folder and in the
// folders above it that belong to the same repository, the outermost first. Empty and missing files
// are left out. userFolder may be empty.
func Find(userFolder, project string, store *state.State) (all []File) {
	if userFolder != "" {
		if f, ok := readFile(filepath.Join(userFolder, Name)); ok {
			f.Agreed = f.Err == nil
			all = append(all, f)
		}
	}
	folders := repositoryFolders(project)
	for _, folder := range folders {
		f, ok := readFile(filepath.Join(folder, Name))
		if !ok || slices.ContainsFunc(all, func(other File) bool { return other.Path == f.Path }) {
			continue
		}
		f.Project = true
		if f.Err == nil && !isInside(f.Path, folders[0]) { // also if the user agreed to whatever it becomes
			f.Text, f.Err = "", errors.New("it is a link to a file outside the project")
		}
		if a, ok := store.Trusted(f.Path, grantName); ok && f.Err == nil {
			f.Agreed = a.Folder || a.Digests[grantName] == digest(f.Text)
			f.Changed = !f.Agreed
		}
		all = append(all, f)
	}
	return all
}

// isInside reports whether a file is in a folder after all links are followed.
func isInside(path, folder string) bool {
	file, err1 := filepath.EvalSymlinks(path)
	root, err2 := filepath.EvalSymlinks(folder)
	if err1 != nil || err2 != nil {
		return false
	}
	rel, err := filepath.Rel(root, file)
	return err == nil && filepath.IsLocal(rel)
}

// repositoryFolders returns the folders from the root of the repository to folder. Without a
// repository it returns folder alone.
func repositoryFolders(folder string) []string {
	var all []string
	for at := filepath.Clean(folder); ; at = filepath.Dir(at) {
		all = append([]string{at}, all...)
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return all
		}
		if at == filepath.Dir(at) {
			return all[len(all)-1:]
		}
	}
}

// readFile reads a file with instructions. ok is false if there is none.
func readFile(path string) (f File, ok bool) {
	f.Path = path
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, false
	}
	if err == nil && !info.Mode().IsRegular() { // a pipe would block
		err = errors.New("it is not a file")
	}
	if err == nil {
		f.Text, err = readText(path)
	}
	f.Err = err
	return f, err != nil || f.Text != ""
}

func readText(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxSize+1))
	if err == nil && len(text) > MaxSize {
		err = fmt.Errorf("it is larger than %d KiB", MaxSize>>10)
	}
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD")), nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Agree stores that the user agreed to a project's file: to its content, or to the file whatever
// its content becomes.
func Agree(store *state.State, f File, always bool) error {
	fact := fmt.Sprintf("%d characters for models", len([]rune(f.Text)))
	return store.Trust(f.Path, grantName, config.Agreement{Facts: []string{fact}, Digests: map[string]string{grantName: digest(f.Text)}, Folder: always})
}

// Revoke removes the user's agreement to a project's file.
func Revoke(store *state.State, path string) error { return store.Distrust(path, grantName) }

// Prompt returns the part of a system prompt with the files that the user agreed to, or "".
func Prompt(files []File) string {
	var b strings.Builder
	for _, f := range files {
		switch {
		case !f.Agreed:
		case f.Project:
			fmt.Fprintf(&b, "\n\nInstructions of the project, from %s:\n\n%s", f.Path, f.Text)
		default:
			fmt.Fprintf(&b, "\n\nThe user's instructions, from %s:\n\n%s", f.Path, f.Text)
		}
	}
	return b.String()
}
