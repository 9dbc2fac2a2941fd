//go:build !unix

package files

import (
	"io/fs"
	"os"
)

const nonblock, directory = 0, 0

// notFolder is for others: Windows says that there is no such path.
func notFolder(error) bool { return false }

// notEmpty cannot be told from other errors here: what is in the folder tells.
func notEmpty(error) bool { return true }

func keepOwner(*os.File, fs.FileInfo) {}
