// Package doctor is dowel doctor: it shows the steps from the entry of a server to a working
// connection, and the first one that fails.
package doctor

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/doctor"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

// NewCommand returns the command dowel doctor.
func NewCommand(f *factory.Factory) *cobra.Command {
	var where factory.Places
	var w connect.TargetFlags
	var fix bool
	cmd := &cobra.Command{
		Use:   "doctor [NAME… | --url URL | -- COMMAND…]",
		Short: "Find out why a server does not work",
		Long: `Check each step from a server's entry to a working connection, and show the step that fails and how to fix it. For a process
the steps are: the command exists, the process starts and keeps running, its output is valid, the handshake succeeds. For a
URL: the host name, the connection, TLS, the HTTP status, the protocol's era. Without a name, check all servers of the
configuration. A name can also be one of dowel's built-in servers. To check any other server, give its --url or its command
after --. Servers of a project are only started if you have allowed them.

With --fix, remove a folder of npx's cache that an interrupted install has left broken, and check the server again.`,
		Example: `  dowel doctor
  dowel doctor -- npx -y @modelcontextprotocol/server-everything
  dowel doctor github --fix
  dowel doctor --json --project .`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			chosen, err := chooseServers(f, cmd, where, &w, args)
			if err != nil {
				return err
			}
			return runDoctor(cmd.Context(), f, chosen, fix)
		},
	}
	w.AddFlags(cmd)
	where.AddFlags(cmd)
	cmd.Flags().BoolVar(&fix, "fix", false, "remove a broken folder of npx's cache, and check the server again")
	return cmd
}

// failedServers is the error of a run that found failing servers. It holds their number; the steps
// were shown before.
type failedServers int

func (n failedServers) Error() string {
	if n == 1 {
		return "one server does not work"
	}
	return fmt.Sprintf("%d servers do not work", int(n))
}

// chooseServers returns the servers that the command line names, or all configured ones.
func chooseServers(f *factory.Factory, cmd *cobra.Command, where factory.Places, w *connect.TargetFlags, args []string) ([]hub.Definition, error) {
	if w.Url != "" || cmd.ArgsLenAtDash() >= 0 {
		t, rest, err := w.Resolve(cmd, args)
		if err == nil && len(rest) > 0 {
			err = exit.Usagef("give either the name %s or one of --url and a command after --, not both", rest[0])
		}
		return []hub.Definition{newDefinition(t)}, err
	}
	if len(w.Headers) > 0 {
		return nil, exit.Usagef("--header is for servers at a --url")
	}
	definitions, err := f.Definitions(where)
	if err != nil {
		return nil, err
	}
	return selectDefinitions(definitions, args, w)
}

// newDefinition returns the definition of a server that the command line describes.
func newDefinition(t connect.Target) hub.Definition {
	d := hub.Definition{Name: t.Label(), Origin: t.Origin, Target: t.Dial, Options: t.Options}
	if len(t.Header) > 0 {
		d.Options.HTTP.Header = func(context.Context) (http.Header, error) { return t.Header, nil }
	}
	return d
}

// selectDefinitions returns the definitions of the named servers, in the order of names. A name
// that is not in all must be a built-in server. Without names, it returns all.
func selectDefinitions(all []hub.Definition, names []string, w *connect.TargetFlags) (chosen []hub.Definition, err error) {
	changed := len(w.Env) > 0 || len(w.BuiltinOptions) > 0 || w.Dir != ""
	if len(names) == 0 {
		if changed {
			return nil, exit.Usagef("--env, --option and --dir need the name of a built-in server, or a command after --")
		}
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
		switch {
		case ok && changed:
			return nil, exit.Usagef("--env, --option and --dir do not apply to %s, which has an entry in the configuration", name)
		case !ok && !slices.Contains(builtin.Names(), name):
			return nil, exit.Usagef("no server is named %s%s", name, suggest.Hint(name, append(list, builtin.Names()...)))
		case !ok:
			t, err := w.BuiltIn(name)
			if err != nil {
				return nil, err
			}
			d = newDefinition(t)
		}
		chosen = append(chosen, d)
	}
	return chosen, nil
}

// maxParallel limits the servers that are examined at the same time. stepBuffer exceeds the number
// of steps of a server, so that no examination waits for the output of another.
const maxParallel, stepBuffer = 8, 32

// runDoctor examines servers in parallel and shows the results in order. It returns failedServers
// if a server does not work.
func runDoctor(ctx context.Context, f *factory.Factory, chosen []hub.Definition, fix bool) error {
	warnOfCluster(ctx, f, chosen)
	if len(chosen) == 0 && !f.JSON {
		f.WriteMessage("Your configuration has no servers. Add one with dowel add, or copy the servers of other tools with dowel import.")
	}
	steps := make([]chan doctor.Step, len(chosen))
	for i := range steps {
		steps[i] = make(chan doctor.Step, stepBuffer)
	}
	var work sync.WaitGroup
	defer work.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work.Go(func() { examineAll(ctx, f, chosen, steps, fix) })
	failed := 0
	for i, d := range chosen {
		if !showExamination(f, d, steps[i]) {
			failed++
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if failed > 0 {
		return failedServers(failed)
	}
	return nil
}

// examineAll examines servers in order, up to maxParallel at the same time. It sends the steps of
// each server to its channel and closes the channel after the last step.
func examineAll(ctx context.Context, f *factory.Factory, chosen []hub.Definition, steps []chan doctor.Step, fix bool) {
	slots := make(chan struct{}, maxParallel)
	var work sync.WaitGroup
	defer work.Wait()
	for i, d := range chosen {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			defer close(steps[i])
			for s := range examineServer(ctx, f, d, fix) {
				if ctx.Err() != nil { // the step may have failed because dowel ends
					return
				}
				select {
				case steps[i] <- s:
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// examineServer returns the steps of one server as they happen. A server that must not start has
// one skipped step with the reason.
func examineServer(ctx context.Context, f *factory.Factory, d hub.Definition, fix bool) iter.Seq[doctor.Step] {
	switch {
	case ctx.Err() != nil:
		return func(func(doctor.Step) bool) {}
	case d.Hold.Status != 0:
		return slices.Values([]doctor.Step{{Name: d.Hold.Status.String(), Status: doctor.Skipped, Detail: d.Hold.Reason}})
	}
	server := doctor.Server{Name: d.Name, Target: d.Target, Options: d.Options, Mask: d.Mask}
	steps := withDiscovery(ctx, doctor.Examine(ctx, server), d)
	if fix {
		steps = withRepair(ctx, server, steps)
	}
	return withLogin(ctx, f, withDefinitions(steps, d), d)
}

// stepRepair is the name of the step that mends a server. The steps of another examination follow
// it.
const stepRepair = "repair"

// withRepair mends a server after a failed step, and then examines it again.
func withRepair(ctx context.Context, server doctor.Server, steps iter.Seq[doctor.Step]) iter.Seq[doctor.Step] {
	return func(yield func(doctor.Step) bool) {
		var failure error
		for s := range steps {
			if !yield(s) {
				return
			}
			if s.Status == doctor.Failed {
				failure = s.Err
			}
		}
		if failure == nil || ctx.Err() != nil {
			return
		}
		removed, err := doctor.Mend(server, failure)
		switch {
		case err != nil:
			yield(doctor.Step{Name: stepRepair, Status: doctor.Failed, Detail: err.Error(), Err: err})
			return
		case removed == "":
			yield(doctor.Step{Name: stepRepair, Status: doctor.Skipped, Detail: "dowel knows no repair for that"})
			return
		}
		if !yield(doctor.Step{Name: stepRepair, Status: doctor.OK, Detail: removed + " is removed; npx installs the server again"}) {
			return
		}
		for s := range doctor.Examine(ctx, server) {
			if !yield(s) {
				return
			}
		}
	}
}

// StepLine is the JSON output for a step.
type StepLine struct {
	Server string        `json:"server"`
	Step   string        `json:"step"`
	Status doctor.Status `json:"status"`
	Detail string        `json:"detail,omitzero"`
	Advice string        `json:"advice,omitzero"`
	Error  string        `json:"error,omitzero"`
	Took   float64       `json:"ms"` // in milliseconds
}

// showExamination shows the steps of one server and reports whether the server works. A server that
// the user switched off counts as working.
func showExamination(f *factory.Factory, d hub.Definition, steps <-chan doctor.Step) bool {
	if !f.JSON {
		fmt.Fprintln(f.Stdout, f.Stdout.Bold(term.Line(d.Name))+" "+f.Stdout.Dim(term.Line(d.Origin)))
	}
	works := d.Hold.Status == 0 || d.Hold.Status == hub.Disabled
	for s := range steps {
		writeStep(f, d.Name, s)
		works = works && s.Status != doctor.Failed || s.Name == stepRepair && s.Status == doctor.OK
	}
	return works
}

func writeStep(f *factory.Factory, server string, s doctor.Step) {
	if f.JSON {
		l := StepLine{server, s.Name, s.Status, s.Detail, s.Advice, "", float64(s.Took.Microseconds()) / 1000}
		if s.Err != nil {
			l.Error = s.Err.Error()
		}
		factory.WriteJSONLine(f.Stdout, l)
		return
	}
	mark := map[doctor.Status]string{
		doctor.OK: f.Stdout.Green("✓"), doctor.Warning: f.Stdout.Yellow("!"), doctor.Failed: f.Stdout.Red("✗"), doctor.Skipped: f.Stdout.Dim("–"),
	}[s.Status]
	took := ""
	if s.Took >= time.Millisecond {
		took = " " + f.Stdout.Dim("("+s.Took.Round(time.Millisecond).String()+")")
	}
	f.WriteMessage("  %s %s: %s%s", mark, s.Name, term.Line(s.Detail), took)
	if s.Diagnosis != nil {
		for _, text := range s.Diagnosis.Stderr {
			fmt.Fprintln(f.Stdout, f.Stdout.Dim("      | "+term.Line(text)))
		}
	}
	if s.Advice != "" {
		f.WriteMessage("    → %s", term.Line(s.Advice))
	}
}
