// Package modelhttp is the HTTP client that the model providers share. A [Client] posts a request
// to a streaming endpoint and returns its answer as a [Stream] of server-sent events. It tries
// again if the connection fails or the server is busy, checks that the answer is an event stream
// of the wanted kind, and turns failures into errors that say what to do.
//
// The package knows no provider: request bodies, events and the meaning of an error's type belong
// to agent/openai and agent/anthropic.
//
//	client := &modelhttp.Client{URL: modelhttp.JoinURL(base, "/chat/completions"), HTTP: http.DefaultClient, …}
//	stream, err := client.Post(ctx, body, notify)
//	if err != nil {
//		return err
//	}
//	defer stream.Close()
//	for {
//		event, err := stream.Next() // io.EOF at the end
//		…
//		err = stream.Decode(event.Data, &chunk)
//	}
package modelhttp
