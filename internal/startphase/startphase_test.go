package startphase

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errLate = errors.New("late")

func TestTimeoutStopsDuringALogin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := WithTimeout(t.Context(), time.Minute, errLate)
		defer cancel()
		time.Sleep(50 * time.Second)
		Report(ctx, Phase{LoginURL: "https://auth.example"})
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Fatal("the login counted")
		}
		Report(ctx, Phase{})
		time.Sleep(59 * time.Second)
		if ctx.Err() != nil {
			t.Fatal("the time after the login is shorter than the limit")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if context.Cause(ctx) != errLate {
			t.Errorf("cause %v", context.Cause(ctx))
		}
	})
}

func TestTimeoutIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := WithTimeout(t.Context(), time.Minute, errLate)
		cancel()
		Report(ctx, Phase{}) // must not start the timer again
		time.Sleep(time.Hour)
		if cause := context.Cause(ctx); cause != context.Canceled {
			t.Errorf("cause %v", cause)
		}
	})
}

func TestInherit(t *testing.T) {
	t.Parallel()
	var got []string
	from := WithObserver(t.Context(), func(p Phase) { got = append(got, "from "+p.Runner) })
	own := WithObserver(t.Context(), func(p Phase) { got = append(got, "own "+p.Runner) })
	Report(Inherit(t.Context(), from), Phase{Runner: "a"})
	Report(Inherit(own, from), Phase{Runner: "b"})
	Report(Inherit(t.Context(), t.Context()), Phase{Runner: "c"})
	if len(got) != 2 || got[0] != "from a" || got[1] != "own b" {
		t.Errorf("%q", got)
	}
}
