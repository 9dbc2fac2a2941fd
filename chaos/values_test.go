//go:build linux

package chaos

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/chaos/history"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// valueCount is the number of resources that change. Each one changes rarely, so that no later
// change hides the loss of one.
const valueCount = 60

const listTopic = history.TheList

// values are the resources of a server that change, and the list of its resources.
type values struct {
	server *server.Server
	h      *history.History

	mu     sync.Mutex
	number map[string]int // by topic: a URI or listTopic
}

func valueURI(n int) string { return fmt.Sprintf("chaos://value/%d", n) }

const versionURI = "chaos://version/"

// addValues adds the resources to a server.
func addValues(s *server.Server, h *history.History) *values {
	v := &values{server: s, h: h, number: map[string]int{}}
	type one struct {
		N int `uri:"n"`
	}
	server.Resource(s, "chaos://value/{n}", "A number that grows.", func(_ context.Context, o one) (string, error) {
		return strconv.Itoa(v.numberOf(valueURI(o.N))), nil
	})
	server.Resource(s, versionURI+"{n}", "The list has changed so often.", func(context.Context, one) (string, error) { return "", nil })
	s.Provide(func(_ context.Context, after string) iter.Seq2[mcp.Resource, error] {
		return func(yield func(mcp.Resource, error) bool) {
			if uri := versionURI + strconv.Itoa(v.numberOf(listTopic)); uri > after {
				yield(mcp.Resource{URI: uri, Name: uri}, nil)
			}
		}
	})
	return v
}

func (v *values) numberOf(topic string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.number[topic]
}

// change changes one value, or the list.
func (v *values) change(topic string) {
	v.mu.Lock()
	v.number[topic]++
	now := v.number[topic]
	v.h.AddStep(topic, "change", strconv.Itoa(now), "")
	v.mu.Unlock()
	if topic == listTopic {
		v.server.ListChanged(server.KindResource)
	} else {
		v.server.Updated(topic)
	}
}

// keepChanging changes one value after the other until ctx ends. The list changes in between.
func (v *values) keepChanging(ctx context.Context, random *rand.Rand) {
	for n := 0; wait(ctx, 200*time.Millisecond+time.Duration(random.IntN(800))*time.Millisecond) == nil; n++ {
		if n%20 == 19 {
			v.change(listTopic)
		} else {
			v.change(valueURI(n % valueCount))
		}
	}
}

// state returns the numbers of all topics.
func (v *values) state() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := map[string]int{}
	for topic, n := range v.number {
		all[topic] = n
	}
	return all
}
