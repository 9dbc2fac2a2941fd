// A server that answers with the id as a string, even if it was a number.
import { answer, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    answer(reply && { ...reply, id: String(reply.id) });
});
