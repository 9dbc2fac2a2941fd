// Package userdir returns the folders in which programs keep files for their user.
package userdir

import (
	"os"
	"path/filepath"
	"runtime"
)

// Data returns the folder for data that the user wants to keep: XDG_DATA_HOME if it is set,
// otherwise ~/.local/share, ~/Library/Application Support or %LocalAppData%, depending on the
// system.
func Data() (string, error) {
	// The XDG specification says that relative paths are ignored.
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
