package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// Structured content is left out only if the text covers it.
func TestStructuredSaid(t *testing.T) {
	const long = "a sentence of more than forty characters, with a \"quote\" in it"
	quoted, _ := json.Marshal(long)
	words := func(n int, format string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(format, i, i))
		}
		return strings.Join(all, ",")
	}
	for _, tt := range []struct {
		name, structured string
		texts            []string
		left             bool
	}{
		{"the same JSON", `{"a":1,"b":"ö"}`, []string{"{\n \"b\": \"\\u00f6\", \"a\": 1}"}, true},
		{"the same JSON in a later block", `{"a":1}`, []string{"see", `{"a": 1}`}, true},
		{"other JSON", `{"a":1}`, []string{`{"a":2}`}, false},
		{"other JSON, long and of the same length", `{"a":"` + strings.Repeat("x", 300<<10) + `1"}`, []string{`{"a":"` + strings.Repeat("x", 300<<10) + `2"}`}, false},
		{"the same JSON, long and in another order", `{"a":1,"b":"` + strings.Repeat("x", 300<<10) + `"}`, []string{`{"b":"` + strings.Repeat("x", 300<<10) + `", "a":1}`}, true},
		{"a long string and a few short ones that are not said", `{"text":` + string(quoted) + `,"kind":"text","n":7,"ok":true}`, []string{strings.Repeat("* ", 40) + long}, true},
		{"a long string that is not said", `{"text":` + string(quoted) + `,"more":"` + strings.Repeat("more ", 8) + `"}`, []string{long}, false},
		{"a long string that is said with another end", `{"text":` + string(quoted) + `}`, []string{long[:50]}, false},
		{"a long string in another block", `{"text":` + string(quoted) + `}`, []string{"Here it is:", long}, true},
		{"a long string in the arguments", `{"path":"` + argument + `"}`, []string{"done"}, true},
		{"only short ones that are not said", `{"conditions":"Cloudy","temperature":22.5}`, []string{"The weather is here."}, false},
		{"one that is said, and is too short to tell", `{"conditions":"cloudy"}`, []string{"It is cloudy."}, false},
		{"many names, all of them said", `{"names":["one.txt","two.txt","three.txt","four.txt","five.txt","six.txt"]}`, []string{"one.txt\ntwo.txt\nthree.txt\nfour.txt\nfive.txt\nsix.txt"}, true},
		{"many names, one of them not said", `{"names":["one.txt","two.txt","three.txt","four.txt","five.txt","six.txt"]}`, []string{"one.txt\ntwo.txt\nthree.txt\nfour.txt\nfive.txt"}, false},
		{"parts of words", `{"names":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q","r","s","t","u","v","w","x","y","z","aa","bb","cc","dd","ee","ff","gg","hh"]}`,
			[]string{"abcdefghijklmnopqrstuvwxyz aabbccddeeffgghh"}, false},
		{"records whose ids are not said", `[` + words(20, `{"id":"x%d","title":"The title of record %d, which is rather long as titles go."}`) + `]`,
			[]string{strings.ReplaceAll(words(20, "%[1]d The title of record %[1]d, which is rather long as titles go."), ",0", "")}, false},
		{"numbers that are not said", `{"title":"` + strings.Repeat("title ", 20) + `","values":[` + words(20, "%d%d.5") + `]}`, []string{strings.Repeat("title ", 20)}, false},
		{"numbers that are said", `{"title":"` + strings.Repeat("title ", 20) + `","values":[17,18,19.5]}`, []string{strings.Repeat("title ", 20) + "17 18 19.5"}, true},
		{"an embedded resource says it", `{"text":` + string(quoted) + `}`, []string{"resource:" + long}, true},
		{"no text", `{"path":"` + argument + `"}`, nil, false},
		{"no JSON", `{"text":` + string(quoted), []string{long}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var content []mcp.Content
			for _, text := range tt.texts {
				if rest, ok := strings.CutPrefix(text, "resource:"); ok {
					content = append(content, mcp.Embed(mcp.ResourceContents{URI: "file:///a", Text: rest}))
				} else {
					content = append(content, mcp.Text(text))
				}
			}
			res := mcp.CallToolResult{Content: slices.Clone(content), StructuredContent: json.RawMessage(tt.structured)}
			got := limitedContent(t, agent.Options{Limits: agent.Limits{MaxResult: -1}}, res)
			if left := len(got) == len(content); left != tt.left {
				t.Errorf("left out: %v, of %d blocks", left, len(got))
			}
			if !tt.left && got[len(got)-1].Text != tt.structured {
				t.Errorf("%.200s", got[len(got)-1].Text)
			}
		})
	}
}

// Any result takes time in proportion to its length.
func TestStructuredCost(t *testing.T) {
	blocks := func(n int, text string) (all []mcp.Content) {
		for range n {
			all = append(all, mcp.Text(text))
		}
		return all
	}
	var rows, other strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&rows, `,{"text":"a string of more than forty characters %d"}`, i)
		fmt.Fprintf(&other, "a string of more than forty characters %d\n", 40_000-i-1)
	}
	structured := `{"rows":[{}` + rows.String() + `]}`
	for _, tt := range []struct {
		name, structured string
		content          []mcp.Content
	}{
		{"many short blocks", structured, blocks(2000, "1")},
		{"many blocks of JSON", structured, blocks(2000, `{"a":1}`)},
		{"many blocks with much", structured, blocks(5, strings.Replace(structured, "{}", `{ "a":1 }`, 1))},
		{"all said, in another order", structured, []mcp.Content{mcp.Text(other.String())}},
		{"one letter", `["` + strings.Repeat("a", 100_000) + `","a","aa","aaa"]`, []mcp.Content{mcp.Text(strings.Repeat("a", 1<<20))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			began := time.Now()
			limitedContent(t, agent.Options{Limits: agent.Limits{MaxResult: -1}}, mcp.CallToolResult{Content: tt.content, StructuredContent: json.RawMessage(tt.structured)})
			took := time.Since(began)
			t.Logf("%d bytes: %v", len(tt.structured), took)
			if took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}
