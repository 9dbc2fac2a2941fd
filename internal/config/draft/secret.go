package draft

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// pair matches a key with a string in JSON, YAML or TOML.
var pair = lazyregexp.New(`((?:^|[\s{,/*#])["']?([A-Za-z][\w.-]*)["']?\s*[:=]\s*)("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"'{}\[\],]+)`)

// variable matches a value that consists of one variable. Such a value is not secret.
var variable = lazyregexp.New(`^(?:[Bb]earer )?\$?\{[^}]*\}$`)

// span is a part of a text, in bytes.
type span struct{ from, to int }

// findSecrets returns the places of the secrets in the text of a configuration file of any tool, in
// order: the secrets of its servers, texts with the form of a secret, and each value with a key
// that has the name of a secret.
func findSecrets(path string, text []byte) []span {
	var all []span
	for _, s := range config.ServersIn(path, text) {
		for _, form := range s.SecretForms() {
			all = append(all, findAll(text, form)...)
		}
	}
	for _, form := range secretmask.NewSet(secretmask.Secrets(string(text))...).Forms() {
		all = append(all, findAll(text, form)...)
	}
	for _, m := range pair().FindAllSubmatchIndex(text, -1) {
		value := span{m[6], m[7]}
		if q := text[value.from]; q == '"' || q == '\'' {
			value = span{value.from + 1, value.to - 1}
		}
		written := string(text[value.from:value.to])
		if secretmask.IsSecretName(string(text[m[4]:m[5]])) && !slices.Contains([]string{"", "true", "false", "null"}, written) && !variable().MatchString(written) {
			all = append(all, value)
		}
	}
	return joinSpans(all)
}

func findAll(text, form []byte) (all []span) {
	for at := 0; ; {
		i := bytes.Index(text[at:], form)
		if i < 0 {
			return all
		}
		all = append(all, span{at + i, at + i + len(form)})
		at += i + len(form)
	}
}

// joinSpans sorts spans and joins overlapping ones.
func joinSpans(all []span) (joined []span) {
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	for _, s := range all {
		if last := len(joined) - 1; last >= 0 && s.from < joined[last].to {
			joined[last].to = max(joined[last].to, s.to)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

// MaskText returns the text of a configuration file of any tool with **** for each secret.
func MaskText(path string, text []byte) string {
	return replaceSpans(text, findSecrets(path, text), func([]byte) string { return secretmask.Mask })
}

func replaceSpans(text []byte, all []span, replace func(old []byte) string) string {
	var b strings.Builder
	at := 0
	for _, s := range all {
		b.Write(text[at:s.from])
		b.WriteString(replace(text[s.from:s.to]))
		at = s.to
	}
	b.Write(text[at:])
	return b.String()
}

// secrets are the secrets behind the placeholders of a draft, as the file has them. Placeholder n
// is number n-1.
type secrets []string

// placeholder matches the text that a draft shows in place of a secret.
var placeholder = lazyregexp.New(`⟨secret-(\d+)⟩`)

// hide replaces the secrets in a text by placeholders, and adds the new ones to s. Secrets of s are
// replaced wherever they are, unless they have one to three bytes, which would hide other text.
func (s *secrets) hide(path string, text []byte) string {
	all := findSecrets(path, text)
	for _, known := range *s {
		if len(known) > 3 {
			all = append(all, findAll(text, []byte(known))...)
		}
	}
	return replaceSpans(text, joinSpans(all), func(old []byte) string {
		i := slices.Index(*s, string(old))
		if i < 0 {
			i = len(*s)
			*s = append(*s, string(old))
		}
		return placeholderOf(i)
	})
}

func placeholderOf(i int) string { return fmt.Sprintf("⟨secret-%d⟩", i+1) }

// hideIn replaces the secrets of s in a message.
func (s secrets) hideIn(message string) string {
	for i, secret := range s {
		if len(secret) > 3 {
			message = strings.ReplaceAll(message, secret, placeholderOf(i))
		}
	}
	return message
}

// reveal replaces the placeholders in a text by their secrets. The result has at most maxText
// bytes.
func (s secrets) reveal(text string) (string, error) {
	var b strings.Builder
	at := 0
	for _, m := range placeholder().FindAllStringSubmatchIndex(text, -1) {
		n, err := strconv.Atoi(text[m[2]:m[3]])
		if err != nil || n < 1 || n > len(s) {
			return "", fmt.Errorf("%s stands for no secret of this file: write the value, or a reference such as ${TOKEN}", text[m[0]:m[1]])
		}
		b.WriteString(text[at:m[0]])
		b.WriteString(s[n-1])
		if at = m[1]; b.Len() > maxText {
			break
		}
	}
	b.WriteString(text[at:])
	if b.Len() > maxText {
		return "", fmt.Errorf("the text is too long: want at most %d bytes", maxText)
	}
	return b.String(), nil
}

// checkHidden returns an error if a shown text may still have a part of a secret, such as one in a
// form that only the parser of its format understands. It parses the shown text, in which each
// secret value must consist of placeholders.
func checkHidden(path, shown string) error {
	if strings.TrimSpace(shown) == "" {
		return nil
	}
	refuse := func(why any) error {
		return fmt.Errorf("%s is not shown, because dowel cannot tell which parts of it are secret: %v: change it in an editor", path, why)
	}
	format, ok := edit.FormatOf(path)
	if !ok {
		return refuse("want a JSON, YAML or TOML file")
	}
	model, err := edit.Parse([]byte(shown), format)
	if err != nil {
		return refuse("it cannot be read")
	}
	for _, s := range config.ServersIn(path, []byte(shown)) {
		for _, secret := range s.Secrets() {
			if !isPlaceholders(secret) {
				return refuse("a value of the server " + s.Name + " is written in an unusual form")
			}
		}
	}
	if key := findShownSecret(model); key != "" {
		return refuse("the value of " + key + " is written in an unusual form")
	}
	if len(secretmask.Secrets(placeholder().ReplaceAllString(shown, ""))) > 0 {
		return refuse("it has the text of a secret")
	}
	return nil
}

// isPlaceholders reports whether a value has nothing but placeholders, behind the name of a scheme.
func isPlaceholders(value string) bool {
	return strings.TrimSpace(scheme().ReplaceAllString(placeholder().ReplaceAllString(value, ""), "")) == ""
}

var scheme = lazyregexp.New(`^(?i:Bearer|Basic|Token) `)

// findShownSecret returns a key with the name of a secret and a text that is not hidden, or "".
func findShownSecret(model any) string {
	switch model := model.(type) {
	case edit.Object:
		for _, m := range model {
			if text, ok := m.Value.(string); ok && secretmask.IsSecretName(m.Key) && !isPlaceholders(text) && !variable().MatchString(text) {
				return m.Key
			}
			if key := findShownSecret(m.Value); key != "" {
				return key
			}
		}
	case []any:
		for _, item := range model {
			if key := findShownSecret(item); key != "" {
				return key
			}
		}
	}
	return ""
}
