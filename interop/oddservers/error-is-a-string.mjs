// A legacy server whose errors are bare strings.
import { answer, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    answer(reply?.error ? { ...reply, error: reply.error.message } : reply);
});
