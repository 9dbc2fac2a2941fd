// A legacy client, the TypeScript SDK v1, against a server on stdio. Prints one JSON line per check.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import {
    CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema
} from '@modelcontextprotocol/sdk/types.js';
import { checkContract } from './contract.mjs';
import { checkInputRequired, checkPromptInput, checkQuestions, asked } from './questions.mjs';
import { checkReference } from './reference.mjs';
import { main, Peer } from './peer.mjs';
import { must, pause, same, until } from './report.mjs';

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

async function connect({ command, args }) {
    const client = new Client({ name: 'interop-client-v1', version: '1.0.0' }, {
        capabilities: { sampling: {}, elicitation: { form: { applyDefaults: true }, url: {} }, roots: { listChanged: true } }
    });
    const peer = new LegacyPeer(client, 'legacy');
    client.setRequestHandler(ElicitRequestSchema, request => peer.answers.elicit(request.params));
    client.setRequestHandler(CreateMessageRequestSchema, request => peer.answers.sample(request.params));
    client.setRequestHandler(ListRootsRequestSchema, request => peer.answers.roots(request.params));
    await peer.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' }));
    return peer;
}

async function checkLegacy(report, peer) {
    await report.check('ping', () => peer.client.ping().then(result => same(result, {}, 'result')));
    await report.check('logging', async () => {
        same(await peer.client.setLoggingLevel('info'), {}, 'logging/setLevel');
        const logged = await logs(peer, 'test_tool_with_logging');
        same(logged, ['Tool execution started', 'Tool processing data', 'Tool execution completed'], 'messages');
        await peer.client.setLoggingLevel('error');
        same(await logs(peer, 'test_tool_with_logging'), [], 'messages below the level');
    });
    await report.check('defaults filled by the client', async () => {
        const [, result] = await asked(peer, 'elicit', () => ({ action: 'accept', content: {} }),
            () => peer.call('test_elicitation_sep1034_defaults', {}));
        for (const value of ['John Doe', '30', '95.5', 'active', 'true']) {
            must(JSON.stringify(result.content).includes(value), `${value} is missing in ${JSON.stringify(result.content)}`);
        }
    });
    await report.check('reconnection tool', async () => {
        same((await peer.call('test_reconnection', {})).isError ?? false, false, 'isError');
    });
    for (const kind of ['tool', 'prompt']) {
        await report.check(`${kind} list changed`, async () => {
            const changes = () => peer.notifications.filter(note => note.method === `notifications/${kind}s/list_changed`);
            const before = changes().length;
            await peer.call(`test_trigger_${kind}_change`, {});
            await until(() => changes().length > before, 1500, `notifications/${kind}s/list_changed`);
        });
    }
    await report.check('roots list changed', async () => {
        await peer.client.sendRootsListChanged();
        await peer.client.ping();
    });
}

/** The data of the log messages that a call causes. */
async function logs(peer, tool) {
    const start = peer.notifications.length;
    await peer.call(tool, {});
    await pause(100);
    return peer.notifications.slice(start).filter(note => note.method === 'notifications/message')
        .map(note => note.params.data).map(data => data?.msg ?? data?.message ?? data);
}

await main('client-v1.mjs', 'v1', connect, {
    async contract(report, peer) {
        await checkContract(report, peer);
        await checkQuestions(report, peer);
        await checkLegacy(report, peer);
        await checkInputRequired(report, peer, 'input required in the legacy era');
        await checkPromptInput(report, peer, 'prompt input in the legacy era');
    },
    reference: checkReference
});
