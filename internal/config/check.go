package config

import (
	"cmp"
	"net"
	"slices"
	"strings"
)

// Check returns all that can be found wrong with the files without starting anything: Problems, variables without values, and
// what only values can tell; in the order of the files and of their lines.
func (set *Set) Check() []Problem {
	problems := slices.Clone(set.Problems)
	for _, s := range set.Servers {
		_, more := s.resolve(set.Variables)
		problems = append(problems, s.beside(more)...)
	}
	for _, m := range set.Models {
		_, more := m.Resolve(set.Variables)
		problems = append(problems, more[len(m.Problems):]...)
	}
	g, more := set.Gateway.Resolve(set.Variables)
	problems = append(problems, more...)
	if why := badAddress(g.Address); why != "" && len(more) == 0 {
		problems = append(problems, Problem{Severity: Error, Position: g.Where("address"), Message: "gateway.address " + why, Hint: "write one such as 127.0.0.1:7800"})
	}
	set.order(problems)
	return problems
}

// beside returns those problems of resolving an entry that do not only follow from what is wrong with the entry itself.
func (s *Server) beside(problems []Problem) []Problem {
	if s.Valid() {
		return problems
	}
	return slices.DeleteFunc(problems, func(p Problem) bool { return p.Variable == "" })
}

// order sorts problems by the files and their lines; files that are none of the set's, such as an envFile, come last.
func (set *Set) order(problems []Problem) {
	place := map[string]int{}
	for i, f := range set.Files {
		place[f.Path] = i - len(set.Files)
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(place[a.Path]-place[b.Path], strings.Compare(a.Path, b.Path), a.Line-b.Line, a.Column-b.Column)
	})
}

// badAddress says what is wrong with an address to listen at; empty where nothing can be seen. A port alone is one.
func badAddress(address string) string {
	if address == "" {
		return ""
	}
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	host, port, err := net.SplitHostPort(address)
	switch {
	case err != nil || strings.ContainsAny(host, "/ "):
		return "must be HOST:PORT"
	case host != "" && strings.Trim(host, "0123456789.") == "" && net.ParseIP(host) == nil:
		return "has no IP address before its port"
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return "must end with a port, a number up to 65535"
	}
	return ""
}
