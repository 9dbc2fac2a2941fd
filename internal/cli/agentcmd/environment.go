package agentcmd

import (
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/mcp"
)

// environment holds the settings of the user's files that an agent needs.
type environment struct {
	*modelregistry.Registry
	state          *state.State
	auditFile      string // path of the audit log; "" disables it
	auditArguments bool   // the audit log records arguments
	definitions    func() []hub.Definition
}

// readEnvironment reads the configuration and dowel's state, and warns of problems with models.
func readEnvironment(f *factory.Factory, opts *Flags) (*environment, error) {
	options, err := opts.Places.ConfigOptions()
	if err != nil {
		return nil, err
	}
	store, err := f.OpenState()
	if err != nil {
		return nil, err
	}
	set := config.Load(options)
	for _, p := range set.Problems {
		if p.Server == "" && isAboutModels(p) {
			f.Warn("%s", p.Text())
		}
	}
	e := &environment{Registry: modelregistry.New(f, set), state: store}
	settings, _ := set.Gateway.Resolve(set.Variables) // opening the gateway reports problems
	e.auditFile, e.auditArguments = settings.Audit, settings.AuditArguments
	e.definitions = sync.OnceValue(func() []hub.Definition {
		all, err := f.Definitions(opts.Places)
		if err != nil {
			return nil
		}
		return all
	})
	return e, nil
}

// isAboutModels reports whether a problem is a warning about models. Other commands report problems
// of servers and the gateway.
func isAboutModels(p config.Problem) bool {
	return p.Severity == config.Warning && (strings.HasPrefix(p.Message, "models") || strings.HasPrefix(p.Message, "model:"))
}

func (e *environment) modelNames() []string { return e.Set.ModelNames() }

// openAudit opens the audit log. It returns nil without an error if the log is disabled.
func (e *environment) openAudit() (*audit.File, error) {
	if e.auditFile == "" {
		return nil, nil
	}
	return audit.OpenFile(e.auditFile)
}

func (e *environment) auditOptions(f *factory.Factory) gateway.AuditOptions {
	return gateway.AuditOptions{Arguments: e.auditArguments, Mask: e.maskSecrets, OnError: func(err error) { f.Warn("the audit log: %v", err) }}
}

// maskSecrets masks the secrets of all configured servers in a text, and everything with the
// form of a secret.
func (e *environment) maskSecrets(text string) string {
	text = secretmask.Text(text)
	for _, d := range e.definitions() {
		if d.Mask != nil {
			text = d.Mask(text)
		}
	}
	return text
}

// decisionLog writes to the audit log why calls were allowed or refused. A nil log writes nothing.
type decisionLog struct {
	log    *audit.Log
	client string      // that decides, in the log
	file   *audit.File // nil if it is not closed with the log
}

// openDecisionLog opens the audit log for decisions. It returns nil if the log is disabled.
func openDecisionLog(f *factory.Factory, opts *Flags, e *environment) (*decisionLog, error) {
	if opts.Hub != nil {
		return &decisionLog{opts.Hub.Audit, control.HostProgram, nil}, nil
	}
	file, err := e.openAudit()
	if file == nil {
		return nil, err
	}
	return &decisionLog{audit.NewLog(file, audit.Options(e.auditOptions(f))), daemon.ProxyName, file}, nil
}

func (l *decisionLog) writeDecision(e agent.Approval, origin func(wire string) (server, tool string, ok bool)) {
	if l == nil {
		return
	}
	name := e.Call.Name
	if _, tool, ok := origin(name); ok {
		name = tool
	}
	r := audit.Record{
		Time: time.Now(), Client: l.client, Method: mcp.MethodCallTool, Server: e.Server, Name: name,
		Outcome: "refused", By: e.By, Reason: e.Reason, Arguments: e.Call.Input, Sent: len(e.Call.Input),
	}
	if e.Call.Name == "" {
		r.Method = mcp.MethodCreateMessage
	}
	if e.Allowed {
		r.Outcome = "allowed"
	}
	l.log.Write(r)
}

func (l *decisionLog) closeLog() {
	if l != nil && l.file != nil {
		l.file.Close()
	}
}
