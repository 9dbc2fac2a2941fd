package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// errPrivate is wrapped by the error for an address of a private network.
var errPrivate = errors.New("the address belongs to a private network, and the MCP server does not")

func checkAddress(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if isPrivateAddr(at.Addr()) {
		return fmt.Errorf("%w: %s", errPrivate, at.Addr())
	}
	return nil
}

// unreachable are networks without public servers (RFC 6890), in addition to the networks that
// package netip knows.
var unreachable = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // of carriers and private networks
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b:1::/48"), // NAT64 of a local network
	netip.MustParsePrefix("2001::/32"),      // Teredo
	netip.MustParsePrefix("fec0::/10"),
}

var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // an IPv4 address follows
	sixToIP = netip.MustParsePrefix("2002::/16")    // an IPv4 address follows
)

func isPrivateAddr(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	raw := a.As16()
	switch {
	case nat64.Contains(a):
		return isPrivateAddr(netip.AddrFrom4([4]byte(raw[12:])))
	case sixToIP.Contains(a):
		return isPrivateAddr(netip.AddrFrom4([4]byte(raw[2:6])))
	}
	return !a.IsGlobalUnicast() || a.IsPrivate() || slices.ContainsFunc(unreachable, func(p netip.Prefix) bool { return p.Contains(a) })
}

// privateHost finds out whether a host is in a private network. It remembers an answer, but
// not a failure.
type privateHost struct {
	name string

	mu    sync.Mutex
	known bool // all fields below are set
	is    bool
}

func (h *privateHost) isPrivate() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known {
		return h.is
	}
	if isLoopbackHost(h.name) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", h.name) // an address is its own answer
	h.is, h.known = arePrivate(addrs, err), err == nil
	return h.is
}

// arePrivate reports whether a name has private addresses only. A name of the internet with one
// private address among others would open the private network to the server that owns the name.
func arePrivate(addrs []netip.Addr, err error) bool {
	return err == nil && len(addrs) > 0 && !slices.ContainsFunc(addrs, func(a netip.Addr) bool { return !isPrivateAddr(a) })
}
