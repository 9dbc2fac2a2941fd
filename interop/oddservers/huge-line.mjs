// A server whose answer to a call is a line of 20 MiB.
import { answer, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    if (message.method === 'tools/call') reply.result.content[0].text = 'x'.repeat(20 << 20);
    answer(reply);
});
