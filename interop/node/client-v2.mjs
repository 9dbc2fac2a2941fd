// A client on the TypeScript SDK v2 that checks a server on stdio, HTTP or HTTP+SSE. It prints one JSON line per check.
// With --era modern it requires revision 2026-07-28; with --era auto the SDK probes for the server's era.

import { Client, LOG_LEVEL_META_KEY, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { checkContract, invalidParams } from './contract.mjs';
import { checkLegacy } from './legacy.mjs';
import { checkInputRequired, checkPromptInput, checkQuestions } from './questions.mjs';
import { checkReference } from './reference.mjs';
import { main, Peer, transportOf } from './peer.mjs';
import { must, pause, refused, same, textOf, until } from './report.mjs';

const revision = '2026-07-28';
const missingCapability = -32021;

class ModernPeer extends Peer {
    call(name, args, options) {
        return this.client.callTool({ name, ...(args && { arguments: args }) }, options);
    }

    /** Makes one request without the SDK's retries: a result of type input_required is returned, and params may hold its answers. */
    callRaw(name, params = {}) {
        return this.client.callTool({ name, arguments: {}, ...params }, { allowInputRequired: true });
    }

    /** Returns one page. Without a cursor the SDK's list methods join all pages, so the first page is a plain request. */
    onePage(method, cursor) {
        if (cursor !== undefined) return this.client[method]({ cursor });
        const wireMethod = { listTools: 'tools/list', listPrompts: 'prompts/list', listResources: 'resources/list',
            listResourceTemplates: 'resources/templates/list' }[method];
        return this.client.request({ method: wireMethod, params: {} });
    }

    async watch(uri) {
        if (this.era === 'legacy') {
            await this.client.subscribeResource({ uri });
            return () => this.client.unsubscribeResource({ uri });
        }
        const subscription = await this.client.listen({ resourceSubscriptions: [uri] });
        return () => subscription.close();
    }

    version() {
        return revision;
    }
}

const allCapabilities = { sampling: {}, elicitation: { form: { applyDefaults: true }, url: {} }, roots: { listChanged: true } };

async function connect(line, capabilities = allCapabilities) {
    const client = new Client({ name: 'interop-client-v2', version: '1.0.0' }, {
        capabilities,
        versionNegotiation: { mode: line.era === 'auto' ? 'auto' : { pin: revision }, probe: { timeoutMs: 10_000 } }
    });
    const peer = new ModernPeer(client, 'modern');
    if (capabilities.elicitation) client.setRequestHandler('elicitation/create', request => peer.answers.elicit(request.params));
    if (capabilities.sampling) client.setRequestHandler('sampling/createMessage', request => peer.answers.sample(request.params));
    if (capabilities.roots) client.setRequestHandler('roots/list', request => peer.answers.roots(request.params));
    await peer.connect(transportOf({ StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport }, line));
    // With --era auto the server may be a legacy one, which has other checks.
    peer.era = client.getProtocolEra();
    return peer;
}

async function checkModern(report, peer, line) {
    await report.check('era', async () => {
        same([peer.client.getProtocolEra(), peer.client.getNegotiatedProtocolVersion()], ['modern', revision], 'era');
        const discovered = peer.client.getDiscoverResult();
        must(discovered.supportedVersions.includes(revision), 'supportedVersions does not hold the revision');
        return discovered.supportedVersions.join(' ');
    });
    await report.check('result fields', async () => {
        const start = peer.wire.length;
        await peer.onePage('listTools');
        await peer.client.readResource({ uri: 'test://static-text' }, { cacheMode: 'refresh' });
        for (const { result } of peer.wire.slice(start).filter(message => 'result' in message)) {
            same(result.resultType, 'complete', 'resultType');
            must(Number.isInteger(result.ttlMs) && result.ttlMs >= 0, `ttlMs is ${result.ttlMs}`);
            must(['public', 'private'].includes(result.cacheScope), `cacheScope is ${result.cacheScope}`);
        }
    });
    await report.check('structured content', async () => {
        const tool = (await peer.client.listTools()).tools.find(tool => tool.name === 'add');
        must(tool?.outputSchema, 'add has no outputSchema');
        const { structuredContent } = await peer.call('add', { a: 19, b: 23 }); // the SDK checks it against the schema
        must(JSON.stringify(structuredContent)?.includes('42'), `structuredContent is ${JSON.stringify(structuredContent)}`);
        return JSON.stringify(structuredContent);
    });
    await checkLogging(report, peer);
    await checkListen(report, peer);
    await checkWithoutRetries(report, peer);
    await checkCapabilities(report, line);
}

async function checkLogging(report, peer) {
    const logs = async _meta => {
        const start = peer.notifications.length;
        await peer.client.callTool({ name: 'test_logging_tool', arguments: {}, ...(_meta && { _meta }) });
        await pause(100);
        return peer.notifications.slice(start).filter(note => note.method === 'notifications/message');
    };
    await report.check('no log without a level', async () => same(await logs(), [], 'messages'));
    await report.check('log at a level', async () => {
        must((await logs({ [LOG_LEVEL_META_KEY]: 'debug' })).length > 0, 'no message at level debug');
    });
}

async function checkListen(report, peer) {
    for (const [kind, filter] of [['tool', { toolsListChanged: true }], ['prompt', { promptsListChanged: true }]]) {
        await report.check(`${kind} list changed`, async () => {
            const method = `notifications/${kind}s/list_changed`;
            const start = peer.notifications.length;
            const subscription = await peer.client.listen(filter);
            same(subscription.honoredFilter, filter, 'honoured filter');
            await peer.call(`test_trigger_${kind}_change`, {});
            await until(() => peer.notifications.slice(start).some(note => note.method === method), 1500, method);
            const other = kind === 'tool' ? 'prompt' : 'tool';
            await peer.call(`test_trigger_${other}_change`, {});
            await pause(300);
            const unasked = peer.notifications.slice(start).filter(note => note.method === `notifications/${other}s/list_changed`);
            same(unasked, [], 'notifications that were not asked for');
            await subscription.close();
            same(await subscription.closed, 'local', 'end of the subscription');
        });
    }
}

/** Checks calls that ask (multi round-trip requests) without the SDK's retries. */
async function checkWithoutRetries(report, peer) {
    const name = 'test_input_required_result_elicitation';
    const accept = content => ({ action: 'accept', content });
    await report.check('input required without retries', async () => {
        const first = await peer.callRaw(name);
        same(first.resultType, 'input_required', 'resultType');
        const question = first.inputRequests.user_name;
        same([question.method, question.params.message], ['elicitation/create', 'What is your name?'], 'question');
        const second = await peer.callRaw(name, {
            inputResponses: { user_name: accept({ name: 'Ada' }), unknown: accept({}) },
            ...(first.requestState && { requestState: first.requestState })
        });
        same(textOf(second), 'Hello, Ada!', 'text');
    });
    await report.check('input for another question', async () => {
        const { requestState } = await peer.callRaw(name);
        const state = requestState && { requestState };
        for (const inputResponses of [{ wrong_key: accept({ name: 'Ada' }) }, {}]) {
            same((await peer.callRaw(name, { inputResponses, ...state })).resultType, 'input_required', 'resultType');
        }
    });
    await report.check('several questions at once', async () => {
        const first = await peer.callRaw('test_input_required_result_multiple_inputs');
        same(Object.keys(first.inputRequests).sort(), ['client_roots', 'greeting', 'user_name'], 'keys');
        must(typeof first.requestState === 'string', 'no requestState');
    });
    await report.check('state changes by round', async () => {
        const tool = 'test_input_required_result_multi_round';
        const first = await peer.callRaw(tool);
        same(Object.keys(first.inputRequests), ['step1'], 'first round');
        const second = await peer.callRaw(tool, {
            inputResponses: { step1: accept({ name: 'Ada' }) }, requestState: first.requestState
        });
        same(Object.keys(second.inputRequests), ['step2'], 'second round');
        must(first.requestState !== second.requestState, 'requestState is the same in both rounds');
    });
    await report.check('tampered state', async () => {
        const tool = 'test_input_required_result_tampered_state';
        const first = await peer.callRaw(tool);
        const key = Object.keys(first.inputRequests)[0];
        await refused(peer.callRaw(tool, {
            inputResponses: { [key]: accept({ ok: true }) }, requestState: first.requestState + '-TAMPERED'
        }), [invalidParams], 'a tampered state');
    });
}

/** Checks the questions and errors for clients that declare fewer capabilities. */
async function checkCapabilities(report, line) {
    await report.check('missing capability', async () => {
        const incapable = await connect(line, {});
        try {
            const error = await refused(incapable.call('test_missing_capability', {}), [missingCapability], 'without sampling');
            same(error.data?.requiredCapabilities, { sampling: {} }, 'requiredCapabilities');
        } finally {
            await incapable.close();
        }
    });
    await report.check('asks only what is declared', async () => {
        const sampler = await connect(line, { sampling: {} });
        try {
            const { inputRequests } = await sampler.callRaw('test_input_required_result_capabilities');
            const methods = Object.values(inputRequests).map(question => question.method);
            must(methods.length > 0 && !methods.includes('elicitation/create'), `asked: ${methods.join(', ')}`);
        } finally {
            await sampler.close();
        }
    });
}

await main('client-v2.mjs', 'v2', connect, {
    async contract(report, peer, line) {
        await checkContract(report, peer);
        await checkQuestions(report, peer);
        if (peer.era === 'legacy') return checkLegacy(report, peer);
        await checkInputRequired(report, peer, 'input required');
        await checkPromptInput(report, peer, 'prompt input');
        await checkModern(report, peer, line);
    },
    reference: checkReference
});
