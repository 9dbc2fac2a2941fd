package call

import (
	"fmt"
	"os"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/savedcalls"
	"github.com/dowel-mcp/dowel/internal/term"
)

// expandSaved returns the words of a command line in which a saved call is written out. Without
// --saved they stay.
func (o *Options) expandSaved(f *factory.Factory, words []string) ([]string, error) {
	if o.saved == "" {
		return words, nil
	}
	if o.args != "" {
		return nil, exit.Usagef("give either --saved or --args, not both")
	}
	folder, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	c, err := savedcalls.Find(folder, o.saved)
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	f.Warn("calling %s with %s", term.RevealLine(c.Words()), term.RevealLine(string(c.Arguments)))
	o.args = string(c.Arguments)
	return append([]string{c.Words()}, words...), nil
}

// listSaved writes the saved calls of the working folder.
func listSaved(f *factory.Factory) error {
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := savedcalls.Read(folder)
	if err != nil {
		return exit.Usagef("%w", err)
	}
	if f.JSON {
		factory.WriteJSONLine(f.Stdout, all)
		return nil
	}
	for _, c := range all {
		fmt.Fprintf(f.Stdout, "%s  %s  %s\n", term.RevealLine(c.Name), term.RevealLine(c.Words()), term.RevealLine(string(c.Arguments)))
	}
	return nil
}
