//go:build !unix

package files

func makePipe(string) bool { return false }
