// A server that answers with version 1.0 of JSON-RPC.
import { answer, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    answer(reply && { ...reply, jsonrpc: '1.0' });
});
