package cli

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/version"
)

// Errors of the command line show a correct command.
func TestUsage(t *testing.T) {
	for _, test := range []struct{ words, says string }{
		{"servers add foo npx -y bar", "unknown flag -y: put the server's command after --, as in dowel servers add foo -- npx -y …"},
		{"servers add foo npx --yes bar", "put the server's command after --, with --yes: dowel add foo -- npx --yes …"},
		{"servers add foo npx --prefer-offline bar", "unknown flag --prefer-offline: put the server's command after --, as in dowel servers add foo -- npx --prefer-offline …"},
		{"servers add foo npx bar", "put the server's command after --: dowel add foo -- npx bar"},
		{"add npx -y bar", "unknown flag -y: give the server a name, and its command after --, as in dowel add NAME -- npx -y …"},
		{"add https://example.com/mcp", "give the server a name: dowel add NAME --url https://example.com/mcp"},
		{"add @acme/mcp", "if @acme/mcp is a package of npm, give the server a name: dowel add NAME -- npx -y @acme/mcp"},
		{"tools npx -y bar", "put the server's command after --, as in dowel tools -- npx -y …"},
		{"tools everything -y", "unknown flag -y"},
		{"servers add foo --ulr x", "did you mean --url?"},
		{"tools --jsn", "unknown flag --jsn; did you mean --json?"},
		{"call everything.echo --message hi", "write arguments of tools and prompts without dashes: message=…"},
		{"servers logs", "NAME is missing: write dowel servers logs NAME, such as dowel servers logs github"},
		{"servers disable", "NAME is missing: write dowel servers disable NAME…, such as dowel servers disable github"},
		{"servers remove", "NAME is missing: write dowel servers remove NAME, such as dowel servers remove github"},
		{"servers remove a b", `"b" is too much: write dowel servers remove NAME`},
		{"config explain", "NAME is missing: write dowel config explain NAME"},
		{"status foo bar", `"bar" is too much: write dowel status [NAME], such as dowel status everything`},
		{"status foo --token", "gateway's token: dowel status --token"},
		{"up foo", `dowel up takes flags only, and "foo" is not a flag`},
		{"export cursor", "did you mean dowel export --to cursor?"},
		{"export nothing-like-it", "want dowel export --to TOOL"},
		{"tools everything --timeout 5", "--timeout 5: a duration needs its unit; did you mean 5s?"},
		{"tools everything --timeout soon", "--timeout soon: write a duration such as 5s"},
		{"tools everything --timeout", "--timeout needs a value: write a duration such as 5s"},
		{"watch everything --count many", "--count many: write a whole number"},
		{"tools --json=maybe", "--json maybe: write true or false"},
		{"tools --url", "--url needs a value: write --url URL"},
		{"tols", `unknown command "tols"; did you mean tools?`},
		{"servers lst", `unknown command "lst"; did you mean list?`},
		{"servers everything", `unknown command "everything"; there are add, disable`},
		{"config chek", `unknown command "chek"; did you mean check?`},
		{"completion bsh", `unknown command "bsh"; did you mean bash?`},
		{"help tols", `unknown command "tols"; did you mean tools?`},
		{"help servers lst", `unknown command "lst"; did you mean list?`},
		{"help tools everything", "dowel tools has no topics such as"},
	} {
		t.Run(test.words, func(t *testing.T) {
			t.Parallel()
			out := runDowel(t, "", strings.Fields(test.words)...)
			if out.code != exit.Usage || out.stdout != "" || !strings.Contains(out.stderr, test.says) || !strings.Contains(out.stderr, " --help") {
				t.Errorf("exit code %d\nstdout: %s\nstderr: %s\nwant:   %s", out.code, out.stdout, out.stderr, test.says)
			}
			for _, cobras := range []string{"arg(s)", "shorthand", "missing unit", "Did you mean this"} {
				if strings.Contains(out.stderr, cobras) {
					t.Errorf("%q is in %s", cobras, out.stderr)
				}
			}
		})
	}
}

// A command group alone lists its commands, and so does its help.
func TestGroups(t *testing.T) {
	for _, words := range []string{"", "servers", "config", "help", "help servers", "servers --help", "help exit-codes"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			out := runDowel(t, "", strings.Fields(words)...)
			if out.code != exit.OK || out.stdout == "" || out.stderr != "" || strings.Contains(out.stdout, "servers\n  dowel servers [command]") {
				t.Errorf("%+v", out)
			}
		})
	}
}

func TestExpected(t *testing.T) {
	for _, test := range []struct {
		use   string
		least []string
		most  int
	}{
		{"up", nil, 0},
		{"logs NAME", []string{"NAME"}, 1},
		{"status [NAME]", nil, 1},
		{"restart NAME…", []string{"NAME"}, -1},
		{"trust [NAME…]", nil, -1},
		{"watch SERVER [URI]…", []string{"SERVER"}, -1},
		{"export --to TOOL", nil, 0},
		{"add NAME [-- COMMAND… | --url URL]", []string{"NAME"}, 1},
	} {
		least, most := parseUse(test.use)
		if !slices.Equal(least, test.least) || most != test.most {
			t.Errorf("%s: got %q, %d", test.use, least, most)
		}
	}
}

func TestVersion(t *testing.T) {
	out := runDowel(t, "", "version")
	if out.code != exit.OK || !strings.Contains(out.stdout, "dowel     "+version.Current().Words()+"\n") || !strings.Contains(out.stdout, "go        "+runtime.Version()+"\n") {
		t.Errorf("%+v", out)
	}
	var b version.Build
	if err := json.Unmarshal([]byte(runDowel(t, "", "version", "--json").stdout), &b); err != nil || b != version.Current() || b.Version == "" {
		t.Errorf("%v, %+v", err, b)
	}
	if out := runDowel(t, "", "--version"); out.code != exit.OK || out.stdout != "dowel "+version.Current().String()+"\n" {
		t.Errorf("%+v", out)
	}
	for want, b := range map[string]version.Build{
		"v1.2.3 (go1.26)": {Version: "v1.2.3", Go: "go1.26"},
		"v1.2.3 (commit 0123456789ab 2026-01-02T03:04:05Z, go1.26)": {
			Version: "v1.2.3", Commit: "0123456789abcdef", Time: "2026-01-02T03:04:05Z", Go: "go1.26"},
		"unreleased, built from source (commit 0123456789ab with changes, go1.26)": {Version: "devel", Commit: "0123456789abcdef", Modified: true, Go: "go1.26"},
	} {
		if got := b.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
