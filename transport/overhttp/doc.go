// Package overhttp is what the transports over HTTP have in common, on both sides: who may come in ([Guard]), what is read
// ([Bodies]) and how it is refused ([Refuse]); errors that are no messages of the protocol ([HTTPError]), and redirects that
// credentials do not follow ([Guarded]). A server or client that speaks no HTTP does not link it, nor net/http.
package overhttp
