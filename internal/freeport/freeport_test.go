package freeport

import (
	"net"
	"strconv"
	"testing"
)

func TestFindAll(t *testing.T) {
	ports, err := FindAll(200)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range ports {
		if port < first || port >= first+count || seen[port] {
			t.Errorf("port %d is outside the range, or came twice", port)
		}
		seen[port] = true
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(ports[0]))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
