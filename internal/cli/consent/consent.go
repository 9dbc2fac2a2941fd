// Package consent asks the user for a decision at the terminal: whether a server of a project may
// run, and other questions that are answered with yes or no.
package consent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/term"
)

// Answer is the part of the user's decision that is known before the question.
type Answer struct {
	// Yes means that the user agrees, so that no question is asked.
	Yes bool
	// Folder means that the trust covers the server whatever the files in the project's folder
	// become.
	Folder bool
}

// AskTrust shows a server of a project, or the changes since the user allowed it, and asks
// whether it may run as the user. If the user agrees, it stores the trust. Without a terminal, it
// shows how to allow the server. Answers are read from in.
func AskTrust(ctx context.Context, f *factory.Factory, source *configured.Source, u configured.Untrusted, in *term.Lines, answer Answer) error {
	fmt.Fprintf(f.Stdout, "%s, from %s\n", f.Stdout.Bold(term.Line(u.Name)), u.At)
	lines := u.Changes
	if lines == nil {
		lines = u.Facts.Lines()
	}
	for _, line := range lines {
		fmt.Fprintln(f.Stdout, "  "+term.Line(DescribeFact(line)))
	}
	if !answer.Yes {
		if term.Terminal(f.Stdin) == nil {
			fmt.Fprintln(f.Stdout, "  allow it on a terminal, or with: dowel trust "+term.Line(u.Name)+" --yes")
			return nil
		}
		var err error
		if answer, err = askScope(ctx, f, u, in, answer.Folder); err != nil || !answer.Yes {
			return err
		}
	}
	if err := source.Trust(u, answer.Folder); err != nil {
		return err
	}
	scope := ""
	if answer.Folder {
		scope = ", whatever the code in its folder becomes"
	}
	fmt.Fprintln(f.Stdout, f.Stdout.Green("allowed")+scope)
	return nil
}

// DescribeFact returns a line of [config.TrustFacts] in words for people.
func DescribeFact(line string) string {
	return strings.Replace(line, "kind auto", "kind HTTP, of the protocol that the server speaks", 1)
}

// askScope asks whether a server may run. It offers the choice between this version and the folder
// unless folder is set. Without files among the facts there is nothing to choose.
func askScope(ctx context.Context, f *factory.Factory, u configured.Untrusted, in *term.Lines, folder bool) (Answer, error) {
	switch {
	case folder:
		agreed, err := Ask(ctx, f, in, "Allow it to run as you, whatever the code in its folder becomes?")
		return Answer{agreed, true}, err
	case !u.Facts.HasFiles():
		agreed, err := Ask(ctx, f, in, "Allow it to run as you?")
		return Answer{agreed, false}, err
	}
	return askVersion(ctx, f, in, "Allow it to run as you? y: this version, f: this folder, whatever its code becomes [y/f/N] ", "f", "folder")
}

// AskInstructions asks whether a model may get a file with instructions of a project. Folder in the
// answer means that it may, whatever the file becomes. always leaves only that choice.
func AskInstructions(ctx context.Context, f *factory.Factory, in *term.Lines, always bool) (Answer, error) {
	if always {
		agreed, err := Ask(ctx, f, in, "Give it to models, whatever the file becomes?")
		return Answer{agreed, true}, err
	}
	return askVersion(ctx, f, in, "Give it to models? y: this version, a: always, whatever the file becomes [y/a/N] ", "a", "always")
}

// askVersion shows a prompt that offers this version, or every later one with the given words.
func askVersion(ctx context.Context, f *factory.Factory, in *term.Lines, prompt string, words ...string) (Answer, error) {
	fmt.Fprint(f.Stdout, prompt)
	answer, err := nextAnswer(ctx, f, in)
	every := slices.Contains(words, answer)
	return Answer{every || answer == "y" || answer == "yes", every}, err
}

// Ask asks the user a question and returns true if the answer is y or yes. The end of the input
// means no. The error is the cause of ctx if Ctrl-C ends the question.
func Ask(ctx context.Context, f *factory.Factory, in *term.Lines, question string) (bool, error) {
	fmt.Fprint(f.Stdout, question+" [y/N] ")
	answer, err := nextAnswer(ctx, f, in)
	return answer == "y" || answer == "yes", err
}

// nextAnswer reads an answer in lower case. The end of the input is an empty answer.
func nextAnswer(ctx context.Context, f *factory.Factory, in *term.Lines) (string, error) {
	answer, err := in.Next(ctx)
	if errors.Is(err, io.EOF) {
		fmt.Fprintln(f.Stdout)
		return "", nil
	}
	return strings.ToLower(strings.TrimSpace(answer)), err
}
