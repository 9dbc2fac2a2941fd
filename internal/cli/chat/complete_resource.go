package chat

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/uritemplate"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/mcp"
)

// choice is a possible completion.
type choice struct {
	word, label string // to insert, and to show
	open        bool   // the word is not complete, so no space follows
}

// plainChoices returns choices that are shown as they are inserted.
func plainChoices(words []string) (all []choice) {
	for _, word := range words {
		all = append(all, choice{word, word, strings.HasSuffix(word, "/") || strings.HasSuffix(word, "=") || strings.HasSuffix(word, ":")})
	}
	return all
}

// completeReference returns the servers and resources that complete @SERVER:URI. Words that cannot
// be typed without quotes are left out.
func (c *conversation) completeReference(typed string) (all []choice) {
	resources := c.availableResources()
	var servers []string
	for _, r := range resources {
		prefix := "@" + r.Server + ":"
		switch rest, ok := strings.CutPrefix(typed, prefix); {
		case !ok && strings.HasPrefix(prefix, typed) && !slices.Contains(servers, prefix):
			servers = append(servers, prefix)
		case ok && r.Template:
			for _, found := range c.completeTemplate(r, rest) {
				found.word = prefix + found.word
				all = append(all, found)
			}
		case ok && strings.HasPrefix(r.URI, rest):
			all = append(all, choice{prefix + r.URI, r.URI, false})
		}
	}
	all = append(all, plainChoices(servers)...)
	return slices.DeleteFunc(all, func(one choice) bool { return strings.ContainsFunc(one.word+one.label, isUntypeable) })
}

// isUntypeable reports whether a character ends a word, or does not show what it is.
func isUntypeable(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '"' }

// availableResources returns the servers' resources under their own URIs. It returns nil before the
// agent has started.
func (c *conversation) availableResources() []agent.Resource {
	if !c.hasRuntime() {
		return nil
	}
	return findAnswer(c.lookups, "resources", c.runtime.ListResources)
}

// completeTemplate returns the completions of a URI by a template: literal text up to the next
// variable, and values of the variable that the user is typing.
func (c *conversation) completeTemplate(r agent.Resource, typed string) []choice {
	if _, err := uritemplate.Parse(r.URI); err != nil {
		return nil
	}
	settled, done, rest := map[string]string{}, "", r.URI // rest is the template behind done
	for {
		at := strings.IndexByte(rest, '{')
		if at < 0 {
			at = len(rest)
		}
		literal := rest[:at]
		if len(typed) < len(done+literal) || at == len(rest) {
			if !strings.HasPrefix(done+literal, typed) {
				return nil
			}
			return []choice{{done + literal, r.URI, at < len(rest)}}
		}
		if !strings.HasPrefix(typed[len(done):], literal) {
			return nil
		}
		done += literal
		end := strings.IndexByte(rest, '}') // Parse has seen it
		expression, behind := rest[at+1:end], rest[end+1:]
		value := typed[len(done):]
		next, _, _ := strings.Cut(behind, "{")
		ended := -1
		if next != "" {
			ended = strings.Index(value, next)
		}
		if ended < 0 {
			found := c.completeVariable(r, expression, done, value, settled)
			for i := range found {
				found[i].word += next
				found[i].label += next
				found[i].open = len(next) < len(behind)
			}
			if found == nil { // shows the user the variable
				found = []choice{{done + value, r.URI, true}}
			}
			return found
		}
		done, rest = done+value[:ended], behind
		settled[variableName(expression)] = unescape(value[:ended])
	}
}

// variableName returns the name in an expression with one variable, such as +path.
func variableName(expression string) string {
	return strings.TrimSuffix(strings.TrimLeft(expression, "+#./;?&"), "*")
}

// unescape decodes a part of a URI, or returns it as it is.
func unescape(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

// completeVariable asks the server of a template for values of a variable. done precedes the value
// in the URI.
func (c *conversation) completeVariable(r agent.Resource, expression, done, value string, settled map[string]string) (all []choice) {
	name := variableName(expression)
	t, err := uritemplate.Parse("{" + expression + "}")
	if err != nil || len(t.Names()) != 1 {
		return nil
	}
	key := strings.Join([]string{"variable", r.Server, r.URI, done, value}, "\x00")
	values := findAnswer(c.lookups, key, func(ctx context.Context) ([]string, error) {
		ref := mcp.ResourceRef(wirename.ResourceURI(r.Server, r.URI))
		found, err := c.runtime.Toolbox.Client().Complete(ctx, ref, name, unescape(value), settled)
		if err != nil {
			return nil, err
		}
		return found.Values, nil
	})
	for _, v := range values {
		expanded, err := t.Expand(uritemplate.Values{name: uritemplate.Text(v)})
		if err == nil && strings.HasPrefix(expanded, value) {
			all = append(all, choice{word: done + expanded, label: done + expanded})
		}
	}
	return all
}
