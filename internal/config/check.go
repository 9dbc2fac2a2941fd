package config

import (
	"cmp"
	"net"
	"slices"
	"strings"
)

// Check returns all problems that can be found without starting a server: the set's Problems,
// variables without values, and invalid expanded values. They are sorted by file and line.
func (set *Set) Check() []Problem {
	problems := slices.Clone(set.Problems)
	for _, s := range set.Servers {
		_, more := s.resolveAll(set.Variables)
		problems = append(problems, s.additionalProblems(more)...)
	}
	for _, m := range set.Models {
		_, more := m.Resolve(set.Variables)
		problems = append(problems, more[len(m.Problems):]...)
	}
	g, more := set.Gateway.Resolve(set.Variables)
	problems = append(problems, more...)
	if why := addressProblem(g.Address); why != "" && len(more) == 0 {
		problems = append(problems, Problem{Severity: Error, Position: g.Where("address"), Message: "gateway.address " + why, Hint: "write one such as 127.0.0.1:7800"})
	}
	set.sortProblems(problems)
	return problems
}

// additionalProblems drops the problems of resolving an invalid entry that are consequences of its
// errors.
func (s *Server) additionalProblems(problems []Problem) []Problem {
	if s.Valid() {
		return problems
	}
	return slices.DeleteFunc(problems, func(p Problem) bool { return p.Variable == "" })
}

// sortProblems sorts problems by file, in the order of the set, and line. Files outside the set,
// such as an envFile, come last.
func (set *Set) sortProblems(problems []Problem) {
	place := map[string]int{}
	for i, f := range set.Files {
		place[f.Path] = i - len(set.Files)
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(place[a.Path]-place[b.Path], strings.Compare(a.Path, b.Path), a.Line-b.Line, a.Column-b.Column)
	})
}

// addressProblem describes the problem of a listen address, or returns "". A port alone is valid.
func addressProblem(address string) string {
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
