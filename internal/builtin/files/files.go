// Package files is an MCP server for the files in some folders, its roots, and for nothing outside
// them.
//
// It has the tools read, list, search and info, and, unless it is read-only, write, edit, move and
// delete. Each file and folder is a resource file:///{+path}; clients that subscribe to it are
// notified of changes. The resource list has the top-level entries of the roots.
//
// # Paths
//
// A path is relative to the first root, or absolute and inside one of the roots, or a file:// URI
// of such a path. Results use relative paths with slashes inside the first root, absolute paths
// elsewhere, and a URI for a name that is not UTF-8. The roots come from [Options]; the roots that
// clients offer have no effect.
//
// All access goes through an [os.Root]: neither ".." nor a symbolic link leads out, even if another
// process changes the folders meanwhile. Symbolic links are followed if they are relative and stay
// inside their root; list and search do not follow them. Devices, pipes and sockets are not opened.
//
// # Files
//
// Text is UTF-8. Files in UTF-16 with a byte order mark are shown but cannot be edited. Invalid
// bytes are shown as U+FFFD, and edits keep them. If all lines of a file end with CR LF, the tools
// return LF and write CR LF. Images and sounds are returned as content of these types; other binary
// files are an error.
//
// A write is atomic: it renames a temporary file. The file keeps its permissions and, if the system
// allows it, its owner; it loses hard links, ACLs and extended attributes. Concurrent changes of
// one file run one after another. An edit does not overwrite a change by another program.
//
// # Limits
//
// The tool read returns at most [MaxText] bytes of text, or an image or sound of at most
// [MaxMedia]. A resource has at most [MaxResource], an edited file [MaxEdit], a searched file
// [MaxSearched]. The results of list and search state what they omit. At most [MaxWatched] files
// and folders are watched, each only while a client is subscribed to it. The watcher uses the
// notifications of the operating system, and also checks every [DefaultPoll].
package files

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/server"
)

// Limits in bytes; MaxWatched is a number of files and folders.
const (
	MaxText     = 128 << 10
	MaxMedia    = 8 << 20
	MaxResource = 8 << 20
	MaxEdit     = 16 << 20
	MaxSearched = 32 << 20
	MaxWatched  = 1024
)

// DefaultPoll is the default of [Options.Poll].
const DefaultPoll = 2 * time.Second

// Version is the version that the server reports.
const Version = "1.0.0"

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// Roots are the folders that clients may use. They must exist. A root inside another one has no
	// effect. The default is the working folder.
	Roots []string
	// ReadOnly removes the tools that change files.
	ReadOnly bool
	// Poll is the interval at which subscribed files are checked, to find changes of which the
	// operating system sends no notification. The default is [DefaultPoll].
	Poll time.Duration
	// Server holds the options of [server.New]. If Instructions is empty, New writes them.
	Server server.Options
}

// Server is a [server.Server] of the files in its roots. Call Close to release the roots.
type Server struct {
	*server.Server
	roots   roots
	locks   locks
	watcher *watcher
}

// New opens the roots and returns a server. It fails if a root is not a folder or cannot be opened.
func New(opts ...Options) (*Server, error) {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	all, err := openRoots(o.Roots)
	if err != nil {
		return nil, err
	}
	if o.Server.Instructions == "" {
		o.Server.Instructions = serverInstructions(all, o.ReadOnly)
	}
	if o.Poll <= 0 {
		o.Poll = DefaultPoll
	}
	s := &Server{Server: server.New("files", Version, &o.Server), roots: all}
	s.watcher = newWatcher(o.Poll, s.notifyChange)
	s.addReaders()
	if !o.ReadOnly {
		s.addWriters()
	}
	s.addResources()
	s.Use(s.watchSubscriptions)
	return s, nil
}

// Close ends all subscriptions, stops the watcher and closes the roots. The server must not be used
// during or after it.
func (s *Server) Close() error {
	return errors.Join(s.Server.Close(), s.watcher.closeWatcher(), s.roots.closeAll())
}

func serverInstructions(all roots, readOnly bool) string {
	var b strings.Builder
	if len(all) == 1 {
		fmt.Fprintf(&b, "Files in the folder %s, and nowhere else. Relative paths begin there.", all[0].path)
	} else {
		fmt.Fprintf(&b, "Files in these folders, and nowhere else: %s. Relative paths begin at the first one; use absolute paths for the others.", all)
	}
	b.WriteString(" Use search to find files (glob) and text in them before you read whole files.")
	if !readOnly {
		b.WriteString(" Prefer edit over write for files that exist; read before you edit.")
	}
	return b.String()
}
