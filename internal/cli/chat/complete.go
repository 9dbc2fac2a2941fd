package chat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// completeInput completes the word before the cursor, byte offset at of text: a command, a prompt,
// an argument of either, a file, or a resource. It returns the longer text, the new cursor and all
// choices. The console calls it while the goroutine of runLoop waits for a line, so it may read
// that goroutine's fields.
func (c *conversation) completeInput(text string, at int) (longer string, to int, choices []string) {
	head, tail := text[:at], text[at:]
	start := strings.LastIndexByte(head, ' ') + 1
	word := head[start:]
	var all []choice
	defer func() { c.lookups.wantAnswers(len(all) == 0) }()
	switch first, _, _ := strings.Cut(head, " "); {
	case strings.HasPrefix(word, "@"):
		all = append(c.completeReference(word), plainChoices(completePath(word))...)
	case start == 0 && strings.HasPrefix(word, "/"):
		all = plainChoices(c.completeCommand(word))
	case strings.HasPrefix(head, "/"):
		all = plainChoices(c.completeArgument(first, strings.Fields(head[len(first):start]), word))
	}
	if len(all) == 0 {
		return text, at, nil
	}
	var words []string
	for _, one := range all {
		words, choices = append(words, one.word), append(choices, one.label)
	}
	common := commonPrefix(words)
	if len(all) == 1 && !all[0].open && tail == "" {
		common += " "
	}
	if len(common) < len(word) {
		common = word
	}
	longer = head[:start] + common + tail
	return longer, start + len(common), choices
}

// commonPrefix returns the longest common prefix of a non-empty list, in whole characters.
func commonPrefix(all []string) string {
	common := all[0]
	for _, one := range all[1:] {
		for !strings.HasPrefix(one, common) {
			common = common[:len(common)-1]
		}
	}
	return strings.ToValidUTF8(common, "")
}

func filterPrefix(all []string, typed string) (found []string) {
	for _, one := range all {
		if strings.HasPrefix(one, typed) {
			found = append(found, one)
		}
	}
	return found
}

// completeCommand returns the commands and prompts that begin with typed.
func (c *conversation) completeCommand(typed string) []string {
	var all []string
	for _, name := range slashCommandNames() {
		all = append(all, "/"+name)
	}
	for _, p := range c.availablePrompts() {
		all = append(all, "/"+toolname.Display(p.Name))
	}
	return filterPrefix(all, typed)
}

// hasRuntime reports whether the agent has started.
func (c *conversation) hasRuntime() bool {
	select {
	case <-c.runtimeReady:
		return c.runtime != nil
	default:
		return false
	}
}

// availablePrompts returns the servers' prompts, or nil if the agent has not started yet.
func (c *conversation) availablePrompts() []mcp.Prompt {
	if !c.hasRuntime() {
		return nil
	}
	return findAnswer(c.lookups, "prompts", c.runtime.ListPrompts)
}

// completeArgument returns the words that can follow a command and the words before.
func (c *conversation) completeArgument(command string, before []string, typed string) []string {
	if words, ok := c.argumentsOf(command, before); ok {
		return filterPrefix(words, typed)
	}
	p, err := agentcmd.FindPrompt(c.availablePrompts(), strings.TrimPrefix(command, "/"))
	if err != nil {
		return nil
	}
	key, value, valued := strings.Cut(typed, "=")
	settled := map[string]string{}
	for _, word := range before {
		if key, value, ok := strings.Cut(word, "="); ok {
			settled[key] = value
		}
	}
	if valued {
		return c.completeValue(p, key, value, settled)
	}
	var all []string
	for _, a := range p.Arguments {
		if _, given := settled[a.Name]; !given {
			all = append(all, a.Name+"=")
		}
	}
	return filterPrefix(all, typed)
}

// argumentsOf returns the words that can follow one of dowel's own commands. ok is false for other
// commands.
func (c *conversation) argumentsOf(command string, before []string) (words []string, ok bool) {
	first := len(before) == 0
	switch command {
	case "/approve":
		return modes, true
	case "/theme":
		return themes, true
	case "/model":
		if c.hasRuntime() {
			words = c.runtime.Models()
		}
		return words, true
	case "/resume":
		return c.sessionIDs(), true
	case "/doctor":
		return c.knownServers(), true
	case "/servers":
		if first {
			return serverVerbs, true
		}
		return c.knownServers(), true
	case "/tools":
		if first {
			return []string{onWord, offWord}, true
		}
		return c.switchableTools(), true
	}
	return nil, false
}

// knownServers returns the names of the servers, or nil before the agent has started.
func (c *conversation) knownServers() []string {
	if !c.hasRuntime() {
		return nil
	}
	return serverNames(findAnswer(c.lookups, "servers", c.runtime.Servers))
}

// switchableTools returns the names for /tools on and /tools off.
func (c *conversation) switchableTools() []string {
	if !c.hasRuntime() {
		return nil
	}
	return findAnswer(c.lookups, "tools", func(ctx context.Context) ([]string, error) { return c.listSwitchable(ctx, c.runtime) })
}

// sessionIDs returns the IDs of the saved conversations.
func (c *conversation) sessionIDs() (ids []string) {
	all, _ := session.List(factory.SessionsDir()) // Tab cannot show errors
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return ids
}

// completeValue asks the server to complete the value of a prompt's argument.
func (c *conversation) completeValue(p mcp.Prompt, key, value string, settled map[string]string) (all []string) {
	question := strings.Join([]string{"argument", p.Name, key, value, fmt.Sprint(settled)}, "\x00")
	values := findAnswer(c.lookups, question, func(ctx context.Context) ([]string, error) {
		found, err := c.runtime.Toolbox.Client().Complete(ctx, mcp.PromptRef(p.Name), key, value, settled)
		if err != nil {
			return nil, err
		}
		return found.Values, nil
	})
	for _, v := range values {
		if !strings.ContainsAny(v, " \t\"'") {
			all = append(all, key+"="+term.Line(v))
		}
	}
	return all
}

// completePath returns the files and folders that complete @path, at most 200.
func completePath(typed string) (all []string) {
	path := strings.TrimPrefix(typed, "@")
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(expandHome(dir + "."))
	if err != nil {
		return nil
	}
	const most = 200
	for _, e := range entries {
		name := e.Name()
		hidden := strings.HasPrefix(name, ".") && !strings.HasPrefix(base, ".")
		if hidden || !strings.HasPrefix(name, base) || strings.ContainsAny(name, " \"") {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		if all = append(all, "@"+dir+name); len(all) >= most {
			break
		}
	}
	slices.Sort(all)
	return all
}
