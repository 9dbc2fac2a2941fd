// What both clients have in common: the command line, what they collect, and the order of the checks.

import { servers } from './servers.mjs';
import { Report } from './report.mjs';
import { willing } from './questions.mjs';

/** Reads `[--server NAME] [--era modern|auto] COMMAND ARG…`. */
export function commandLine(script) {
    const [, , ...words] = process.argv;
    const options = { server: 'dowel', era: 'modern' };
    while (words[0]?.startsWith('--')) {
        const name = words.shift().slice(2);
        if (!(name in options)) usage(script, `unknown option --${name}`);
        options[name] = words.shift();
    }
    if (words.length === 0) usage(script, 'no server command');
    if (!servers[options.server]) usage(script, `--server is one of ${Object.keys(servers).join(', ')}`);
    return { ...options, ...servers[options.server], command: words[0], args: words.slice(1) };
}

function usage(script, problem) {
    process.stderr.write(`${script}: ${problem}\nusage: node ${script} [--server NAME] [--era modern|auto] COMMAND ARG…\n`);
    process.exit(2);
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

/** Connects, runs the checks, closes, and ends the process with the report's exit code. */
export async function main(script, era, connect, checks) {
    const line = commandLine(script);
    const report = new Report(line.without[era]);
    let peer;
    await report.check('connect', async () => { peer = await connect(line); });
    if (peer) {
        await checks[line.checks](report, peer, line);
        await report.check('close', () => peer.close());
    }
    process.exitCode = report.finish(peer !== undefined);
    // A server that does not end with its stdin must not keep this process.
    setTimeout(() => process.exit(), 3000).unref();
}
