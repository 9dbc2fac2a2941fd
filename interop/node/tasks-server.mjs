// A server of 2025-11-25 with experimental tasks, on the TypeScript SDK v1, on stdio.

import { InMemoryTaskMessageQueue, InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { pause } from './report.mjs';

const server = new McpServer({ name: 'tasks-server', version: '1.0.0' }, {
    capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
    taskStore: new InMemoryTaskStore(),
    taskMessageQueue: new InMemoryTaskMessageQueue()
});

/** Adds a tool whose work runs as a task and returns the text of its result, or throws. */
function addTask(name, taskSupport, work) {
    server.experimental.tasks.registerToolTask(name, { description: name, execution: { taskSupport } }, {
        async createTask(extra) {
            const task = await extra.taskStore.createTask({ ttl: 60_000, pollInterval: 50 });
            void run(work, extra, task.taskId);
            return { task };
        },
        getTask: extra => extra.taskStore.getTask(extra.taskId),
        getTaskResult: extra => extra.taskStore.getTaskResult(extra.taskId)
    });
}

async function run(work, extra, taskId) {
    const end = (status, text, isError) => extra.taskStore.storeTaskResult(taskId, status, { content: [{ type: 'text', text }], isError });
    try {
        await end('completed', await work(extra, taskId), false);
    } catch (error) {
        await end('failed', error.message, true).catch(() => {}); // it may have been cancelled
    }
}

addTask('slow', 'required', async () => {
    await pause(300);
    return 'slow is done';
});
addTask('may', 'optional', async () => 'may is done');
addTask('fails', 'required', async () => { throw new Error('out of paper'); });
addTask('hangs', 'required', () => new Promise(() => {}));
addTask('asks', 'required', async (extra, taskId) => {
    const answer = await extra.sendRequest({
        method: 'elicitation/create',
        params: {
            mode: 'form', message: 'Who are you?',
            requestedSchema: { type: 'object', properties: { Name: { type: 'string' } }, required: ['Name'] }
        }
    }, ElicitResultSchema, { relatedTask: { taskId } });
    return `Hello, ${answer.content.Name}`;
});
server.registerTool('plain', { description: 'plain' }, () => ({ content: [{ type: 'text', text: 'plain' }] }));
await server.connect(new StdioServerTransport());
