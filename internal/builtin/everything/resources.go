package everything

import (
	"context"

	"github.com/dowel-mcp/dowel/server"
)

// URIs of the fixed resources.
const (
	textURI    = "test://static-text"
	binaryURI  = "test://static-binary"
	watchedURI = "test://watched-resource"
)

// item is the content of a resource of the template.
type item struct {
	ID           string `json:"id"`
	TemplateTest bool   `json:"templateTest"`
	Data         string `json:"data"`
}

// addResources adds a text, a binary resource and a template. addChanges adds the watched resource.
func addResources(s *server.Server) {
	server.Resource(s, textURI, "A fixed text.", func(context.Context, none) (string, error) {
		return "This is the content of the static text resource.", nil
	}, server.ResourceOptions{Name: "static-text", Title: "Static text", MIMEType: "text/plain"})

	server.Resource(s, binaryURI, "A fixed image.", func(context.Context, none) ([]byte, error) {
		return pixel, nil
	}, server.ResourceOptions{Name: "static-binary", Title: "Static image", MIMEType: "image/png", Size: new(int64(len(pixel)))})

	server.Resource(s, "test://template/{id}/data", "Data of any ID.", func(_ context.Context, in struct {
		ID string `uri:"id"`
	}) (item, error) {
		return item{in.ID, true, "Data for ID: " + in.ID}, nil
	}, server.ResourceOptions{
		Name: "template", Title: "Data by ID", MIMEType: "application/json",
		Complete: map[string]server.CompleteFunc{"id": server.CompleteFrom("1", "12", "123", "2", "23", "3")},
	})
}
