package resource

import "net/netip"

// maxVerifications is the largest number of verifications in progress in a pool.
const maxVerifications = 256

// verificationPool counts verifications in progress by their sender. It is guarded by
// tokenCache.mu.
type verificationPool struct {
	running  int
	bySender map[string]int
}

// enter takes a place for a sender. It reports false if the sender already has as many places as
// are free. So one sender gets at most half of the places, and the others still find some. Behind a
// proxy all clients count as one sender.
func (p *verificationPool) enter(sender string) bool {
	if p.bySender[sender] >= maxVerifications-p.running {
		return false
	}
	p.running++
	p.bySender[sender]++
	return true
}

// leave gives a place back.
func (p *verificationPool) leave(sender string) {
	p.running--
	if p.bySender[sender]--; p.bySender[sender] == 0 {
		delete(p.bySender, sender)
	}
}

// senderOf returns the text that identifies a sender: its IPv4 address, or its IPv6 network of 64
// bits, because one sender can use all addresses of that network.
func senderOf(remote string) string {
	addr, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := addr.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return network.String()
}
