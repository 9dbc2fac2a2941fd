package options

import (
	"testing"
	"time"
)

type limits struct{ Idle, Total time.Duration }

type testOptions struct {
	Name   string
	Limits limits
	Quiet  bool
}

func TestMerge(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []testOptions
		want testOptions
	}{
		{"none", nil, testOptions{}},
		{"one", []testOptions{{Name: "a", Quiet: true}}, testOptions{Name: "a", Quiet: true}},
		{"the last one wins", []testOptions{{Name: "a"}, {Name: "b"}}, testOptions{Name: "b"}},
		{"unset fields stay", []testOptions{{Name: "a", Quiet: true}, {Name: "b"}, {}}, testOptions{Name: "b", Quiet: true}},
		{
			"nested structs are merged", []testOptions{{Limits: limits{Idle: 1, Total: 1}}, {Limits: limits{Total: 2}}},
			testOptions{Limits: limits{Idle: 1, Total: 2}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Merge(test.opts); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestMergeOfOneTakesNoMemory(t *testing.T) {
	opts := []testOptions{{Name: "a"}}
	if n := testing.AllocsPerRun(100, func() { Merge(opts) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
