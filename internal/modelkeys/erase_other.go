//go:build !linux

package modelkeys

func eraseEnviron([]string) {}
