package wire

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
)

// runCompare shows the difference of two operations of the running dowel.
func runCompare(ctx context.Context, f *factory.Factory, operations []uint, words []string) error {
	if len(operations) != 2 || len(words) > 0 {
		return exit.Usagef("--compare: want the numbers of two operations, such as 81,97, and no filter")
	}
	c, err := factory.RunningDaemon().Compare(ctx, operations[0], operations[1])
	if err != nil {
		return err
	}
	if f.JSON {
		factory.WriteJSONLine(f.Stdout, c)
		return nil
	}
	writeComparison(f, c)
	return nil
}

// writeComparison writes properties side by side, and then the lines that differ.
func writeComparison(f *factory.Factory, c control.Comparison) {
	for _, fact := range c.Facts {
		mark := " "
		if fact.Differ {
			mark = "≠"
		}
		fmt.Fprintf(f.Stdout, "%s %s  %s  %s\n", mark, pad(fact.Name, nameWidth), pad(show(orDash(fact.A)), compareWidth), show(orDash(fact.B)))
	}
	for _, part := range []struct {
		title string
		lines []string
	}{{"Arguments", c.Arguments}, {"Result", c.Result}} {
		fmt.Fprintln(f.Stdout, part.title)
		for _, line := range part.lines {
			text := show(line)
			switch line[0] {
			case '+':
				text = f.Stdout.Green(text)
			case '-':
				text = f.Stdout.Red(text)
			}
			fmt.Fprintln(f.Stdout, "  "+text)
		}
	}
}

// compareWidth is the width of the first operation's properties.
const compareWidth = 24
