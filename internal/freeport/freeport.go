// Package freeport finds ports for servers that tests stop and start again. Such a port must stay
// free while its server is down, so it is outside the range from which systems take the ports of
// outgoing connections and of listeners that name none (32768 and above on Linux, 49152 elsewhere).
package freeport

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const (
	first = 20_000 // the first port of the range
	count = 10_000 // ports in the range
	tries = 100
)

// given holds the ports that Find has returned.
var given sync.Map

// Find returns a TCP port that has no listener on 127.0.0.1. Each call in a process returns another
// port.
func Find() (int, error) {
	for range tries {
		port := first + rand.IntN(count)
		if _, isGiven := given.LoadOrStore(port, true); isGiven {
			continue
		}
		var config net.ListenConfig
		if l, err := config.Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no port of 127.0.0.1 between 20000 and 29999 is free")
}

// FindAll returns n ports, as n calls of Find do.
func FindAll(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		port, err := Find()
		if err != nil {
			return nil, err
		}
		ports[i] = port
	}
	return ports, nil
}
