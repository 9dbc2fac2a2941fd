package userlogin

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
)

// slowCluster has a flow of another replica, and answers after a second.
type slowCluster struct {
	replica.Network
	replica.Values
	flow string // id of the other replica's flow
}

func (slowCluster) Receive(string, replica.Handler) (func(), error) { return func() {}, nil }

func (slowCluster) Send(context.Context, string, []byte) ([]byte, error) {
	time.Sleep(time.Second)
	return []byte(`{"known": true}`), nil
}

func (c slowCluster) Get(context.Context, string) ([]byte, uint64, error) {
	return []byte(c.flow), 1, nil
}

func (slowCluster) Put(context.Context, string, []byte, uint64, time.Duration) (uint64, error) {
	return 2, nil
}

// Requests of one user that begin a login at the same time get the same address: the address of the
// replica which has a login of the user already.
func TestBeginWaitsForTheOtherReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := slowCluster{flow: "login-ABCDEFGHIJ-XYZ"}
		p := New(Options{URL: "https://gateway.example.com", Network: c, Values: c})
		defer p.Close()
		got := make(chan string, 2)
		for range 2 {
			go func() {
				address, err := p.Begin(t.Context(), Login{Server: "notes", Principal: "ann"})
				if err != nil {
					t.Error(err)
				}
				got <- address
			}()
			synctest.Wait()
		}
		for range 2 {
			if address := <-got; !strings.HasSuffix(address, c.flow) {
				t.Errorf("the address is %s", address)
			}
		}
	})
}
