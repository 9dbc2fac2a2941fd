// Runs a client library of another maker that lists the tools of a running dowel up and calls one. It prints one JSON line per
// check. The library must be used as its documentation says.

import { must, Report } from '../node/report.mjs';

/**
 * Runs the library that the command line names.
 * @param {Object<string, function(target, tool, message)>} hosts by name. Each function connects to a target, which is
 * {url, headers} or {command, args, env}, and returns the tools' names, and functions that call the tool with the message and
 * that close the connection.
 */
export async function useHost(hosts) {
    const [, script, host, json] = process.argv;
    if (hosts[host] === undefined || json === undefined) {
        process.stderr.write(`usage: node ${script} ${Object.keys(hosts).join('|')} TARGET\n`);
        process.exit(2);
    }
    const target = JSON.parse(json);
    if (target.command !== undefined) target.env = process.env;
    const tool = 'every__echo';
    const message = `grüße of ${host}`;
    const report = new Report();
    let peer;
    await report.check('list', async () => {
        peer = await hosts[host](target, tool, message);
        must(peer.names.includes(tool), `${tool} is not among ${peer.names.join(', ')}`);
    });
    if (peer) {
        await report.check('call', async () => {
            const result = await peer.call();
            must(JSON.stringify(result).includes(message), `got ${JSON.stringify(result)}, want ${message} in it`);
        });
        await report.check('close', () => peer.close());
    }
    process.exit(report.finish(peer !== undefined)); // some libraries keep timers
}
