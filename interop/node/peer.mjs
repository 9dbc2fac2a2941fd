// The parts that both clients share: the command line, the recording of messages, and the order of the checks.

import { servers } from './servers.mjs';
import { must, Report, same } from './report.mjs';
import { acceptingAnswers } from './questions.mjs';

const synopsis = '[--server NAME] [--era modern|auto] [--carrier stdio] COMMAND ARG… | … --carrier http|sse|ws URL';

/** Parses the command line; see synopsis. */
export function commandLine(script) {
    const [, , ...words] = process.argv;
    const options = { server: 'dowel', era: 'modern', carrier: 'stdio' };
    while (words[0]?.startsWith('--')) {
        const name = words.shift().slice(2);
        if (!(name in options)) usage(script, `unknown option --${name}`);
        options[name] = words.shift();
    }
    if (words.length === 0) usage(script, 'want the command or URL of a server');
    if (!['stdio', 'http', 'sse', 'ws'].includes(options.carrier)) usage(script, `--carrier ${options.carrier}: want stdio, http, sse or ws`);
    if (!servers[options.server]) usage(script, `--server ${options.server}: want ${Object.keys(servers).join(', ')}`);
    return { ...options, ...servers[options.server], command: words[0], args: words.slice(1) };
}

function usage(script, problem) {
    process.stderr.write(`${script}: ${problem}\nusage: node ${script} ${synopsis}\n`);
    process.exit(2);
}

/** Returns the transport that the command line selects. The classes have the same names in both SDKs. */
export function transportOf({ StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport, WebSocketClientTransport }, line) {
    switch (line.carrier) {
        case 'http': return new StreamableHTTPClientTransport(new URL(line.command));
        case 'ws': return new WebSocketClientTransport(new URL(line.command));
        case 'sse': return new SSEClientTransport(new URL(line.command));
        default: return new StdioClientTransport({ command: line.command, args: line.args, env: process.env, stderr: 'ignore' });
    }
}

/** A client that records the messages it receives, and answers the server's questions with answers. */
export class Peer {
    answers = acceptingAnswers();
    notifications = []; // all but progress and cancellation, in order
    wire = []; // all messages received since connect, in order

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

/** Ends the legacy session and checks that the server refuses it afterwards. A modern server must not open one. */
async function endSession({ transport, era }, url) {
    const { sessionId, protocolVersion } = transport;
    if (era === 'modern') return same(sessionId ?? null, null, 'session');
    must(sessionId, 'the server opened no session');
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
    // Ends this process even if a server does not end with its stdin.
    setTimeout(() => process.exit(), 3000).unref();
}
