// The checks of the legacy era, for the clients of both SDKs.

import { asked, checkInputRequired, checkPromptInput } from './questions.mjs';
import { must, pause, same, until } from './report.mjs';

export async function checkLegacy(report, peer) {
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
    await checkInputRequired(report, peer, 'input required in the legacy era');
    await checkPromptInput(report, peer, 'prompt input in the legacy era');
}

/** Returns the data of the log messages that a call of a tool causes. */
async function logs(peer, tool) {
    const start = peer.notifications.length;
    await peer.call(tool, {});
    await pause(100);
    return peer.notifications.slice(start).filter(note => note.method === 'notifications/message')
        .map(note => note.params.data).map(data => data?.msg ?? data?.message ?? data);
}
