package server

import (
	"reflect"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

func TestResourceContents(t *testing.T) {
	for _, tt := range []struct {
		content mcp.Content
		want    mcp.ResourceContents
	}{
		{mcp.Text("t"), mcp.ResourceContents{URI: "x://u", MIMEType: "m", Text: "t"}},
		{mcp.Image([]byte{1}, "image/png"), mcp.ResourceContents{URI: "x://u", MIMEType: "image/png", Blob: []byte{1}}},
		{mcp.Audio(nil, ""), mcp.ResourceContents{URI: "x://u", MIMEType: "m", Blob: []byte{}}},
		{mcp.Embed(mcp.ResourceContents{Text: "t"}), mcp.ResourceContents{URI: "x://u", MIMEType: "m", Text: "t"}},
		{mcp.Embed(mcp.ResourceContents{URI: "x://own", MIMEType: "own", Blob: []byte{2}}), mcp.ResourceContents{URI: "x://own", MIMEType: "own", Blob: []byte{2}}},
	} {
		if got := resourceContents(tt.content, "x://u", "m"); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v becomes %+v, want %+v", tt.content, got, tt.want)
		}
	}
}
