//go:build !linux

package process

// findInstall decides by the command line of the runner.
func (t *tree) findInstall(line []string) (Install, string) { return guessInstall(line) }
