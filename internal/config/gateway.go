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

// gatewayKey is a key of the gateway's object.
type gatewayKey struct {
	name      string
	inProject bool // a project's file may have it
	read      func(e *entry, field string, n *node, g *Gateway)
	copy      func(to *Gateway, from Gateway)
}

// gatewayKeys are all keys of the gateway's object. A project may not set the keys that decide who
// reaches all of the user's servers, and what is recorded.
var gatewayKeys = []gatewayKey{
	{
		name: "address",
		read: func(e *entry, field string, n *node, g *Gateway) { e.string(field, n, &g.Address) },
		copy: func(to *Gateway, from Gateway) { to.Address = from.Address },
	},
	{
		name: "token",
		read: func(e *entry, field string, n *node, g *Gateway) { e.string(field, n, &g.Token) },
		copy: func(to *Gateway, from Gateway) { to.Token = from.Token },
	},
	{
		name: "toolSearch", inProject: true,
		read: func(e *entry, field string, n *node, g *Gateway) { e.flag(field, n, &g.ToolSearch) },
		copy: func(to *Gateway, from Gateway) { to.ToolSearch = from.ToolSearch },
	},
	{
		name: "pinned", inProject: true,
		read: func(e *entry, field string, n *node, g *Gateway) { e.strings(field, n, &g.Pinned) },
		copy: func(to *Gateway, from Gateway) { to.Pinned = from.Pinned },
	},
	{
		name: "audit",
		read: func(e *entry, field string, n *node, g *Gateway) { e.string(field, n, &g.Audit) },
		copy: func(to *Gateway, from Gateway) { to.Audit = from.Audit },
	},
	{
		name: "auditArguments",
		read: func(e *entry, field string, n *node, g *Gateway) { e.flag(field, n, &g.AuditArguments) },
		copy: func(to *Gateway, from Gateway) { to.AuditArguments = from.AuditArguments },
	},
	{
		name: "rateLimit",
		read: func(e *entry, field string, n *node, g *Gateway) { e.rate(field, n, &g.Rate) },
		copy: func(to *Gateway, from Gateway) { to.Rate = from.Rate },
	},
	{
		name: "hosts",
		read: func(e *entry, field string, n *node, g *Gateway) { e.strings(field, n, &g.Hosts) },
		copy: func(to *Gateway, from Gateway) { to.Hosts = from.Hosts },
	},
	{
		name: "origins",
		read: func(e *entry, field string, n *node, g *Gateway) { e.strings(field, n, &g.Origins) },
		copy: func(to *Gateway, from Gateway) { to.Origins = from.Origins },
	},
	{
		name: "clients", inProject: true,
		read: func(e *entry, field string, n *node, g *Gateway) { e.clients(field, n, &g.Clients) },
		copy: func(to *Gateway, from Gateway) { to.Clients = from.Clients },
	},
}

// findGatewayKey returns the key of a name, or nil.
func findGatewayKey(name string) *gatewayKey {
	for i := range gatewayKeys {
		if gatewayKeys[i].name == name {
			return &gatewayKeys[i]
		}
	}
	return nil
}

// gatewayKeyNames returns the names of all keys.
func gatewayKeyNames() (names []string) {
	for _, k := range gatewayKeys {
		names = append(names, k.name)
	}
	return names
}

func (r *fileReader) gateway(n *node) Gateway {
	var g Gateway
	if n == nil {
		return g
	}
	e := &entry{s: &Server{places: map[string]Position{}}, d: r.d}
	if e.expect("gateway", n, objectNode) {
		for _, m := range n.members {
			switch key := findGatewayKey(m.key.text); {
			case key == nil:
				e.unknown("gateway."+m.key.text, m.key.at, choose(m.key.text, gatewayKeyNames()), "the key means nothing to dowel")
			case r.source.Scope == Project && !key.inProject:
				e.warnf(m.key.at, "write it into the user's file", "gateway.%s has no effect in a project", m.key.text)
			default:
				key.read(e, "gateway."+m.key.text, m.value, &g)
			}
		}
	}
	g.places = e.s.places
	r.problems = append(r.problems, e.s.Problems...)
	return g
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
