// A client of 2025-11-25 on the TypeScript SDK v1 or v2 whose connections are lost while a call runs. The SDK asks for the rest of the
// stream by Last-Event-ID, and a load balancer gives that request to another replica. It prints one JSON line per check.
// usage: node resume.mjs v1|v2 URL

import { must, Report, same, textOf } from './report.mjs';

const [, , sdk, url] = process.argv;
const { Client } = await import(sdk === 'v1' ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
const { StreamableHTTPClientTransport } = await import(sdk === 'v1' ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client');

const cutAfter = 700; // milliseconds of an event stream of a call
let cuts = 0;
const replicas = []; // that served the streams of the current call
let calling = false;

/** Fetches, and loses the connection of each event stream of a call some time after it has begun, twice a call. */
async function losingFetch(address, init) {
    const response = await fetch(address, init);
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
    const resumes = new Headers(init?.headers).has('last-event-id');
    if (!calling || !isStream || !(init?.method === 'POST' || resumes)) return response;
    replicas.push(response.headers.get('x-replica'));
    if (replicas.length > 2) return response;
    const reader = response.body.getReader();
    const body = new ReadableStream({
        start(controller) {
            const timer = setTimeout(() => {
                cuts++;
                controller.error(new Error('the connection is lost'));
                reader.cancel().catch(() => {});
            }, cutAfter);
            (async () => {
                for (;;) {
                    const { done, value } = await reader.read();
                    if (done) break;
                    controller.enqueue(value);
                }
                clearTimeout(timer);
                controller.close();
            })().catch(() => {});
        }
    });
    return new Response(body, { status: response.status, headers: response.headers });
}

const report = new Report();
const client = new Client({ name: 'resume-client', version: '1.0.0' }, { capabilities: {} });
await report.check('connect', () => client.connect(new StreamableHTTPClientTransport(new URL(url), {
    fetch: losingFetch,
    reconnectionOptions: { initialReconnectionDelay: 50, maxReconnectionDelay: 200, reconnectionDelayGrowFactor: 1.5, maxRetries: 20 }
})));
for (const round of ['first', 'second', 'third']) {
    await report.check(`${round} call`, async () => {
        const seen = [];
        replicas.length = 0;
        calling = true;
        const options = { onprogress: progress => void seen.push(progress.progress) };
        const args = { name: 'slow', arguments: { seconds: 4 } };
        const result = await (sdk === 'v1' ? client.callTool(args, undefined, options) : client.callTool(args, options));
        calling = false;
        must(!result.isError && textOf(result).length > 0, `the result is ${JSON.stringify(result)}`);
        must(seen.length > 2, `progress ${seen}`);
        same(seen, [...new Set(seen)].sort((a, b) => a - b), 'progress');
        must(replicas.length > 1, 'the connection was not lost');
        must(new Set(replicas).size > 1, `all streams came from ${replicas[0]}`);
        return `${seen.length} reports over ${replicas.join(' ')}`;
    });
}
await report.check('lost connections', async () => must(cuts >= 3, `${cuts}`));
await report.check('close', () => client.close());
process.exitCode = report.finish(true);
setTimeout(() => process.exit(), 3000).unref();
