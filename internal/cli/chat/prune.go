package chat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/consent"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
)

// minPruneAge keeps conversations that may still be open in another terminal.
const minPruneAge = time.Hour

// parseAge parses the value of --prune: a number of days such as 30d, or a duration.
func parseAge(word string) (time.Duration, error) {
	age, err := time.ParseDuration(word)
	if days, ok := strings.CutSuffix(word, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		age = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || age < minPruneAge {
		return 0, exit.Usagef("--prune %s: write an age of at least an hour, such as 30d or 12h", word)
	}
	return age, nil
}

// pruneSessions deletes the saved conversations that have not changed for an age. It shows them and
// asks first, unless yes is set.
func pruneSessions(ctx context.Context, f *factory.Factory, word string, yes bool) error {
	age, err := parseAge(word)
	if err != nil {
		return err
	}
	old, err := session.Older(factory.SessionsDir(), time.Now().Add(-age))
	if err != nil {
		return err
	}
	if len(old) == 0 {
		fmt.Fprintf(f.Stdout, "No conversation is older than %s.\n", word)
		return nil
	}
	showSessions(f, old)
	if !yes {
		if term.Terminal(f.Stdin) == nil {
			return exit.Usagef("nothing is deleted: add --yes to delete %s", display.Count(len(old), "conversation"))
		}
		agreed, err := consent.Ask(ctx, f, term.NewLines(f.Stdin), fmt.Sprintf("Delete %s?", display.Count(len(old), "conversation")))
		if err != nil || !agreed {
			return err
		}
	}
	var failed error
	for _, s := range old {
		failed = errors.Join(failed, session.Remove(s))
	}
	if failed == nil {
		fmt.Fprintf(f.Stdout, "%s deleted\n", display.Count(len(old), "conversation"))
	}
	return failed
}
