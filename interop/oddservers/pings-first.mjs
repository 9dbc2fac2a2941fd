// A server that sends a ping during a call, and answers the call after the ping was answered.
import { answer, legacy, send, serve } from './server.mjs';

let waiting;
serve(message => {
    if (message.id === 'test-ping' && 'result' in message) return answer(waiting);
    const reply = legacy(message);
    if (message.method !== 'tools/call') return answer(reply);
    waiting = reply;
    send({ jsonrpc: '2.0', id: 'test-ping', method: 'ping' });
});
