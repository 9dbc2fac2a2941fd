package agentcmd

import (
	"fmt"
	"runtime"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/connect"
)

// SystemPrompt returns dowel's own system prompt of a conversation with a user. place is where the
// user is, such as "in a terminal".
func SystemPrompt(place string) (string, error) {
	folder, err := connect.Folder(".")
	return fmt.Sprintf(systemPrompt, place, folder, runtime.GOOS, time.Now().Format("Monday, 2 January 2006")), err
}

const systemPrompt = `You talk with a user %s, and have tools. Use them where they help, and say plainly what you did and found. The user may refuse a call: do not try to get around that. Answer in plain text; short Markdown is fine.
The current folder is %s, the system is %s, and today is %s.`
