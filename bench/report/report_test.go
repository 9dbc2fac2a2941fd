package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/bench/rounds"
	"github.com/dowel-mcp/dowel/bench/work"
)

var update = flag.Bool("update", false, "write the golden files")

var contestants = []string{"floor", "encoding/json", "dowel", "go-sdk", "mcp-go"}

var items = []work.Item{
	{
		Name: "call/one", Table: "Calls", Contestants: contestants,
		Rows: []work.Row{{Title: "one at a time", Figure: work.Time, Bound: work.Bound{Base: 2, Rivals: 10}}},
	},
	{
		Name: "call/more", Table: "Calls", Contestants: contestants,
		Rows: []work.Row{{Title: "64 in flight", Figure: work.Time, Bound: work.Bound{Base: 2.5, Rivals: 10}}},
	},
	{
		Name: "idle", Table: "Idle", Contestants: contestants,
		Rows: []work.Row{{Title: "memory", Figure: work.InUse, Bound: work.Bound{Rivals: 1}}, {Title: "goroutines", Figure: work.Goroutines}},
	},
	{
		Name: "gateway", Table: "The gateway", Contestants: []string{"direct", "ReverseProxy", "gateway"},
		Rows: []work.Row{{Title: "a call", Figure: work.Time, Bound: work.Bound{Base: 1.3}}},
	},
}

// sampleRun has three rounds. The second one is twice as slow, which does not change the ratios
// within it.
func sampleRun() rounds.Run {
	run := rounds.Run{
		Date: time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC), Machine: "a machine", Load: "0.10, 0.20, 0.30",
		Versions: map[string]string{"github.com/dowel-mcp/dowel": "this tree", "github.com/mark3labs/mcp-go": "v1.2.3"},
		Rounds:   3, Time: 300 * time.Millisecond,
	}
	call := func(ns, allocs, b float64) work.Result {
		return work.Result{work.Time: ns, work.Allocs: allocs, work.Bytes: b}
	}
	for round, slow := range []float64{1, 2, 1.1} {
		add := func(item, contestant string, r work.Result) {
			run.Samples = append(run.Samples, rounds.Sample{Item: item, Contestant: contestant, Round: round, Result: r})
		}
		for i, name := range contestants {
			add("call/one", name, call(slow*1900*float64(1+i*i)/(1+float64(round)/100), 3, 565))
			add("idle", name, work.Result{work.InUse: 900 * float64(i+1), work.Goroutines: float64(i) / 2})
		}
		add("call/more", "floor", call(slow*1900, 3, 1<<20))
		add("call/more", "encoding/json", call(slow*2100, 1234, 12))
		add("call/more", "dowel", call(slow*3_000_000_000, 1234567, 12))
		for i, name := range []string{"direct", "ReverseProxy", "gateway"} {
			add("gateway", name, call(slow*60_000*(1+float64(i)/10), 114, 10_000))
		}
	}
	run.Samples = append(run.Samples,
		rounds.Sample{Item: "call/more", Contestant: "go-sdk", Unable: "It is not able to."},
		rounds.Sample{Item: "call/more", Contestant: "mcp-go", Failed: "exit status 1. panic: | a bar"})
	return run
}

func TestMarkdown(t *testing.T) {
	got := Markdown(sampleRun(), items, "performance.svg")
	const golden = "testdata/golden.md"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the page differs from %s; if the change is intended, run go test ./report -update\n%s", golden, got)
	}
}

func TestPlot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plot.svg")
	if err := Plot(file, sampleRun(), items); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "call/one", "call/more", "mcp-go"} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("the plot has no %s", want)
		}
	}
	if bytes.Contains(got, []byte("gateway")) {
		t.Error("the plot has a row without rivals")
	}
}

func TestWriteFile(t *testing.T) {
	const page = "the page\n"
	begin, end := marks("bench")
	marked := begin + "\n" + page + "\n" + end
	for _, tt := range []struct {
		name, old, want string
		err             bool
	}{
		{name: "no file", want: marked},
		{name: "between the marks", old: "before\n" + begin + "old\n" + end + "after\n", want: "before\n" + marked + "after\n"},
		{name: "written twice", old: marked, want: marked},
		{name: "no marks", old: "by hand\n", want: "by hand\n", err: true},
		{name: "one mark", old: begin + "old\n", want: begin + "old\n", err: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "page.md")
			if tt.old != "" {
				if err := os.WriteFile(file, []byte(tt.old), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := Check(file, "bench"); (err != nil) != tt.err {
				t.Errorf("Check: %v", err)
			}
			if err := WriteFile(file, "bench", []byte(page)); (err != nil) != tt.err {
				t.Errorf("WriteFile: %v", err)
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestWritten(t *testing.T) {
	for _, tt := range []struct {
		value  float64
		figure work.Figure
		want   string
	}{
		{0, work.Time, "0 ns"}, {999, work.Time, "999 ns"}, {1900, work.Time, "1.90 µs"}, {19_000, work.CPU, "19.0 µs"},
		{999_999, work.Time, "1.00 ms"}, {3e9, work.Time, "3.00 s"}, {1024, work.Bytes, "1.00 KiB"}, {1023, work.Size, "1023 B"},
		{5e6, work.Resident, "4.77 MiB"}, {-12, work.InUse, "-12 B"}, {1234567.4, work.Allocs, "1,234,567"}, {15, work.Allocs, "15"},
		{-1234, work.Allocs, "-1,234"}, {2.004, work.Goroutines, "2.00"},
	} {
		if got := written(tt.value, tt.figure); got != tt.want {
			t.Errorf("%v %s is written %q, want %q", tt.value, tt.figure, got, tt.want)
		}
	}
}
