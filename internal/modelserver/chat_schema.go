package modelserver

import (
	"encoding/json"
	"fmt"
	"strings"
)

type chatTool struct {
	Type     string
	Function struct {
		Name        string
		Description string
		Parameters  json.RawMessage
		Strict      bool
	}
}

func (s *Script) checkChatTools(tools []chatTool) *chatError {
	if tools != nil && len(tools) == 0 {
		return invalidRequest("Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.", "tools", "empty_array")
	}
	if len(tools) > 128 && s.hasQuirk("openai") {
		return invalidRequest(fmt.Sprintf("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.", len(tools)), "tools", "array_above_max_length")
	}
	seen := map[string]bool{}
	for i, t := range tools {
		at, f := fmt.Sprintf("tools[%d].function", i), t.Function
		switch length := len([]rune(f.Description)); {
		case t.Type != "function":
			return invalidRequest(fmt.Sprintf("Invalid value: '%s'.", t.Type), fmt.Sprintf("tools[%d].type", i), "invalid_value")
		case !chatName.MatchString(f.Name):
			return invalidRequest(fmt.Sprintf("Invalid '%s.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", at), at+".name", "invalid_value")
		case seen[f.Name]:
			return invalidRequest("Tool names must be unique: "+f.Name, "tools", "")
		case length > 1024 && s.hasQuirk("openai"):
			return invalidRequest(fmt.Sprintf("Invalid '%s.description': string too long. Expected a string with maximum length 1024, but got a string with length %d instead.", at, length), at+".description", "string_above_max_length")
		}
		seen[f.Name] = true
		if wrong := checkParameters(f.Parameters, f.Strict); wrong != "" {
			return invalidRequest(fmt.Sprintf("Invalid schema for function '%s': %s", f.Name, wrong), at+".parameters", "invalid_function_parameters")
		}
	}
	return nil
}

// checkParameters returns the API's error for a parameter schema, or "".
func checkParameters(raw json.RawMessage, strict bool) string {
	if raw == nil {
		return "" // a function without parameters
	}
	var top map[string]any
	if json.Unmarshal(raw, &top) != nil || top == nil {
		return fmt.Sprintf("%s is not of type 'object'.", raw)
	}
	if top["type"] != "object" {
		return fmt.Sprintf(`schema must be a JSON Schema of 'type: "object"', got 'type: "%v"'.`, top["type"])
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf", "enum", "not"} {
		if _, ok := top[keyword]; ok {
			return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
		}
	}
	if _, ok := top["properties"].(map[string]any); !ok {
		return "In context=(), object schema missing properties."
	}
	if wrong := checkSchema(top, nil); wrong != "" || !strict {
		return wrong
	}
	return checkStrict(top, nil, 1)
}

func inContext(path []string, wrong string) string {
	quoted := make([]string, len(path))
	for i, p := range path {
		quoted[i] = "'" + p + "'"
	}
	return "In context=(" + strings.Join(quoted, ", ") + "), " + wrong
}

// checkSchema checks the rules for all schemas, strict or not.
func checkSchema(schema map[string]any, path []string) string {
	if typ, ok := schema["type"].(string); ok && typ == "array" {
		switch items := schema["items"].(type) {
		case nil:
			return inContext(path, "array schema missing items.")
		case []any:
			return inContext(path, fmt.Sprintf("%v is not of type 'object', 'boolean'.", items))
		}
	}
	if ref, ok := schema["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
		return inContext(path, fmt.Sprintf("reference can only point to definitions defined at the top level of the schema: '%s'.", ref))
	}
	return eachSchema(schema, path, checkSchema)
}

// eachSchema calls check for each direct subschema, until check returns an error.
func eachSchema(schema map[string]any, path []string, check func(map[string]any, []string) string) string {
	visit := func(v any, path ...string) string {
		if inner, ok := v.(map[string]any); ok {
			return check(inner, path)
		}
		return ""
	}
	for _, keyword := range []string{"properties", "$defs", "definitions", "patternProperties"} {
		inner, _ := schema[keyword].(map[string]any)
		for name, v := range inner {
			if wrong := visit(v, append(path[:len(path):len(path)], keyword, name)...); wrong != "" {
				return wrong
			}
		}
	}
	for _, keyword := range []string{"items", "additionalProperties", "not", "if", "then", "else"} {
		if wrong := visit(schema[keyword], append(path[:len(path):len(path)], keyword)...); wrong != "" {
			return wrong
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		inner, _ := schema[keyword].([]any)
		for i, v := range inner {
			if wrong := visit(v, append(path[:len(path):len(path)], keyword, fmt.Sprint(i))...); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// notStrict are the keywords that strict schemas must not have.
var notStrict = []string{"allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "patternProperties",
	"propertyNames", "unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains", "minProperties",
	"maxProperties", "uniqueItems", "prefixItems", "default"}

func checkStrict(schema map[string]any, path []string, depth int) string {
	if depth > 10 {
		return "schema exceeds maximum nesting depth of 10."
	}
	for _, keyword := range notStrict {
		if _, ok := schema[keyword]; ok {
			return inContext(path, fmt.Sprintf("'%s' is not permitted.", keyword))
		}
	}
	_, typed := schema["type"]
	_, anyOf := schema["anyOf"]
	_, ref := schema["$ref"]
	_, constant := schema["const"]
	_, enum := schema["enum"]
	if !typed && !anyOf && !ref && !constant && !enum {
		return inContext(path, "schema must have a 'type' key.")
	}
	if properties, ok := schema["properties"].(map[string]any); ok || schema["type"] == "object" {
		if schema["additionalProperties"] != false {
			return inContext(path, "'additionalProperties' is required to be supplied and to be false.")
		}
		required := fmt.Sprint(schema["required"])
		for name := range properties {
			if !strings.Contains(" "+strings.Trim(required, "[]")+" ", " "+name+" ") {
				return inContext(path, "'required' is required to be supplied and to be an array including every key in properties. Missing '"+name+"'.")
			}
		}
	}
	return eachSchema(schema, path, func(inner map[string]any, path []string) string { return checkStrict(inner, path, depth+1) })
}
