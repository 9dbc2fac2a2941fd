// Package transport is the edge between the era-neutral core and the wire: both eras as codecs, the serving and the
// calling side of a connection, taps. The folders below it carry the messages.
package transport
