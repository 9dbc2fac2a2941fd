// Package attack has no code but tests. They attack a dowel that was built before and runs as a child
// process with a home of its own, on the loopback address. README.md lists all attacks, also those
// that tests of other packages make.
package attack
