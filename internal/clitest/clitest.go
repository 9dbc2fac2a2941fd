// Package clitest runs the tests of the program's packages in an empty home. Otherwise the
// configuration, the state and a running dowel of the machine's user would affect the tests:
//
//	func TestMain(m *testing.M) { clitest.Main(m) }
package clitest

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests of a package with an empty home and ends the process. It fails if goroutines
// are left behind.
func Main(m *testing.M) {
	home := EmptyHome()
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Println("goroutines are left behind:", err)
		code = 1
	}
	os.RemoveAll(home)
	os.Exit(code)
}

// EmptyHome creates a folder and sets all environment variables that name a home, or a part of one,
// to it. Child processes inherit them. The caller removes the folder. EmptyHome panics if it cannot
// create the folder.
func EmptyHome() string {
	home, err := os.MkdirTemp("", "dowel-home-")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "APPDATA", "LOCALAPPDATA"} {
		_ = os.Setenv(name, home)
	}
	return home
}
