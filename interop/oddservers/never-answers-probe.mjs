// A legacy server that does not answer unknown methods.
import { answer, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    if (!reply?.error) answer(reply);
});
