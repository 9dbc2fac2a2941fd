package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/sessionlog"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
)

// slashCommand is a command to dowel itself, typed as /name.
type slashCommand struct {
	name, params, summary string
	run                   func(c *conversation, ctx context.Context, rest string) error
}

// slashCommands returns all commands in the order of /help.
func slashCommands() []slashCommand {
	return []slashCommand{
		{"help", "", "list these commands", (*conversation).showHelp},
		{"tools", "[WORDS]", "list the tools and their tokens; with words, show matching tools in full; off NAME takes a tool or a server's tools from the model, on NAME gives them back", (*conversation).handleTools},
		{"servers", "[VERB NAME]", "list the servers and their state; with a name: restart it, login to it, or why it fails", (*conversation).handleServers},
		{"doctor", "[NAME…]", "examine servers of your configuration step by step", (*conversation).examineServers},
		{"prompts", "[WORDS]", "list the servers' prompts; use one with /SERVER.PROMPT KEY=VALUE …", (*conversation).listPrompts},
		{"resources", "[WORDS]", "list the servers' resources; add one to a message with @SERVER:URI", (*conversation).listResources},
		{"model", "[NAME]", "show the model, or change it", (*conversation).changeModel},
		{"approve", "[MODE]", "show or set which tools run: ask, read-only, all, none", (*conversation).changeMode},
		{"usage", "", "show the tokens of each part of the conversation, and the total spent", (*conversation).showUsage},
		{"compact", "", "replace the older part of the conversation by a summary, which makes room for more", (*conversation).compactConversation},
		{"resume", "[ID]", "list the saved conversations; with an ID, show one and continue it", (*conversation).resumeSession},
		{"fork", "", "continue in a copy of this conversation", (*conversation).forkSession},
		{"edit", "", "take back your last message and the replies to it, and edit it; Esc twice on the full screen", (*conversation).editLast},
		{"undo", "", "take back the last change of a file by a files server", (*conversation).undoEdit},
		{"open", "[NUMBER]", "show an image of a result on the whole screen: the latest, or the one with a number", (*conversation).openPicture},
		{"export", "[FILE]", "write the conversation as markdown, or as JSON to a FILE.json", (*conversation).exportConversation},
		{"theme", "[NAME]", "set the colours of the full screen: dark, light, auto", (*conversation).changeTheme},
		{"save", "[FILE]", "show where the conversation is saved, or write a copy", (*conversation).saveSession},
		{"quit", "", "end dowel, like Ctrl-D", func(*conversation, context.Context, string) error { return errQuit }},
	}
}

func slashCommandNames() (names []string) {
	for _, s := range slashCommands() {
		names = append(names, s.name)
	}
	return names
}

// runCommand runs the command or prompt in text, the input without its leading slash.
func (c *conversation) runCommand(text string) error {
	name, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	ctx, done := c.interrupts.startWork(c.ctx)
	defer done()
	known := slashCommands()
	at := slices.IndexFunc(known, func(s slashCommand) bool { return s.name == strings.ToLower(name) })
	switch {
	case at >= 0 && known[at].params == "" && rest != "":
		return exit.Usagef("/%s takes no words; write // to send a message that begins with /", known[at].name)
	case at >= 0:
		return c.reportStopped(ctx, known[at].run(c, ctx, rest))
	case name == "exit" || name == "q":
		return errQuit
	case strings.Contains(name, ".") || strings.Contains(name, "__"):
		return c.reportStopped(ctx, c.sendPrompt(ctx, name, rest))
	}
	return exit.WithHelp(exit.Usagef("unknown command /%s%s; write // to send a message that begins with /", name, suggest.ForFlag(name, slashCommandNames())), "/help")
}

func (c *conversation) showHelp(context.Context, string) error {
	rows := [][2]string{}
	for _, s := range slashCommands() {
		rows = append(rows, [2]string{strings.TrimSpace("/" + s.name + " " + s.params), s.summary})
	}
	rows = append(rows,
		[2]string{"/SERVER.PROMPT KEY=VALUE …", "use a prompt of a server; dowel asks for missing arguments"},
		[2]string{"//TEXT", "send text that begins with /"},
		[2]string{"@PATH", "add a file to the message: text, image or sound"},
		[2]string{"@SERVER:URI", "add a resource of a server to the message; Tab completes it"},
		[2]string{`… \`, "continue on the next line"},
		[2]string{"Ctrl-C", "stop the current reply or call; twice ends dowel"})
	c.writeColumns(rows)
	return nil
}

// writeColumns writes rows of a name and a description, and wraps long descriptions.
func (c *conversation) writeColumns(rows [][2]string) {
	out, width := c.app.Stdout, 0
	for _, r := range rows {
		width = max(width, term.TextWidth(r[0]))
	}
	width = min(width, 28)
	for _, r := range rows {
		about := term.Wrap(strings.Fields(r[1]), max(out.Columns()-width-5, 30))
		first := ""
		if len(about) > 0 {
			first, about = about[0], about[1:]
		}
		fmt.Fprintf(out, "  %s%s  %s\n", out.Cyan(r[0]), strings.Repeat(" ", max(width-term.TextWidth(r[0]), 0)), first)
		for _, more := range about {
			fmt.Fprintf(out, "  %s  %s\n", strings.Repeat(" ", width), more)
		}
	}
}

// changeModel shows the current model and the others of the configuration, or switches to name.
func (c *conversation) changeModel(ctx context.Context, name string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		fmt.Fprintf(c.app.Stdout, "%s\n", describeModel(rt.Model))
		if others := rt.Models(); len(others) > 0 {
			fmt.Fprintf(c.app.Stdout, "%s\n", c.app.Stdout.Dim("models of your configuration: "+term.Line(strings.Join(others, ", "))))
		}
		return nil
	}
	m, chosen, err := rt.Choose(name)
	if err != nil {
		return err
	}
	rt.UseModel(m, chosen)
	c.log.ModelKnown = false
	c.view.Model(chosen.Label())
	c.view.Note("model %s", describeModel(chosen))
	return nil
}

// changeMode shows or sets the approval mode.
func (c *conversation) changeMode(ctx context.Context, word string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	if word != "" {
		mode, err := parseMode(word)
		if err != nil {
			return exit.Usagef("/approve %w", err)
		}
		c.mode = mode
		rt.Agent.SetMode(mode)
	}
	fmt.Fprintln(c.app.Stdout, map[agent.Mode]string{
		agent.ModeAsk:      "ask: dowel asks before it runs a tool that is not read-only",
		agent.ModeReadOnly: "read-only: only read-only tools and always allowed tools run",
		agent.ModeAll:      "all: every tool runs without a question",
		agent.ModeNone:     "none: no tool runs",
	}[c.mode])
	return nil
}

// saveSession writes a copy of the conversation to file. Without a file it shows where the
// conversation is saved, and starts saving it if it is not.
func (c *conversation) saveSession(ctx context.Context, file string) error {
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	messages := rt.Agent.Messages()
	if len(messages) == 0 {
		return exit.Usagef("the conversation is empty")
	}
	header, err := newHeader(rt)
	if err != nil {
		return err
	}
	if file != "" {
		return c.saveCopy(file, header, messages, rt.Model)
	}
	if c.log.Session == nil {
		if factory.SessionsDir() == "" {
			return exit.Usagef("no folder for conversations was found: name a FILE")
		}
		s := session.New(factory.SessionsDir(), header)
		if err := sessionlog.Write(s, messages, rt.Model); err != nil {
			return err
		}
		c.log.Session, c.log.ModelKnown = s, true
		rt.UseSession(s)
	}
	fmt.Fprintf(c.app.Stdout, "saved as %s in %s\n", c.log.Session.Header().ID, c.log.Session.Path())
	return nil
}
