package everything

import (
	"context"
	"encoding/base64"
	"errors"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

var (
	// pixel is a PNG of one pixel.
	pixel = decodeBase64("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
	// blip is a WAV of one sample.
	blip = decodeBase64("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
)

func decodeBase64(text string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err) // only a mistake in a constant of this file can cause this
	}
	return data
}

func testImage() mcp.Content { return mcp.Image(pixel, "image/png") }

// addContent adds a tool for each kind of content that a result can have.
func addContent(s *server.Server) {
	server.Tool(s, "test_simple_text", "Returns text.", func(context.Context, none) (string, error) {
		return "This is a simple text response for testing.", nil
	}, hints)

	server.Tool(s, "test_image_content", "Returns an image.", func(context.Context, none) (mcp.Content, error) {
		return testImage(), nil
	}, hints)

	server.Tool(s, "test_audio_content", "Returns a sound.", func(context.Context, none) (mcp.Content, error) {
		return mcp.Audio(blip, "audio/wav"), nil
	}, hints)

	server.Tool(s, "test_embedded_resource", "Returns an embedded resource.", func(context.Context, none) (mcp.Content, error) {
		return mcp.Embed(mcp.ResourceContents{
			URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content.",
		}), nil
	}, hints)

	server.Tool(s, "test_multiple_content_types", "Returns text, an image and an embedded resource.", func(context.Context, none) ([]mcp.Content, error) {
		return []mcp.Content{
			mcp.Text("Multiple content types test:"),
			testImage(),
			mcp.Embed(mcp.ResourceContents{
				URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`,
			}),
		}, nil
	}, hints)

	server.Tool(s, "resource_links", "Returns links to resources of this server.", func(context.Context, none) ([]mcp.Content, error) {
		return []mcp.Content{
			mcp.Text("These resources can be read:"),
			mcp.Link(mcp.Resource{URI: textURI, Name: "static-text", MIMEType: "text/plain", Description: "A fixed text"}),
			mcp.Link(mcp.Resource{URI: binaryURI, Name: "static-binary", MIMEType: "image/png", Size: new(int64(len(pixel)))}),
		}, nil
	}, hints)

	server.Tool(s, "annotated_content", "Returns a text for the user and a text for the model, with annotations that say so.", func(context.Context, none) ([]mcp.Content, error) {
		user, model := mcp.Text("This is for you to read."), mcp.Text("This is for the model.")
		user.Annotations = &mcp.Annotations{Audience: []mcp.Role{mcp.RoleUser}, Priority: new(1.0)}
		model.Annotations = &mcp.Annotations{Audience: []mcp.Role{mcp.RoleAssistant}, Priority: new(0.2)}
		return []mcp.Content{user, model}, nil
	}, hints)

	server.Tool(s, "test_error_handling", "Returns a tool error, whose text is for the model.", func(context.Context, none) (string, error) {
		return "", errors.New("This tool intentionally returns an error for testing") // the suite looks for these words
	}, hints)
}

// Sum is the result of add.
type Sum struct {
	Sum float64 `json:"sum"`
}

func addBasics(s *server.Server) {
	server.Tool(s, "echo", "Returns the message.", func(_ context.Context, in struct {
		Message string `json:"message" doc:"The text to return"`
	}) (string, error) {
		return in.Message, nil
	}, hints)

	server.Tool(s, "add", "Adds two numbers.", func(_ context.Context, in struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}) (Sum, error) {
		return Sum{in.A + in.B}, nil
	}, hints)
}
