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

func NewCommand(f *factory.Factory) *cobra.Command {
	var where factory.Places
	var w connect.TargetFlags
	cmd := &cobra.Command{
		Use:   "doctor [NAME… | --url URL | -- COMMAND…]",
		Short: "Find out why a server does not work",
		Long: `Walk the steps from a server's entry to a working connection, and say at which one it fails and what to do: the command is
found, the process starts and lives, its output is clean, the handshake; or the name, the connection, TLS, the HTTP
status, the era. Without a name all servers of the configuration are looked at; with names those, or else the built-in ones
of these names. Another server is given by its --url, or by the command that starts it, behind --. Nothing of a project is
started that you have not allowed.`,
		Example: `  dowel doctor
  dowel doctor everything
  dowel doctor -- npx -y @modelcontextprotocol/server-everything
  dowel doctor --json --project .`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			chosen, err := chooseServers(f, cmd, where, &w, args)
			if err != nil {
				return err
			}
			return runDoctor(cmd.Context(), f, chosen)
		},
	}
	w.AddFlags(cmd)
	where.AddFlags(cmd)
	return cmd
}

// failedServers says that a server does not work; how was shown.
type failedServers int

func (n failedServers) Error() string {
	if n == 1 {
		return "one server does not work"
	}
	return fmt.Sprintf("%d servers do not work", int(n))
}

// chooseServers are the servers that a command line names.
func chooseServers(f *factory.Factory, cmd *cobra.Command, where factory.Places, w *connect.TargetFlags, args []string) ([]hub.Definition, error) {
	if w.Url != "" || cmd.ArgsLenAtDash() >= 0 {
		t, rest, err := w.Resolve(cmd, args)
		if err == nil && len(rest) > 0 {
			err = exit.Usagef("the server is named twice: as %s, and by --url or the command behind --", rest[0])
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

// newDefinition is a server that a command line describes.
func newDefinition(t connect.Target) hub.Definition {
	d := hub.Definition{Name: t.Label(), Origin: t.Origin, Target: t.Dial, Options: t.Options}
	if len(t.Header) > 0 {
		d.Options.HTTP.Header = func(context.Context) (http.Header, error) { return t.Header, nil }
	}
	return d
}

// selectDefinitions returns the definitions of the names, in their order, and built-in servers of those that are nowhere else; without
// names all.
func selectDefinitions(all []hub.Definition, names []string, w *connect.TargetFlags) (chosen []hub.Definition, err error) {
	changed := len(w.Env) > 0 || len(w.BuiltinOptions) > 0 || w.Dir != ""
	if len(names) == 0 {
		if changed {
			return nil, exit.Usagef("--env, --option and --dir are for a server that is named, or given by its command behind --")
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
			return nil, exit.Usagef("--env, --option and --dir are not for %s: its entry in the configuration says how it is started", name)
		case !ok && !slices.Contains(builtin.Names(), name):
			return nil, exit.Usagef("no server is called %s%s", name, suggest.Hint(name, append(list, builtin.Names()...)))
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

// maxParallel is how many servers are looked at at a time, and ahead how many steps of each may wait to be shown: more than there
// are.
const maxParallel, stepBuffer = 8, 32

// runDoctor looks at servers, several at a time, and shows what it finds in their order.
func runDoctor(ctx context.Context, f *factory.Factory, chosen []hub.Definition) error {
	if len(chosen) == 0 && !f.JSON {
		fmt.Fprintln(f.Stdout, "There are no servers in your configuration: add one with dowel servers add, or take over those of other tools with dowel import.")
	}
	walks := make([]chan doctor.Step, len(chosen))
	for i := range walks {
		walks[i] = make(chan doctor.Step, stepBuffer)
	}
	var work sync.WaitGroup
	defer work.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work.Go(func() { examineAll(ctx, chosen, walks) })
	sick := 0
	for i, d := range chosen {
		if !showExamination(f, d, walks[i]) {
			sick++
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if sick > 0 {
		return failedServers(sick)
	}
	return nil
}

// examineAll looks at servers, those in front first, and closes the channel of each behind its last step.
func examineAll(ctx context.Context, chosen []hub.Definition, walks []chan doctor.Step) {
	free := make(chan struct{}, maxParallel)
	var work sync.WaitGroup
	defer work.Wait()
	for i, d := range chosen {
		free <- struct{}{}
		work.Go(func() {
			defer func() { <-free }()
			defer close(walks[i])
			for s := range examineServer(ctx, d) {
				if ctx.Err() != nil { // what fails now fails because dowel ends
					return
				}
				select {
				case walks[i] <- s:
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// examineServer are the steps of one server.
func examineServer(ctx context.Context, d hub.Definition) iter.Seq[doctor.Step] {
	switch {
	case ctx.Err() != nil:
		return func(func(doctor.Step) bool) {}
	case d.Hold.Status != 0:
		return slices.Values([]doctor.Step{{Name: d.Hold.Status.String(), Status: doctor.Skipped, Detail: d.Hold.Reason}})
	}
	return doctor.Examine(ctx, doctor.Server{Name: d.Name, Target: d.Target, Options: d.Options, Mask: d.Mask})
}

// StepLine is a step as a program reads it.
type StepLine struct {
	Server string        `json:"server"`
	Step   string        `json:"step"`
	Status doctor.Status `json:"status"`
	Detail string        `json:"detail,omitzero"`
	Advice string        `json:"advice,omitzero"`
	Error  string        `json:"error,omitzero"`
	Took   float64       `json:"ms"`
}

// showExamination shows the steps of one server, and reports whether all went well.
func showExamination(f *factory.Factory, d hub.Definition, steps <-chan doctor.Step) bool {
	if !f.JSON {
		fmt.Fprintln(f.Stdout, f.Stdout.Bold(term.Line(d.Name))+" "+f.Stdout.Dim(term.Line(d.Origin)))
	}
	well := d.Hold.Status == 0 || d.Hold.Status == hub.Disabled
	for s := range steps {
		writeStep(f, d.Name, s)
		well = well && s.Status != doctor.Failed
	}
	return well
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
	fmt.Fprintf(f.Stdout, "  %s %s: %s%s\n", mark, s.Name, term.Line(s.Detail), took)
	if s.Diagnosis != nil {
		for _, text := range s.Diagnosis.Stderr {
			fmt.Fprintln(f.Stdout, f.Stdout.Dim("      | "+term.Line(text)))
		}
	}
	if s.Advice != "" {
		fmt.Fprintln(f.Stdout, "    → "+term.Line(s.Advice))
	}
}
