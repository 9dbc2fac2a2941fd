// Package servers holds the servers that need more than dowel itself: README.md lists them.
package servers
