// Package chaos consists of tests. They run replicas of dowel, NATS servers and clients as a
// cluster of real processes, kill, stop, cut and delay them by a schedule of random faults, and
// check the histories that the clients have recorded. README.md lists what is checked.
package chaos
