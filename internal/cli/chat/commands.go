package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/modelregistry"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
)

// slashCommand is something that is said to dowel and not to the model.
type slashCommand struct {
	name, params, summary string
	run                   func(c *conversation, ctx context.Context, rest string) error
}

// slashCommands are in the order of the help.
func slashCommands() []slashCommand {
	return []slashCommand{
		{"help", "", "what can be said to dowel", (*conversation).showHelp},
		{"tools", "[WORDS]", "the tools that the model has; those that match, in full", (*conversation).listTools},
		{"servers", "", "how the servers are", (*conversation).listServers},
		{"prompts", "[WORDS]", "the servers' prompts, which are said as /SERVER.PROMPT KEY=VALUE …", (*conversation).listPrompts},
		{"model", "[NAME]", "which model replies; another from now on", (*conversation).changeModel},
		{"approve", "[MODE]", "which tools run without a question: ask, read-only, all, none", (*conversation).changeMode},
		{"usage", "", "how many tokens the conversation takes, part by part, and has taken", (*conversation).showUsage},
		{"save", "[FILE]", "where the conversation is kept; a copy of it", (*conversation).saveSession},
		{"quit", "", "ends dowel, as does Ctrl-D", func(*conversation, context.Context, string) error { return errQuit }},
	}
}

func slashCommandNames() (names []string) {
	for _, s := range slashCommands() {
		names = append(names, s.name)
	}
	return names
}

// runCommand does what stands behind a slash.
func (c *conversation) runCommand(text string) error {
	name, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	ctx, done := c.interrupts.startWork(c.ctx)
	defer done()
	known := slashCommands()
	at := slices.IndexFunc(known, func(s slashCommand) bool { return s.name == strings.ToLower(name) })
	switch {
	case at >= 0 && known[at].params == "" && rest != "":
		return exit.Usagef("/%s takes nothing; a message that begins with / is written with //", known[at].name)
	case at >= 0:
		return c.reportStopped(ctx, known[at].run(c, ctx, rest))
	case name == "exit" || name == "q":
		return errQuit
	case strings.Contains(name, ".") || strings.Contains(name, "__"):
		return c.reportStopped(ctx, c.sendPrompt(ctx, name, rest))
	}
	return exit.WithHelp(exit.Usagef("there is no command /%s%s; a message that begins with / is written with //", name, suggest.ForFlag(name, slashCommandNames())), "/help")
}

func (c *conversation) showHelp(context.Context, string) error {
	rows := [][2]string{}
	for _, s := range slashCommands() {
		rows = append(rows, [2]string{strings.TrimSpace("/" + s.name + " " + s.params), s.summary})
	}
	rows = append(rows,
		[2]string{"/SERVER.PROMPT KEY=VALUE …", "says a prompt of a server's; what is missing is asked for"},
		[2]string{"//TEXT", "says text that begins with /"},
		[2]string{"@PATH", "adds a file to what is said: text, an image or a sound"},
		[2]string{`… \`, "goes on with the next line"},
		[2]string{"Ctrl-C", "stops the reply or call that is under way; twice ends dowel"})
	c.writeColumns(rows)
	return nil
}

// writeColumns writes names beside what they are, in as many lines as that takes.
func (c *conversation) writeColumns(rows [][2]string) {
	out, width := c.app.Stdout, 0
	for _, r := range rows {
		width = max(width, utf8.RuneCountInString(r[0]))
	}
	width = min(width, 28)
	for _, r := range rows {
		about := term.Wrap(strings.Fields(r[1]), max(out.Columns()-width-5, 30))
		first := ""
		if len(about) > 0 {
			first, about = about[0], about[1:]
		}
		fmt.Fprintf(out, "  %s%s  %s\n", out.Cyan(r[0]), strings.Repeat(" ", max(width-utf8.RuneCountInString(r[0]), 0)), first)
		for _, more := range about {
			fmt.Fprintf(out, "  %s  %s\n", strings.Repeat(" ", width), more)
		}
	}
}

// changeModel shows the models, or has another one reply.
func (c *conversation) changeModel(ctx context.Context, name string) error {
	it, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		fmt.Fprintf(c.app.Stdout, "%s\n", describeModel(it.Model))
		if others := it.Models(); len(others) > 0 {
			fmt.Fprintf(c.app.Stdout, "%s\n", c.app.Stdout.Dim("of your configuration: "+term.Line(strings.Join(others, ", "))))
		}
		return nil
	}
	m, chosen, err := it.Choose(name)
	if err != nil {
		return err
	}
	it.Agent.SetModel(m)
	it.Model, c.modelRecorded = chosen, false
	c.view.Note("model %s", describeModel(chosen))
	return nil
}

// changeMode shows which tools run, or changes it.
func (c *conversation) changeMode(ctx context.Context, word string) error {
	it, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	if word != "" {
		mode, err := parseMode(word)
		if err != nil {
			return exit.Usagef("/approve %w", err)
		}
		c.mode = mode
		it.Agent.SetMode(mode)
	}
	fmt.Fprintln(c.app.Stdout, map[agent.Mode]string{
		agent.ModeAsk:      "ask: tools that are not read-only are asked about",
		agent.ModeReadOnly: "read-only: tools that are not read-only are refused, but for those that are always allowed",
		agent.ModeAll:      "all: every tool runs, and nothing is asked",
		agent.ModeNone:     "none: no tool runs",
	}[c.mode])
	return nil
}

// saveSession tells where the conversation is kept, begins to keep it, or writes a copy.
func (c *conversation) saveSession(ctx context.Context, file string) error {
	it, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	said := it.Agent.Messages()
	if len(said) == 0 {
		return exit.Usagef("nothing has been said yet")
	}
	header := session.Header{Model: it.Model.Label()}
	if header.Folder, err = connect.Folder("."); err != nil {
		return err
	}
	if file != "" {
		return c.saveCopy(file, header, said, it.Model)
	}
	if c.session == nil {
		if sessionsDir() == "" {
			return exit.Usagef("there is no folder to keep conversations in: name a FILE")
		}
		s := session.New(sessionsDir(), header)
		if err := writeSession(s, said, it.Model); err != nil {
			return err
		}
		c.session, c.modelRecorded = s, true
	}
	fmt.Fprintf(c.app.Stdout, "kept as %s in %s\n", c.session.Header().ID, c.session.Path())
	return nil
}

// writeSession keeps a conversation in a session that holds nothing yet, with the model that it goes on with.
func writeSession(s *session.Session, said []agent.Message, m modelregistry.Choice) error {
	if err := s.Sync(said); err != nil {
		return err
	}
	return s.Note(modelEvent, newModelNote(m))
}
