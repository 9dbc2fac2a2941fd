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

// tabLimit is how long Tab waits for a server.
const tabLimit = 2 * time.Second

// complete finds how the word before the cursor can go on: a command, a prompt, an argument of it, or a file. It runs beside the
// goroutine that reads, and at no other time.
func (c *conversation) complete(text string, at int) (longer string, to int, choices []string) {
	head, tail := text[:at], text[at:]
	start := strings.LastIndexByte(head, ' ') + 1
	word := head[start:]
	var all []string
	switch first, _, _ := strings.Cut(head, " "); {
	case strings.HasPrefix(word, "@"):
		all = filesFrom(word)
	case start == 0 && strings.HasPrefix(word, "/"):
		all = c.commandsFrom(word)
	case strings.HasPrefix(head, "/"):
		all = c.argumentsFrom(first, strings.Fields(head[len(first):start]), word)
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

func commonPrefix(all []string) string {
	common := all[0]
	for _, one := range all[1:] {
		for !strings.HasPrefix(one, common) {
			common = common[:len(common)-1]
		}
	}
	return strings.ToValidUTF8(common, "")
}

func startingWith(all []string, typed string) (found []string) {
	for _, one := range all {
		if strings.HasPrefix(one, typed) {
			found = append(found, one)
		}
	}
	return found
}

// commandsFrom are the commands, and the prompts that there are.
func (c *conversation) commandsFrom(typed string) []string {
	var all []string
	for _, name := range slashNames() {
		all = append(all, "/"+name)
	}
	for _, p := range c.promptsNow() {
		all = append(all, "/"+toolname.Display(p.Name))
	}
	return startingWith(all, typed)
}

// promptsNow are the prompts as far as they can be had at once.
func (c *conversation) promptsNow() []mcp.Prompt {
	select {
	case <-c.ready:
	default:
		return nil
	}
	if c.it == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, tabLimit)
	defer cancel()
	prompts, _ := c.it.ListPrompts(ctx) // there is no place here for what went wrong
	return prompts
}

// argumentsFrom are what can stand behind a command.
func (c *conversation) argumentsFrom(command string, before []string, typed string) []string {
	switch command {
	case "/approve":
		return startingWith(modes, typed)
	case "/model":
		select {
		case <-c.ready:
			if c.it != nil {
				return startingWith(c.it.Models(), typed)
			}
		default:
		}
		return nil
	}
	p, err := findPrompt(c.promptsNow(), strings.TrimPrefix(command, "/"))
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
		return c.valuesFrom(p, key, value, settled)
	}
	var all []string
	for _, a := range p.Arguments {
		if _, given := settled[a.Name]; !given {
			all = append(all, a.Name+"=")
		}
	}
	return startingWith(all, typed)
}

// valuesFrom asks the server how an argument can go on.
func (c *conversation) valuesFrom(p mcp.Prompt, key, value string, settled map[string]string) (all []string) {
	ctx, cancel := context.WithTimeout(c.ctx, tabLimit)
	defer cancel()
	found, err := c.it.Toolbox.Client().Complete(ctx, mcp.PromptRef(p.Name), key, value, settled)
	if err != nil {
		return nil // there is no place here for what went wrong
	}
	for _, v := range found.Values {
		if !strings.ContainsAny(v, " \t\"'") {
			all = append(all, key+"="+term.Line(v))
		}
	}
	return all
}

// filesFrom are the files and folders that a path can go on to.
func filesFrom(typed string) (all []string) {
	path := strings.TrimPrefix(typed, "@")
	dir, base := filepath.Split(path)
	entries, err := os.ReadDir(atHome(dir + "."))
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
