package gateway

import (
	"testing"
	"testing/synctest"
	"time"
)

// The time of a state is the time of its change. It orders the states, so no two share one.
func TestTimeOfHostedState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		b := &bridge{questions: map[string]*question{}, done: make(chan struct{})}
		task := &hostedTask{bridge: b, created: began, updated: began}
		for _, step := range []struct {
			change func()
			want   time.Duration // of lastUpdatedAt, since began; a step takes a second
		}{
			{func() { b.questions["a"] = new(question) }, time.Second},
			{func() {}, time.Second},
			{func() { b.questions["b"] = new(question) }, 3 * time.Second},
			{func() { delete(b.questions, "a") }, 4 * time.Second},
			{func() { delete(b.questions, "b") }, 5 * time.Second},
			{func() { b.message = "half" }, 6 * time.Second},
			{func() {}, 6 * time.Second},
		} {
			step.change()
			time.Sleep(time.Second)
			state, err := task.describeTask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if at, err := time.Parse(time.RFC3339, state.LastUpdatedAt); err != nil || at.Sub(began) != step.want {
				t.Errorf("the task has changed after %v, want %v (%v)", at.Sub(began), step.want, err)
			}
		}
	})
}
