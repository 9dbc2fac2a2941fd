package main

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
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/mcp"
)

// setup is what the user's files say that concerns an agent.
type setup struct {
	*roster
	state       *state.State
	audit       string // the file of the audit log; empty: there is none
	arguments   bool   // are recorded
	definitions func() []hub.Definition
}

// setup reads the user's files.
func (a *app) setup(f *agentFlags) (*setup, error) {
	where, err := f.places.config()
	if err != nil {
		return nil, err
	}
	store, err := a.choices()
	if err != nil {
		return nil, err
	}
	set := config.Load(where)
	for _, p := range set.Problems {
		if p.Server == "" && aboutModels(p) {
			a.warn("%s", p.Text())
		}
	}
	s := &setup{roster: a.newRoster(set), state: store}
	settings, _ := set.Gateway.Resolve(set.Variables) // what cannot be resolved is told where the gateway is opened
	s.audit, s.arguments = settings.Audit, settings.AuditArguments
	s.definitions = sync.OnceValue(func() []hub.Definition {
		all, err := a.definitions(f.places)
		if err != nil {
			return nil
		}
		return all
	})
	return s, nil
}

// aboutModels: those of servers and the gateway are told by who runs them.
func aboutModels(p config.Problem) bool {
	return p.Severity == config.Warning && (strings.HasPrefix(p.Message, "models") || strings.HasPrefix(p.Message, "model:"))
}

func (s *setup) models() []string { return s.set.ModelNames() }

// openAudit opens the audit log; nil where there is none.
func (s *setup) openAudit() (*os.File, error) {
	if s.audit == "" {
		return nil, nil
	}
	err := os.MkdirAll(filepath.Dir(s.audit), 0o700)
	if err == nil {
		var log *os.File
		if log, err = os.OpenFile(s.audit, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
			return log, nil
		}
	}
	return nil, fmt.Errorf("the audit log %s cannot be written: %w", s.audit, err)
}

func (s *setup) auditOptions(a *app) gateway.AuditOptions {
	return gateway.AuditOptions{Arguments: s.arguments, Mask: s.mask, OnError: func(err error) { a.warn("the audit log: %v", err) }}
}

// mask hides the secrets of all servers of the configuration.
func (s *setup) mask(text string) string {
	for _, d := range s.definitions() {
		if d.Mask != nil {
			text = d.Mask(text)
		}
	}
	return text
}

// decisions is the part of the audit log that says why calls were made or not; nil records nothing.
type decisions struct {
	log  *gateway.AuditLog
	file *os.File
}

// openDecisions opens the audit log, if there is to be one.
func (a *app) openDecisions(s *setup) (*decisions, error) {
	file, err := s.openAudit()
	if file == nil {
		return nil, err
	}
	return &decisions{gateway.NewAuditLog(file, s.auditOptions(a)), file}, nil
}

func (d *decisions) record(e agent.Approval, origin func(wire string) (server, tool string, ok bool)) {
	if d == nil {
		return
	}
	name := e.Call.Name
	if _, tool, ok := origin(name); ok {
		name = tool
	}
	r := gateway.Record{
		Time: time.Now(), Client: throughName, Method: mcp.MethodCallTool, Server: e.Server, Name: name,
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

func (d *decisions) close() {
	if d != nil {
		d.file.Close()
	}
}
