// The checks of the reference server from npm (server-everything), a legacy server whose tools have other names.
// They show that the checks also work with a server that was not written for them.

import { allPages, progressBeforeResult } from './contract.mjs';
import { must, pause, refused, same, textOf, until } from './report.mjs';
import { asked, roots } from './questions.mjs';

export async function checkReference(report, peer) {
    await report.check('lists', async () => {
        const counts = [];
        for (const [method, kind] of [
            ['listTools', 'tools'], ['listPrompts', 'prompts'], ['listResources', 'resources'],
            ['listResourceTemplates', 'resourceTemplates']
        ]) {
            const [items] = await allPages(peer, method, kind);
            must(items.length > 0, `no ${kind}`);
            counts.push(`${items.length} ${kind}`);
        }
        return counts.join(', ');
    });
    await report.check('echo', async () => {
        same(textOf(await peer.call('echo', { message: 'hi' })), 'Echo: hi', 'text');
    });
    await report.check('add', async () => {
        must(textOf(await peer.call('get-sum', { a: 19, b: 23 })).includes('42'), 'the sum is missing');
    });
    await report.check('structured content', async () => {
        const { structuredContent } = await peer.call('get-structured-content', { location: 'Chicago' });
        same(structuredContent.temperature, 36, 'temperature');
    });
    await report.check('image', async () => {
        const types = (await peer.call('get-tiny-image', {})).content.map(block => block.type);
        must(types.includes('image'), `types: ${types}`);
    });
    await report.check('resource links', async () => {
        const { content } = await peer.call('get-resource-links', { count: 3 });
        same(content.filter(block => block.type === 'resource_link').length, 3, 'links');
    });
    await checkReferenceCalls(report, peer);
    await checkReferenceQuestions(report, peer);
    await checkReferenceResources(report, peer);
}

async function checkReferenceCalls(report, peer) {
    const slow = 'trigger-long-running-operation';
    await report.check('progress', async () => {
        const start = peer.wire.length;
        await peer.call(slow, { duration: 0.4, steps: 4 }, { onprogress: () => {} });
        same(progressBeforeResult(peer.wire.slice(start)).map(step => step.progress), [1, 2, 3, 4], 'progress');
    });
    await report.check('cancel a call', async () => {
        const abort = new AbortController();
        const call = peer.call(slow, { duration: 5, steps: 5 }, { signal: abort.signal });
        await pause(200);
        abort.abort('no longer wanted');
        await call.then(() => { throw new Error('the call was answered'); }, () => {});
        same(textOf(await peer.call('echo', { message: 'still there' })), 'Echo: still there', 'the next call');
    });
    await report.check('logging', async () => {
        await peer.client.setLoggingLevel('debug');
        const start = peer.notifications.length;
        await peer.call('toggle-simulated-logging', {});
        await until(() => peer.notifications.slice(start).some(note => note.method === 'notifications/message'), 2000, 'a message');
        await peer.call('toggle-simulated-logging', {});
    });
    await report.check('completion', async () => {
        const { completion } = await peer.client.complete({
            ref: { type: 'ref/prompt', name: 'completable-prompt' }, argument: { name: 'department', value: 'E' }
        });
        same(completion.values, ['Engineering'], 'values');
    });
    await report.check('unknown tool', async () => {
        // This server reports it in the result; others refuse the request.
        const outcome = await peer.call('no_such_tool', {}).then(result => result.isError, () => true);
        same(outcome, true, 'an error');
    });
    await report.check('ping', () => peer.client.ping().then(result => same(result, {}, 'result')));
}

async function checkReferenceQuestions(report, peer) {
    await report.check('sampling', async () => {
        const [, result] = await asked(peer, 'sample', peer.answers.sample,
            () => peer.call('trigger-sampling-request', { prompt: 'Name a city.', maxTokens: 10 }));
        must(textOf(result).includes('Paris'), `text: ${textOf(result)}`);
    });
    await report.check('elicitation', async () => {
        const [[question], result] = await asked(peer, 'elicit', () => ({ action: 'accept', content: { name: 'Ada' } }),
            () => peer.call('trigger-elicitation-request', {}));
        must(question.requestedSchema.properties.name, 'no schema');
        must(textOf(result).includes('Ada'), `text: ${textOf(result)}`);
    });
    await report.check('URL elicitation', async () => {
        const [[question], result] = await asked(peer, 'elicit', () => ({ action: 'accept' }),
            () => peer.call('trigger-url-elicitation', { url: 'https://example.com/go' }));
        same([question.mode, question.url], ['url', 'https://example.com/go'], 'question');
        must(textOf(result).includes('completed'), `text: ${textOf(result)}`);
    });
    await report.check('roots', async () => {
        const text = textOf(await peer.call('get-roots-list', {}));
        must(text.includes(roots[0].uri), `text: ${text}`);
    });
}

async function checkReferenceResources(report, peer) {
    await report.check('templated resource', async () => {
        const [part] = (await peer.client.readResource({ uri: 'demo://resource/dynamic/text/7' })).contents;
        must(part.text.includes('Resource 7'), `text: ${part.text}`);
    });
    await report.check('unknown resource', async () => {
        await refused(peer.client.readResource({ uri: 'demo://no/such' }), [-32602, -32002], 'resources/read');
    });
    await report.check('watched resource', async () => {
        const uri = 'demo://resource/dynamic/text/1';
        const stop = await peer.watch(uri);
        await peer.call('toggle-subscriber-updates', {});
        await until(() => peer.notifications.some(
            note => note.method === 'notifications/resources/updated' && note.params.uri === uri), 7000, 'an update');
        await peer.call('toggle-subscriber-updates', {});
        await stop();
    });
    await report.check('prompts', async () => {
        must(textOf(await peer.client.getPrompt({ name: 'simple-prompt' })).includes('simple prompt'), 'simple-prompt');
        const prompt = await peer.client.getPrompt({ name: 'args-prompt', arguments: { city: 'Oslo' } });
        must(textOf(prompt).includes('Oslo'), `args-prompt: ${textOf(prompt)}`);
    });
}
