// The checks of both eras, for servers with the tools, prompts and resources that peers/contract names. A peer is a
// client with the methods that this file needs, on one of the SDKs: see client-v1.mjs and client-v2.mjs.

import { must, pause, refused, same, textOf, until } from './report.mjs';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const wav = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';
export const invalidParams = -32602;
const legacyResourceNotFound = -32002;

export async function checkContract(report, peer) {
    await checkServer(report, peer);
    await checkLists(report, peer);
    await checkContents(report, peer);
    await checkCalls(report, peer);
    await checkErrors(report, peer);
    await checkResources(report, peer);
    await checkPrompts(report, peer);
}

async function checkServer(report, peer) {
    await report.check('server info', async () => {
        const info = peer.client.getServerVersion();
        must(info?.name && info?.version, `got ${JSON.stringify(info)}, want a name and a version`);
        return `${info.name} ${info.version}, ${peer.client.getNegotiatedProtocolVersion?.() ?? peer.version()}`;
    });
    await report.check('capabilities', async () => {
        const offered = peer.client.getServerCapabilities();
        for (const [name, flag] of [
            ['tools', 'listChanged'], ['prompts', 'listChanged'], ['resources', 'listChanged'], ['resources', 'subscribe'],
            ['completions'], ['logging']
        ]) {
            must(offered[name], `${name} is not declared`);
            if (flag) must(offered[name][flag] === true, `${name}.${flag} is not declared`);
        }
    });
}

async function checkLists(report, peer) {
    for (const [kind, method, key] of [
        ['tools', 'listTools', 'name'], ['prompts', 'listPrompts', 'name'],
        ['resources', 'listResources', 'uri'], ['resourceTemplates', 'listResourceTemplates', 'uriTemplate']
    ]) {
        await report.check(`list ${kind}`, async () => {
            const [items, pages] = await allPages(peer, method, kind);
            must(items.length > 0, 'the list is empty');
            must(new Set(items.map(item => item[key])).size === items.length, `a ${key} occurs twice`);
            for (const item of items) must(item.name, `an entry without a name: ${JSON.stringify(item)}`);
            return `${items.length} on ${pages} page(s)`;
        });
    }
    await report.check('descriptions', async () => {
        const [tools] = await allPages(peer, 'listTools', 'tools');
        const [prompts] = await allPages(peer, 'listPrompts', 'prompts');
        for (const item of [...tools, ...prompts]) must(item.description, `${item.name} has no description`);
        for (const tool of tools) must(tool.inputSchema?.type === 'object', `${tool.name}: inputSchema is not an object`);
        for (const tool of tools) must(/^[A-Za-z0-9_./-]{1,64}$/.test(tool.name), `${tool.name} is not a tool name`);
    });
    await report.check('unknown cursor', async () => {
        await refused(peer.client.listTools({ cursor: 'no-such-cursor' }), [invalidParams], 'tools/list');
    });
    await report.check('schema kept', async () => {
        const [tools] = await allPages(peer, 'listTools', 'tools');
        const schema = tools.find(tool => tool.name === 'json_schema_2020_12_tool')?.inputSchema;
        must(schema, 'json_schema_2020_12_tool is not listed');
        same(schema.$schema, 'https://json-schema.org/draft/2020-12/schema', '$schema');
        for (const keyword of ['$defs', 'allOf', 'if', 'then', 'else']) must(schema[keyword], `${keyword} is missing`);
        same(schema.additionalProperties, false, 'additionalProperties');
        must(JSON.stringify(schema.$defs).includes('"$anchor"'), '$anchor is missing');
        must(JSON.stringify(schema.allOf).includes('"anyOf"'), 'anyOf is missing');
    });
}

/** Returns the items of a list and the number of its pages. */
export async function allPages(peer, method, kind) {
    const items = [];
    const seen = new Set();
    let page = await peer.onePage(method);
    for (;;) {
        items.push(...page[kind]);
        if (page.nextCursor === undefined) return [items, seen.size + 1];
        must(!seen.has(page.nextCursor), `the cursor ${page.nextCursor} occurs twice`);
        seen.add(page.nextCursor);
        page = await peer.onePage(method, page.nextCursor);
    }
}

async function checkContents(report, peer) {
    await report.check('text', async () => {
        const result = await peer.call('test_simple_text');
        same(textOf(result), 'This is a simple text response for testing.', 'text');
    });
    await report.check('image', async () => {
        const [image] = (await peer.call('test_image_content', {})).content;
        same([image.type, image.mimeType, image.data], ['image', 'image/png', png], 'image');
    });
    await report.check('audio', async () => {
        const [audio] = (await peer.call('test_audio_content', {})).content;
        same([audio.type, audio.mimeType, audio.data], ['audio', 'audio/wav', wav], 'audio');
    });
    await report.check('embedded resource', async () => {
        const [block] = (await peer.call('test_embedded_resource', {})).content;
        same([block.type, block.resource?.uri], ['resource', 'test://embedded-resource'], 'resource');
        must(block.resource.mimeType && block.resource.text, 'want a mimeType and a text');
    });
    await report.check('mixed content', async () => {
        const { content } = await peer.call('test_multiple_content_types', {});
        same(content.map(block => block.type).sort(), ['image', 'resource', 'text'], 'types');
    });
    await report.check('tool error', async () => {
        const result = await peer.call('test_error_handling', {});
        same(result.isError, true, 'isError');
        must(/this tool intentionally returns an error for testing/i.test(textOf(result)), `text: ${textOf(result)}`);
    });
}

async function checkCalls(report, peer) {
    await report.check('echo', async () => {
        must(textOf(await peer.call('echo', { message: 'hi there' })).includes('hi there'), 'the message is missing');
    });
    await report.check('echo unicode', async () => {
        const message = 'grüße, 世界, 𝄞, \u2028, "quotes", \\, \t tab, <&>';
        must(textOf(await peer.call('echo', { message })).includes(message), 'the message is changed');
    });
    await report.check('echo 1 MiB', async () => {
        const message = 'x'.repeat(1 << 20);
        must(textOf(await peer.call('echo', { message })).includes(message), 'the message is changed');
    });
    await report.check('echo 50 at once', async () => {
        const messages = Array.from({ length: 50 }, (_, i) => `message ${i}.`);
        const results = await Promise.all(messages.map(message => peer.call('echo', { message })));
        results.forEach((result, i) => must(textOf(result).includes(messages[i]), `call ${i} got another's answer`));
    });
    await report.check('add', async () => {
        const result = await peer.call('add', { a: 19, b: 23 });
        must(/\b42\b/.test(textOf(result)), `text: ${textOf(result)}`);
    });
    await report.check('progress', async () => {
        // The messages are compared, because SDK v1 loses a progress notification that arrives in one read with the result.
        const heard = [];
        const start = peer.wire.length;
        await peer.call('test_tool_with_progress', {}, { onprogress: step => heard.push(step.progress) });
        const steps = progressBeforeResult(peer.wire.slice(start));
        same(steps.map(step => step.progress), [0, 50, 100], 'progress');
        for (const step of steps) same(step.total, 100, 'total');
        must(heard.length > 0, 'the SDK recognised no progress');
    });
    await report.check('cancel a call', async () => {
        await cancelCall(peer);
        must(!(await peer.call('test_simple_text')).isError, 'the next call failed');
    });
    await report.check('no answer after a cancel', async () => {
        const started = await cancelCall(peer);
        await pause(1200); // longer than the call would have taken
        const late = peer.wire.slice(started).filter(message => 'result' in message || 'error' in message);
        must(late.length === 0, JSON.stringify(late));
    });
    await report.check('completion', async () => {
        const { completion } = await complete(peer, 'test');
        must(Array.isArray(completion.values) && completion.values.length <= 100, 'want an array of at most 100 values');
        return `${completion.values.length} values`;
    });
    await report.check('completion values', async () => {
        const all = (await complete(peer, '')).completion.values;
        must(all.length > 0, 'no value for an empty argument');
        const some = (await complete(peer, all[0])).completion.values;
        must(some.includes(all[0]), `${all[0]} does not complete to itself`);
    });
}

/**
 * Starts a slow call, cancels it at its first progress, and returns how many messages had arrived before. It prefers the
 * tool slow, because the contract's own tool takes only a tenth of a second: too short for a cancel on a busy machine.
 */
async function cancelCall(peer) {
    const abort = new AbortController();
    let started;
    const [tools] = await allPages(peer, 'listTools', 'tools');
    const slow = tools.some(tool => tool.name === 'slow') ? ['slow', { seconds: 1 }] : ['test_tool_with_progress', {}];
    const call = peer.call(...slow, {
        signal: abort.signal,
        onprogress: () => {
            started ??= peer.wire.length;
            abort.abort('no longer wanted');
        }
    });
    await call.then(() => { throw new Error('the call was answered'); }, () => {});
    must(started !== undefined, 'the call ended before its first progress');
    return started;
}

/** Returns the params of the progress notifications before the first result. */
export function progressBeforeResult(messages) {
    const end = messages.findIndex(message => 'result' in message);
    return messages.slice(0, end).filter(message => message.method === 'notifications/progress').map(message => message.params);
}

function complete(peer, value) {
    return peer.client.complete({
        ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' },
        argument: { name: 'arg1', value }
    });
}

async function checkErrors(report, peer) {
    await report.check('unknown tool', async () => {
        await refused(peer.call('no_such_tool', {}), [invalidParams], 'tools/call');
    });
    await report.check('invalid arguments', async () => {
        const result = await peer.call('add', { a: 'nineteen', b: 23 });
        same(result.isError, true, 'isError');
        return textOf(result);
    });
    await report.check('unknown prompt', async () => {
        await refused(peer.client.getPrompt({ name: 'no_such_prompt' }), [invalidParams], 'prompts/get');
    });
    await report.check('missing prompt argument', async () => {
        await refused(peer.client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'a' } }),
            [invalidParams], 'prompts/get');
    });
    const missing = 'test://nonexistent-resource-for-conformance-testing';
    let data;
    await report.check('unknown resource', async () => {
        const codes = peer.era === 'modern' ? [invalidParams] : [invalidParams, legacyResourceNotFound];
        const error = await refused(peer.client.readResource({ uri: missing }), codes, 'resources/read');
        data = error.data;
        return `code ${error.code}`;
    });
    await report.check('unknown resource named', async () => {
        if (peer.era === 'modern') same(data?.uri, missing, 'data.uri');
    });
}

async function checkResources(report, peer) {
    await report.check('text resource', async () => {
        const [part] = (await peer.client.readResource({ uri: 'test://static-text' })).contents;
        same([part.uri, part.mimeType, part.text],
            ['test://static-text', 'text/plain', 'This is the content of the static text resource.'], 'contents');
    });
    await report.check('binary resource', async () => {
        const [part] = (await peer.client.readResource({ uri: 'test://static-binary' })).contents;
        same([part.uri, part.mimeType, part.blob], ['test://static-binary', 'image/png', png], 'contents');
    });
    await report.check('templated resource', async () => {
        const [part] = (await peer.client.readResource({ uri: 'test://template/123/data' })).contents;
        same(part.mimeType, 'application/json', 'mimeType');
        same(JSON.parse(part.text), { id: '123', templateTest: true, data: 'Data for ID: 123' }, 'text');
    });
    const uri = 'test://watched-resource';
    const updates = () => peer.notifications.filter(
        note => note.method === 'notifications/resources/updated' && note.params.uri === uri).length;
    let stop;
    await report.check('watched resource', async () => {
        stop = await peer.watch(uri);
        await until(() => updates() > 0, 8000, 'notifications/resources/updated');
    });
    await report.check('end of a watch', async () => {
        must(stop, 'the watch did not start');
        await stop();
        await pause(200);
        const before = updates();
        await pause(4000); // longer than the period of any server here
        same(updates(), before, 'updates');
    });
}

async function checkPrompts(report, peer) {
    await report.check('simple prompt', async () => {
        const { messages } = await peer.client.getPrompt({ name: 'test_simple_prompt' });
        must(messages.length > 0 && messages[0].role && messages[0].content.type === 'text', 'want a text message');
    });
    await report.check('prompt with arguments', async () => {
        const prompt = await peer.client.getPrompt({
            name: 'test_prompt_with_arguments', arguments: { arg1: 'testValue1', arg2: 'testValue2' }
        });
        same(textOf(prompt), "Prompt with arguments: arg1='testValue1', arg2='testValue2'", 'text');
    });
    await report.check('prompt with a resource', async () => {
        const { messages } = await peer.client.getPrompt({
            name: 'test_prompt_with_embedded_resource', arguments: { resourceUri: 'test://static-text' }
        });
        const block = messages.map(message => message.content).find(content => content.type === 'resource');
        same(block?.resource.uri, 'test://static-text', 'uri');
    });
    await report.check('prompt with an image', async () => {
        const { messages } = await peer.client.getPrompt({ name: 'test_prompt_with_image' });
        const image = messages.map(message => message.content).find(content => content.type === 'image');
        same([image?.mimeType, image?.data], ['image/png', png], 'image');
    });
}
