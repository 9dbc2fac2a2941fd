// A legacy client, on the TypeScript SDK v1, that checks a server on stdio, HTTP, HTTP+SSE or WebSocket. It prints one
// JSON line per check.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import {
    CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema
} from '@modelcontextprotocol/sdk/types.js';
import { checkContract } from './contract.mjs';
import { checkLegacy } from './legacy.mjs';
import { checkQuestions } from './questions.mjs';
import { checkReference } from './reference.mjs';
import { main, Peer, transportOf } from './peer.mjs';

class LegacyPeer extends Peer {
    call(name, args, options) {
        return this.client.callTool({ name, arguments: args }, undefined, options);
    }

    onePage(method, cursor) {
        return this.client[method](cursor === undefined ? undefined : { cursor });
    }

    async watch(uri) {
        await this.client.subscribeResource({ uri });
        return () => this.client.unsubscribeResource({ uri });
    }

    version() {
        return 'a legacy revision';
    }
}

async function connect(line) {
    const client = new Client({ name: 'interop-client-v1', version: '1.0.0' }, {
        capabilities: { sampling: {}, elicitation: { form: { applyDefaults: true }, url: {} }, roots: { listChanged: true } }
    });
    const peer = new LegacyPeer(client, 'legacy');
    client.setRequestHandler(ElicitRequestSchema, request => peer.answers.elicit(request.params));
    client.setRequestHandler(CreateMessageRequestSchema, request => peer.answers.sample(request.params));
    client.setRequestHandler(ListRootsRequestSchema, request => peer.answers.roots(request.params));
    await peer.connect(transportOf({ StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport, WebSocketClientTransport }, line));
    return peer;
}

await main('client-v1.mjs', 'v1', connect, {
    async contract(report, peer) {
        await checkContract(report, peer);
        await checkQuestions(report, peer);
        await checkLegacy(report, peer);
    },
    reference: checkReference
});
