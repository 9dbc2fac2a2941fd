// Package attack consists of tests. They attack a dowel that was built before and runs as a child
// process with a home of its own, on the loopback address. README.md lists all attacks, with the
// tests of other packages.
package attack
