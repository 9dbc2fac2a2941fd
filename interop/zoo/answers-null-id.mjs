// A legacy server that answers unknown methods without their id, as a parse error.
import { answer, failure, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    answer(reply?.error ? failure(null, -32700, 'cannot parse this') : reply);
});
