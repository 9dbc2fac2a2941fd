// A client on the TypeScript SDK v2 and the tasks of a server at a URL of Streamable HTTP. The SDK has no functions for tasks, which the
// first check makes sure of. In 2025-11-25 it sends the requests as they are; in 2026-07-28 it refuses a task as the result of a call. It
// prints one JSON line per check. The server has the tools of tasks-server.mjs; PREFIX comes before their names.
// usage: node tasks-client-v2.mjs URL [PREFIX]

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { must, pause, Report, same } from './report.mjs';

const [, , url, prefix = ''] = process.argv;
const report = new Report();
const anything = { '~standard': { version: 1, vendor: 'interop', validate: value => ({ value }) } };
const replicas = new Set();

async function notingFetch(address, init) {
    const response = await fetch(address, init);
    replicas.add(response.headers.get('x-replica'));
    return response;
}

async function connect(options) {
    const client = new Client({ name: 'tasks-client-v2', version: '1.0.0' }, options);
    if (options.capabilities.elicitation) {
        client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { Name: 'Ada' } }));
    }
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch: notingFetch }));
    return client;
}

const send = (client, method, params) => client.request({ method, params }, anything);

/** Calls a tool as a task; returns the id of the task. */
async function begin(client, tool) {
    const created = await send(client, 'tools/call', { name: prefix + tool, arguments: {}, task: {} });
    must(created.task?.taskId, `the call made no task: ${JSON.stringify(created)}`);
    return created.task.taskId;
}

await report.check('the SDK has no tasks', async () => {
    const names = Object.getOwnPropertyNames(Client.prototype).filter(name => /task/i.test(name));
    same(names, [], 'methods of the client');
});
let client;
await report.check('connect', async () => {
    client = await connect({ capabilities: { elicitation: { form: {} } } });
    same(client.getNegotiatedProtocolVersion(), '2025-11-25', 'revision');
    must(client.getServerCapabilities().tasks?.requests?.tools?.call, 'the server offers no tasks');
});
await report.check('result', async () => {
    const taskId = await begin(client, 'slow');
    while ((await send(client, 'tasks/get', { taskId })).status === 'working') await pause(20);
    same((await send(client, 'tasks/get', { taskId })).status, 'completed', 'status');
    same((await send(client, 'tasks/result', { taskId })).content, [{ type: 'text', text: 'slow is done' }], 'content');
});
await report.check('failure', async () => {
    const taskId = await begin(client, 'fails');
    must((await send(client, 'tasks/result', { taskId })).isError, 'no failure');
    same((await send(client, 'tasks/get', { taskId })).status, 'failed', 'status');
});
await report.check('question', async () => {
    const taskId = await begin(client, 'asks');
    same((await send(client, 'tasks/result', { taskId })).content, [{ type: 'text', text: 'Hello, Ada' }], 'content');
});
await report.check('cancel', async () => {
    const taskId = await begin(client, 'hangs');
    same((await send(client, 'tasks/cancel', { taskId })).status, 'cancelled', 'status');
    same((await send(client, 'tasks/get', { taskId })).status, 'cancelled', 'status later');
});
await report.check('replicas', async () => must(replicas.size > 1, `all answers came from ${[...replicas]}`));
await report.check('close', () => client.close());
await report.check('2026-07-28', async () => {
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
    const modern = await connect({ capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } });
    const refusal = await modern.callTool({ name: prefix + 'slow', arguments: {} }).then(result => JSON.stringify(result), error => error.code);
    same(refusal, 'UNSUPPORTED_RESULT_TYPE', 'a task as the result of a call');
    same((await modern.callTool({ name: prefix + 'plain', arguments: {} })).content, [{ type: 'text', text: 'plain' }], 'content of plain');
    await modern.close();
});
process.exitCode = report.finish(true);
setTimeout(() => process.exit(), 3000).unref();
