package search

import (
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"":                     nil,
		" ._-/\n":              nil,
		"create_issue":         {"create", "issue"},
		"API-post-page":        {"api", "post", "page"},
		"createPullRequest":    {"createpullrequest", "create", "pull", "request"},
		"getHTTPStatus":        {"gethttpstatus", "get", "http", "status"},
		"HTTPServer":           {"httpserver", "http", "server"},
		"PRs":                  {"prs"},
		"GitHub":               {"github", "git", "hub"},
		"OAuth iOS k8s s3 h":   {"oauth", "ios", "k8s", "s3", "h"},
		"base64_decode":        {"base64", "base", "64", "decode"},
		"server.tool":          {"server", "tool"},
		"mcp__files__readFile": {"mcp", "files", "readfile", "read", "file"},
		"the user's file":      {"the", "user", "s", "file"},
		"Grüße ÄNDERN":         {"grüße", "ändern"},
		"naïveÜber":            {"naïveüber", "naïve", "über"},
		"创建问题":                 {"创建", "建问", "问题"},
		"读file写":               {"读", "file", "写"},
		"создать_файл":         {"создать", "файл"},
		"a\xff\xfeb":           {"a", "b"},
		"🎯 Purpose: 1.":        {"purpose", "1"},
		"ALL_CAPS_NAME":        {"all", "caps", "name"},
	} {
		var got []string
		splitWords(text, func(w word) bool {
			got = append(append(got, w.whole), w.parts...)
			return true
		})
		if !slices.Equal(got, want) {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func TestSplitStops(t *testing.T) {
	for _, text := range []string{"one two", "创建问题", "读file写", "camelCase two"} {
		n := 0
		splitWords(text, func(word) bool { n++; return false })
		if n != 1 {
			t.Errorf("%q: %d words after the end", text, n-1)
		}
	}
}

func TestFold(t *testing.T) {
	for _, name := range []string{"github__create_issue", "github.create-issue", "GitHub.createIssue", "github create issue"} {
		if got := foldName(name); got != "githubcreateissue" {
			t.Errorf("%s becomes %s", name, got)
		}
	}
}
