// What both clients have in common: the command line, what they collect, and the order of the checks.

import { servers } from './servers.mjs';
import { must, Report, same } from './report.mjs';
import { willing } from './questions.mjs';

const synopsis = '[--server NAME] [--era modern|auto] [--carrier stdio] COMMAND ARG… | … --carrier http|sse|ws URL';

/** Reads the synopsis. */
export function commandLine(script) {
    const [, , ...words] = process.argv;
    const options = { server: 'dowel', era: 'modern', carrier: 'stdio' };
    while (words[0]?.startsWith('--')) {
        const name = words.shift().slice(2);
        if (!(name in options)) usage(script, `unknown option --${name}`);
        options[name] = words.shift();
    }
    if (words.length === 0) usage(script, 'no server');
    if (!['stdio', 'http', 'sse', 'ws'].includes(options.carrier)) usage(script, '--carrier is stdio, http, sse or ws');
    if (!servers[options.server]) usage(script, `--server is one of ${Object.keys(servers).join(', ')}`);
    return { ...options, ...servers[options.server], command: words[0], args: words.slice(1) };
}

function usage(script, problem) {
    process.stderr.write(`${script}: ${problem}\nusage: node ${script} ${synopsis}\n`);
    process.exit(2);
}

/** The transport of an SDK that the command line asks for; both SDKs call theirs the same. */
export function transportOf({ StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport, WebSocketClientTransport }, line) {
    switch (line.carrier) {
        case 'http': return new StreamableHTTPClientTransport(new URL(line.command));
        case 'ws': return new WebSocketClientTransport(new URL(line.command));
        case 'sse': return new SSEClientTransport(new URL(line.command));
        default: return new StdioClientTransport({ command: line.command, args: line.args, env: process.env, stderr: 'ignore' });
    }
}

/** A peer that is not connected yet: what arrives is collected in it, what is asked is answered from it. */
export class Peer {
    answers = willing();
    notifications = []; // all but progress and cancellation, in order
    wire = []; // each message received since the connection was made, in order

    constructor(client, era) {
        this.client = client;
        this.era = era;
        client.fallbackNotificationHandler = async note => void this.notifications.push(note);
    }

    async connect(transport) {
        this.transport = transport;
        await this.client.connect(transport);
        const receive = transport.onmessage;
        transport.onmessage = (message, extra) => {
            this.wire.push(message);
            receive.call(transport, message, extra);
        };
    }

    close() {
        return this.client.close();
    }
}

/** Ends the session, and sees that the server has forgotten it; the modern era has none. */
async function endSession({ transport, era }, url) {
    const { sessionId, protocolVersion } = transport;
    if (era === 'modern') return same(sessionId ?? null, null, 'session');
    must(sessionId, 'the server gave no session');
    await transport.terminateSession();
    const response = await fetch(url, {
        method: 'POST',
        headers: {
            'content-type': 'application/json', accept: 'application/json, text/event-stream',
            'mcp-session-id': sessionId, 'mcp-protocol-version': protocolVersion
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 'after the end', method: 'ping' })
    });
    await response.body?.cancel();
    same(response.status, 404, 'status of a request in a session that has ended');
}

/** Connects, runs the checks, closes, and ends the process with the report's exit code. */
export async function main(script, era, connect, checks) {
    const line = commandLine(script);
    const report = new Report([...line.without[era] ?? [], ...line.without[`${era} ${line.carrier}`] ?? []]);
    let peer;
    await report.check('connect', async () => { peer = await connect(line); });
    if (peer) {
        await checks[line.checks](report, peer, line);
        if (line.carrier === 'http') await report.check('session end', () => endSession(peer, line.command));
        await report.check('close', () => peer.close());
    }
    process.exitCode = report.finish(peer !== undefined);
    // A server that does not end with its stdin must not keep this process.
    setTimeout(() => process.exit(), 3000).unref();
}
