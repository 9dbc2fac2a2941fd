package rawjson

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// benchFrames are values of the sizes that messages have.
var benchFrames = func() map[string][]byte {
	var big bytes.Buffer
	big.WriteString(`{"rows":[`)
	for i := 0; big.Len() < 1<<20; i++ {
		if i > 0 {
			big.WriteByte(',')
		}
		fmt.Fprintf(&big, `{"id":%d,"name":"row number %d","score":%d.5,"note":"%s"}`, i, i, i%100, strings.Repeat("words and ", 8))
	}
	big.WriteString(`]}`)
	return map[string][]byte{
		"small":   []byte(`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hi"}}}`),
		"escapes": []byte(`{"text":"` + strings.Repeat(`line of \"text\" with ünïcödé\n`, 40) + `"}`),
		"1MiB":    big.Bytes(),
	}
}()

func BenchmarkCheck(b *testing.B) {
	for _, name := range []string{"small", "escapes", "1MiB"} {
		frame := benchFrames[name]
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckAll(frame); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
