// A server on the TypeScript SDK v2. At http://127.0.0.1:PORT/mcp it serves modern clients, and legacy clients without
// sessions; at ws://127.0.0.1:PORT/ws both, with the package ws. It offers a part of the contract in peers/contract.

import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
    completable, createMcpHandler, inputRequired, inputResponse, McpServer, ResourceTemplate
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { WebSocketServer } from 'ws';
import * as z from 'zod';
import { pause } from './report.mjs';

const watched = 'test://watched-resource';
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const text = s => ({ content: [{ type: 'text', text: s }] });
let cancelled = 0;
const connected = new Set(); // the servers of WebSocket connections

/** Returns a server for one request or connection. */
function serve() {
    const server = new McpServer({ name: 'server-v2', version: '1.0.0' }, {
        capabilities: {
            tools: { listChanged: true }, prompts: {}, resources: { subscribe: true }, completions: {}, logging: {}
        }
    });
    addTools(server);
    addStates(server);
    addQuestions(server);
    addResources(server);
    addPrompts(server);
    return server;
}

function addTools(server) {
    const plain = (name, description, call) => server.registerTool(name, { description, inputSchema: z.object({}) }, call);
    plain('test_simple_text', 'Answers a text.', () => text('This is a simple text response for testing.'));
    plain('test_image_content', 'Answers an image.', () => ({ content: [{ type: 'image', data: png, mimeType: 'image/png' }] }));
    plain('test_error_handling', 'Fails.', () => { throw new Error('This tool intentionally returns an error for testing'); });
    plain('test_trigger_tool_change', 'Notifies of a change of the list of tools.', () => {
        handler.notify.toolsChanged();
        for (const server of connected) server.sendToolListChanged();
        return text('the list has changed');
    });
    server.registerTool('echo', { description: 'Returns the message.', inputSchema: z.object({ message: z.string() }) },
        ({ message }) => text(message));
    server.registerTool('add', {
        description: 'Adds two numbers.',
        inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() })
    }, ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { sum: a + b } }));
}

/** Sends a progress notification if the client has asked for progress. */
async function sendProgress(context, progress) {
    const progressToken = context.mcpReq._meta?.progressToken;
    if (progressToken === undefined) return;
    await context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
}

function addStates(server) {
    const plain = (name, description, call) =>
        server.registerTool(name, { description, inputSchema: z.object({}) }, (_, context) => call(context));
    plain('test_tool_with_progress', 'Takes a while and reports its progress.', async context => {
        for (const progress of [0, 50, 100]) {
            await sendProgress(context, progress);
            await pause(50);
        }
        return text('done');
    });
    plain('test_tool_with_logging', 'Logs three messages.', async context => {
        for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
            await context.mcpReq.log('info', message);
        }
        return text('logged');
    });
    plain('wait_for_cancel', 'Waits until it is cancelled.', async context => {
        const { signal } = context.mcpReq;
        const ended = new Promise(resolve => {
            signal.addEventListener('abort', () => resolve('cancelled'));
            setTimeout(() => resolve('not cancelled'), 15_000).unref();
        });
        await sendProgress(context, 1);
        const end = signal.aborted ? 'cancelled' : await ended;
        if (end === 'cancelled') cancelled++;
        return text(end);
    });
    plain('count_cancelled', 'Counts calls that were cancelled.', () => text(String(cancelled)));
}

function addQuestions(server) {
    const requestedSchema = {
        type: 'object', properties: { username: { type: 'string' }, email: { type: 'string' } }, required: ['username', 'email']
    };
    const ask = (key, question) => inputRequired({ inputRequests: { [key]: question } });
    server.registerTool('test_elicitation', { description: 'Asks the user.', inputSchema: z.object({ message: z.string() }) },
        ({ message }, { mcpReq }) => {
            const given = inputResponse(mcpReq.inputResponses, 'user');
            if (given.kind !== 'elicit') return ask('user', inputRequired.elicit({ message, requestedSchema }));
            return text(`${given.action}: ${JSON.stringify(given.content)}`);
        });
    server.registerTool('test_sampling', { description: 'Asks the model.', inputSchema: z.object({ prompt: z.string() }) },
        ({ prompt }, { mcpReq }) => {
            const given = inputResponse(mcpReq.inputResponses, 'model');
            if (given.kind === 'sampling') return text(`LLM response: ${[given.result.content].flat()[0].text}`);
            const messages = [{ role: 'user', content: { type: 'text', text: prompt } }];
            return ask('model', inputRequired.createMessage({ messages, maxTokens: 100 }));
        });
    server.registerTool('test_input_required_result_list_roots', { description: 'Asks for roots.', inputSchema: z.object({}) },
        (_, { mcpReq }) => {
            const given = inputResponse(mcpReq.inputResponses, 'client_roots');
            if (given.kind !== 'roots') return ask('client_roots', inputRequired.listRoots());
            return text(given.roots.map(root => root.uri).join('\n'));
        });
}

function addResources(server) {
    const add = (name, uri, mimeType, content) => server.registerResource(name, uri, { mimeType },
        () => ({ contents: [{ uri, mimeType, ...content }] }));
    add('static-text', 'test://static-text', 'text/plain', { text: 'This is the content of the static text resource.' });
    add('static-binary', 'test://static-binary', 'image/png', { blob: png });
    add('watched-resource', watched, 'text/plain', { text: 'watched' });
    const mimeType = 'application/json';
    server.registerResource('data', new ResourceTemplate('test://template/{id}/data', { list: undefined }), { mimeType },
        (uri, { id }) => ({
            contents: [{
                uri: uri.href, mimeType, text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
            }]
        }));
}

function addPrompts(server) {
    const say = s => ({ messages: [{ role: 'user', content: { type: 'text', text: s } }] });
    server.registerPrompt('test_simple_prompt', { description: 'Takes nothing.' }, () => say('This is a simple prompt for testing.'));
    const values = prefix => ['alpha', 'beta', 'testValue1'].filter(value => value.startsWith(prefix));
    server.registerPrompt('test_prompt_with_arguments', {
        description: 'Takes two arguments.', argsSchema: z.object({ arg1: completable(z.string(), values), arg2: z.string() })
    }, ({ arg1, arg2 }) => say(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`));
}

/** A transport of the SDK over a WebSocket of the package ws. Each text message holds one message of the protocol. */
class SocketTransport {
    constructor(socket) {
        this.socket = socket;
    }

    async start() {
        this.socket.on('message', data => this.onmessage?.(JSON.parse(data)));
        this.socket.on('close', () => this.onclose?.());
        this.socket.on('error', error => this.onerror?.(error));
    }

    async send(message) {
        this.socket.send(JSON.stringify(message));
    }

    async close() {
        this.socket.close();
    }
}

/** Serves a WebSocket. The SDK has no server for WebSocket, but serveStdio takes any transport and finds out the era. */
function serveSocket(socket) {
    const servers = [];
    serveStdio(() => {
        const server = serve();
        servers.push(server);
        connected.add(server);
        return server;
    }, { transport: new SocketTransport(socket) });
    socket.on('close', () => servers.forEach(server => connected.delete(server)));
}

const handler = createMcpHandler(serve);
setInterval(() => {
    handler.notify.resourceUpdated(watched);
    for (const server of connected) server.server.sendResourceUpdated({ uri: watched }).catch(() => {});
}, 500);
const answer = toNodeHandler(handler);
const web = createServer((request, response) => {
    if (new URL(request.url, 'http://localhost').pathname === '/mcp') return answer(request, response);
    response.writeHead(404).end();
});
new WebSocketServer({ server: web, path: '/ws', handleProtocols: offered => offered.has('mcp') && 'mcp' }).on('connection', serveSocket);
web.listen(Number(process.env.PORT), '127.0.0.1');
