// Command minimal is the least server with encoding/json: it answers calls on stdio, one after the
// other.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
)

type request struct {
	ID     json.RawMessage `json:"id"`
	Params struct {
		Arguments struct {
			Message string `json:"message"`
		} `json:"arguments"`
	} `json:"params"`
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  result          `json:"result"`
}

type result struct {
	ResultType string    `json:"resultType"`
	Content    []content `json:"content"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var r request
		err := in.Decode(&r)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = out.Encode(response{"2.0", r.ID, result{"complete", []content{{"text", r.Params.Arguments.Message}}}})
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}
