// What the animals of the zoo have in common: a small, well-behaved server with one tool, echo. Each animal changes one thing.

import { createInterface } from 'node:readline';

/** Writes one message as a line. */
export function send(message) {
    process.stdout.write(JSON.stringify(message) + '\n');
}

/** Calls take with each message on stdin, in order, and end when stdin ends. */
export function serve(take, end = () => process.exit(0)) {
    createInterface({ input: process.stdin }).on('line', line => take(JSON.parse(line))).on('close', end);
}

/** The legacy server's answer to a message; undefined for a notification. */
export function legacy(message, revision = '2025-11-25') {
    const { id, method, params } = message;
    if (id === undefined || method === undefined) return undefined;
    switch (method) {
        case 'initialize': return result(id, {
            protocolVersion: revision, capabilities: { tools: {} }, serverInfo: { name: 'animal', version: '1.0.0' }
        });
        case 'ping': return result(id, {});
        case 'tools/list': return result(id, { tools });
        case 'tools/call': return call(id, params, {});
        default: return failure(id, -32601, `no method ${method}`);
    }
}

/** The modern server's answer to a message; undefined for a notification. */
export function modern(message) {
    const { id, method, params } = message;
    if (id === undefined || method === undefined) return undefined;
    const common = {
        resultType: 'complete', _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'animal', version: '1.0.0' } }
    };
    const cache = { ttlMs: 0, cacheScope: 'private' };
    switch (method) {
        case 'server/discover': return result(id, {
            ...common, ...cache, supportedVersions: ['2026-07-28'], capabilities: { tools: {} }
        });
        case 'tools/list': return result(id, { ...common, ...cache, tools });
        case 'tools/call': return call(id, params, common);
        default: return failure(id, -32601, `no method ${method}; this server speaks 2026-07-28`);
    }
}

export function result(id, value) {
    return { jsonrpc: '2.0', id, result: value };
}

export function failure(id, code, message) {
    return { jsonrpc: '2.0', id, error: { code, message } };
}

/** Sends an answer, unless there is none. */
export function answer(reply) {
    if (reply) send(reply);
}

const tools = [{
    name: 'echo',
    description: 'Says what it is told.',
    inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] }
}];

function call(id, { name, arguments: args }, common) {
    if (name !== 'echo') return failure(id, -32602, `no tool ${name}`);
    return result(id, { ...common, content: [{ type: 'text', text: args.message }] });
}
