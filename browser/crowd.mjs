// A client on the TypeScript SDK, v1 (a legacy session) or v2 (2026-07-28), that uses the servers behind a gateway at once:
// node crowd.mjs URL v1|v2 ROUNDS, with the field of its token in AUTHORIZATION. Each call has a text of its own, which its result must have. It fails at the first other
// one.

import { readFile, writeFile } from 'node:fs/promises';
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [url, version, rounds] = [new URL(process.argv[2]), process.argv[3], Number(process.argv[4])];
const info = { name: `crowd-${version}`, version: '1.0.0' };
const isModern = version === 'v2';
const init = { requestInit: { headers: { Authorization: process.env.AUTHORIZATION } } };
const client = isModern ? new ClientV2(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } }) : new ClientV1(info);
await client.connect(isModern ? new TransportV2(url, init) : new TransportV1(url, init));

async function call(name, args, want) {
    const params = { name, arguments: args };
    const result = isModern ? await client.callTool(params) : await client.callTool(params, undefined);
    const text = result.content.map(c => c.text ?? '').join('\n');
    if (result.isError || !text.includes(want)) throw new Error(`${name} ${JSON.stringify(args)}: ${text.slice(0, 300)}`);
}

const file = `${process.cwd()}/${version}.txt`;
await writeFile(file, `file-of-${version}`);
for (let n = 0; n < rounds; n++) {
    const mark = `${version}-${n}-of-the-crowd`;
    await Promise.all([
        call('reference__echo', { message: mark }, mark),
        call('memory__create_entities', { entities: [{ name: mark, entityType: 'mark', observations: [] }] }, mark),
        call('files__read_text_file', { path: file }, `file-of-${version}`),
        call('thinking__sequentialthinking', { thought: mark, nextThoughtNeeded: false, thoughtNumber: n + 1, totalThoughts: rounds }, `"thoughtNumber": ${n + 1}`)
    ]);
}
await client.close();
await readFile(file); // nobody has removed it
