package resource

import "net/netip"

// maxVerifications bounds the verifications in progress of a pool: each may be a request to an issuer.
const maxVerifications = 256

// verificationPool counts verifications in progress by their sender. It is guarded by tokenCache.mu.
type verificationPool struct {
	running  int
	bySender map[string]int
}

// enter takes a place. It reports false if the sender has as many places as are free: one sender gets
// half of all, and some remain for others. Behind a proxy all clients are one sender.
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

// senderOf returns the sender with a remote address: its IP address, or its network, because one sender
// has a whole network of IPv6.
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
