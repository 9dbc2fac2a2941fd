// A server whose list of tools never ends: each page names the same next page.
import { answer, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    if (message.method === 'tools/list') reply.result.nextCursor = 'again';
    answer(reply);
});
