package kv

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// DefaultPath returns the path of the default store: dowel/kv.db in the user's data folder. This is
// XDG_DATA_HOME if it is set, else ~/.local/share, ~/Library/Application Support or %LocalAppData%,
// depending on the system.
func DefaultPath() (string, error) {
	folder, err := dataFolder()
	if err != nil {
		return "", fmt.Errorf("kv: no place for the data file is known: set XDG_DATA_HOME or give a file (path=…): %w", err)
	}
	return filepath.Join(folder, "dowel", "kv.db"), nil
}

func dataFolder() (string, error) {
	// The XDG specification has relative paths ignored.
	if folder := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(folder) {
		return folder, nil
	}
	if runtime.GOOS == "windows" {
		return os.UserCacheDir() // %LocalAppData%
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support"), nil
	}
	return filepath.Join(home, ".local", "share"), nil
}
