package program

import (
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	for words, want := range map[string]string{
		"":              "",
		"size=3":        "size 3",
		"--all":         "all",
		"--all size=":   "all size ",
		"--help":        "help",
		"--al":          `error "--al" is not an option: --help lists them`,
		"siz=3":         `error there is no option "siz": --help lists them`,
		"--all=true":    `error "--all=true" is not an option: want --all`,
		"size":          `error "size" is not an option: want size=`,
		"size=3 --all=": `error "--all=" is not an option: want --all`,
	} {
		var got []string
		options := []Option{
			{"size", "", func(value string) error { got = append(got, "size "+value); return nil }},
			{"--all", "", func(string) error { got = append(got, "all"); return nil }},
		}
		help, err := readOptions(strings.Fields(words), options)
		if help {
			got = append(got, "help")
		}
		if err != nil {
			got = []string{"error " + err.Error()}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

func TestParseInterval(t *testing.T) {
	for value, want := range map[string]string{
		"1s":    "",
		"90m":   "",
		"999ms": "999ms is too short: want at least 1s",
		"-1s":   "-1s is too short",
		"0":     "0 is too short",
		"often": `"often" is not a duration`,
		"":      `"" is not a duration`,
	} {
		got, err := ParseInterval(value, time.Second)
		if want == "" && (err != nil || got < time.Second) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v; want %q", value, got, err, want)
		}
	}
}
