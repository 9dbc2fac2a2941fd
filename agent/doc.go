// Package agent lets a language model work with the tools of MCP servers until a task is done.
//
//	toolbox, err := agent.Dial(ctx, gateway) // any target of client.Dial
//	if err != nil {
//		return err
//	}
//	defer toolbox.Close()
//	a := agent.New(model, toolbox, agent.Options{Approve: ask})
//	for event, err := range a.Run(ctx, mcp.Text("What is in the file notes.txt?")) {
//		…
//	}
//
// [Agent.Run] is the loop: the model replies, the tools it calls are run, their results go back to it, until it calls none, the
// budget of steps is spent, or ctx ends. One goroutine owns the conversation, that of the caller; tools run beside it, and what
// becomes of them comes back as events. Nothing is shown here: a program renders the events.
//
// What is asked by servers while their tools run (elicitation, sampling) goes to the functions of the options, as it does in
// package client.
package agent
