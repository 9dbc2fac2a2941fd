// A server that says that it speaks JSON-RPC 1.0.
import { answer, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    answer(reply && { ...reply, jsonrpc: '1.0' });
});
