package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/hub/doctor"
	"github.com/spf13/cobra"
)

func (a *app) doctorCommand() *cobra.Command {
	var where places
	cmd := &cobra.Command{
		Use:   "doctor [NAME…]",
		Short: "Find out why a server does not work",
		Long: `Walk the steps from a server's entry to a working connection, and say at which one it fails and what to do: the command is
found, the process starts and lives, its output is clean, the handshake; or the name, the connection, TLS, the HTTP
status, the era. Without a name all servers of the configuration are looked at. Nothing is started that you have not
allowed.`,
		Example: `  dowel doctor
  dowel doctor --json --project .`,
		RunE: func(cmd *cobra.Command, names []string) error {
			a.began = true
			return a.doctor(cmd.Context(), where, names)
		},
	}
	where.register(cmd)
	return cmd
}

// errSick says that a server does not work; how was shown.
type errSick int

func (n errSick) Error() string {
	if n == 1 {
		return "one server does not work"
	}
	return fmt.Sprintf("%d servers do not work", int(n))
}

func (a *app) doctor(ctx context.Context, where places, names []string) error {
	definitions, err := a.definitions(where)
	if err != nil {
		return err
	}
	chosen, err := choose(definitions, names)
	if err != nil {
		return err
	}
	if len(chosen) == 0 && !a.json {
		fmt.Fprintln(a.stdout, "There are no servers in your configuration: add one with dowel servers add, or take over those of other tools with dowel import.")
	}
	sick := 0
	for _, d := range chosen {
		if !a.examine(ctx, d) {
			sick++
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if sick > 0 {
		return errSick(sick)
	}
	return nil
}

// choose returns the definitions of the names, in their order; without names all.
func choose(all []hub.Definition, names []string) (chosen []hub.Definition, err error) {
	if len(names) == 0 {
		return all, nil
	}
	known := map[string]hub.Definition{}
	var list []string
	for _, d := range all {
		known[d.Name] = d
		list = append(list, d.Name)
	}
	for _, name := range names {
		d, ok := known[name]
		if !ok {
			return nil, usagef("no server is called %s%s", name, suggestion(name, list))
		}
		chosen = append(chosen, d)
	}
	return chosen, nil
}

// stepLine is a step as a program reads it.
type stepLine struct {
	Server string        `json:"server"`
	Step   string        `json:"step"`
	Status doctor.Status `json:"status"`
	Detail string        `json:"detail,omitzero"`
	Advice string        `json:"advice,omitzero"`
	Error  string        `json:"error,omitzero"`
	Took   float64       `json:"ms"`
}

// examine shows the steps of one server, and reports whether all went well.
func (a *app) examine(ctx context.Context, d hub.Definition) bool {
	if !a.json {
		fmt.Fprintln(a.stdout, a.stdout.bold(line(d.Name))+" "+a.stdout.dim(line(d.Origin)))
	}
	if d.Hold.Status != 0 {
		a.step(d.Name, doctor.Step{Name: d.Hold.Status.String(), Status: doctor.Skipped, Detail: d.Hold.Reason})
		return d.Hold.Status == hub.Disabled
	}
	well := true
	for s := range doctor.Examine(ctx, doctor.Patient{Name: d.Name, Target: d.Target, Options: d.Options, Mask: d.Mask}) {
		a.step(d.Name, s)
		well = well && s.Status != doctor.Failed
	}
	return well
}

func (a *app) step(server string, s doctor.Step) {
	if a.json {
		l := stepLine{server, s.Name, s.Status, s.Detail, s.Advice, "", float64(s.Took.Microseconds()) / 1000}
		if s.Err != nil {
			l.Error = s.Err.Error()
		}
		encodeLine(a.stdout, l)
		return
	}
	mark := map[doctor.Status]string{
		doctor.OK: a.stdout.green("✓"), doctor.Warning: a.stdout.yellow("!"), doctor.Failed: a.stdout.red("✗"), doctor.Skipped: a.stdout.dim("–"),
	}[s.Status]
	took := ""
	if s.Took >= time.Millisecond {
		took = " " + a.stdout.dim("("+s.Took.Round(time.Millisecond).String()+")")
	}
	fmt.Fprintf(a.stdout, "  %s %s: %s%s\n", mark, s.Name, line(s.Detail), took)
	if s.Diagnosis != nil {
		for _, text := range s.Diagnosis.Stderr {
			fmt.Fprintln(a.stdout, a.stdout.dim("      | "+line(text)))
		}
	}
	if s.Advice != "" {
		fmt.Fprintln(a.stdout, "    → "+line(s.Advice))
	}
}
