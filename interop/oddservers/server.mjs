// A small server with one tool, echo, that follows the protocol. Each server of this folder uses it and changes one thing.

import { createInterface } from 'node:readline';

/** Writes one message as a line. */
export function send(message) {
    process.stdout.write(JSON.stringify(message) + '\n');
}

/** Calls onMessage with each message on stdin, in order, and onEnd when stdin ends. */
export function serve(onMessage, onEnd = () => process.exit(0)) {
    createInterface({ input: process.stdin }).on('line', line => onMessage(JSON.parse(line))).on('close', onEnd);
}

/** Returns the legacy server's answer to a message, or undefined for a notification or a response. */
export function legacy(message, revision = '2025-11-25') {
    const { id, method, params } = message;
    if (id === undefined || method === undefined) return undefined;
    switch (method) {
        case 'initialize': return result(id, {
            protocolVersion: revision, capabilities: { tools: {} }, serverInfo: { name: 'odd-server', version: '1.0.0' }
        });
        case 'ping': return result(id, {});
        case 'tools/list': return result(id, { tools });
        case 'tools/call': return call(id, params, {});
        default: return failure(id, -32601, `no method ${method}`);
    }
}

/** Returns the modern server's answer to a message, or undefined for a notification or a response. */
export function modern(message) {
    const { id, method, params } = message;
    if (id === undefined || method === undefined) return undefined;
    const common = {
        resultType: 'complete', _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'odd-server', version: '1.0.0' } }
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

/** Sends an answer, unless it is undefined. */
export function answer(reply) {
    if (reply) send(reply);
}

const tools = [{
    name: 'echo',
    description: 'Returns the message.',
    inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] }
}];

function call(id, { name, arguments: args }, common) {
    if (name !== 'echo') return failure(id, -32602, `no tool ${name}`);
    return result(id, { ...common, content: [{ type: 'text', text: args.message }] });
}
