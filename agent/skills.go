package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/skills"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// skillSource has the skills of an agent's servers. Only a [Toolbox] has one.
type skillSource interface {
	// listSkills returns the skills of all servers, without reading a file.
	listSkills(ctx context.Context) ([]*skills.Skill, error)
	// getSkill returns the present entry of a skill.
	getSkill(ctx context.Context, uri string) (*skills.Skill, error)
	// readSkill reads a file of a skill, and verifies it.
	readSkill(ctx context.Context, s *skills.Skill, file string) (mcp.ResourceContents, error)
}

// maxSkills limits the list of skills.
const maxSkills = 1000

// listedSkill is a skill with the name by which the model loads it.
type listedSkill struct {
	*skills.Skill
	label  string
	server string // "" if it is the only one
}

// skillState is the skills of an agent. All methods may be called concurrently.
//
// A loaded skill is held with the entry from which it was loaded, for the rest of the conversation:
// its files are verified against this entry. Skills come from strangers and may tell the model to
// run programs. So the user approves a skill before it is loaded ([run.approveSkill]). Where the
// user cannot be asked, a skill is loaded all the same, and from then on approvals that the user
// has given earlier do not count, because they were not given for the work of the skill.
type skillState struct {
	source skillSource // nil: there are no skills
	tool   string      // the name of read_skill

	mu         sync.Mutex // guards the fields below
	listed     []listedSkill
	stale      bool                   // the list may be out of date
	failed     bool                   // the last list failed
	held       map[string]listedSkill // loaded skills by URI
	approved   map[string]bool        // by contentKey: what the user has approved
	unapproved bool                   // a skill was loaded without an approval
}

// contentKey identifies a skill and all of its contents. An approval counts for them only. It is ""
// for a dynamic skill, which cannot be bound to contents.
func (s *listedSkill) contentKey() string {
	if s.Dynamic {
		return ""
	}
	var b strings.Builder
	b.WriteString(s.URI)
	for _, f := range s.Files {
		fmt.Fprintf(&b, "\n%s %s %d", f.URI, f.Digest, f.Size)
	}
	return b.String()
}

// markStale has the next refreshList list the skills again.
func (s *skillState) markStale() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}

// retryList has the next refreshList try again if the last list failed.
func (s *skillState) retryList() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = s.stale || s.failed
}

// hasSkills reports whether the servers have listed any.
func (s *skillState) hasSkills() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.listed) > 0
}

// refreshList lists the skills if they may have changed. After an error the last list stays. Only
// the first of several errors in a row is returned. changed reports that the list is another one.
func (s *skillState) refreshList(ctx context.Context) (changed bool, err error) {
	s.mu.Lock()
	stale := s.stale && s.source != nil
	s.stale = false
	s.mu.Unlock()
	if !stale {
		return false, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, resourceListTimeout, fmt.Errorf("they did not arrive within %v", resourceListTimeout))
	defer cancel()
	all, err := s.source.listSkills(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.failed {
			return false, nil
		}
		s.failed = true
		return false, fmt.Errorf("the skills could not be listed: %w", err)
	}
	listed := labelSkills(all)
	changed = !slices.EqualFunc(listed, s.listed, func(a, b listedSkill) bool { return a.label == b.label && a.Description() == b.Description() })
	s.listed, s.failed = listed, false
	return changed, nil
}

// labelSkills returns the valid skills, each with its name. Names begin with the server. Skills of
// one server that have the same name are named by their folders.
func labelSkills(all []*skills.Skill) (listed []listedSkill) {
	count := map[string]int{}
	for _, s := range all {
		if s.Check() != nil {
			continue
		}
		server, _ := s.Meta[wirename.MetaServer].(string)
		l := listedSkill{s, s.Name(), server}
		if server != "" {
			l.label = server + "/" + s.Name()
		}
		count[l.label]++
		listed = append(listed, l)
	}
	for i := range listed {
		if s := &listed[i]; count[s.label] > 1 {
			_, own, _ := wirename.SplitResourceURI(s.URI)
			_, folder, _ := strings.Cut(strings.TrimSuffix(own, "/SKILL.md"), "://")
			s.label = strings.TrimPrefix(s.server+"/"+folder, "/")
		}
	}
	slices.SortFunc(listed, func(a, b listedSkill) int {
		return cmp.Or(strings.Compare(a.label, b.label), strings.Compare(a.URI, b.URI))
	})
	return listed
}

// findSkill returns the skill that the model names by its label, its URI, or its name alone if no
// other skill has the name.
func (s *skillState) findSkill(name string) (found listedSkill, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var named []listedSkill
	for _, l := range s.listed {
		if l.label == name || l.URI == name {
			return l, nil
		}
		if strings.EqualFold(l.Name(), name) {
			named = append(named, l)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) > 1:
		return found, fmt.Errorf("several skills are named %s: use one of %s", oneLine(name), labelsOf(named))
	}
	return found, fmt.Errorf("no skill is named %s: %s without arguments lists the skills", oneLine(name), s.tool)
}

func labelsOf(all []listedSkill) string {
	var labels []string
	for _, l := range all {
		labels = append(labels, oneLine(l.label))
	}
	return strings.Join(labels, ", ")
}

// heldSkill returns a loaded skill with the entry from which it was loaded.
func (s *skillState) heldSkill(uri string) (listedSkill, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.held[uri]
	return held, ok
}

// holdSkill records that the conversation holds a skill.
func (s *skillState) holdSkill(l listedSkill, isApproved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil {
		s.held = map[string]listedSkill{}
	}
	s.held[l.URI] = l
	s.unapproved = s.unapproved || !isApproved
}

// actsUnapproved reports whether the model has loaded a skill that the user has not approved.
func (s *skillState) actsUnapproved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unapproved
}

func (s *skillState) isApproved(l *listedSkill) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := l.contentKey()
	return key != "" && s.approved[key]
}

func (s *skillState) recordApproval(l *listedSkill) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.approved == nil {
		s.approved = map[string]bool{}
	}
	s.approved[l.contentKey()] = true
}

// replaceEntry replaces the entry of a skill that has changed, so that the next load uses the new
// one.
func (s *skillState) replaceEntry(ctx context.Context, l listedSkill) {
	entry, err := s.source.getSkill(ctx, l.URI)
	if err != nil {
		s.markStale()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.listed {
		if s.listed[i].URI == l.URI {
			s.listed[i].Skill = entry
		}
	}
}

// skillSource implements the interface that [New] looks for.
func (b *Toolbox) skillSource() skillSource { return toolboxSkills{b} }

// toolboxSkills are the skills of a toolbox.
type toolboxSkills struct{ box *Toolbox }

func (b toolboxSkills) listSkills(ctx context.Context) (all []*skills.Skill, err error) {
	if !mcpwire.OffersSkills(b.box.client.Server().Capabilities) {
		return nil, nil
	}
	for s, err := range skills.List(ctx, b.box.client) {
		if errors.Is(err, errors.ErrUnsupported) || isMissingMethod(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if all = append(all, s); len(all) == maxSkills {
			break
		}
	}
	return all, nil
}

func (b toolboxSkills) getSkill(ctx context.Context, uri string) (*skills.Skill, error) {
	return skills.Get(ctx, b.box.client, uri)
}

func (b toolboxSkills) readSkill(ctx context.Context, s *skills.Skill, file string) (mcp.ResourceContents, error) {
	if a, ok := ctx.Value(targetKey{}).(*questionTarget); ok {
		b.box.addTarget(a)
		defer b.box.removeTarget(a)
	}
	return s.Read(ctx, b.box.client, file)
}
