// A legacy server that ends at the first method that it does not know, such as server/discover.
import { answer, legacy, serve } from './server.mjs';

serve(message => {
    const reply = legacy(message);
    if (reply?.error) {
        process.stderr.write(`fatal: ${reply.error.message}\n`);
        process.exit(1);
    }
    answer(reply);
});
