package gateway_test
import ("testing";"bytes";"os";"fmt"
"github.com/dowel-mcp/dowel/transport")
func dump(t testing.TB, inner transport.Tap) transport.Tap {
	f,_ := os.OpenFile("/tmp/frames.txt", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	return func(fr transport.Frame) {
		if bytes.Contains(fr.Data, []byte("subscri")) || bytes.Contains(fr.Data, []byte("cancelled"))|| bytes.Contains(fr.Data, []byte("discover")) { fmt.Fprintf(f, "%v %v %s\n", fr.Time.Format("05.000000"), fr.Kind, fr.Data) }
		inner(fr)
	}
}
