package run

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/attach"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolargs"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// taskInput is the message to the model.
type taskInput struct {
	words  []string      // of the command line
	task   string        // the words and standard input
	piped  string        // standard input beside the words
	prompt string        // the part of the task that may name resources
	files  []mcp.Content // of -f

	content    []mcp.Content        // the message, see assembleContent
	references []agentcmd.Reference // the resources in content
}

// readTask returns the files of -f, the task, and standard input if it is piped or the task is "-".
// Standard input beside a task is data, so it cannot name resources.
func readTask(ctx context.Context, f *factory.Factory, opts *Options, words []string) (in taskInput, err error) {
	in = taskInput{words: words, task: strings.Join(words, " ")}
	in.prompt = in.task
	onlyStdin := in.task == "-"
	if onlyStdin {
		in.task, in.words = "", nil
	}
	if onlyStdin || isPiped(f) {
		piped, err := readPiped(ctx, f, onlyStdin)
		if err != nil {
			return in, err
		}
		if onlyStdin {
			in.prompt = piped
		}
		in.piped = strings.TrimSpace(piped)
		in.task = strings.TrimSpace(in.task + "\n\n" + in.piped)
	}
	for _, path := range opts.files {
		blocks, err := attach.File(path)
		if err != nil {
			return in, exit.Usagef("-f %s: %w", path, err)
		}
		in.files = append(in.files, blocks...)
	}
	switch {
	case strings.TrimSpace(in.task) != "":
		return in, nil
	case onlyStdin:
		return in, exit.Usagef("standard input is empty: pipe the task into it")
	}
	return in, exit.Usagef(`no task is given: write dowel run "TASK"`)
}

// assembleContent makes the message: the resources that the task names, the files, and the task or
// the prompt of a server that it names.
func (in *taskInput) assembleContent(ctx context.Context, f *factory.Factory, r *agentcmd.Runtime) error {
	own, isPrompt, err := in.readPrompt(ctx, r)
	switch {
	case err != nil:
		return err
	case !isPrompt:
		own = []mcp.Content{mcp.Text(in.task)}
	case in.piped != "":
		own = append(own, mcp.Text(in.piped))
	}
	in.content, in.references = append(slices.Clone(in.files), own...), nil
	return in.attachResources(ctx, f, r)
}

// readPrompt gets the prompt of a server if the task is /PROMPT key=value…, with each part a word
// of the command line. Another path at the beginning is part of the task.
func (in *taskInput) readPrompt(ctx context.Context, r *agentcmd.Runtime) (content []mcp.Content, isPrompt bool, err error) {
	if len(in.words) == 0 {
		return nil, false, nil
	}
	name, isCommand := strings.CutPrefix(in.words[0], "/")
	if !isCommand || name == "" || strings.ContainsAny(name, "/ \n") {
		return nil, false, nil
	}
	var p mcp.Prompt
	prompts, err := r.ListPrompts(ctx)
	if err == nil {
		p, err = agentcmd.FindPrompt(prompts, name)
	}
	if err != nil {
		if !in.namesServer(ctx, r, name) {
			err = nil
		}
		return nil, false, err
	}
	given, err := toolargs.ParseArguments(in.words[1:])
	if err != nil {
		return nil, false, err
	}
	arguments := toolargs.Texts(given)
	if err := toolargs.CheckPrompt(p, arguments); err != nil {
		return nil, false, err
	}
	if content, err = r.FillPrompt(ctx, p, arguments); err != nil {
		return nil, false, errTask{err}
	}
	return content, true, nil
}

// namesServer reports whether a word begins with the name of a server and a dot.
func (in *taskInput) namesServer(ctx context.Context, r *agentcmd.Runtime, word string) bool {
	servers, err := r.Servers(ctx)
	return err == nil && slices.ContainsFunc(servers, func(s agentcmd.Server) bool { return strings.HasPrefix(word, s.Name+".") })
}

// attachResources reads the resources that the prompt names with @SERVER:URI, and puts them before
// the task. Other mentions stay text.
func (in *taskInput) attachResources(ctx context.Context, f *factory.Factory, r *agentcmd.Runtime) error {
	defer f.Stderr.SetStatus("")
	var content []mcp.Content
	for _, m := range agentcmd.FindMentions(in.prompt) {
		ref, ok, err := r.FindReference(ctx, m)
		if err != nil {
			return err
		}
		if !ok || slices.Contains(in.references, ref) {
			continue
		}
		if !f.JSON {
			f.Stderr.SetStatus(f.Stderr.Dim("reading " + ref.String()))
		}
		blocks, err := r.ReadReference(ctx, ref)
		if err != nil {
			return errTask{err}
		}
		content, in.references = append(content, blocks...), append(in.references, ref)
	}
	in.content = append(content, in.content...)
	return nil
}

// isPiped reports whether standard input is a pipe, a socket or a file.
func isPiped(f *factory.Factory) bool {
	file, ok := f.Stdin.(*os.File)
	if !ok {
		return f.Stdin != nil
	}
	info, err := file.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0) // Node.js uses sockets as pipes
}

// readPiped reads standard input to its end. It prompts a user at a terminal if standard input is
// the whole task, and warns if a pipe stays open for pipeWarningDelay.
func readPiped(ctx context.Context, f *factory.Factory, onlyStdin bool) (string, error) {
	if onlyStdin && term.Terminal(f.Stdin) != nil {
		f.Notice("Write the task, and end it with Ctrl-D.")
	}
	type read struct {
		text []byte
		err  error
	}
	got := make(chan read, 1)
	go func() { // if ctx ends first, the goroutine stays until the process ends
		text, err := io.ReadAll(io.LimitReader(f.Stdin, attach.MaxText+1))
		got <- read{text, err}
	}()
	warning := time.NewTimer(pipeWarningDelay)
	defer warning.Stop()
	for {
		select {
		case r := <-got:
			return attach.Text("standard input", r.text, r.err)
		case <-warning.C:
			if term.Terminal(f.Stdin) == nil {
				f.Warn("waiting for the end of standard input, which belongs to the task: close it, or leave it out with < /dev/null")
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// pipeWarningDelay is the time after which dowel warns that it waits for standard input.
const pipeWarningDelay = 3 * time.Second
