// A server that sends each answer twice.
import { answer, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    answer(reply);
    answer(reply);
});
