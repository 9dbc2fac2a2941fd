// A legacy server that answers an unknown method with a parse error and a null id.
import { answer, failure, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    answer(reply?.error ? failure(null, -32700, 'cannot parse this') : reply);
});
