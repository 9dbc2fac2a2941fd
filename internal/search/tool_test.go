package search

import (
	"encoding/json"
	"reflect"
	"strconv"
	"testing"
)

func TestFromDefinition(t *testing.T) {
	for name, test := range map[string]struct {
		raw  string
		want Tool
	}{
		"whole": {`{"name":"paint","title":"Paint it","description":"Paints.","annotations":{"title":"not this"},"inputSchema":{
			"type":"object","properties":{"wall":{"type":"string","description":"Which wall"},
			"colour":{"description":"What colour","enum":["red","dark blue",7,null]},
			"tools":{"type":"array","items":{"enum":["brush","roller"]}}}}}`,
			Tool{OwnName: "paint", Title: "Paint it", Description: "Paints.", Parameters: []Parameter{
				{"colour", "What colour red dark blue"}, {"tools", "brush roller"}, {"wall", "Which wall"}}}},
		"title of the annotations": {`{"name":"paint","annotations":{"title":"Paint it"}}`, Tool{OwnName: "paint", Title: "Paint it"}},
		"broken in parts": {`{"name":"paint","title":3,"description":["x"],"annotations":1,"inputSchema":{"properties":{"a":true,
			"b":{"description":{},"enum":"c"}}}}`, Tool{OwnName: "paint", Parameters: []Parameter{{Name: "a"}, {Name: "b"}}}},
		"properties of no object": {`{"name":"paint","inputSchema":{"properties":[1]}}`, Tool{OwnName: "paint"}},
		"objects in objects": {`{"name":"paint","inputSchema":{"properties":{"job":{"type":"object","description":"What to do",
			"properties":{"when":{"properties":{"cron":{"description":"How often"}}}}},
			"rooms":{"items":{"properties":{"colour":{"enum":["red"]}}}}}}}`, Tool{OwnName: "paint", Parameters: []Parameter{
			{"job", "What to do"}, {Name: "when"}, {"cron", "How often"}, {Name: "rooms"}, {"colour", "red"}}}},
		"no object": {`[]`, Tool{}},
		"no JSON":   {`{"name":`, Tool{}},
		"nothing":   {``, Tool{}},
	} {
		test.want.Server, test.want.Name = "shop", "shop__paint"
		if got := FromDefinition("shop", "shop__paint", json.RawMessage(test.raw)); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestBare(t *testing.T) {
	for _, test := range []struct {
		tool Tool
		want string
	}{
		{Tool{Name: "shop__paint", Server: "shop"}, "paint"},
		{Tool{Name: "shop.paint", Server: "shop"}, "paint"},
		{Tool{Name: "shop__paint_7f3a", Server: "shop", OwnName: "paint"}, "paint"},
		{Tool{Name: "paint"}, "paint"},
		{Tool{Name: "shop__", Server: "shop"}, "shop__"},
		{Tool{Name: "other", Server: "shop"}, "other"},
	} {
		if got := test.tool.ownName(); got != test.want {
			t.Errorf("%+v: %s, want %s", test.tool, got, test.want)
		}
	}
}

func TestParametersAreBounded(t *testing.T) {
	wide := map[string]any{}
	for i := range 2 * maxParameters {
		wide[strconv.Itoa(i)] = map[string]any{}
	}
	deep := map[string]any{}
	for range 100 {
		deep = map[string]any{"properties": map[string]any{"a": deep}}
	}
	for name, test := range map[string]struct {
		schema map[string]any
		want   int
	}{
		"wide": {map[string]any{"properties": wide}, maxParameters},
		"deep": {deep, maxDepth},
		"wide in wide": {map[string]any{"properties": map[string]any{"a": map[string]any{"properties": wide}, "b": true}},
			maxParameters},
	} {
		raw, err := json.Marshal(map[string]any{"inputSchema": test.schema})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(FromDefinition("s", "n", raw).Parameters); got != test.want {
			t.Errorf("%s: %d parameters, want %d", name, got, test.want)
		}
	}
}
