// Package files is an MCP server of the files in some folders, its roots, and of nothing outside them.
//
// It has the tools read, list, search and info, and, unless it is read-only, write, edit, move and delete. Each file and
// folder is a resource file:///{+path}, whose readers are told when it changes; those at the top of the roots are listed.
//
// # Paths
//
// A path is relative to the first root, or absolute and in one of the roots, or a file:// URI of it. Results name what is in the
// first root by relative paths, with slashes, and everything else by absolute ones; a name that is not UTF-8 by its URI. The
// roots are those of [Options]: what clients offer as their roots does not widen or narrow them.
//
// Everything is done on an [os.Root]: neither ".." nor a symbolic link leads out, whoever changes the folders meanwhile.
// Symbolic links are followed where they are relative and stay inside their root; list and search do not follow them. Devices,
// pipes and sockets are not opened.
//
// # Files
//
// Text is UTF-8; UTF-16 with a byte order mark is shown but not edited; what of a text is not UTF-8 is shown as U+FFFD and left
// alone by edits. Where all lines end with CR LF, tools see LF and write CR LF. Images and sounds come as such, other binary
// files not at all. What is written is complete or not there (a temporary file, renamed), keeps the permissions
// and, where the system lets it, the owner; not the other names (hard links), ACLs and extended attributes. Changes
// of one file that come at the same time are made one after another, and one by another program is not overwritten by an edit.
//
// # Limits
//
// read returns at most [MaxText] bytes of text, or an image or sound of [MaxMedia]; a resource has at most [MaxResource], a
// file that is edited [MaxEdit], one that is searched [MaxSearched]. list and search say where they left something out.
// At most [MaxWatched] files and folders are watched, only while somebody is subscribed to them: with the system's notices, and by
// looking every [DefaultPoll] besides.
package files

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/server"
)

// Limits, in bytes but for MaxWatched.
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

// Version is that of the server.
const Version = "1.0.0"

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// Roots are the folders that may be used, default the working folder. They must exist. One that is inside
	// another adds nothing.
	Roots []string
	// ReadOnly leaves out the tools that change files.
	ReadOnly bool
	// Poll is how often files that somebody is subscribed to are looked at without a notice of the system, default
	// [DefaultPoll].
	Poll time.Duration
	// Server holds the options of [server.New]; Instructions have a default of their own.
	Server server.Options
}

// Server is a [server.Server] of the files in its roots.
type Server struct {
	*server.Server
	roots   roots
	locks   locks
	watcher *watcher
}

// New returns a server. It is an error if a root is no folder that can be opened.
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
		o.Server.Instructions = instructions(all, o.ReadOnly)
	}
	if o.Poll <= 0 {
		o.Poll = DefaultPoll
	}
	s := &Server{Server: server.New("files", Version, &o.Server), roots: all}
	s.watcher = newWatcher(o.Poll, s.tell)
	s.addReaders()
	if !o.ReadOnly {
		s.addWriters()
	}
	s.addResources()
	s.Use(s.follow)
	return s, nil
}

// Close ends all subscriptions and the watching, and closes the roots. Nothing may be called during or after it.
func (s *Server) Close() error {
	return errors.Join(s.Server.Close(), s.watcher.close(), s.roots.close())
}

func instructions(all roots, readOnly bool) string {
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
