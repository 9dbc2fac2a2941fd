package draft

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// pair matches a key with a string in JSON, YAML or TOML.
var pair = regexp.MustCompile(`((?:^|[\s{,])["']?([A-Za-z][\w.-]*)["']?\s*[:=]\s*)("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"'{}\[\],]+)`)

// variable matches a value that consists of one variable. Such a value is not secret.
var variable = regexp.MustCompile(`^(?:[Bb]earer )?\$?\{[^}]*\}$`)

// span is a part of a text, in bytes.
type span struct{ from, to int }

// findSecrets returns the places of the secrets in the text of a configuration file of any tool, in
// order: the secrets of its servers, texts with the form of a secret, and each value with a key that
// has the name of a secret.
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
	for _, m := range pair.FindAllSubmatchIndex(text, -1) {
		value := span{m[6], m[7]}
		if q := text[value.from]; q == '"' || q == '\'' {
			value = span{value.from + 1, value.to - 1}
		}
		written := string(text[value.from:value.to])
		if secretmask.IsSecretName(string(text[m[4]:m[5]])) && !slices.Contains([]string{"", "true", "false", "null"}, written) && !variable.MatchString(written) {
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

// secrets are the secrets behind the placeholders of a draft, as the file has them. Placeholder n is
// number n-1.
type secrets []string

// placeholder matches the text that a draft shows in place of a secret.
var placeholder = regexp.MustCompile(`⟨secret (\d+)⟩`)

// hide replaces the secrets in a text by placeholders, and adds them to s.
func (s *secrets) hide(path string, text []byte) string {
	return replaceSpans(text, findSecrets(path, text), func(old []byte) string {
		i := slices.Index(*s, string(old))
		if i < 0 {
			i = len(*s)
			*s = append(*s, string(old))
		}
		return fmt.Sprintf("⟨secret %d⟩", i+1)
	})
}

// hideKnown replaces the secrets of s in a part of the file by their placeholders. It leaves a secret
// of one to three characters, which would hide other text.
func (s secrets) hideKnown(part string) string {
	for i, secret := range s {
		if len(secret) > 3 {
			part = strings.ReplaceAll(part, secret, fmt.Sprintf("⟨secret %d⟩", i+1))
		}
	}
	return part
}

// reveal replaces the placeholders in a text by their secrets.
func (s secrets) reveal(text string) (string, error) {
	var unknown string
	text = placeholder.ReplaceAllStringFunc(text, func(found string) string {
		n, err := strconv.Atoi(placeholder.FindStringSubmatch(found)[1])
		if err != nil || n < 1 || n > len(s) {
			unknown = found
			return found
		}
		return s[n-1]
	})
	if unknown != "" {
		return "", fmt.Errorf("%s stands for no secret of this file: write the value, or a reference such as ${TOKEN}", unknown)
	}
	return text, nil
}
