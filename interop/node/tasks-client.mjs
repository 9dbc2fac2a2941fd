// A client of 2025-11-25 on the TypeScript SDK v1 that uses the experimental tasks of a server at a URL of Streamable HTTP. It prints
// one JSON line per check. The server has the tools of tasks-server.mjs; PREFIX comes before their names.
// usage: node tasks-client.mjs URL [PREFIX]

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { must, Report, same } from './report.mjs';

const [, , url, prefix = ''] = process.argv;
const report = new Report();
const client = new Client({ name: 'tasks-client', version: '1.0.0' }, { capabilities: { elicitation: { form: {} } } });
let asked = 0;
client.setRequestHandler(ElicitRequestSchema, () => {
    asked++;
    return { action: 'accept', content: { Name: 'Ada' } };
});
const statuses = [];
client.fallbackNotificationHandler = async note => void statuses.push(note);

/** Calls a tool as a task; returns the messages by type. */
async function stream(name, options = { task: {} }) {
    const seen = {};
    for await (const message of client.experimental.tasks.callToolStream({ name: prefix + name, arguments: {} }, CallToolResultSchema, options)) {
        seen[message.type] = message;
    }
    return seen;
}

await report.check('connect', async () => {
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    must(client.getServerCapabilities().tasks?.requests?.tools?.call, 'the server offers no tasks');
    same(client.getServerCapabilities().extensions?.['io.modelcontextprotocol/tasks'] ?? null, null, 'the extension');
});
await report.check('list', async () => {
    const { tools } = await client.listTools();
    const support = tools.find(tool => tool.name === prefix + 'slow')?.execution?.taskSupport;
    must(support === 'required' || support === 'optional', `taskSupport ${support}`);
    // A gateway cannot know which tools of a server of 2026-07-28 make tasks.
    if (!prefix) same(tools.find(tool => tool.name === 'plain')?.execution ?? null, null, 'execution of plain');
});
await report.check('result', async () => {
    const { taskCreated, result, error } = await stream('slow');
    must(!error, error?.error?.message);
    must(taskCreated.task.taskId, 'no task');
    same(result.result.content, [{ type: 'text', text: 'slow is done' }], 'content');
    const task = await client.experimental.tasks.getTask(taskCreated.task.taskId);
    same(task.status, 'completed', 'status');
});
await report.check('failure', async () => {
    const { taskCreated, result, error } = await stream('fails');
    const task = await client.experimental.tasks.getTask(taskCreated.task.taskId);
    same(task.status, 'failed', 'status');
    must(error || result?.result.isError, 'no failure');
});
await report.check('question', async () => {
    const { result, error } = await stream('asks');
    must(!error, error?.error?.message);
    same(result.result.content, [{ type: 'text', text: 'Hello, Ada' }], 'content');
    same(asked, 1, 'questions');
});
await report.check('cancel', async () => {
    const messages = client.experimental.tasks.callToolStream({ name: prefix + 'hangs', arguments: {} }, CallToolResultSchema, { task: {} });
    const created = (await messages.next()).value;
    same(created.type, 'taskCreated', 'message');
    same((await client.experimental.tasks.cancelTask(created.task.taskId)).status, 'cancelled', 'status');
    same((await client.experimental.tasks.getTask(created.task.taskId)).status, 'cancelled', 'status later');
    const again = await client.experimental.tasks.cancelTask(created.task.taskId).then(() => 'accepted', error => error.code);
    same(again, -32602, 'a second cancellation');
});
await report.check('plain', async () => {
    same((await client.callTool({ name: prefix + 'plain', arguments: {} })).content, [{ type: 'text', text: 'plain' }], 'content');
});
await report.check('close', () => client.close());
process.exitCode = report.finish(true);
setTimeout(() => process.exit(), 3000).unref();
