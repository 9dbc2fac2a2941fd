package draft

import (
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
)

// compareServers returns what the new and changed servers of a file run or connect to, without
// secrets, and the removed ones.
func compareServers(was, is []*config.Server) (runs []string, removed []*config.Server) {
	find := func(all []*config.Server, name string) *config.Server {
		if i := slices.IndexFunc(all, func(s *config.Server) bool { return s.Name == name }); i >= 0 {
			return all[i]
		}
		return nil
	}
	for _, s := range is {
		now := describeStart(s)
		if old := find(was, s.Name); now != "" && (old == nil || describeStart(old) != now) {
			runs = append(runs, s.Name+": "+s.Mask(now))
		}
	}
	for _, s := range was {
		if find(is, s.Name) == nil {
			removed = append(removed, s)
		}
	}
	return runs, removed
}

// describeStart returns what a server runs or connects to, as the file writes it, or "" if the file
// disables it.
func describeStart(s *config.Server) string {
	switch {
	case s.Disabled:
		return ""
	case s.Command != "":
		return strings.Join(config.QuoteWords(append([]string{s.Command}, s.Args...)), " ")
	case s.URL != "":
		return s.URL
	}
	return ""
}
