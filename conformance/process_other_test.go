//go:build !unix

package main

func standInProcess(string) int { return 2 }
