// Package agent lets a language model work with the tools of MCP servers until a task is done.
//
//	toolbox, err := agent.Dial(ctx, gateway, client.Options{Elicit: ask}) // any target of client.Dial
//	if err != nil {
//		return err
//	}
//	defer toolbox.Close()
//	a := agent.New(model, toolbox, &agent.Options{Approve: approve})
//	for event, err := range a.Run(ctx, mcp.Text("What is in the file notes.txt?")) {
//		…
//	}
//
// [Agent.Run] is the loop: the model replies, the tools it calls are run, their results go back to it, until it calls none, its
// reply is cut off, the budget of steps is spent, or ctx ends. One goroutine owns the conversation, that of the caller; tools run
// beside it, and what becomes of them comes back as events. Nothing is shown here: a program renders the events.
//
// # Who decides
//
// Every call is decided on before it is made ([Mode], [Options.Allowed], [Options.Approve]), and [Decided] tells how. What servers
// ask the user while their tools run (elicitation) goes to Elicit of the client's options, and what they ask the model (sampling) to
// the agent's own, once it has been allowed; both are asked about on the goroutine of the run, one thing at a time, and [Asked] comes
// before. Whatever the user does then, or does not, no call and no server waits for longer than the run goes on.
//
// # The model's window
//
// [Agent.Tokens] says what takes how much of it. Three things keep a conversation in it, and all can be seen:
//
//   - of a long result ([Options.MaxResult]) the model is given the head and the tail, and a tool, read_result, that reads and
//     searches the rest; images and other binaries are bounded, too ([Options.MaxMedia]);
//   - instead of the definitions of very many tools ([Options.SearchAt]) it is given a tool, search_tools, and the definitions of
//     what that has found or has been called, each of which stays in its place from then on, so that providers can keep what they
//     have read;
//   - near to the window ([Options.CompactAt]) the older part of the conversation is replaced by a summary that the model writes
//     ([Compacted]). The task, the user's last words and the last exchanges stay as they are.
package agent
