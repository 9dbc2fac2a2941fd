package config

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Gateway is the configuration of the gateway in front of all servers. Zero values mean the
// gateway's defaults.
type Gateway struct {
	// Address is the listen address, such as 127.0.0.1:7800.
	Address string
	// Token is the bearer token that clients must send. "" means the token that dowel stores.
	Token string
	// Open lets everyone on this machine use the gateway without a token. It needs
	// a loopback address.
	Open bool
	// Auth makes clients send access tokens of an authorization server.
	Auth GatewayAuth
	// ToolSearch offers a search tool instead of all tools. The tools in Pinned, by qualified name,
	// stay visible.
	ToolSearch bool
	Pinned     []string
	// Audit is the file in which calls are recorded. AuditArguments also records their arguments.
	Audit          string
	AuditArguments bool
	// Rate limits the calls of a client per second. 0 means no limit.
	Rate float64
	// Limits bound what clients hold.
	Limits GatewayLimits
	// TaskAfter is the time after which a call becomes a task, for clients that have tasks. 0 means
	// that only servers make tasks of calls.
	TaskAfter time.Duration
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
	// Token is a bearer token of the client's own. Requests with it belong to this client. "" means
	// that the client has none.
	Token string
}

// Where returns the position of a key of the gateway object, such as "address". It is zero if the
// key is not in a file.
func (g Gateway) Where(field string) Position { return g.positions["gateway."+field] }

// Same reports whether two gateways have the same values. Positions are ignored.
func (g Gateway) Same(other Gateway) bool {
	g.positions, other.positions = nil, nil
	return reflect.DeepEqual(g, other)
}

// WithoutTokens returns a copy of the settings that has no tokens.
func (g Gateway) WithoutTokens() Gateway {
	g.Token, g.Clients = "", maps.Clone(g.Clients)
	for name, c := range g.Clients {
		c.Token = ""
		g.Clients[name] = c
	}
	return g
}

// gatewayKey is a key of the gateway's object.
type gatewayKey struct {
	name      string
	inProject bool // a project's file may have it
	read      func(e *entryReader, field string, n *node, g *Gateway)
	copy      func(to *Gateway, from Gateway)
}

// gatewayKeys are all keys of the gateway's object. A project may not set the keys that decide who
// reaches all of the user's servers, and what is recorded.
var gatewayKeys = []gatewayKey{
	{
		name: "address",
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readString(field, n, &g.Address) },
		copy: func(to *Gateway, from Gateway) { to.Address = from.Address },
	},
	{
		name: "token",
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readString(field, n, &g.Token) },
		copy: func(to *Gateway, from Gateway) { to.Token = from.Token },
	},
	{
		name: "open",
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readBool(field, n, &g.Open) },
		copy: func(to *Gateway, from Gateway) { to.Open = from.Open },
	},
	{
		name: "auth",
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readGatewayAuth(field, n, &g.Auth) },
		copy: func(to *Gateway, from Gateway) { to.Auth = from.Auth },
	},
	{
		name: "toolSearch", inProject: true,
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readBool(field, n, &g.ToolSearch) },
		copy: func(to *Gateway, from Gateway) { to.ToolSearch = from.ToolSearch },
	},
	{
		name: "pinned", inProject: true,
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readStrings(field, n, &g.Pinned) },
		copy: func(to *Gateway, from Gateway) { to.Pinned = from.Pinned },
	},
	{
		name: "audit",
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readString(field, n, &g.Audit) },
		copy: func(to *Gateway, from Gateway) { to.Audit = from.Audit },
	},
	{
		name: "auditArguments",
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readBool(field, n, &g.AuditArguments) },
		copy: func(to *Gateway, from Gateway) { to.AuditArguments = from.AuditArguments },
	},
	{
		name: "rateLimit",
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readRate(field, n, &g.Rate) },
		copy: func(to *Gateway, from Gateway) { to.Rate = from.Rate },
	},
	{
		name: "limits",
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readLimits(field, n, &g.Limits) },
		copy: func(to *Gateway, from Gateway) { to.Limits = from.Limits },
	},
	{
		name: "tasks",
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readTasks(field, n, &g.TaskAfter) },
		copy: func(to *Gateway, from Gateway) { to.TaskAfter = from.TaskAfter },
	},
	{
		name: "hosts",
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readStrings(field, n, &g.Hosts) },
		copy: func(to *Gateway, from Gateway) { to.Hosts = from.Hosts },
	},
	{
		name: "origins",
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readStrings(field, n, &g.Origins) },
		copy: func(to *Gateway, from Gateway) { to.Origins = from.Origins },
	},
	{
		name: "clients", inProject: true,
		read: func(e *entryReader, field string, n *node, g *Gateway) { e.readClients(field, n, &g.Clients) },
		copy: func(to *Gateway, from Gateway) { to.addClients(from.Clients) },
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

// readGateway reads the gateway object. A project may set only projectKeys.
func (r *fileReader) readGateway(n *node) Gateway {
	var g Gateway
	if n == nil {
		return g
	}
	e := &entryReader{s: &Server{Source: r.source, positions: map[string]Position{}}, d: r.d}
	if e.expectKind("gateway", n, objectNode) {
		for _, m := range n.members {
			switch key := findGatewayKey(m.key.text); {
			case key == nil:
				e.addUnknown("gateway."+m.key.text, m.key.at, suggestOrList(m.key.text, gatewayKeyNames()), "dowel does not know this key")
			case r.source.Scope == Project && !key.inProject:
				e.warnf(m.key.at, "write it into the user's file", "gateway.%s has no effect in a project", m.key.text)
			default:
				key.read(e, "gateway."+m.key.text, m.value, &g)
			}
		}
	}
	g.positions = e.s.positions
	r.problems = append(r.problems, e.s.Problems...)
	return g
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
		case "token":
			if e.s.Scope == Project {
				e.warnf(m.key.at, "write it into the user's file", "%s.token has no effect in a project", field)
				continue
			}
			e.readString(field+".token", m.value, &c.Token)
		default:
			e.addUnknown(field+"."+m.key.text, m.key.at, suggestOrList(m.key.text, []string{"toolSearch", "pinned", "token"}), "dowel does not know this key")
		}
	}
	return c
}

// readTasks reads the object that says which calls become tasks.
func (e *entryReader) readTasks(field string, n *node, after *time.Duration) {
	e.recordPosition(field, n)
	if !e.expectKind(field, n, objectNode) {
		return
	}
	for _, m := range n.members {
		name := field + "." + m.key.text
		if m.key.text != "after" {
			e.addUnknown(name, m.key.at, suggestOrList(m.key.text, []string{"after"}), "dowel does not know this key")
			continue
		}
		e.readDuration(name, m.value, 0, after)
	}
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
	g.Auth = g.expandAuth(expand)
	g.Hosts, g.Origins = slices.Clone(g.Hosts), slices.Clone(g.Origins)
	for i := range g.Hosts {
		g.Hosts[i] = expand(fmt.Sprintf("hosts[%d]", i), g.Hosts[i])
	}
	for i := range g.Origins {
		g.Origins[i] = expand(fmt.Sprintf("origins[%d]", i), g.Origins[i])
	}
	g.Clients = maps.Clone(g.Clients)
	for name, c := range g.Clients {
		c.Token = expand("clients."+name+".token", c.Token)
		g.Clients[name] = c
	}
	problems = append(problems, g.checkAccess()...)
	return g, append(problems, g.checkAuth()...)
}

// checkAccess returns the contradictions between the keys that decide who may use the gateway.
func (g Gateway) checkAccess() (problems []Problem) {
	if g.Open && g.Token != "" {
		problems = append(problems, Problem{
			Severity: Error, Position: g.Where("open"), Message: "gateway.open lets everyone in, and gateway.token asks for a token",
			Hint: "remove one of the two",
		})
	}
	owners := map[string]string{g.Token: "gateway.token"}
	for _, name := range slices.Sorted(maps.Keys(g.Clients)) {
		field := "clients." + name + ".token"
		token := g.Clients[name].Token
		if token == "" {
			continue
		}
		if owner := owners[token]; owner != "" {
			problems = append(problems, Problem{
				Severity: Error, Position: g.Where(field), Message: "gateway." + field + " is the same token as " + owner,
				Hint: "give each client a token of its own",
			})
		}
		owners[token] = "gateway." + field
	}
	return problems
}

// addClients takes the clients, and the settings of known clients, that g lacks.
func (g *Gateway) addClients(other map[string]GatewayClient) {
	all := maps.Clone(g.Clients)
	if all == nil {
		all = map[string]GatewayClient{}
	}
	for name, more := range other {
		c := all[name]
		if c.ToolSearch == nil {
			c.ToolSearch = more.ToolSearch
		}
		if c.Pinned == nil {
			c.Pinned = more.Pinned
		}
		c.Token = cmp.Or(c.Token, more.Token)
		all[name] = c
	}
	g.Clients = all
}
