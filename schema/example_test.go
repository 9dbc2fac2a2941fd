package schema_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/dowel-mcp/dowel/schema"
)

func ExampleFor() {
	type In struct {
		State string        `json:"state" doc:"Two-letter US state code" minLength:"2" maxLength:"2"`
		Limit *int          `json:"limit" minimum:"1" default:"10"`
		Wait  time.Duration `json:"wait,omitzero"`
	}
	s, err := schema.For[In]()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", s.JSON())
	// Output:
	// {"type":"object","properties":{"state":{"type":"string","description":"Two-letter US state code","minLength":2,"maxLength":2},"limit":{"type":"integer","minimum":1,"default":10},"wait":{"type":"string"}},"required":["state"],"additionalProperties":false}
}

func ExampleFor_inexpressible() {
	type Filter struct{ Callback func() }
	type In struct{ Filter Filter }
	_, err := schema.For[In]()
	fmt.Println(err)
	// Output:
	// schema: In.Filter.Callback: func() cannot be expressed as JSON
}

func ExampleSchema_Validate() {
	s, err := schema.Compile([]byte(`{
		"type": "object",
		"properties": {"kind": {"enum": ["a", "b"]}, "state": {"type": "string", "maxLength": 2}},
		"required": ["state"],
		"additionalProperties": false
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Validate([]byte(`{"state":"CA"}`)))
	var invalid *schema.ValidationError
	if errors.As(s.Validate([]byte(`{"kind":"c","stat":"CA"}`)), &invalid) {
		for _, issue := range invalid.Issues {
			fmt.Println(issue)
		}
	}
	// Output:
	// <nil>
	// /kind: must be one of "a", "b" (got the string "c")
	// unknown property "stat"; did you mean "state"?
	// missing required property "state"
}

func ExampleForm() {
	type Contact struct {
		Email  string   `json:"email" format:"email"`
		Colors []string `json:"colors,omitempty" enum:"#F00,#0F0" enumTitles:"Red,Green" default:"#F00"`
	}
	s, err := schema.Form[Contact]()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", s.JSON())
	filled, _ := s.ApplyDefaults([]byte(`{"email":"a@example.com"}`))
	fmt.Printf("%s\n", filled)
	// Output:
	// {"type":"object","properties":{"email":{"type":"string","format":"email"},"colors":{"type":"array","items":{"anyOf":[{"const":"#F00","title":"Red"},{"const":"#0F0","title":"Green"}]},"default":["#F00"]}},"required":["email"]}
	// {"email":"a@example.com","colors":["#F00"]}
}

func ExampleDecode() {
	var in struct {
		Wait time.Duration `json:"wait"`
	}
	fmt.Println(schema.Decode([]byte(`{"wait":"1h30m"}`), &in), in.Wait)
	fmt.Println(schema.Decode([]byte(`{"wait":"soon"}`), &in))
	// Output:
	// <nil> 1h30m0s
	// /wait: must be a duration such as "1h30m" (got "soon")
}
