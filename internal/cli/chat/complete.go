package chat

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// completionTimeout limits how long Tab waits for a server.
const completionTimeout = 2 * time.Second

// completeInput completes the word before the cursor, byte offset at of text: a command, a prompt,
// an argument of either, or a file. It returns the longer text, the new cursor and all choices. The
// console calls it while the goroutine of runLoop waits for a line, so it may read that
// goroutine's fields.
func (c *conversation) completeInput(text string, at int) (longer string, to int, choices []string) {
	head, tail := text[:at], text[at:]
	start := strings.LastIndexByte(head, ' ') + 1
	word := head[start:]
	var all []string
	switch first, _, _ := strings.Cut(head, " "); {
	case strings.HasPrefix(word, "@"):
		all = completePath(word)
	case start == 0 && strings.HasPrefix(word, "/"):
		all = c.completeCommand(word)
	case strings.HasPrefix(head, "/"):
		all = c.completeArgument(first, strings.Fields(head[len(first):start]), word)
	}
	if len(all) == 0 {
		return text, at, nil
	}
	common := commonPrefix(all)
	if len(all) == 1 && !strings.HasSuffix(common, "/") && !strings.HasSuffix(common, "=") && tail == "" {
		common += " "
	}
	if len(common) < len(word) {
		common = word
	}
	longer = head[:start] + common + tail
	return longer, start + len(common), all
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

// availablePrompts returns the servers' prompts, or nil if the agent has not started yet.
func (c *conversation) availablePrompts() []mcp.Prompt {
	select {
	case <-c.runtimeReady:
	default:
		return nil
	}
	if c.runtime == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, completionTimeout)
	defer cancel()
	prompts, _ := c.runtime.ListPrompts(ctx) // Tab cannot show errors
	return prompts
}

// completeArgument returns the words that can follow a command and the words before.
func (c *conversation) completeArgument(command string, before []string, typed string) []string {
	switch command {
	case "/approve":
		return filterPrefix(modes, typed)
	case "/model":
		select {
		case <-c.runtimeReady:
			if c.runtime != nil {
				return filterPrefix(c.runtime.Models(), typed)
			}
		default:
		}
		return nil
	}
	p, err := findPrompt(c.availablePrompts(), strings.TrimPrefix(command, "/"))
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

// completeValue asks the server to complete the value of a prompt's argument.
func (c *conversation) completeValue(p mcp.Prompt, key, value string, settled map[string]string) (all []string) {
	ctx, cancel := context.WithTimeout(c.ctx, completionTimeout)
	defer cancel()
	found, err := c.runtime.Toolbox.Client().Complete(ctx, mcp.PromptRef(p.Name), key, value, settled)
	if err != nil {
		return nil // Tab cannot show errors
	}
	for _, v := range found.Values {
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
