// A server that asks for a method that nobody knows, and answers a call only when it has been refused.
import { answer, legacy, send, serve } from './server.mjs';

let waiting;
serve(message => {
    if (message.id === 4711 && message.error?.code === -32601) return answer(waiting);
    const reply = legacy(message);
    if (message.method !== 'tools/call') return answer(reply);
    waiting = reply;
    send({ jsonrpc: '2.0', method: 'notifications/nobody/knows', params: {} });
    send({ jsonrpc: '2.0', id: 4711, method: 'nobody/knows', params: {} });
});
