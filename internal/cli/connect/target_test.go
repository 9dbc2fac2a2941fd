package connect

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/spf13/cobra"
)

func TestSplitName(t *testing.T) {
	known := []string{"kv", "kv.eu", "everything"}
	for _, test := range []struct{ word, name, thing string }{
		{"kv", "kv", ""},
		{"kv.", "kv", ""},
		{"kv.get", "kv", "get"},
		{"kv.eu", "kv.eu", ""},
		{"kv.eu.get", "kv.eu", "get"},
		{"kv.eur", "kv", "eur"},
		{"everything.a.b", "everything", "a.b"},
		{"kvx", "", ""},
		{"everythng.echo", "", ""},
	} {
		name, thing, err := SplitName(test.word, known)
		if name != test.name || thing != test.thing || (err == nil) != (test.name != "") {
			t.Errorf("%s: got %q, %q, %v, want %q, %q", test.word, name, thing, err, test.name, test.thing)
		}
	}
	if _, _, err := SplitName("everythng.echo", known); !strings.Contains(err.Error(), "did you mean everything?") {
		t.Errorf("no suggestion in %v", err)
	}
}

func TestAim(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		words   string
		command []string
		rest    string
		fails   string
	}{
		{words: "everything", command: []string{self, "serve", "everything"}},
		{words: "everything.echo a=b", command: []string{self, "serve", "everything"}, rest: "echo a=b"},
		{words: "everything echo a=b", command: []string{self, "serve", "everything"}, rest: "echo a=b"},
		{words: "everything test://x", command: []string{self, "serve", "everything"}, rest: "test://x"},
		{words: "everything.echo a=b -- npx -y --flag x", command: []string{"npx", "-y", "--flag", "x"}, rest: "everything.echo a=b"},
		{words: "-- npx", command: []string{"npx"}},
		{words: "-e A=1 -e B=x=y --dir / -- npx", command: []string{"npx"}},
		{words: "", fails: "no server is named"},
		{words: "--", fails: "there is no command after --"},
		{words: "nobody.echo", fails: "no server is called nobody"},
		{words: "--url http://x -- npx", fails: "named twice"},
		{words: "--url http://x -e A=1", fails: "for servers that are started"},
		{words: "-e A -- npx", fails: "KEY=VALUE"},
	} {
		t.Run(test.words, func(t *testing.T) {
			var got Target
			var rest []string
			var f TargetFlags
			cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs}
			f.AddFlags(cmd)
			cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
				got, rest, err = f.Resolve(cmd, args)
				return err
			}
			cmd.SetArgs(append([]string{}, strings.Fields(test.words)...))
			err := cmd.Execute()
			if test.fails != "" {
				if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %v, want a usage error with %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			command := got.Dial.(stdio.Command)
			if have := append([]string{command.Path}, command.Args...); !slices.Equal(have, test.command) {
				t.Errorf("starts %q, want %q", have, test.command)
			}
			if strings.Join(rest, " ") != test.rest {
				t.Errorf("the rest is %q, want %q", rest, test.rest)
			}
			if strings.Contains(test.words, "-e") && (command.Env["A"] != "1" || command.Env["B"] != "x=y" || command.Dir != "/") {
				t.Errorf("environment %v, folder %q", command.Env, command.Dir)
			}
		})
	}
}
