package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Gateway is the configuration of the gateway in front of all servers. Zero values mean the
// gateway's defaults.
type Gateway struct {
	// Address is the listen address, such as 127.0.0.1:7800.
	Address string
	// Token is the bearer token that clients must send.
	Token string
	// ToolSearch offers a search tool instead of all tools. The tools in Pinned, by qualified name,
	// stay visible.
	ToolSearch bool
	Pinned     []string
	// Audit is the file in which calls are recorded. AuditArguments also records their arguments.
	Audit          string
	AuditArguments bool
	// Rate limits the calls of a client per second. 0 means no limit.
	Rate float64
	// Hosts and Origins are accepted in addition to the names of this machine.
	Hosts, Origins []string
	// Clients override settings for single clients, by name.
	Clients map[string]GatewayClient

	positions map[string]Position
}

// GatewayClient overrides settings for one client. A nil field overrides nothing.
type GatewayClient struct {
	ToolSearch *bool
	Pinned     []string
}

// Where returns the position of a key of the gateway object, such as "address". It is zero if the
// key is not in a file.
func (g Gateway) Where(field string) Position { return g.positions["gateway."+field] }

// Same reports whether two gateways have the same values. Positions are ignored.
func (g Gateway) Same(other Gateway) bool {
	g.positions, other.positions = nil, nil
	return reflect.DeepEqual(g, other)
}

var gatewayKeys = []string{"address", "token", "toolSearch", "pinned", "audit", "auditArguments", "rateLimit", "hosts", "origins", "clients"}

// projectKeys may be set in a project's file. The other keys decide who can reach the user's servers and which calls are recorded. A project must not set them.
var projectKeys = []string{"toolSearch", "pinned", "clients"}

func (r *fileReader) readGateway(n *node) Gateway {
	var g Gateway
	if n == nil {
		return g
	}
	e := &entryReader{s: &Server{positions: map[string]Position{}}, d: r.d}
	if e.expectKind("gateway", n, objectNode) {
		for _, m := range n.members {
			if r.source.Scope == Project && slices.Contains(gatewayKeys, m.key.text) && !slices.Contains(projectKeys, m.key.text) {
				e.warnf(m.key.at, "write it into the user's file", "gateway.%s has no effect in a project", m.key.text)
				continue
			}
			e.readGatewayMember(&g, m)
		}
	}
	g.positions = e.s.positions
	r.problems = append(r.problems, e.s.Problems...)
	return g
}

func (e *entryReader) readGatewayMember(g *Gateway, m member) {
	key := "gateway." + m.key.text
	switch m.key.text {
	case "address":
		e.readString(key, m.value, &g.Address)
	case "token":
		e.readString(key, m.value, &g.Token)
	case "toolSearch":
		e.readBool(key, m.value, &g.ToolSearch)
	case "pinned":
		e.readStrings(key, m.value, &g.Pinned)
	case "audit":
		e.readString(key, m.value, &g.Audit)
	case "auditArguments":
		e.readBool(key, m.value, &g.AuditArguments)
	case "rateLimit":
		e.readRate(key, m.value, &g.Rate)
	case "hosts":
		e.readStrings(key, m.value, &g.Hosts)
	case "origins":
		e.readStrings(key, m.value, &g.Origins)
	case "clients":
		e.readClients(key, m.value, &g.Clients)
	default:
		e.addUnknown(key, m.key.at, suggestOrList(m.key.text, gatewayKeys), "dowel does not know this key")
	}
}

func (e *entryReader) readClients(key string, n *node, into *map[string]GatewayClient) {
	e.recordPosition(key, n)
	if !e.expectKind(key, n, objectNode) {
		return
	}
	*into = map[string]GatewayClient{}
	for _, m := range n.members {
		field := key + "." + m.key.text
		if e.expectKind(field, m.value, objectNode) {
			(*into)[m.key.text] = e.readClient(field, m.value)
		}
	}
}

func (e *entryReader) readClient(field string, n *node) (c GatewayClient) {
	for _, m := range n.members {
		switch m.key.text {
		case "toolSearch":
			c.ToolSearch = new(bool)
			e.readBool(field+".toolSearch", m.value, c.ToolSearch)
		case "pinned":
			e.readStrings(field+".pinned", m.value, &c.Pinned)
		default:
			e.addUnknown(field+"."+m.key.text, m.key.at, suggestOrList(m.key.text, []string{"toolSearch", "pinned"}), "dowel does not know this key")
		}
	}
	return c
}

// readRate reads calls per second: a number, or a string such as "100/m".
func (e *entryReader) readRate(field string, n *node, into *float64) {
	e.recordPosition(field, n)
	text, unit, _ := strings.Cut(n.text, "/")
	per := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600}[strings.TrimSpace(unit)]
	value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if n.kind != numberNode && n.kind != stringNode || err != nil || per == 0 || !(value > 0 && value < 1e9) {
		e.errorf(n.at, `write calls per second, or "100/m"`, "%s must be a number above zero", field)
		return
	}
	*into = value / per
}

// Resolve expands the variables of the gateway's strings. If it returns problems, the gateway must
// not be opened.
func (g Gateway) Resolve(v Variables) (Gateway, []Problem) {
	x := expansion{v: v.withDefaults()}
	var problems []Problem
	expand := func(field, text string) string {
		value := x.expandText(text)
		for _, m := range x.missing {
			problems = append(problems, m.toProblem(g.Where(field), "gateway."+field, ""))
		}
		x.missing = nil
		return value
	}
	g.Address, g.Token, g.Audit = expand("address", g.Address), expand("token", g.Token), x.v.expandHome(expand("audit", g.Audit))
	g.Hosts, g.Origins = slices.Clone(g.Hosts), slices.Clone(g.Origins)
	for i := range g.Hosts {
		g.Hosts[i] = expand(fmt.Sprintf("hosts[%d]", i), g.Hosts[i])
	}
	for i := range g.Origins {
		g.Origins[i] = expand(fmt.Sprintf("origins[%d]", i), g.Origins[i])
	}
	return g, problems
}
