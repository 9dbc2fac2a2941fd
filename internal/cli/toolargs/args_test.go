package toolargs

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// everyType is a schema as servers write them: by hand, from zod, from pydantic.
const everyType = `{"type":"object","properties":{
	"text":{"type":"string"},
	"count":{"type":"integer"},
	"ratio":{"type":"number"},
	"on":{"type":"boolean"},
	"colour":{"enum":["red","green"]},
	"size":{"enum":[1,2,"big"]},
	"maybe":{"anyOf":[{"type":"string"},{"type":"null"}]},
	"maybeCount":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null},
	"either":{"type":["string","number"]},
	"anything":{},
	"tags":{"type":"array","items":{"type":"string"}},
	"counts":{"type":"array","items":{"type":"integer"}},
	"filter":{"$ref":"#/$defs/Filter"},
	"dotted.name":{"type":"integer"},
	"env":{"type":"object","additionalProperties":{"type":"string"}},
	"free":{"type":"object"},
	"self":{"$ref":"#"},
	"nest":{"$ref":"#/$defs/Nest"}
},"$defs":{
	"Filter":{"type":"object","properties":{"name":{"type":"string"},"limit":{"type":"integer"},"deep":{"type":"object","properties":{"on":{"type":"boolean"}}}}},
	"Nest":{"type":"array","items":{"$ref":"#/$defs/Nest"}}
}}`

func TestArgumentTyping(t *testing.T) {
	for _, test := range []struct{ words, want, fails string }{
		{words: "text=hello", want: `{"text":"hello"}`},
		{words: "text=", want: `{"text":""}`},
		{words: "text=a=b", want: `{"text":"a=b"}`},
		{words: "text=5", want: `{"text":"5"}`},
		{words: "text=true", want: `{"text":"true"}`},
		{words: "text=null", want: `{"text":"null"}`},
		{words: `text={"a":1}`, want: `{"text":"{\"a\":1}"}`},
		{words: `text="quoted"`, want: `{"text":"\"quoted\""}`},
		{words: "text=-5", want: `{"text":"-5"}`},
		{words: "count=9007199254740993", want: `{"count":9007199254740993}`},
		{words: "count=1.0", want: `{"count":1.0}`},
		{words: "count=1.5", fails: "count"},
		{words: "count=five", fails: `argument count: must be a whole number, and "five" is not`},
		{words: "count=", fails: "argument count"},
		{words: "ratio=1e3", want: `{"ratio":1e3}`},
		{words: "ratio=0x10", fails: "must be a number"},
		{words: "on=true", want: `{"on":true}`},
		{words: "on=yes", fails: `must be true or false, and "yes" is not`},
		{words: "colour=green", want: `{"colour":"green"}`},
		{words: "colour=gren", fails: `must be one of red, green, and "gren" is not; did you mean green?`},
		{words: "size=2", want: `{"size":2}`},
		{words: "size=big", want: `{"size":"big"}`},
		{words: "maybe=5", want: `{"maybe":"5"}`},
		{words: "maybe=null", want: `{"maybe":null}`},
		{words: "maybeCount=5", want: `{"maybeCount":5}`},
		{words: "maybeCount=null", want: `{"maybeCount":null}`},
		{words: "maybeCount=x", fails: "must be a whole number or null"},
		{words: "either=5", want: `{"either":5}`},
		{words: "either=five", want: `{"either":"five"}`},
		{words: "anything=[1]", want: `{"anything":[1]}`},
		{words: "anything=one", want: `{"anything":"one"}`},
		{words: "tags=a", want: `{"tags":["a"]}`},
		{words: "tags=a tags=b", want: `{"tags":["a","b"]}`},
		{words: `tags=["a","b"]`, want: `{"tags":["a","b"]}`},
		{words: "tags=[a]", want: `{"tags":["[a]"]}`},
		{words: "tags=[]", want: `{"tags":[]}`},
		{words: "counts=1 text=x counts=2", want: `{"counts":[1,2],"text":"x"}`},
		{words: "counts=x", fails: "counts"},
		{words: "text=a text=b", fails: "is given 2 times, and takes one value"},
		{words: `filter={"name":"x"}`, want: `{"filter":{"name":"x"}}`},
		{words: "filter.name=5 filter.limit=5", want: `{"filter":{"name":"5","limit":5}}`},
		{words: "filter.deep.on=true", want: `{"filter":{"deep":{"on":true}}}`},
		{words: "filter.lmit=5", fails: "in filter: there is no argument lmit; did you mean limit?"},
		{words: "filter=x", fails: "must be an object"},
		{words: "dotted.name=5", want: `{"dotted.name":5}`},
		{words: "env.PATH=5", want: `{"env":{"PATH":"5"}}`},
		{words: "env.a.b=5", want: `{"env":{"a.b":"5"}}`},
		{words: "free.a=5", want: `{"free":{"a":5}}`},
		{words: "txt=x", fails: "there is no argument txt; did you mean text?"},
		{words: "self.self.count=5", want: `{"self":{"self":{"count":5}}}`},
		{words: "nest=[[]]", want: `{"nest":[[]]}`},
		{words: "nest=x", fails: "nest"},
	} {
		t.Run(test.words, func(t *testing.T) {
			given, err := ParseArguments(strings.Fields(test.words))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Complete(NewSpec(json.RawMessage(everyType)), json.RawMessage("{}"), given)
			switch {
			case test.fails != "":
				var usage exit.UsageError
				if !errors.As(err, &usage) || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %s, %v, want an error with %q", got, err, test.fails)
				}
			case err != nil || string(got) != test.want:
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// A schema that goes round in circles costs a bounded effort, and is for the server to judge.
func TestCircularSchema(t *testing.T) {
	const circular = `{"properties":{"a":{"$ref":"#/$defs/Loop"},"b":{"$ref":"#/properties/b"},"c":{"$ref":"nowhere"}},
		"$defs":{"Loop":{"anyOf":[{"$ref":"#/$defs/Loop"},{"$ref":"#/$defs/Loop"}]}}}`
	got, err := Complete(NewSpec(json.RawMessage(circular)), json.RawMessage("{}"), []Argument{{"a", "x"}, {"b", "1"}, {"c", "y"}})
	if want := `{"a":"x","b":1,"c":"y"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestArgumentsTogether(t *testing.T) {
	const input = `{"type":"object","properties":{"a":{"type":"integer","description":"The first.\nMore."},"b":{"type":"string"}},
		"required":["a","b"],"additionalProperties":false}`
	for _, test := range []struct{ name, base, words, want, fails string }{
		{"added to a base", `{"a":1}`, "b=x", `{"a":1,"b":"x"}`, ""},
		{"over a base", `{"a":1,"b":"y"}`, "b=x", `{"a":1,"b":"x"}`, ""},
		{"missing", `{}`, "b=x", "", "argument a (integer) is missing: The first."},
		{"both missing", `{}`, "", "", "argument a (integer) is missing: The first.\nargument b (string) is missing"},
		{"every mistake at once", `{}`, "a=x c=1", "", "argument a: must be a whole number, and \"x\" is not\nthere is no argument c; there are a, b"},
		{"wrong in the base", `{"a":"x","b":"y"}`, "", "", "/a: must be an integer"},
		{"unknown in the base", `{"a":1,"b":"y","bb":1}`, "", "", "bb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			given, err := ParseArguments(strings.Fields(test.words))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Complete(NewSpec(json.RawMessage(input)), json.RawMessage(test.base), given)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %s, %v, want an error with %q", got, err, test.fails)
				}
				return
			}
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestArgumentsWithoutSchema(t *testing.T) {
	given := []Argument{{"a", "1"}, {"b", "x"}, {"c", "[1]"}, {"d", "1"}, {"d", "x"}}
	got, err := Complete(Spec{}, json.RawMessage("{}"), given)
	if want := `{"a":1,"b":"x","c":[1],"d":[1,"x"]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestParseArguments(t *testing.T) {
	for _, word := range []string{"message", "=x", ""} {
		if _, err := ParseArguments([]string{word}); exit.Code(err) != exit.Usage {
			t.Errorf("%q: got %v, want a usage error", word, err)
		}
	}
}

func TestReadObject(t *testing.T) {
	file := filepath.Join(t.TempDir(), "args.json")
	if err := os.WriteFile(file, []byte(" {\"from\":\"file\"} "), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ flag, want string }{
		{"", `{}`},
		{`{"a":1}`, `{"a":1}`},
		{"@" + file, `{"from":"file"}`},
		{"@-", `{"from":"stdin"}`},
		{"[1]", ""},
		{"{", ""},
		{"@" + file + "x", ""},
	} {
		got, err := ReadObject(test.flag, strings.NewReader(`{"from":"stdin"}`))
		switch {
		case test.want == "" && exit.Code(err) != exit.Usage:
			t.Errorf("%q: got %s, %v, want a usage error", test.flag, got, err)
		case test.want != "" && (err != nil || strings.TrimSpace(string(got)) != test.want):
			t.Errorf("%q: got %s, %v, want %s", test.flag, got, err, test.want)
		}
	}
}

func TestSignature(t *testing.T) {
	got := strings.Join(Signature(NewSpec(json.RawMessage(everyType))), " ")
	want := "[text=string] [count=integer] [ratio=number] [on=boolean] [colour=red|green] [size=1|2|big] [maybe=string] " +
		"[maybeCount=integer] [either=string|number] [anything=any] [tags=string…] [counts=integer…] [filter=object] " +
		"[dotted.name=integer] [env=object] [free=object] [self=object] "
	if !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
