package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// findNetworkError finds why a URL could not be connected to.
func findNetworkError(e *evidence) (finding, bool) {
	if !e.isURL {
		return finding{}, false
	}
	for _, look := range []func(*evidence) (finding, bool){findProxyError, findDNSError, findCertificateError, findTLSMismatch, findConnectError} {
		if f, ok := look(e); ok {
			return f, true
		}
	}
	return finding{}, false
}

// findProxyError recognises errors of the proxy.
func findProxyError(e *evidence) (finding, bool) {
	bad, ok := errors.AsType[*proxyError](e.err)
	if ok {
		if bad.variable == "" {
			return finding{stepProxy, bad.Error(), "Correct the proxy of the HTTP client."}, true
		}
		return finding{stepProxy, bad.Error(), fmt.Sprintf("Correct the variable %s, such as http://host:port.", bad.variable)}, true
	}
	op, ok := errors.AsType[*net.OpError](e.err)
	if ok && op.Op == "proxyconnect" {
		return finding{stepConnect, "the proxy cannot be reached: " + shortNetError(op), "Start the proxy, or correct the variable that names it, or exempt this host in NO_PROXY."}, true
	}
	if e.proxied != "" && strings.HasSuffix(e.err.Error(), "Proxy Authentication Required") {
		return finding{stepConnect, "the proxy " + e.proxied + " asks for a login", "Give the proxy's user and password in the variable that names the proxy."}, true
	}
	return finding{}, false
}

// findDNSError recognises a host name that cannot be resolved.
func findDNSError(e *evidence) (finding, bool) {
	dns, ok := errors.AsType[*net.DNSError](e.err)
	switch {
	case !ok:
		return finding{}, false
	case dns.IsNotFound:
		return finding{stepName, fmt.Sprintf("the host %s does not exist", dns.Name), "Correct the host name in the URL, or connect to the network that knows it."}, true
	}
	return finding{stepName, fmt.Sprintf("the host %s cannot be looked up: %s", dns.Name, dns.Err), "Check the network and its name server, and try again."}, true
}

// findCertificateError recognises errors of the server's certificate.
func findCertificateError(e *evidence) (finding, bool) {
	is := func(summary, advice string) (finding, bool) { return finding{stepTLS, summary, advice}, true }
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var named x509.HostnameError
	switch {
	case errors.As(e.err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		return is("the server's certificate is not valid before "+invalid.Cert.NotBefore.Format(time.DateOnly), "Set this computer's clock, or wait until the certificate is valid.")
	case errors.As(e.err, &invalid) && invalid.Reason == x509.Expired:
		return is("the server's certificate expired on "+invalid.Cert.NotAfter.Format(time.DateOnly), "Renew the server's certificate, or set this computer's clock if it is wrong.")
	case errors.As(e.err, &invalid):
		return is("the server's certificate is invalid: "+invalid.Error(), "Get the server a certificate that is made for it.")
	case errors.As(e.err, &unknown):
		return is("the server's certificate is signed by an authority that this computer does not know", "Add the authority's certificate to those that this computer trusts, for which SSL_CERT_FILE names a file on Linux.")
	case errors.As(e.err, &named):
		return is(fmt.Sprintf("the server's certificate is for %s and not for %s", certificateNames(named.Certificate), named.Host), "Use a host name that the certificate is for, or get a certificate for this one.")
	}
	if failed, ok := errors.AsType[*tls.CertificateVerificationError](e.err); ok {
		return is("the server's certificate cannot be verified: "+failed.Err.Error(), "Get the server a certificate that this computer can verify.")
	}
	return finding{}, false
}

func certificateNames(c *x509.Certificate) string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no host"
	}
	const shown = 5
	if len(names) > shown {
		names = append(names[:shown], "others")
	}
	return strings.Join(names, ", ")
}

// findTLSMismatch recognises that only one side speaks TLS, or that the two sides cannot agree.
func findTLSMismatch(e *evidence) (finding, bool) {
	text := e.err.Error()
	_, plainText := errors.AsType[tls.RecordHeaderError](e.err)
	alert, alerted := errors.AsType[tls.AlertError](e.err)
	switch {
	case plainText || strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return finding{stepTLS, "the server does not speak TLS at this port", "Write http:// in place of https://, or give the port of https."}, true
	case strings.Contains(text, `malformed HTTP response "\x15\x03`):
		return finding{stepHTTP, "the server speaks TLS at this port", "Write https:// in place of http://."}, true
	case alerted || strings.Contains(text, "remote error: tls: "):
		says := text[strings.Index(text, "tls: ")+len("tls: "):]
		if alerted {
			says = strings.TrimPrefix(alert.Error(), "tls: ")
		}
		if strings.Contains(says, "certificate") {
			return finding{stepTLS, "the server asks for a client certificate: " + says, "Give the HTTP client a certificate that the server knows."}, true
		}
		return finding{stepTLS, "the server refuses the TLS handshake: " + says, "Check the host name and the port, and that the server supports TLS 1.2 or newer."}, true
	}
	return finding{}, false
}

const adviseUnreachable = "Check the host and port of the URL, the network or VPN, and firewalls in between."

// findConnectError recognises a TCP connection that failed or was closed.
func findConnectError(e *evidence) (finding, bool) {
	op, ok := errors.AsType[*net.OpError](e.err)
	dialing := ok && op.Op == "dial"
	at := ""
	if dialing && op.Addr != nil {
		at = " at " + op.Addr.String()
	}
	if len(e.refusedAddresses) > 1 {
		at += e.refusedSuffix()
	}
	switch {
	case errors.Is(e.err, syscall.ECONNREFUSED) || dialing && strings.Contains(op.Error(), "refused"): // Windows says "refused" in its own error
		return finding{stepConnect, "nothing listens" + at, "Start the server, or correct the host and port of its URL."}, true
	case errors.Is(e.err, syscall.EHOSTUNREACH) || errors.Is(e.err, syscall.ENETUNREACH) || dialing && strings.Contains(op.Error(), "unreachable"):
		return finding{stepConnect, "no route to the server" + at, adviseUnreachable}, true
	case dialing && op.Timeout():
		return finding{stepConnect, "the address does not answer" + at, adviseUnreachable}, true
	case dialing:
		return finding{stepConnect, "no connection" + at + ": " + shortNetError(op), adviseUnreachable}, true
	case isHangup(e.err):
		return finding{e.pendingStep(), "the server hangs up without an answer", "Check that the port speaks HTTP, and look into the log of the server."}, true
	}
	return finding{}, false
}

// isHangup reports whether the server closed the connection. net/http reports that in several ways.
func isHangup(err error) bool {
	text := err.Error()
	for _, says := range []string{"server closed idle connection", "readLoopPeekFailLocked", "forcibly closed"} {
		if strings.Contains(text, says) {
			return true
		}
	}
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) ||
		strings.HasSuffix(text, "EOF")
}
