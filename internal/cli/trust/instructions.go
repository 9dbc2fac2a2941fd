package trust

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/agentsfile"
	"github.com/dowel-mcp/dowel/internal/cli/consent"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/term"
)

// trustInstructions asks whether the files with instructions of the current project may be given to
// a model, or revokes the agreement to them.
func trustInstructions(ctx context.Context, f *factory.Factory, where factory.Places, names []string, opts Options) error {
	if len(names) > 0 {
		return exit.Usagef("--instructions is for the files of the project, not for servers: leave out %s", term.Line(names[0]))
	}
	places, err := where.ConfigOptions()
	if err != nil {
		return err
	}
	store, err := f.OpenState()
	if err != nil {
		return err
	}
	files := agentsfile.Find("", places.Project, store)
	if f.JSON {
		return writeInstructions(f, store, files, opts)
	}
	in := term.NewLines(f.Stdin)
	for _, file := range files {
		if opts.revoke {
			if err := agentsfile.Revoke(store, file.Path); err != nil {
				return err
			}
			fmt.Fprintf(f.Stdout, "%s is no longer given to a model\n", term.Line(file.Path))
			continue
		}
		if err := askInstructions(ctx, f, in, file, opts, func(always bool) error { return agentsfile.Agree(store, file, always) }); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		fmt.Fprintf(f.Stdout, "The project has no %s.\n", agentsfile.Name)
	}
	return nil
}

// InstructionsLine is the JSON output for a file with instructions.
type InstructionsLine struct {
	File string `json:"file"`
	Text string `json:"text,omitzero"`
	// Agreed means that a model gets the file. Changed means that the user agreed to an earlier
	// content.
	Agreed  bool   `json:"agreed"`
	Changed bool   `json:"changed,omitzero"`
	Error   string `json:"error,omitzero"` // why it cannot be given to a model
}

// writeInstructions writes the files as JSON, after the agreement of --yes or its end by --revoke.
// It asks nothing.
func writeInstructions(f *factory.Factory, store *state.State, files []agentsfile.File, opts Options) error {
	all := []InstructionsLine{}
	for _, file := range files {
		line := InstructionsLine{File: file.Path, Text: file.Text, Agreed: file.Agreed, Changed: file.Changed}
		var err error
		switch {
		case opts.revoke:
			line.Agreed, line.Changed, err = false, false, agentsfile.Revoke(store, file.Path)
		case file.Err != nil:
			line.Error = file.Err.Error()
		case opts.yes && (!file.Agreed || opts.folder):
			line.Agreed, line.Changed, err = true, false, agentsfile.Agree(store, file, opts.folder)
		}
		if err != nil {
			return err
		}
		all = append(all, line)
	}
	return f.WriteValue(all)
}

// askInstructions shows a file and asks whether a model may get it.
func askInstructions(ctx context.Context, f *factory.Factory, in *term.Lines, file agentsfile.File, opts Options, agree func(always bool) error) error {
	fmt.Fprintln(f.Stdout, f.Stdout.Bold(term.Line(file.Path)))
	if file.Err != nil {
		return fmt.Errorf("%s cannot be given to a model: %w", file.Path, file.Err)
	}
	if file.Agreed && !opts.folder {
		fmt.Fprintln(f.Stdout, "  a model gets it already")
		return nil
	}
	fmt.Fprintln(f.Stdout, term.Reveal(file.Text))
	answer := consent.Answer{Yes: opts.yes, Folder: opts.folder}
	if !answer.Yes {
		if term.Terminal(f.Stdin) == nil {
			fmt.Fprintln(f.Stdout, "  agree on a terminal, or with: dowel trust --instructions --yes")
			return nil
		}
		var err error
		if answer, err = consent.AskInstructions(ctx, f, in, opts.folder); err != nil || !answer.Yes {
			return err
		}
	}
	if err := agree(answer.Folder); err != nil {
		return err
	}
	scope := ""
	if answer.Folder {
		scope = ", whatever the file becomes"
	}
	fmt.Fprintln(f.Stdout, f.Stdout.Green("agreed")+scope)
	return nil
}
