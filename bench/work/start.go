package work

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/bench/peers"
)

// starts is how soon a minimal server answers, and how large it is.
func starts() []Item {
	const table = "A minimal server"
	return []Item{
		{
			Name: "start/answer", Table: table, Contestants: contestants(), Binaries: true, Measure: firstAnswer,
			Rows: []Row{{"from exec to the first answer", Time, Bound{Base: 1.25, Rivals: 1}}},
		},
		{
			Name: "start/size", Table: table, Contestants: contestants(), Binaries: true, Measure: size,
			Rows: []Row{{"stripped binary", Size, Bound{Rivals: 1}}},
		},
	}
}

// Build builds the minimal servers into a folder, stripped.
func Build(ctx context.Context, folder string) error {
	for _, p := range peers.All {
		pkg := reflect.TypeOf(p).PkgPath() + "/minimal"
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary(folder, p.Name()), pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", pkg, err, out)
		}
	}
	return nil
}

func binary(folder, contestant string) string {
	return filepath.Join(folder, strings.ReplaceAll(contestant, "/", "-")+".exe")
}

func size(_ context.Context, contestant string, o Options) (Result, error) {
	info, err := os.Stat(binary(o.Binaries, contestant))
	if err != nil {
		return nil, err
	}
	return Result{Size: float64(info.Size())}, nil
}

// firstAnswer starts the server again and again; the median counts.
func firstAnswer(ctx context.Context, contestant string, o Options) (Result, error) {
	const least = 5
	o = o.withDefaults()
	var times []float64
	for begun := time.Now(); len(times) < least || time.Since(begun) < o.Time; {
		t, err := answerOf(ctx, binary(o.Binaries, contestant))
		if err != nil {
			return nil, err
		}
		times = append(times, float64(t))
	}
	slices.Sort(times)
	return Result{Time: times[len(times)/2]}, nil
}

func answerOf(ctx context.Context, server string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, server)
	cmd.Stderr = os.Stderr
	out, err1 := cmd.StdinPipe()
	in, err2 := cmd.StdoutPipe()
	start := time.Now()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return 0, err
	}
	_, err1 = io.WriteString(out, callOf(peer.Modern, 1)+"\n")
	answer, err2 := bufio.NewReader(in).ReadBytes('\n')
	elapsed := time.Since(start)
	return elapsed, errors.Join(err1, err2, echoed(answer), out.Close(), cmd.Wait())
}
