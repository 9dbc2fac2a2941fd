//go:build !unix

package files

import (
	"io/fs"
	"os"
)

const nonblock, directory = 0, 0

// notFolder is always false: Windows reports a missing path instead.
func notFolder(error) bool { return false }

// notEmpty is always true: the error does not tell, so the caller lists the folder.
func notEmpty(error) bool { return true }

func keepOwner(*os.File, fs.FileInfo) {}
