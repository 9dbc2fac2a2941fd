// A legacy server that ends if the first request is not initialize. Servers of several SDKs do that.
import { answer, legacy, serve } from './server.mjs';

let initialized = false;
serve(message => {
    if (!initialized && message.method !== 'initialize') {
        process.stderr.write('fatal: expected initialize\n');
        process.exit(3);
    }
    initialized = true;
    answer(legacy(message));
});
