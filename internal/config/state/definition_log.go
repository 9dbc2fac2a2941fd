package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/atomicfile"
)

// DefinitionLog returns the log of a server's definitions, which is a file in the folder
// definitions beside the state file. file is the project's file that defines the server, or empty
// for servers of the user, whichever of the user's files defines them.
func (s *State) DefinitionLog(file, server string) client.DefinitionLog {
	if file != "" {
		file = absolutePath(file)
	}
	sum := sha256.Sum256([]byte(file + "\x00" + server))
	return definitionFile(filepath.Join(filepath.Dir(s.path), "definitions", hex.EncodeToString(sum[:])+".json"))
}

// definitionFile is the path of a log that other processes may use too.
type definitionFile string

// Update implements [client.DefinitionLog]. A change that changes nothing needs no right to write.
func (path definitionFile) Update(change func([]byte) []byte) error {
	old, err := os.ReadFile(string(path))
	if (err == nil || errors.Is(err, fs.ErrNotExist)) && bytes.Equal(change(old), old) {
		return nil
	}
	_, err = atomicfile.Update(string(path), func(old []byte, _ bool) ([]byte, error) { return change(old), nil },
		atomicfile.Options{Perm: 0o600, FolderPerm: 0o700})
	if err != nil {
		return fmt.Errorf("cannot store the server's definitions: %w", err)
	}
	return nil
}
