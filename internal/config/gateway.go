package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Gateway is how the gateway in front of all servers is set up. The zero value says nothing: the gateway's defaults hold.
type Gateway struct {
	// Address is what it listens at, such as 127.0.0.1:7800.
	Address string
	// Token is what clients have to show.
	Token string
	// ToolSearch offers a search instead of all tools, and those in Pinned, by their qualified names.
	ToolSearch bool
	Pinned     []string
	// Audit is the file that calls are recorded in; AuditArguments records their arguments too.
	Audit          string
	AuditArguments bool
	// Rate bounds the calls of a client, per second; 0: no bound is set.
	Rate float64
	// Hosts and Origins are accepted beside those of this machine.
	Hosts, Origins []string
	// Clients hold what is different for single clients, by name.
	Clients map[string]GatewayClient

	places map[string]Position
}

// GatewayClient is what is different for one client. nil: as for all.
type GatewayClient struct {
	ToolSearch *bool
	Pinned     []string
}

// Where returns where a key of the gateway's object stands, such as "address"; it is zero for what is not in a file.
func (g Gateway) Where(field string) Position { return g.places["gateway."+field] }

// Same reports whether two say the same, wherever that stands.
func (g Gateway) Same(other Gateway) bool {
	g.places, other.places = nil, nil
	return reflect.DeepEqual(g, other)
}

var gatewayKeys = []string{"address", "token", "toolSearch", "pinned", "audit", "auditArguments", "rateLimit", "hosts", "origins", "clients"}

// projectKeys may stand in a project's file. The others decide who reaches all of the user's servers and what is recorded, which
// is not for a project to say.
var projectKeys = []string{"toolSearch", "pinned", "clients"}

func (r *fileReader) gateway(n *node) Gateway {
	var g Gateway
	if n == nil {
		return g
	}
	e := &entry{s: &Server{places: map[string]Position{}}, d: r.d}
	if e.expect("gateway", n, objectNode) {
		for _, m := range n.members {
			if r.source.Scope == Project && slices.Contains(gatewayKeys, m.key.text) && !slices.Contains(projectKeys, m.key.text) {
				e.warnf(m.key.at, "write it into the user's file", "gateway.%s has no effect in a project", m.key.text)
				continue
			}
			e.gatewayMember(&g, m)
		}
	}
	g.places = e.s.places
	r.problems = append(r.problems, e.s.Problems...)
	return g
}

func (e *entry) gatewayMember(g *Gateway, m member) {
	key := "gateway." + m.key.text
	switch m.key.text {
	case "address":
		e.string(key, m.value, &g.Address)
	case "token":
		e.string(key, m.value, &g.Token)
	case "toolSearch":
		e.flag(key, m.value, &g.ToolSearch)
	case "pinned":
		e.strings(key, m.value, &g.Pinned)
	case "audit":
		e.string(key, m.value, &g.Audit)
	case "auditArguments":
		e.flag(key, m.value, &g.AuditArguments)
	case "rateLimit":
		e.rate(key, m.value, &g.Rate)
	case "hosts":
		e.strings(key, m.value, &g.Hosts)
	case "origins":
		e.strings(key, m.value, &g.Origins)
	case "clients":
		e.clients(key, m.value, &g.Clients)
	default:
		e.unknown(key, m.key.at, choose(m.key.text, gatewayKeys), "the key means nothing to dowel")
	}
}

func (e *entry) clients(key string, n *node, into *map[string]GatewayClient) {
	e.place(key, n)
	if !e.expect(key, n, objectNode) {
		return
	}
	*into = map[string]GatewayClient{}
	for _, m := range n.members {
		field := key + "." + m.key.text
		if e.expect(field, m.value, objectNode) {
			(*into)[m.key.text] = e.client(field, m.value)
		}
	}
}

func (e *entry) client(field string, n *node) (c GatewayClient) {
	for _, m := range n.members {
		switch m.key.text {
		case "toolSearch":
			c.ToolSearch = new(bool)
			e.flag(field+".toolSearch", m.value, c.ToolSearch)
		case "pinned":
			e.strings(field+".pinned", m.value, &c.Pinned)
		default:
			e.unknown(field+"."+m.key.text, m.key.at, choose(m.key.text, []string{"toolSearch", "pinned"}), "the key means nothing to dowel")
		}
	}
	return c
}

// rate reads calls per second: a number, or "100/m".
func (e *entry) rate(field string, n *node, into *float64) {
	e.place(field, n)
	text, unit, _ := strings.Cut(n.text, "/")
	per := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600}[strings.TrimSpace(unit)]
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if n.kind != numberNode && n.kind != stringNode || err != nil || per == 0 || !(value > 0 && value < 1e9) {
		e.errorf(n.at, `write calls per second, or "100/m"`, "%s must be a number above zero", field)
		return
	}
	*into = value / per
}

// Resolve expands the variables of the gateway's strings. Where there are problems the gateway must not be opened as it is.
func (g Gateway) Resolve(v Variables) (Gateway, []Problem) {
	x := expansion{v: v.complete()}
	var problems []Problem
	expand := func(field, text string) string {
		value := x.text(text)
		for _, m := range x.missing {
			problems = append(problems, m.problem(g.Where(field), "gateway."+field, ""))
		}
		x.missing = nil
		return value
	}
	g.Address, g.Token, g.Audit = expand("address", g.Address), expand("token", g.Token), x.v.home(expand("audit", g.Audit))
	g.Hosts, g.Origins = slices.Clone(g.Hosts), slices.Clone(g.Origins)
	for i := range g.Hosts {
		g.Hosts[i] = expand(fmt.Sprintf("hosts[%d]", i), g.Hosts[i])
	}
	for i := range g.Origins {
		g.Origins[i] = expand(fmt.Sprintf("origins[%d]", i), g.Origins[i])
	}
	return g, problems
}
