package consent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/term"
)

// AskTrust shows a server that waits, and asks whether it may run.
func AskTrust(ctx context.Context, a *factory.Factory, source *configured.Source, u configured.Untrusted, in *term.Lines, yes bool) error {
	fmt.Fprintf(a.Stdout, "%s, of %s\n", a.Stdout.Bold(term.Line(u.Name)), u.At)
	facts := u.Facts
	if u.Before != nil {
		facts = config.TrustChange(u.Before, u.Facts)
	}
	for _, fact := range facts {
		fmt.Fprintln(a.Stdout, "  "+term.Line(fact))
	}
	switch {
	case yes:
	case term.Terminal(a.Stdin) == nil:
		fmt.Fprintln(a.Stdout, "  allow it on a terminal, or with: dowel trust "+term.Line(u.Name)+" --yes")
		return nil
	default:
		if agreed, err := Ask(ctx, a, in, "Allow it to run as you?"); err != nil || !agreed {
			return err
		}
	}
	if err := source.Trust(u.Name, u.Facts); err != nil {
		return err
	}
	fmt.Fprintln(a.Stdout, a.Stdout.Green("allowed"))
	return nil
}

// Ask asks the user. Only a yes is one; the error is the interruption of the question.
func Ask(ctx context.Context, a *factory.Factory, in *term.Lines, question string) (bool, error) {
	fmt.Fprint(a.Stdout, question+" [y/N] ")
	answer, err := in.Next(ctx)
	if errors.Is(err, io.EOF) {
		fmt.Fprintln(a.Stdout)
		return false, nil
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", err
}
