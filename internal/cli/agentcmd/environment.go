package agentcmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/mcp"
)

// environment is what the user's files say that concerns an agent.
type environment struct {
	*modelregistry.Registry
	state          *state.State
	auditFile      string // the file of the audit log; empty: there is none
	auditArguments bool   // are recorded
	definitions    func() []hub.Definition
}

// readEnvironment reads the user's files.
func readEnvironment(f *factory.Factory, opts *Flags) (*environment, error) {
	where, err := opts.Places.ConfigOptions()
	if err != nil {
		return nil, err
	}
	store, err := f.OpenState()
	if err != nil {
		return nil, err
	}
	set := config.Load(where)
	for _, p := range set.Problems {
		if p.Server == "" && isAboutModels(p) {
			f.Warn("%s", p.Text())
		}
	}
	s := &environment{Registry: modelregistry.New(f, set), state: store}
	settings, _ := set.Gateway.Resolve(set.Variables) // what cannot be resolved is told where the gateway is opened
	s.auditFile, s.auditArguments = settings.Audit, settings.AuditArguments
	s.definitions = sync.OnceValue(func() []hub.Definition {
		all, err := f.Definitions(opts.Places)
		if err != nil {
			return nil
		}
		return all
	})
	return s, nil
}

// aboutModels: those of servers and the gateway are told by who runs them.
func isAboutModels(p config.Problem) bool {
	return p.Severity == config.Warning && (strings.HasPrefix(p.Message, "models") || strings.HasPrefix(p.Message, "model:"))
}

func (s *environment) modelNames() []string { return s.Set.ModelNames() }

// openAudit opens the audit log; nil where there is none.
func (s *environment) openAudit() (*os.File, error) {
	if s.auditFile == "" {
		return nil, nil
	}
	err := os.MkdirAll(filepath.Dir(s.auditFile), 0o700)
	if err == nil {
		var log *os.File
		if log, err = os.OpenFile(s.auditFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			return log, nil
		}
	}
	return nil, fmt.Errorf("the audit log %s cannot be written: %w", s.auditFile, err)
}

func (s *environment) auditOptions(f *factory.Factory) gateway.AuditOptions {
	return gateway.AuditOptions{Arguments: s.auditArguments, Mask: s.maskSecrets, OnError: func(err error) { f.Warn("the audit log: %v", err) }}
}

// maskSecrets hides the secrets of all servers of the configuration.
func (s *environment) maskSecrets(text string) string {
	for _, d := range s.definitions() {
		if d.Mask != nil {
			text = d.Mask(text)
		}
	}
	return text
}

// decisionLog is the part of the audit log that says why calls were made or not; nil records nothing.
type decisionLog struct {
	log  *gateway.AuditLog
	file *os.File
}

// openDecisionLog opens the audit log, if there is to be one.
func openDecisionLog(f *factory.Factory, s *environment) (*decisionLog, error) {
	file, err := s.openAudit()
	if file == nil {
		return nil, err
	}
	return &decisionLog{gateway.NewAuditLog(file, s.auditOptions(f)), file}, nil
}

func (d *decisionLog) writeDecision(e agent.Approval, origin func(wire string) (server, tool string, ok bool)) {
	if d == nil {
		return
	}
	name := e.Call.Name
	if _, tool, ok := origin(name); ok {
		name = tool
	}
	r := gateway.Record{
		Time: time.Now(), Client: daemon.ProxyName, Method: mcp.MethodCallTool, Server: e.Server, Name: name,
		Outcome: "refused", By: e.By, Reason: e.Reason, Arguments: e.Call.Input, Sent: len(e.Call.Input),
	}
	if e.Call.Name == "" {
		r.Method = mcp.MethodCreateMessage
	}
	if e.Allowed {
		r.Outcome = "allowed"
	}
	d.log.Write(r)
}

func (d *decisionLog) close() {
	if d != nil {
		d.file.Close()
	}
}
