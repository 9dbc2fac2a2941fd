// A server that sends a request with an unknown method during a call, and answers the call after the request was refused.
import { answer, legacy, send, serve } from './server.mjs';

let waiting;
serve(message => {
    if (message.id === 4711 && message.error?.code === -32601) return answer(waiting);
    const reply = legacy(message);
    if (message.method !== 'tools/call') return answer(reply);
    waiting = reply;
    send({ jsonrpc: '2.0', method: 'notifications/unknown/method', params: {} });
    send({ jsonrpc: '2.0', id: 4711, method: 'unknown/method', params: {} });
});
