package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var (
	messagesName     = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	messagesProperty = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

func checkMessagesTools(req *messagesRequest) string {
	names := map[string]bool{}
	for i, t := range req.Tools {
		at := fmt.Sprintf("tools.%d.custom.", i)
		switch {
		case len(t.Name) > 128:
			return at + "name: String should have at most 128 characters"
		case !messagesName.MatchString(t.Name):
			return at + "name: String should match pattern '" + messagesName.String() + "'"
		case names[t.Name]:
			return "tools: Tool names must be unique."
		}
		names[t.Name] = true
		if why := checkInputSchema(t.InputSchema); why != "" {
			return at + "input_schema" + why
		}
	}
	return ""
}

func checkInputSchema(raw json.RawMessage) string {
	var schema map[string]json.RawMessage
	if json.Unmarshal(raw, &schema) != nil || schema == nil {
		return ": Input should be a valid dictionary"
	}
	switch kind := schema["type"]; {
	case kind == nil:
		return ".type: Field required"
	case string(kind) != `"object"`:
		return ".type: Input should be 'object'"
	}
	for _, key := range []string{"oneOf", "allOf", "anyOf"} {
		if _, ok := schema[key]; ok {
			return ": input_schema does not support oneOf, allOf, or anyOf at the top level"
		}
	}
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(schema["properties"], &properties) // another type is an error below
	for name := range properties {
		if !messagesProperty.MatchString(name) {
			return ".properties: Property keys should match pattern '" + messagesProperty.String() + "'"
		}
	}
	delete(schema, "$schema") // the API always uses draft 2020-12
	encoded, _ := json.Marshal(schema)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // no schema is fetched
	if err == nil {
		err = c.AddResource("schema.json", doc)
	}
	if err == nil {
		_, err = c.Compile("schema.json")
	}
	if err != nil {
		return ": JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12)."
	}
	return ""
}
