// A legacy server that says nothing to a method that it does not know.
import { answer, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    if (!reply?.error) answer(reply);
});
