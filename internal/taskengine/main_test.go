package taskengine

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// crashRole is the environment variable with the folder of a child process that is killed.
const crashRole = "DOWEL_TEST_TASK_FOLDER"

func TestMain(m *testing.M) {
	if folder := os.Getenv(crashRole); folder != "" {
		runCrashing(folder)
		return
	}
	goleak.VerifyTestMain(m)
}
