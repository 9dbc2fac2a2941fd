// A server that answers a call only when its own ping has been answered.
import { answer, legacy, send, serve } from './server.mjs';

let waiting;
serve(message => {
    if (message.id === 'animal-ping' && 'result' in message) return answer(waiting);
    const reply = legacy(message);
    if (message.method !== 'tools/call') return answer(reply);
    waiting = reply;
    send({ jsonrpc: '2.0', id: 'animal-ping', method: 'ping' });
});
