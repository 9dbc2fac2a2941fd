package chat

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/dowel-mcp/dowel/internal/atomicfile"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/tui/picture"
	"github.com/dowel-mcp/dowel/internal/tui/toolcard"
	"github.com/dowel-mcp/dowel/mcp"
)

// pictureFolder keeps the images of results until the conversation ends, so that the user can open
// them. It is safe for concurrent use.
type pictureFolder struct {
	mu    sync.Mutex // guards the fields below
	path  string     // "" before the first image
	count int
	bytes int
}

// picturesPrefix begins the names of folders of images.
const picturesPrefix = "dowel-images-"

// Bounds of the images of one result, and of the bytes in the folder.
const (
	maxResultPictures = 4
	maxFolderBytes    = 256 << 20
)

// findPictures returns the first images of a result that can be decoded.
func (f *pictureFolder) findPictures(content []mcp.Content) (found []toolcard.Picture) {
	for i := range content {
		data, _, _ := display.Binary(content[i])
		if len(data) == 0 || len(found) == maxResultPictures {
			continue
		}
		if p, err := picture.Decode(data); err == nil {
			found = append(found, toolcard.Picture{Picture: p, Link: f.save(data, p.Format)})
		}
	}
	return found
}

// save writes an image into the folder and returns its address, or "" if there is no room.
func (f *pictureFolder) save(data []byte, format string) (address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes+len(data) > maxFolderBytes {
		return ""
	}
	if f.path == "" {
		atomicfile.RemoveForgotten(picturesPrefix)
		path, err := os.MkdirTemp("", picturesPrefix+"*") // mode 0700
		if err != nil {
			return ""
		}
		f.path = path
	}
	f.count++
	f.bytes += len(data)
	path := filepath.Join(f.path, fmt.Sprintf("%d.%s", f.count, format))
	if os.WriteFile(path, data, 0o600) != nil {
		return ""
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// removeFolder removes the folder.
func (f *pictureFolder) removeFolder() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path != "" {
		_ = os.RemoveAll(f.path) // the system clears the folder of temporary files
		f.path = ""
	}
}
