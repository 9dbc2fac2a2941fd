package configured

import (
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
)

// An entry of a project that says how to log in has logins of its own.
func TestLoginOfProject(t *testing.T) {
	t.Parallel()
	accounts := map[string]string{}
	for name, d := range map[string]*config.Definition{
		"user":            {Server: &config.Server{Source: config.Source{Scope: config.User, Path: "/u"}}, Spec: config.Spec{OAuth: &config.OAuth{Account: "work"}}},
		"plain":           {Server: &config.Server{Source: config.Source{Scope: config.Project, Path: "/p"}}},
		"project":         {Server: &config.Server{Source: config.Source{Scope: config.Project, Path: "/p"}}, Spec: config.Spec{OAuth: &config.OAuth{Account: "work"}}},
		"another project": {Server: &config.Server{Source: config.Source{Scope: config.Project, Path: "/q"}}, Spec: config.Spec{OAuth: &config.OAuth{Account: "work"}}},
	} {
		accounts[loginAccount(d)] = name
	}
	if len(accounts) != 4 || accounts["work"] != "user" || accounts[""] != "plain" {
		t.Errorf("the accounts are %v", accounts)
	}
}
