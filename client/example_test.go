package client_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// weather stands for a server: a command, or a handler of this process as here.
var weather = handlers{
	mcp.MethodListTools: returns(`{"tools":[{"name":"get_alerts","description":"Weather alerts","inputSchema":{"type":"object"}}]}`),
	mcp.MethodCallTool:  returns(`{"content":[],"structuredContent":{"alerts":[{"event":"Flood"},{"event":"Wind"}]}}`),
}

func Example() {
	ctx := context.Background()
	c, err := client.Dial(ctx, weather, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	found, err := client.Call[alerts](ctx, c, "get_alerts", map[string]string{"state": "CA"})
	fmt.Println(found, err)
	// Output: {[{Flood} {Wind}]} <nil>
}

type alerts struct {
	Alerts []struct {
		Event string `json:"event"`
	} `json:"alerts"`
}

func ExampleClient_Tools() {
	ctx := context.Background()
	c, err := client.Dial(ctx, weather, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.Name+":", tool.Description)
	}
	// Output: get_alerts: Weather alerts
}

func ExampleClient_Watch() {
	ctx := context.Background()
	c, err := client.Dial(ctx, handlers{mcp.MethodListen: func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		ack := mcp.Notification{Method: mcp.NotificationAcknowledged, Params: []byte(`{"notifications":{"toolsListChanged":true}}`)}
		if err := req.Peer.Change(ctx, ack); err != nil {
			return nil, err
		}
		if err := req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationToolsChanged}); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	w, err := c.Watch(ctx, mcp.SubscriptionFilter{ToolsListChanged: true})
	if err != nil {
		log.Fatal(err)
	}
	for change, err := range w.Changes() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(change.Method, change.Gap)
		break
	}
	// Output: notifications/tools/list_changed false
}

func ExampleOptions_elicit() {
	ctx := context.Background()
	c, err := client.Dial(ctx, asker(`{"message":"Which city?","requestedSchema":{"type":"object","properties":{"city":{"type":"string"}}}}`),
		&client.Options{Answers: client.Answers{Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
			fmt.Printf("%s asks: %s\n", q.Server, q.Message)
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: []byte(`{"city":"Bonn"}`)}, nil
		}}})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	answer, err := client.Call[string](ctx, c, "forecast", nil)
	fmt.Println(answer, err)
	// Output:
	// fake asks: Which city?
	// {"q":{"action":"accept","content":{"city":"Bonn"}}} <nil>
}
