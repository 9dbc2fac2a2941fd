package skills

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/server"
)

// DefaultPoll is the default of [Options.Poll].
const DefaultPoll = 2 * time.Second

// Options configure a [Folder]. The zero value is ready.
type Options struct {
	// Poll is the interval at which the folder is compared with its earlier state, while a client
	// listens to changes. The default is [DefaultPoll].
	Poll time.Duration
	// Logger receives the reasons why a folder with SKILL.md is no skill, each once. nil means
	// [slog.Default].
	Logger *slog.Logger
}

// Folder is a folder with skills in any depth: each folder with a valid SKILL.md. It reads the
// files anew for each request, so changes count at once. Its methods may be called concurrently.
//
// Names that begin with a dot, symbolic links, pipes and devices are no part of a skill, and no
// path leads out of the folder. A folder is no skill if its SKILL.md has no valid frontmatter, if
// its name is not the one in the frontmatter, or if it exceeds [MaxFiles] or [MaxSize].
type Folder struct {
	root *os.Root
	name string // of the folder itself
	opts Options

	mu       sync.Mutex // guards the fields below, and is held during a scan
	last     *snapshot
	reported map[string]bool // problems that were logged

	watch watcher
}

// Open opens a folder, which must exist; it need not have skills yet. A nil opts is the zero
// [Options]. The caller must close the folder.
func Open(dir string, opts *Options) (*Folder, error) {
	f := &Folder{last: &snapshot{}, reported: map[string]bool{}}
	if opts != nil {
		f.opts = *opts
	}
	if f.opts.Poll <= 0 {
		f.opts.Poll = DefaultPoll
	}
	if f.opts.Logger == nil {
		f.opts.Logger = slog.Default()
	}
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err == nil {
		f.root, err = os.OpenRoot(real)
	}
	if err != nil {
		return nil, fmt.Errorf("skills: %q cannot be used as a folder: %w", dir, err)
	}
	f.name = filepath.Base(real)
	return f, nil
}

// Close ends the watch of changes, and closes the folder. Servers with it answer requests about its
// skills with errors from then on.
func (f *Folder) Close() error {
	f.watch.stopLoop()
	return f.root.Close()
}

// Skills returns the present skills in the order of their URIs, and the reasons why other folders
// with SKILL.md are no skills.
func (f *Folder) Skills() (all []*Skill, problems []string, err error) {
	now, err := f.scan()
	if err != nil {
		return nil, nil, err
	}
	for _, s := range now.skills {
		copied := *s
		all = append(all, &copied)
	}
	return all, now.problems, nil
}

// scan returns the present state of the folder.
func (f *Folder) scan() (*snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := scanFolder(f.root, f.name, f.last)
	if err != nil {
		return nil, fmt.Errorf("skills: the folder cannot be read: %w", err)
	}
	f.last = now
	for _, problem := range now.problems {
		if !f.reported[problem] && len(f.reported) < maxEntries {
			f.reported[problem] = true
			f.opts.Logger.Warn("a folder is not served as a skill", "reason", problem)
		}
	}
	return now, nil
}

// AddTo serves the skills of the folder on s. It adds the methods of the extension, which s then
// declares, a resource template for all files, and each SKILL.md to the list of resources. A server
// can serve one folder. While clients listen, s tells them about changes.
// All principals see all skills: [server.Options] has Visible for the resources, and middleware can
// refuse the methods.
func (f *Folder) AddTo(s *server.Server) error {
	template, err := server.NewResource("skill://{+path}", "A file of a skill", f.readResource, server.ResourceOptions{Name: "skill file"})
	if err != nil {
		return err
	}
	if err := s.Add(template); err != nil {
		return fmt.Errorf("skills: the server has skills already: %w", err)
	}
	s.Provide(f.provideResources)
	server.Handle(s, listMethod, f.listSkills)
	server.Handle(s, getMethod, f.getSkill)
	server.Handle(s, directoryMethod, f.readDirectory)
	s.Use(f.watchSubscriptions(s))
	return nil
}
